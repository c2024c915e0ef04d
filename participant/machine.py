"""The participant's machine: its state, the epoch that rules, what it says, and what it asks. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from control_topic.messages import Body
from participant.events import Action, FetchOffsets, Flush, Send, Settings
from participant.transitions import IllegalEvent, State


class Machine:
    """What every part shares."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.state = State.JOINING
        self.epoch = 0
        """The highest that was heard of."""
        self.ignored: Counter[str] = Counter()
        self.out: list[Action] = []
        """What the event that is being handled causes, in order."""
        self._calls = 0
        self._unanswered: set[int] = set()

    def do(self, *actions: Action) -> None:
        self.out += actions

    def send(self, body: Body) -> None:
        self.out.append(Send(body=body, epoch=self.epoch))

    def call(self, make: Callable[[int], FetchOffsets | Flush]) -> int:
        """Ask for what is answered. `make` is given the call's number, which is the answer's."""
        self._calls += 1
        self._unanswered.add(self._calls)
        self.out.append(make(self._calls))
        return self._calls

    def answered(self, call: int) -> None:
        """Raises `IllegalEvent` for an answer to what was not asked, or is answered already."""
        if call not in self._unanswered:
            raise IllegalEvent(f"completion of call {call} in {self.state.name}, which awaits no such answer")
        self._unanswered.remove(call)
