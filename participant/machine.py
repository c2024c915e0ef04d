"""The participant's machine: its state, the epoch that rules, what it says, and what it asks. Pure."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace

from control_topic.controls import Tuning
from control_topic.messages import Body
from participant.events import Action, FetchOffsets, Flush, Send, Settings
from participant.transitions import IllegalEvent, State

PROGRESS_PARTS = 4
"""Who closes files says so often within the write timeout how far it is, at least."""


class Machine:
    """What every part shares."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        """In force; operators may change some, from the next transaction on."""
        self.tuning: Tuning | None = None
        """What they have set and is not in force yet."""
        self.state = State.JOINING
        self.epoch = 0
        """The highest that was heard of."""
        self.ignored: Counter[str] = Counter()
        self.out: list[Action] = []
        """What the event that is being handled causes, in order."""
        self._calls = 0
        self._unanswered: set[int] = set()
        self._flushes: deque[int] = deque()

    def tune(self) -> None:
        """What was set is in force from here on."""
        tuning, self.tuning = self.tuning, None
        if tuning is not None:
            self.settings = replace(
                self.settings,
                interval_ms=tuning.interval_ms,
                records_max=tuning.max_records,
                bytes_max=tuning.max_bytes,
                progress_ms=min(self.settings.progress_ms, tuning.write_timeout_ms // PROGRESS_PARTS),
            )

    def do(self, *actions: Action) -> None:
        self.out += actions

    def send(self, body: Body) -> None:
        self.out.append(Send(body=body, epoch=self.epoch))

    def call(self, make: Callable[[int], FetchOffsets | Flush]) -> int:
        """Ask for what is answered. `make` is given the call's number, which is the answer's."""
        self._calls += 1
        self._unanswered.add(self._calls)
        action = make(self._calls)
        if isinstance(action, Flush):
            self._flushes.append(self._calls)
        self.out.append(action)
        return self._calls

    def answered(self, call: int) -> None:
        """Raises `IllegalEvent` for an answer to what was not asked, or is answered already, and for
        a flush's before an earlier one's: whoever writes files does so one after the other.
        """
        if call not in self._unanswered:
            raise IllegalEvent(f"completion of call {call} in {self.state.name}, which awaits no such answer")
        if call in self._flushes:
            first = self._flushes.popleft()
            if call != first:
                raise IllegalEvent(f"completion of call {call} in {self.state.name}, before call {first}")
        self._unanswered.remove(call)
