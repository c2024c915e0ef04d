"""How a coordinator earns its epoch: survey, claim, register; then the table: recover. Pure."""

from __future__ import annotations

from control_topic.messages import CoordinatorClaim
from coordinator.events import Completed, Event, Launch, Received, Register, Survey
from coordinator.hearing import Hearing
from coordinator.machine import Machine
from coordinator.rounds import Rounds
from coordinator.transitions import State


class Election:
    """NEW to IDLE."""

    def __init__(self, machine: Machine, hearing: Hearing, rounds: Rounds) -> None:
        self._machine = machine
        self._hearing = hearing
        self._rounds = rounds
        self._claims = 0
        self._claimed_ms = 0

    def on_launch(self, event: Launch) -> None:
        self._hearing.highest_epoch = max(self._hearing.highest_epoch, event.topic_epoch)
        self._machine.call(State.SURVEYING, lambda call: Survey(call=call))

    def on_surveyed(self, event: Completed) -> None:
        machine = self._machine
        if machine.answered_finally(event):
            machine.settled()
            machine.epoch = 1 + max(self._hearing.highest_epoch, event.epoch)
            machine.state = State.CLAIMING
            self._claim(event)

    def _claim(self, event: Event) -> None:
        self._claims += 1
        self._claimed_ms = event.now_ms
        self._machine.send(CoordinatorClaim())

    def on_claim(self, event: Received) -> None:
        """Of equal claims the first in topic order wins; a lower one is somebody's past."""
        machine, message = self._machine, event.message
        if message.epoch < machine.epoch:
            return
        if message.incarnation != machine.settings.incarnation:
            machine.fence(f"{message.sender} ({message.incarnation}) claimed epoch {machine.epoch} first")
        else:
            machine.call(State.REGISTERING, lambda call: Register(call=call, epoch=machine.epoch))

    def on_claim_tick(self, event: Event) -> None:
        machine, settings = self._machine, self._machine.settings
        if event.now_ms - self._claimed_ms < settings.repeat_ms * self._claims:
            return
        if self._claims >= settings.claims_max:
            machine.fence(
                f"our claim of epoch {machine.epoch} was sent {self._claims} times and never read back"
            )
        else:
            self._claim(event)

    def on_registered(self, event: Completed) -> None:
        if self._machine.answered_finally(event):
            self._machine.recover()

    def on_recovered(self, event: Completed) -> None:
        if self._machine.answered_finally(event):
            self._machine.settled()
            self._rounds.begin_from(event)
