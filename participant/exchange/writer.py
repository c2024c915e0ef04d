"""A writer of files that hands over what belongs to others, and writes what others hand over.

Who has no room to send takes meanwhile: so a circle of full queues empties itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Condition
from typing import Any

from control_topic.messages import DataFile
from participant.errors import HandingBroken
from participant.exchange.homes import Homes
from participant.exchange.inbox import Inbox
from participant.exchange.outbox import Outbox
from table.port import FileWriter, Handing

WAIT_S = 0.1
"""So often, while it waits for others, it says that it gets on."""


class ExchangingWriter(FileWriter):
    """See `table.port.FileWriter`. `inner`: writes. `frame_bytes`: rows go out in frames of about so much,
    also those of a large batch. `waiting_bytes_max`: so much waits for more of its taker's, all together.

    `waits`: called now and then while others are waited for; what it raises ends that.
    """

    def __init__(
        self,
        inner: FileWriter,
        handing: Handing,
        homes: Homes,
        inbox: Inbox,
        outbox: Outbox,
        *,
        frame_bytes: int,
        waiting_bytes_max: int,
        changed: Condition,
        waits: Callable[[], None],
    ) -> None:
        self._inner = inner
        self._handing = handing
        self._homes = homes
        self._inbox = inbox
        self._outbox = outbox
        self._frame_bytes = frame_bytes
        self._waiting_bytes_max = waiting_bytes_max
        self._changed = changed
        self._waits = waits
        self._parts: dict[str, list[Any]] = {}
        self._sizes: dict[str, int] = {}
        self.handed: dict[str, int] = {}
        """Incarnation -> rows that were handed over to it."""
        self.taken: dict[str, int] = {}
        """Incarnation -> rows that were taken from it."""

    @property
    def upload_s(self) -> float:
        return self._inner.upload_s

    def write(self, shaped: Any) -> None:
        """Take rows that were read here. Raises `HandingBroken`, too."""
        writers = self._homes.writers
        try:
            divided = self._handing.divided(shaped, self._homes, len(writers))
        except ValueError as error:
            raise HandingBroken(f"rows could not be handed over to others: {error}") from error
        for number, part in enumerate(divided):
            if part is not None and number != self._homes.me:
                self._let_wait(writers[number], part)
        own = divided[self._homes.me]
        if own is not None:
            self._inner.write(own)
        self.take()

    def widen(self, files: Any) -> None:
        """The configuration does not let columns follow schemas where rows are handed over."""
        raise HandingBroken("rows with other columns than the run began with cannot be handed over")

    def take(self) -> None:
        """Write what others have handed over so far. Raises `HandingBroken` where that is no use any more."""
        self._outbox.check()
        while (found := self._inbox.take()) is not None:
            sender, frame = found
            try:
                rows = self._handing.unpacked(frame)
            except ValueError as error:
                raise HandingBroken(f"{sender} handed over what is no rows of this table: {error}") from error
            self._inner.write(rows)
            self.taken[sender] = self.taken.get(sender, 0) + rows.count

    def finish(self, wake: Callable[[], None]) -> None:
        """Hand over the rest, take all of everybody's, and begin to end the files."""
        for who in list(self._parts):
            self._send(who)
        self._outbox.finish()
        while True:
            self.take()
            if self._inbox.has_all and self._outbox.is_taken:
                break
            self._wait()
        self._inner.finish(wake)

    def finished(self, *, wait: bool = False) -> tuple[DataFile, ...] | None:
        files = self._inner.finished(wait=wait)
        if files is not None:
            self._inbox.close()
            self._outbox.close()
        return files

    def discard(self) -> None:
        self._inbox.close()
        self._outbox.close()
        self._parts.clear()
        self._sizes.clear()
        self._inner.discard()

    # --- inside -----------------------------------------------------------------------------------

    def _let_wait(self, who: str, part: Any) -> None:
        """Rows go out when there are enough of one taker's; all that wait are bounded, too."""
        self._parts.setdefault(who, []).append(part)
        self._sizes[who] = self._sizes.get(who, 0) + part.nbytes
        self.handed[who] = self.handed.get(who, 0) + part.count
        if self._sizes[who] >= self._frame_bytes:
            self._send(who)
        while sum(self._sizes.values()) > self._waiting_bytes_max:
            self._send(max(self._sizes, key=self._sizes.__getitem__))

    def _send(self, who: str) -> None:
        del self._sizes[who]
        for frame in self._packed(who):
            while not self._outbox.offer(who, frame):
                self.take()
                self._wait()

    def _packed(self, who: str) -> Iterator[bytes]:
        try:
            yield from self._handing.packed(self._parts.pop(who), self._frame_bytes)
        except ValueError as error:
            raise HandingBroken(f"rows could not be handed over to {who}: {error}") from error

    def _wait(self) -> None:
        self._waits()
        with self._changed:
            self._changed.wait(WAIT_S)
