"""What operators want of a run that goes on, and how far this coordinator has done it. Pure.

A commit is done when a transaction that was ended after it was heard of is committed, or came to nothing, and
all who own source partitions have reported in it, and none had to leave something out: then none of them
holds anything that was consumed before. What was reported in a transaction that was given up has been
consumed, too, and so has what a writer says that it had read before it went back: the table must have come as
far as that.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from control_topic.controls import Controls
from control_topic.messages import Offsets, SourcePartition
from coordinator.events import Settings
from coordinator.machine import Machine
from coordinator.owners import Owners
from coordinator.times import ByTheClock
from coordinator.transaction import Transaction
from coordinator.transitions import State


class Orders:
    """`since_ms`: when the newest news was heard."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._heard = Controls()
        self.by_the_clock = machine.settings.by_the_clock
        """Schedule and alignment of what begins next."""
        self.durable = 0
        """Every order to commit up to this one is done."""
        self._done = 0
        self._not_before_ms = 0
        self._given_back: dict[SourcePartition, int] = {}
        """The offset up to which each was reported in transactions that were given up, or had been read by
        who went back, where that is not committed since."""
        self.since_ms = 0

    def knows_better(self, controls: Controls) -> bool:
        """Whether newer ones were heard."""
        return controls.number < self._heard.number

    def hear(self, controls: Controls, now_ms: int, by_the_clock: ByTheClock | None = None) -> bool:
        """Take what the driver says now. False where that is no news."""
        self.by_the_clock = by_the_clock or self._machine.settings.by_the_clock
        if controls == self._heard:
            return False
        if controls.commit != self._heard.commit:
            self._not_before_ms = max(self._not_before_ms, now_ms)
        self._done = self.settled
        self._heard, self.since_ms = controls, now_ms
        return True

    @property
    def commit(self) -> int:
        """The order to commit that is not done; 0: there is none."""
        return self._heard.commit if self._heard.commit > self.durable else 0

    def wants_commit(self, now_ms: int) -> bool:
        """Whether a transaction is to be ended, or begun and ended, for its sake.

        Not for one that a pause came after: that nothing is begun is what the later order says.
        """
        return self.commit > self._heard.pause and now_ms >= self._not_before_ms

    def decided(
        self,
        transaction: Transaction,
        owners: Owners,
        partitions: Set[SourcePartition],
        committed: Offsets,
    ) -> bool:
        """It was committed, or came to nothing. Whether what was to be done is done with it.

        `partitions`: all that the source has. `committed`: the table's offsets with it.
        """
        self._read_again(transaction.read_before())
        back = self._given_back.items()
        self._given_back = {p: end for p, end in back if p in partitions and committed.get(p, 0) < end}
        reported = {one.partition for one in transaction.ranges()}
        theirs = all(owners.get(one) == transaction.writers.get(one) for one in partitions)
        whole = partitions <= reported and theirs and transaction.took_all()
        if transaction.settles and whole and not self._given_back:
            self.durable = max(self.durable, transaction.settles)
        return not self.commit

    def given_up(self, transaction: Transaction, now_ms: int) -> None:
        """Its writers read again what they reported in it."""
        self._read_again({one.partition: one.next for one in transaction.ranges()})
        self._read_again(transaction.read_before())
        self.again(now_ms)

    def _read_again(self, upto: Offsets) -> None:
        for partition, end in upto.items():
            self._given_back[partition] = max(end, self._given_back.get(partition, 0))

    def taken_over(self, now_ms: int) -> None:
        """The table was recovered: what was open was rolled back, and its writers go back as well."""
        if self.commit:
            self.again(now_ms)

    def again(self, now_ms: int) -> None:
        """What was to do it did not: the next one, in a while."""
        self._not_before_ms = now_ms + self._machine.settings.settle_ms

    @property
    def settled(self) -> int:
        """The number up to which every order is done."""
        done = max(self._done, self.durable)  # what was open at a pause before that is over with it
        if self.commit:
            return done  # there may be more than one, and only the newest is known
        if self._heard.pause and self._machine.state is not State.IDLE:
            return max(done, self._heard.pause - 1)
        return self._heard.number

    def tune(self, settings: Settings) -> Settings:
        """The settings of a transaction that begins."""
        tuning = self._heard.tuning
        if tuning is None:
            return settings
        return replace(
            settings,
            interval_ms=tuning.interval_ms,
            write_timeout_ms=tuning.write_timeout_ms,
            write_limit_ms=max(settings.write_limit_ms, tuning.write_timeout_ms),
        )
