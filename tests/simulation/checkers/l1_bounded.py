"""L1: while everything is up, a transaction ends within interval + write timeout; the limit with progress.

A driver's clock that is behind the table is waited for, and does not count.
"""

from control_topic.messages import WriteProgress
from coordinator import events as ev
from coordinator.transitions import State
from tests.simulation.checkers.base import Checker
from tests.simulation.claims import Claims

SLACK_MS = 3_000
"""For the calls themselves and for ticks."""


class TransactionsEnd(Checker):
    name = "L1"

    def __init__(self) -> None:
        self._began_ms: dict[str, int] = {}
        self._progress: set[str] = set()

    def coordinator_handled(
        self, claims: Claims, event: ev.Event, before: State, actions: list[ev.Action]
    ) -> None:
        world = self.world
        if world.tail_began_ms is None:
            return
        now_ms, core = world.scheduler.now_ms, claims.core
        open_one, state = core.rounds.transaction, core.machine.state
        if open_one is None or state in (State.BEGINNING, State.FENCED, State.HALTED):
            self._began_ms.pop(claims.incarnation, None)
        elif state is State.STARTED and before is not State.STARTED:
            self._began_ms[claims.incarnation] = now_ms
        elif claims.incarnation in self._began_ms:
            if world.clock_is_behind():
                self._began_ms[claims.incarnation] = now_ms
            if type(event) is ev.Received and isinstance(event.message.body, WriteProgress):
                self._progress.add(event.message.body.transaction)
            settings = claims.core.machine.settings  # operators may have changed them
            limit_ms, timeout_ms = settings.write_limit_ms, settings.write_timeout_ms
            longest_ms = limit_ms if open_one.id in self._progress else timeout_ms
            took_ms = now_ms - self._began_ms[claims.incarnation]
            if took_ms > settings.interval_ms + longest_ms + SLACK_MS:
                self.violated(
                    f"transaction {open_one.id} has been open for {took_ms} ms and is {state.value}"
                )
