"""The coordinator's machine: its state, its epoch, what it says, and the call that is under way. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from control_topic.messages import Body, Halt
from coordinator.events import (
    Action,
    Call,
    Completed,
    Event,
    Recover,
    Result,
    RunMode,
    Send,
    Settings,
    Stop,
)
from coordinator.transitions import IllegalEvent, State


class Machine:
    """What every part shares."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        """In force; operators may change some, from the next transaction on."""
        self.state = State.NEW
        self.epoch = 0
        """Ours, 0 until it is claimed."""
        self.mode = RunMode.RUN
        self.halt_reason = ""
        self.pending: Call | None = None
        """The call that is not answered for good. There is never more than one."""
        self.retry_ms: int | None = None
        """When it is asked again; None while it is out."""
        self.calls = 0
        """Made so far: the number of the last one."""
        self.ignored: Counter[str] = Counter()
        self.out: list[Action] = []
        """What the event that is being handled causes, in order."""

    # --- what is said ---------------------------------------------------------------------------

    def send(self, body: Body) -> None:
        self.out.append(Send(body=body, epoch=self.epoch))

    def fence(self, reason: str) -> None:
        """Another rules: final, and only ours."""
        self.state = State.FENCED
        self.settled()
        self.out.append(Stop(reason=reason, fenced=True))

    def halt(self, reason: str) -> None:
        """The run ends, for everybody."""
        self.send(Halt(reason=reason))
        self.state = State.HALTED
        self.halt_reason = reason
        self.settled()
        self.out.append(Stop(reason=reason, fenced=False))

    # --- the call under way ---------------------------------------------------------------------

    def call(self, state: State, make: Callable[[int], Call]) -> None:
        """Go into the state that awaits the answer. `make` is given the call's number."""
        self.calls += 1
        self.state = state
        self.pending = make(self.calls)
        self.retry_ms = None
        self.out.append(self.pending)

    def recover(self) -> None:
        self.call(State.RECOVERING, lambda call: Recover(call=call, epoch=self.epoch))

    def check_answer(self, event: Completed) -> None:
        """Raises `IllegalEvent` for an answer to what was not asked, or is answered already."""
        if event.call > self.calls:
            raise IllegalEvent(f"completion of call {event.call}, only {self.calls} were made")
        if self.pending is None or event.call != self.pending.call or self.retry_ms is not None:
            raise IllegalEvent(f"completion of call {event.call} in {self.state.name}, which awaits another")

    def answered_finally(self, event: Completed) -> bool:
        """Whether what was asked is done; otherwise the run halts, or the same is asked again later."""
        if event.result is Result.OK:
            return True
        if event.result is Result.HALTED:
            self.halt(event.reason)
        else:
            self.retry_later(event)
        return False

    def retry_later(self, event: Completed) -> None:
        self.retry_ms = event.now_ms + (event.wait_ms or self.settings.retry_ms)

    def on_retry(self, event: Event) -> None:
        """Ask again what went unanswered; a repeated call has a new number, the same meaning."""
        pending = self.pending
        if pending is not None and self.retry_ms is not None and event.now_ms >= self.retry_ms:
            self.call(self.state, lambda call: replace(pending, call=call))

    def settled(self) -> None:
        self.pending = None
        self.retry_ms = None
