"""S6: nothing of a stale epoch has an effect, neither on the table nor on a participant.

Nor does an epoch that nobody can have come to: each commit's leads the one before by a bound at most, or a
few claims would use up all epochs that there are.
"""

from control_topic.messages import EPOCH_LEAD_MAX, Message
from participant import events as ev
from participant.transitions import State
from table.memory.timeline import MemoryInstant
from table.state import TableState
from tests.simulation.checkers.base import Checker
from tests.simulation.worker import Worker


class StaleEpochsHaveNoEffect(Checker):
    name = "S6"

    def __init__(self) -> None:
        self._last: tuple[int, str] = (0, "")

    def committed(self, instant: MemoryInstant, state: TableState) -> None:
        epoch, run = self._last
        self.require(
            state.epoch >= epoch, f"instant {instant.time} is of epoch {state.epoch}, after epoch {epoch}"
        )
        self.require(
            state.epoch > epoch or state.run == run,
            f"epoch {epoch} committed in {run} and in {state.run} (instant {instant.time})",
        )
        self.require(
            state.epoch <= epoch + EPOCH_LEAD_MAX,
            f"instant {instant.time} is of epoch {state.epoch}, far beyond epoch {epoch}",
        )
        self._last = (state.epoch, state.run)

    def decision_heard(
        self, worker: Worker, event: ev.Received, before: State, epoch_before: int, actions: list[ev.Action]
    ) -> None:
        message: Message = event.message
        if message.epoch < epoch_before:
            self.require(
                not actions and worker.core.state is before,
                f"{worker.name} knew epoch {epoch_before} and obeyed {message.type_name} of {message.epoch}",
            )
