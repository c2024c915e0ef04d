"""What others hand over, until the plane writes it. Threads of the server fill it, the plane's empties it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection
from threading import Condition

from participant.errors import HandingBroken

CLOSED_REMEMBERED = 64
LOOK_S = 0.1


class Inbox:
    """Of one transaction at a time; what is held is bounded by bytes, but for one frame that always fits.

    `changed`: notified with everything that happens here. `arrived`: called when there is something to take.
    """

    def __init__(self, bytes_max: int, changed: Condition, arrived: Callable[[], None]) -> None:
        self._bytes_max = bytes_max
        self._changed = changed
        self._arrived = arrived
        self._transaction = ""
        self._awaited: set[str] = set()
        self._streaming: set[str] = set()
        self._frames: deque[tuple[str, bytes]] = deque()
        self._held_bytes = 0
        self._broken = ""
        self._closed: deque[str] = deque(maxlen=CLOSED_REMEMBERED)

    # --- the plane's ------------------------------------------------------------------------------

    def open(self, transaction: str, senders: Collection[str]) -> None:
        """From here on these may hand over; each is waited for."""
        with self._changed:
            self._forget()
            self._transaction, self._awaited = transaction, set(senders)
            self._changed.notify_all()

    def close(self) -> None:
        """The transaction is over here: nothing more of it is taken."""
        with self._changed:
            self._forget()
            self._changed.notify_all()

    def take(self) -> tuple[str, bytes] | None:
        """The next frame and who sent it. Raises `HandingBroken` where a stream has ended before its end."""
        with self._changed:
            if self._broken:
                raise HandingBroken(self._broken)
            if not self._frames:
                return None
            sender, frame = self._frames.popleft()
            self._held_bytes -= len(frame)
            self._changed.notify_all()
            return sender, frame

    @property
    def has_all(self) -> bool:
        """Whether all of everybody's was taken."""
        with self._changed:
            return not self._awaited and not self._frames

    def awaited(self) -> list[str]:
        """Whose end is not here yet."""
        with self._changed:
            return sorted(self._awaited)

    def _forget(self) -> None:
        if self._transaction:
            self._closed.append(self._transaction)
        self._transaction, self._broken = "", ""
        self._awaited, self._streaming = set(), set()
        self._frames.clear()
        self._held_bytes = 0

    # --- the server's -----------------------------------------------------------------------------

    def admit(self, transaction: str, sender: str, going: Callable[[], bool], timeout_s: float) -> str:
        """Wait until the transaction is open here. Why the stream is refused; empty where it is not."""
        until_s = time.monotonic() + timeout_s
        with self._changed:
            while self._transaction != transaction:
                if transaction in self._closed:
                    return f"transaction {transaction} is over here"
                if time.monotonic() >= until_s or not going():
                    return f"transaction {transaction} is not open here"
                self._changed.wait(LOOK_S)
            if sender not in self._awaited or sender in self._streaming:
                return f"{sender} has no rows to hand over here, or no more of them"
            self._streaming.add(sender)
            return ""

    def put(self, transaction: str, sender: str, frame: bytes, going: Callable[[], bool]) -> bool:
        """Take a frame once there is room; False where the transaction, or the stream, is over first."""
        with self._changed:
            while self._transaction == transaction and going():
                if not self._held_bytes or self._held_bytes + len(frame) <= self._bytes_max:
                    first = not self._frames
                    self._frames.append((sender, frame))
                    self._held_bytes += len(frame)
                    self._changed.notify_all()
                    break
                self._changed.wait(LOOK_S)
            else:
                return False
        if first:
            self._arrived()
        return True

    def ended(self, transaction: str, sender: str) -> bool:
        """That was all of this sender's. False where the transaction is over here: nobody has it then."""
        with self._changed:
            if self._transaction != transaction:
                return False
            self._awaited.discard(sender)
            self._changed.notify_all()
            return True

    def broke(self, transaction: str, sender: str) -> None:
        """A stream is over, and its sender did not say that this was all."""
        with self._changed:
            told = self._transaction != transaction or bool(self._broken)
            if not told:
                self._broken = f"what {sender} was handing over broke off"
                self._changed.notify_all()
        if not told:
            self._arrived()
