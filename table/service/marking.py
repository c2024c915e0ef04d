"""The watermark that a run's commits carry: what it needs of clock and broker. On the table's thread."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from control_topic.messages import Offsets, SourcePartition
from table.checks import CommitPlan
from table.service.source_facts import SourceFacts, SourceTopicsError
from table.state import TableState
from table.watermark import MarkRule, Progress, Watermark, advance, might_be_idle

log = logging.getLogger(__name__)

LOOK_EVERY_MS = 10_000
"""What was seen of logs' ends is taken for so long."""


class LogEnds(Protocol):
    """Of `table.service.transactions.SourceBroker`."""

    def end(self, partitions: Sequence[SourcePartition], read_committed: bool = ...) -> Offsets: ...


class Marking:
    """`rule`: None where no event time is declared: then what the table has is carried on as it is."""

    def __init__(self, rule: MarkRule | None, source: LogEnds, run: str) -> None:
        self._rule = rule
        self._source = source
        self._run = run
        self._last = ("", 0)
        self._ends: Offsets = {}
        self._looked_ms: int | None = None

    def landed(self, state: TableState, now_ms: int) -> None:
        """A transaction is durable: from here on time counts for those of which nothing comes."""
        if state.run == self._run and state.transaction != self._last[0]:
            self._last = (state.transaction, now_ms)

    def after(
        self, newest: TableState | None, plan: CommitPlan, facts: SourceFacts, now_ms: int
    ) -> Watermark | None:
        """What a commit of this plan leaves, after `newest`."""
        before = newest.watermark if newest is not None else None
        if self._rule is None:
            return before.carried() if before is not None else None
        transaction, since_ms = self._last
        is_ours = newest is not None and newest.transaction == transaction
        elapsed_ms = now_ms - since_ms if is_ours else 0
        ends = self._look(might_be_idle(self._rule, before, elapsed_ms), facts, now_ms)
        progress = Progress(
            ranges=plan.ranges,
            offsets=plan.offsets,
            seen=plan.event_times,
            present=facts.partitions,
            ends=ends,
            elapsed_ms=elapsed_ms,
        )
        return advance(self._rule, before, progress)

    def _look(self, candidates: Sequence[SourcePartition], facts: SourceFacts, now_ms: int) -> Offsets:
        """Where the logs of these end, open transactions of producers included, as far as the broker says.

        Who cannot be asked about is not idle in this commit.
        """
        known = set(facts.partitions)
        wanted = [partition for partition in candidates if partition in known]
        if not wanted:
            return {}
        is_old = self._looked_ms is None or now_ms - self._looked_ms >= LOOK_EVERY_MS
        if is_old or any(partition not in self._ends for partition in wanted):
            self._looked_ms = now_ms
            try:
                self._ends = self._source.end(wanted, read_committed=False)
            except SourceTopicsError as error:
                log.debug("no source partition counts as idle: %s", error)
                self._ends = {}
        return self._ends
