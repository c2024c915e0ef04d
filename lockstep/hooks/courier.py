"""The thread of one hook: it performs what `Delivery` says, and nobody waits for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace

from lockstep.errors import Failed
from lockstep.hooks.commits import Commit, Mark
from lockstep.hooks.delivery import (
    BACKOFF_MS,
    COMMITS_MAX,
    FAILS_FOR_GOOD,
    READ_AGAIN_MS,
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
    again,
)
from lockstep.hooks.history import History, Unreadable
from lockstep.hooks.notes import HookNote, NoteUnreadable
from lockstep.hooks.port import Ending, HowEnded, Sink, SinkError

log = logging.getLogger("lockstep.hooks")


class Courier:
    """`at_start`: the table's newest commit, before the run has made any. `newest`: the newest one that is
    known, asked often. `clock_ms`: never goes back.
    """

    def __init__(
        self,
        sink: Sink,
        note: HookNote,
        history: History,
        *,
        at_start: Mark,
        newest: Callable[[], Mark],
        clock_ms: Callable[[], int],
    ) -> None:
        """Raises `Failed` where nothing can be noted."""
        self._sink, self._note, self._history = sink, note, history
        self._newest, self._clock_ms = newest, clock_ms
        self._stuck: Trouble | None = None
        """What keeps its thread from doing anything."""
        self._noted = False
        """The note was read, or made: nothing is delivered, and nothing written, before."""
        self._delivery = self._made(at_start)
        self._guard = threading.Lock()
        self._wake = threading.Event()
        self._until_ms: int | None = None
        self._over_ms: int | None = None
        """Set as that one, and stays."""
        self._ending = Ending(how=HowEnded.FAILED, reason="")
        self._leave = False
        self._busy_since_ms: int | None = None
        self._said = False
        self._thread = threading.Thread(target=self._run, name=f"hook-{sink.name}", daemon=True)
        self._begin(at_start)

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
        self._ending, self._until_ms, self._over_ms = ending, until_ms, until_ms
        self._wake.set()

    def join(self, timeout_s: float) -> bool:
        """Whether it has come to its end."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def standing(self) -> tuple[Trouble | None, int]:
        """What keeps it from getting on, and how many commits wait, as far as known."""
        with self._guard:
            trouble, waiting = self._stuck or self._delivery.trouble, self._delivery.waiting
            if not self._noted:
                waiting = max(1, waiting)
        busy_ms = self._clock_ms() - since_ms if (since_ms := self._busy_since_ms) is not None else 0
        if busy_ms > 1_000 * self._sink.patience_s:
            hangs = Trouble("no answer yet", since_ms or 0, 1)
            trouble = trouble or hangs
        return trouble, waiting

    # --- its own thread -------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._leave and self._sheltered():
                pass
        finally:
            self._sink.close()

    def _sheltered(self) -> bool:
        """A step. Whatever it fails with, it is tried again later: without its thread a hook is silent."""
        try:
            goes_on = self._step() if self._noted else self._look_for_note()
        except Exception as error:
            why = f"unexpected: {type(error).__name__}"  # its own text may hold a secret
            log.debug("hook %s failed unexpectedly", self.name, exc_info=True)
            if self._stuck is None:
                log.warning("hook %s (%s) cannot go on: %s. It is tried again", self.name, self.place, why)
            return self._is_stuck(why)
        if self._noted:
            with self._guard:
                self._stuck = None
        return goes_on

    def _is_stuck(self, why: str) -> bool:
        """Rest for a while, longer each time; whether there is time for another try."""
        now_ms = self._clock_ms()
        with self._guard:
            self._stuck = again(self._stuck, now_ms, why)
            back_off_ms = self._stuck.back_off_ms
        if self._over_ms is not None:
            if now_ms >= self._over_ms:
                return False
            back_off_ms = BACKOFF_MS
        self._wake.wait(back_off_ms / 1_000)
        self._wake.clear()
        return True

    def _made(self, sent: Mark) -> Delivery:
        return Delivery(sent, newest_only=self._sink.newest_only, every_ms=self._sink.every_ms)

    def _begin(self, newest: Mark) -> None:
        """Read the note, and go on behind it."""
        try:
            sent = self._note.begin(newest)
        except NoteUnreadable as error:
            if self._stuck is None:
                log.warning("hook %s (%s) tells nothing: %s", self.name, self.place, error)
            with self._guard:
                self._stuck = replace(again(self._stuck, self._clock_ms(), ""), why=str(error))
            return
        with self._guard:
            self._delivery, self._noted, self._stuck = self._made(sent), True, None

    def _look_for_note(self) -> bool:
        """Whether somebody has mended the note, or deleted it. Whether there is another step."""
        if self._over_ms is not None:
            return False
        self._wake.wait(READ_AGAIN_MS / 1_000)
        self._wake.clear()
        if self._over_ms is None:
            try:
                self._begin(self._newest())
            except Failed as error:
                with self._guard:
                    self._stuck = replace(
                        again(self._stuck, self._clock_ms(), ""), why=str(error).rstrip(".")
                    )
        return True

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
