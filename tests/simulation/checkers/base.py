"""What a checker may watch."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from control_topic.messages import SourcePartition
from coordinator import events as coordinator_events
from coordinator.transitions import State as CoordinatorState
from participant import events as participant_events
from participant.transitions import State as ParticipantState
from table.memory.timeline import MemoryInstant
from table.service.calls import Answer, Order
from table.state import TableState

if TYPE_CHECKING:
    from tests.simulation.claims import Claims
    from tests.simulation.driver import Driver
    from tests.simulation.plane import Plane
    from tests.simulation.worker import Worker
    from tests.simulation.world import World

HOOKS = (
    "committed",
    "served",
    "group_committed",
    "held",
    "participant_heard",
    "decision_heard",
    "coordinator_handled",
    "coordinator_heard",
    "coordinator_directed",
    "coordinator_lost",
    "coordinator_acts",
    "coordinator_sent",
    "ordered",
    "orders_done",
    "ended",
    "settled",
    "at_end",
)


class Violation(BaseException):
    """An invariant does not hold. No handler in production code catches it, wherever it is raised."""


class Checker:
    """One invariant. `name`: as DESIGN.md numbers it."""

    name = ""
    world: World

    def require(self, holds: bool, sentence: str) -> None:
        """Where it is asked all the time, `if …: self.violated(…)` spells no sentence that nobody reads."""
        if not holds:
            self.violated(sentence)

    def violated(self, sentence: str) -> NoReturn:
        at_s = self.world.scheduler.now_ms / 1000
        raise Violation(f"{self.name} at {at_s:.3f} s: {sentence}")

    # --- hooks ------------------------------------------------------------------------------------

    def committed(self, instant: MemoryInstant, state: TableState) -> None:
        """An instant of ours was completed."""

    def served(self, driver: Driver, call: coordinator_events.Call, answer: Answer) -> None:
        """A driver did a call; the answer may yet be lost."""

    def group_committed(self, partition: SourcePartition, offset: int) -> None:
        """The consumer group's offset was set."""

    def held(self, worker: Worker, plane: Plane) -> None:
        """What a worker holds of memory when it is about to consume; or not, because it is paused."""

    def participant_heard(
        self,
        worker: Worker,
        event: participant_events.Received,
        before: ParticipantState,
        epoch_before: int,
        actions: list[participant_events.Action],
    ) -> None:
        """A participant's core took a message; its actions were not performed yet."""

    def decision_heard(
        self,
        worker: Worker,
        event: participant_events.Received,
        before: ParticipantState,
        epoch_before: int,
        actions: list[participant_events.Action],
    ) -> None:
        """As `participant_heard`, of the messages that only a coordinator may say (`DECISIONS`)."""

    def coordinator_handled(
        self,
        claims: Claims,
        event: coordinator_events.Event,
        before: CoordinatorState,
        actions: list[coordinator_events.Action],
    ) -> None:
        """A coordinator's core took an event; its actions were not performed yet.

        Ticks that caused nothing are told in the tail only, and while files are awaited.
        """

    def coordinator_heard(
        self,
        claims: Claims,
        event: coordinator_events.Received,
        before: CoordinatorState,
        actions: list[coordinator_events.Action],
    ) -> None:
        """As `coordinator_handled`, where the event is a message."""

    def coordinator_directed(
        self,
        claims: Claims,
        event: coordinator_events.Directed,
        before: CoordinatorState,
        actions: list[coordinator_events.Action],
    ) -> None:
        """As `coordinator_handled`, where the event is the driver's directive."""

    def coordinator_lost(
        self,
        claims: Claims,
        event: coordinator_events.WorkerDied,
        before: CoordinatorState,
        actions: list[coordinator_events.Action],
    ) -> None:
        """As `coordinator_handled`, where the event is a worker's death."""

    def coordinator_acts(
        self,
        claims: Claims,
        event: coordinator_events.Event,
        before: CoordinatorState,
        actions: list[coordinator_events.Action],
    ) -> None:
        """As `coordinator_handled`, where the event caused actions."""

    def coordinator_sent(self, claims: Claims, action: coordinator_events.Send) -> None:
        """A coordinator says something."""

    def ordered(self, driver: Driver, number: int, order: Order) -> None:
        """An operator's order was taken."""

    def orders_done(self, driver: Driver) -> None:
        """A driver has learned that more of its orders are done."""

    def ended(self, driver: Driver) -> None:
        """A run has its outcome; its workers are about to be ended."""

    def settled(self) -> None:
        """The tail is over, and what an operator can mend is mended next."""

    def at_end(self) -> None:
        """The schedule is over, tail and sweep included."""
