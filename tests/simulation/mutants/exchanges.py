"""Bugs of the exchange, which show where workers hand rows over (`tests.simulation.exchange.SEEDS`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from control_topic.messages import Offsets, WriteStatus
from coordinator.rounds import Rounds
from coordinator.transaction import Transaction
from table.checks import CommitPlan
from table.service.transactions import Transactions


class CountsNotCompared(Rounds):
    """A transaction is committed though rows that were handed over did not arrive."""

    def _disagreement(self, transaction: Transaction) -> tuple[str, str, int, int] | None:
        return None


class ExchangeNotCounted(Transactions):
    """The table takes files that hold fewer rows than there were records, where some were handed over."""

    def _plan(self, transaction: str, expected: Offsets, statuses: Sequence[WriteStatus]) -> CommitPlan:
        alone = [replace(status, handed={}, taken={}) for status in statuses]
        compared, self._rows_are_records = self._rows_are_records, False
        try:
            return super()._plan(transaction, expected, alone)
        finally:
            self._rows_are_records = compared
