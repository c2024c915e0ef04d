"""Who writes is waited for up to the limit, and no longer; only silence ends a transaction before."""

from control_topic.messages import WriteProgress
from coordinator import events as ev
from coordinator.transitions import State
from tests.simulation.checkers.base import Checker
from tests.simulation.claims import Claims


class WritersAreWaitedFor(Checker):
    name = "patience"

    def __init__(self) -> None:
        self._steps: dict[tuple[str, str, str], tuple[int, int]] = {}

    def coordinator_handled(
        self, claims: Claims, event: ev.Event, before: State, actions: list[ev.Action]
    ) -> None:
        if before is not State.ENDED:
            return
        if isinstance(event, ev.Received) and isinstance(event.message.body, WriteProgress):
            self._note(claims, event, event.message.body)
        transaction, settings = claims.core.rounds.transaction, claims.core.machine.settings
        if not isinstance(event, ev.Tick) or transaction is None:
            return
        waited_ms = event.now_ms - transaction.ended_ms
        if claims.core.machine.state is State.ENDED and waited_ms >= settings.write_limit_ms:
            self.violated(f"{transaction.id} has been written for {waited_ms} ms")
        if any(isinstance(action, ev.Abort) for action in actions):
            since = [self._since(claims, who, transaction.ended_ms) for who in transaction.missing()]
            silent_ms = event.now_ms - min(since)
            self.require(
                silent_ms >= settings.write_timeout_ms or waited_ms >= settings.write_limit_ms,
                f"{transaction.id} was given up after {waited_ms} ms: everybody has said something "
                f"{silent_ms} ms ago or later",
            )

    def _note(self, claims: Claims, event: ev.Received, body: WriteProgress) -> None:
        """A step further than all that its sender has said before, as far as it is news to this core."""
        key = (claims.incarnation, event.message.incarnation, body.transaction)
        steps, _ = self._steps.get(key, (0, 0))
        if body.steps > steps:
            self._steps[key] = (body.steps, event.now_ms)

    def _since(self, claims: Claims, who: str, ended_ms: int) -> int:
        transaction = claims.core.rounds.transaction
        assert transaction is not None
        return self._steps.get((claims.incarnation, who, transaction.id), (0, ended_ms))[1]
