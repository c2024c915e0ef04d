"""How a coordinator earns its epoch: survey, claim, read back, register; then the table: recover."""

from __future__ import annotations

from abc import ABC, abstractmethod

from control_topic.messages import (
    CoordinatorClaim,
)
from coordinator.events import (
    Completed,
    Event,
    Launch,
    Received,
    Recover,
    Register,
    Result,
    Survey,
)
from coordinator.machine import Machine
from coordinator.transitions import State


class Election(Machine, ABC):
    """NEW to IDLE."""

    @abstractmethod
    def _maybe_begin(self, event: Event) -> None:
        """Where transactions take over."""

    # --- earning the epoch ----------------------------------------------------------------------

    def on_launch(self, event: Launch) -> None:
        self.highest_epoch = max(self.highest_epoch, event.topic_epoch)
        self._call(State.SURVEYING, Survey(call=self._next_call()))

    def on_surveyed(self, event: Completed) -> None:
        if event.result is Result.HALTED:
            self._halt(event.reason)
        elif event.result is Result.OK:
            self._settled()
            self.epoch = 1 + max(self.highest_epoch, event.epoch)
            self.state = State.CLAIMING
            self._claim(event)
        else:
            self._retry_later(event)

    def _claim(self, event: Event) -> None:
        self.claims += 1
        self.claim_ms = event.now_ms
        self._send(CoordinatorClaim())

    def on_claim(self, event: Received) -> None:
        """Of equal claims the first in topic order wins; a lower one is somebody's past."""
        message = event.message
        if message.epoch < self.epoch:
            return
        if message.incarnation != self.settings.incarnation:
            self._fence(f"{message.sender} ({message.incarnation}) claimed epoch {self.epoch} first")
        else:
            self._call(State.REGISTERING, Register(call=self._next_call(), epoch=self.epoch))

    def on_claim_tick(self, event: Event) -> None:
        if event.now_ms - self.claim_ms < self.settings.repeat_ms * self.claims:
            return
        if self.claims >= self.settings.claims_max:
            self._fence(f"our claim of epoch {self.epoch} was sent {self.claims} times and never read back")
        else:
            self._claim(event)

    def on_registered(self, event: Completed) -> None:
        if event.result is Result.HALTED:
            self._halt(event.reason)
        elif event.result is Result.OK:
            self._call(State.RECOVERING, Recover(call=self._next_call(), epoch=self.epoch))
        else:
            self._retry_later(event)

    def on_recovered(self, event: Completed) -> None:
        if event.result is Result.HALTED:
            self._halt(event.reason)
        elif event.result is Result.OK:
            self._settled()
            self.committed = dict(event.committed)
            self.partitions = event.partitions
            self.unplaced = set(self.owners.keys() - self.committed.keys())
            self.recover_next = False
            self.state = State.IDLE
            self._maybe_begin(event)
        else:
            self._retry_later(event)
