"""Bugs of the watermark: of who moves it, who holds it, and who hears of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from control_topic.messages import Offsets, SourcePartition
from coordinator.events import Completed
from coordinator.rounds import Rounds as CoordinatorRounds
from coordinator.transaction import Transaction
from participant.events import Flushed
from participant.rounds import Rounds
from table.checks import CommitPlan
from table.service.source_facts import SourceFacts
from table.service.transactions import SourceBroker, Transactions
from table.state import TableState
from table.watermark import MarkRule


class LatenessForgotten(Transactions):
    """The watermark stands at the greatest event time, as if nothing came out of order."""

    def __init__(self, *, mark_rule: MarkRule | None = None, **rest: Any) -> None:
        rule = replace(mark_rule, lateness_ms=0) if mark_rule is not None else None
        super().__init__(mark_rule=rule, **rest)


class _NothingLeft:
    """A broker whose logs seem to end where they begin."""

    def __init__(self, source: SourceBroker) -> None:
        self._source = source

    def end(self, partitions: Sequence[SourcePartition], read_committed: bool = True) -> Offsets:
        return self._source.end(partitions) if read_committed else dict.fromkeys(partitions, 0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


class QuietIsIdle(Transactions):
    """Who brings nothing for a while is idle, and nobody asks whether its log holds more."""

    def __init__(self, *, source: SourceBroker, **rest: Any) -> None:
        super().__init__(source=_NothingLeft(source), **rest)


class WatermarkOfItsOwnRanges(Transactions):
    """A commit's watermark is that of its own records: what the table had before is forgotten."""

    def _state(self, epoch: int, transaction: str, plan: CommitPlan, facts: SourceFacts) -> TableState:
        state = super()._state(epoch, transaction, plan, facts)
        own = {t.partition: t.greatest_ms for t in plan.event_times if t.greatest_ms is not None}
        if state.watermark is None or not own:
            return state
        marks = {p: replace(m, at_ms=own.get(p, m.at_ms)) for p, m in state.watermark.marks.items()}
        return replace(state, watermark=replace(state.watermark, at_ms=min(own.values()), marks=marks))


class EventTimesUnsaid(Rounds):
    """A participant's report leaves out the event times of what it wrote."""

    def on_flushed(self, event: Flushed) -> None:
        super().on_flushed(replace(event, event_times=()))


class WatermarkUnsaid(CoordinatorRounds):
    """START does not say from when on records are late."""

    def _start(self, event: Completed, transaction: Transaction) -> None:
        super()._start(replace(event, watermark_ms=None), transaction)
