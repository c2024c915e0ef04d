"""The watermark that a run's commits carry: what it needs of clock and broker. On the table's thread."""

from __future__ import annotations

from table.checks import CommitPlan
from table.service.log_ends import UNKNOWN, LogEnds
from table.service.source_facts import SourceFacts
from table.state import TableState
from table.watermark import MarkRule, Progress, Watermark, advance, might_be_idle


class Marking:
    """`rule`: None where no event time is declared: then what the table has is carried on as it is.
    `ends`: of logs, records in open transactions of producers included.
    """

    def __init__(self, rule: MarkRule | None, ends: LogEnds, run: str) -> None:
        self._rule = rule
        self._ends = ends
        self._run = run
        self._last = ("", 0)

    def landed(self, state: TableState, now_ms: int) -> None:
        """A transaction is durable: from here on time counts for those of which nothing comes."""
        if state.run == self._run and state.transaction != self._last[0]:
            self._last = (state.transaction, now_ms)

    def told(self, newest: TableState) -> int | None:
        """The watermark by which records of the next transaction are late; None where there is none of what
        is declared now."""
        watermark = newest.watermark
        if self._rule is None or watermark is None or watermark.of != self._rule.of:
            return None
        return watermark.at_ms

    def after(
        self, newest: TableState | None, plan: CommitPlan, facts: SourceFacts, now_ms: int
    ) -> Watermark | None:
        """What a commit of this plan leaves, after `newest`."""
        before = newest.watermark if newest is not None else None
        if self._rule is None:
            awake = (one.partition for one in plan.ranges if one.records)
            return before.carried(awake) if before is not None else None
        transaction, since_ms = self._last
        is_ours = newest is not None and newest.transaction == transaction
        elapsed_ms = now_ms - since_ms if is_ours else 0
        present = set(facts.partitions)
        asked = [one for one in might_be_idle(self._rule, before, elapsed_ms) if one in present]
        known = self._ends.latest(asked, now_ms, of=facts.partitions) if asked else UNKNOWN
        believed = might_be_idle(self._rule, before, elapsed_ms - known.age_ms)
        progress = Progress(
            ranges=plan.ranges,
            offsets=plan.offsets,
            seen=plan.event_times,
            present=present,
            ends={one: known.offsets[one] for one in believed if one in known.offsets},
            elapsed_ms=elapsed_ms,
        )
        return advance(self._rule, before, progress)
