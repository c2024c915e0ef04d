"""The thread of one hook: it performs what `Delivery` says, and nobody waits for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from lockstep.hooks.commits import Commit, Mark
from lockstep.hooks.delivery import (
    COMMITS_MAX,
    FAILS_FOR_GOOD,
    Begin,
    Deliver,
    Delivery,
    Done,
    End,
    Note,
    Read,
    Rest,
    Step,
    Trouble,
)
from lockstep.hooks.history import History, Unreadable
from lockstep.hooks.notes import HookNote
from lockstep.hooks.port import Ending, HowEnded, Sink, SinkError

log = logging.getLogger("lockstep.hooks")


class Courier:
    """`newest`: the newest commit that is known, asked often. `clock_ms`: never goes back."""

    def __init__(
        self,
        sink: Sink,
        note: HookNote,
        history: History,
        *,
        sent: Mark,
        newest: Callable[[], Mark],
        clock_ms: Callable[[], int],
    ) -> None:
        self._sink, self._note, self._history = sink, note, history
        self._newest, self._clock_ms = newest, clock_ms
        self._delivery = Delivery(sent, newest_only=sink.newest_only, every_ms=sink.every_ms)
        self._guard = threading.Lock()
        self._wake = threading.Event()
        self._until_ms: int | None = None
        self._ending = Ending(how=HowEnded.FAILED, reason="")
        self._leave = False
        self._busy_since_ms: int | None = None
        self._said = False
        self._thread = threading.Thread(target=self._run, name=f"hook-{sink.name}", daemon=True)

    # --- from other threads ---------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._sink.name

    @property
    def place(self) -> str:
        return self._sink.place

    def start(self) -> None:
        self._thread.start()

    def finish(self, ending: Ending, until_ms: int) -> None:
        """The run has ended: deliver what is open until then. One that was superseded leaves it."""
        self._leave = ending.how is HowEnded.SUPERSEDED
        self._ending, self._until_ms = ending, until_ms
        self._wake.set()

    def join(self, timeout_s: float) -> bool:
        """Whether it has come to its end."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def standing(self) -> tuple[Trouble | None, int]:
        """What keeps it from getting on, and how many commits wait, as far as known."""
        with self._guard:
            trouble, waiting = self._delivery.trouble, self._delivery.waiting
        busy_ms = self._clock_ms() - since_ms if (since_ms := self._busy_since_ms) is not None else 0
        if busy_ms > 1_000 * self._sink.patience_s:
            hangs = Trouble("no answer yet", since_ms or 0, 1)
            trouble = trouble or hangs
        return trouble, waiting

    # --- its own thread -------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._leave and self._step():
                pass
        finally:
            self._sink.close()

    def _step(self) -> bool:
        """Whether there is another one."""
        now_ms = self._clock_ms()
        with self._guard:
            if self._until_ms is not None:
                self._delivery.stop(now_ms, self._until_ms)
                self._until_ms = None
            self._delivery.saw(self._newest())
            step = self._delivery.next(now_ms)
        match step:
            case Done():
                return False
            case Rest(for_ms):
                self._wake.wait(for_ms / 1_000)
                self._wake.clear()
            case Read():
                self._read(step)
            case Note(mark):
                self._write(mark)
            case _:
                self._tell(step)
        return True

    def _read(self, step: Read) -> None:
        found: list[Commit] = []
        why = ""
        try:
            if step.newest_only:
                found = self._history.newest(step.after)
            else:
                found = self._history.after(
                    step.after, step.upto, count_max=step.count_max, bytes_max=step.bytes_max
                )
        except Unreadable as error:
            why = f"its commits cannot be read: {error}"
        with self._guard:
            if why:
                self._delivery.not_read(self._clock_ms(), why)
            else:
                self._delivery.read(self._clock_ms(), found)

    def _write(self, mark: Mark) -> None:
        try:
            self._note.write(mark)
        except OSError as error:
            log.debug(
                "hook %s: its note could not be written: %s", self.name, error
            )  # the table says so, too
            with self._guard:
                self._delivery.not_noted(self._clock_ms())
            return
        with self._guard:
            self._delivery.noted(self._clock_ms(), mark)

    def _tell(self, step: Step) -> None:
        self._busy_since_ms = self._clock_ms()
        why = ""
        try:
            match step:
                case Begin():
                    self._sink.begin()
                case Deliver(commit):
                    self._sink.deliver(commit)
                case End():
                    self._sink.end(self._ending)
        except SinkError as error:
            why = str(error) or "it failed"
        except Exception as error:  # whatever it is, the hook is tried again: without its thread it is not
            log.debug("hook %s failed unexpectedly", self.name, exc_info=True)
            why = f"unexpected: {type(error).__name__}"
        self._busy_since_ms = None
        with self._guard:
            if why:
                self._delivery.failed(self._clock_ms(), why)
            elif isinstance(step, Begin):
                self._delivery.began()
            elif isinstance(step, Deliver):
                self._delivery.delivered(self._clock_ms())
            else:
                self._delivery.ended()
            trouble = self._delivery.trouble
        self._say(why, trouble)

    def _say(self, why: str, trouble: Trouble | None) -> None:
        """Once for each outage, and once that it is over."""
        if why and not self._said and trouble is not None and trouble.failures >= FAILS_FOR_GOOD:
            self._said = True
            log.warning(
                "hook %s (%s) does not take commits: %s. It is tried again", self.name, self.place, why
            )
        elif not why and self._said:
            self._said = False
            log.info("hook %s (%s) takes commits again", self.name, self.place)


def waiting_text(waiting: int) -> str:
    """As many as are known."""
    if waiting > COMMITS_MAX:
        return f"{COMMITS_MAX:,} commits or more"
    return f"{waiting:,} commits" if waiting > 1 else "the newest commit"
