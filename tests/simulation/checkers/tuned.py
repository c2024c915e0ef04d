"""What operators have set is in force in every transaction that begins after it was heard of."""

from control_topic.controls import Tuning
from control_topic.messages import StartCommit
from coordinator import events as ev
from coordinator.transitions import State
from tests.simulation.checkers.base import Checker
from tests.simulation.claims import Claims


class SettingsAreInForce(Checker):
    name = "tuned"

    def __init__(self) -> None:
        self._heard: dict[str, tuple[int, Tuning]] = {}
        self._started: set[str] = set()

    def coordinator_directed(
        self, claims: Claims, event: ev.Directed, before: State, actions: list[ev.Action]
    ) -> None:
        if event.controls is not None and event.controls.tuning is not None:
            number, _ = self._heard.get(claims.incarnation, (0, None))
            if event.controls.number >= number:
                self._heard[claims.incarnation] = (event.controls.number, event.controls.tuning)

    def coordinator_sent(self, claims: Claims, action: ev.Send) -> None:
        if not isinstance(action.body, StartCommit) or action.body.transaction in self._started:
            return
        self._started.add(action.body.transaction)
        heard = self._heard.get(claims.incarnation)
        if heard is None:
            return
        settings, tuning = claims.core.settings, heard[1]
        now = (settings.interval_ms, settings.write_timeout_ms)
        wanted = (tuning.interval_ms, tuning.write_timeout_ms)
        self.require(now == wanted, f"{action.body.transaction} begins with {now}, and {wanted} was set")
