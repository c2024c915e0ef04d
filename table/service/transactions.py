"""What the coordinator's calls do to the table. Everything here runs on the one thread that talks to it.

How errors become answers is in table/service/answering.py. The fence, which the table runs under its own lock
and on a thread of its own, takes no lock of ours.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Protocol

from control_topic.messages import (
    REJECTS_LISTED_MAX,
    Offsets,
    SourcePartition,
    WriteStatus,
)
from control_topic.spelling import some
from table.checks import (
    CommitPlan,
    assemble,
    identity_problem,
    lost_commits,
    position_problem,
    too_many_rejects,
)
from table.errors import OutcomeUnknown, Refused
from table.orphans import SweepReport
from table.port import Commit, TransactionalTable
from table.service.answering import answers, stands
from table.service.calls import Answer, Fault, Result
from table.service.claiming import Claiming
from table.service.ledger import Ledger
from table.service.log_ends import AskedNow, LogEnds
from table.service.marking import Marking
from table.service.source_facts import SourceFacts
from table.state import TableState
from table.watermark import MarkRule

log = logging.getLogger(__name__)

TRANSACTIONS_REMEMBERED = 64
PAUSED_WAIT_MS = 1_000


class SourceBroker(Protocol):
    """What is asked of the broker. `lockstep.brokers.source_topics.SourceTopics` implements it."""

    def facts(self) -> SourceFacts: ...
    def earliest(self, partitions: Sequence[SourcePartition]) -> Offsets: ...
    def end(self, partitions: Sequence[SourcePartition], read_committed: bool = True) -> Offsets: ...


@dataclass(slots=True, kw_only=True)
class _Known:
    """A transaction that was begun here."""

    instant: str = ""
    stood: TableState | None = None
    """The table as it was when it was begun."""
    rows: int = 0
    attempted: bool = False
    """A commit of it has been tried."""
    ended: bool = False


class Transactions(Claiming):
    """The table's side of the protocol, for one run of one pipeline.

    `rows_are_records`, `rejects_listed_max`: see `table.checks.assemble`.
    `starting_offsets`: earliest or latest. `on_data_loss`: fail or earliest. `rejects_max`: see
    `table.checks.too_many_rejects`. `new_id`: a random transaction id, for the genesis. `mark_rule`: None
    where no event time is declared. `ends`: see `Marking`; by default `source` is asked, and waited for.
    `earlier_commits`: returns signs outside the timeline that the pipeline has committed before, or nothing.
    """

    def __init__(
        self,
        *,
        table: TransactionalTable,
        ledger: Ledger,
        guard: Lock,
        source: SourceBroker,
        pipeline: str,
        run: str,
        rows_are_records: bool,
        starting_offsets: str,
        on_data_loss: str,
        rejects_max: int | None,
        clock_ms: Callable[[], int],
        new_id: Callable[[], str],
        rejects_listed_max: int = REJECTS_LISTED_MAX,
        mark_rule: MarkRule | None = None,
        ends: LogEnds | None = None,
        earlier_commits: Callable[[SourceFacts], str] = lambda _facts: "",
    ) -> None:
        super().__init__(table=table, ledger=ledger, guard=guard, run=run, clock_ms=clock_ms)
        self._source = source
        self._pipeline = pipeline
        self._rows_are_records = rows_are_records
        self._starting_offsets = starting_offsets
        self._on_data_loss = on_data_loss
        self._rejects_max = rejects_max
        self._rejects_listed_max = rejects_listed_max
        self._new_id = new_id
        self._earlier_commits = earlier_commits
        ends = ends or AskedNow(partial(source.end, read_committed=False))
        self._marking = Marking(mark_rule, ends, run)
        self._known: OrderedDict[str, _Known] = OrderedDict()

    # --- earning the table ----------------------------------------------------------------------

    @answers(effect=False)
    def recover(self, epoch: int) -> Answer:
        """Roll back what is open, then read, or write, the offsets to go on from.

        The rollbacks come first: they are what stops a paused predecessor inside its commit.
        """
        refusal = self._stale(epoch) or self._closed()
        if refusal is not None:
            return refusal
        for open_one in self._table.unfinished():
            if (refusal := self._stale(epoch)) is not None:
                return refusal
            self._remove(open_one)
        facts = self._source.facts()
        newest = self._table.newest()
        if newest is None and self.view.newest is not None:
            return self.halt(_emptied(self._pipeline, self.view.newest))
        if problem := self._lost(newest, facts):
            return self.halt(problem)
        newest = newest or self._genesis(epoch, facts)
        self._see(newest)
        if (refusal := self._stale(epoch)) is not None:
            return refusal
        if problem := identity_problem(newest, facts.cluster, facts.topics):
            return self.halt(problem)
        with self._guard:
            paused = self._ledger.paused(self._clock_ms())
        if not paused:
            newest = self._admit(epoch, newest, facts)
        self._see(newest)
        if (refusal := self._stale(epoch)) is not None:
            return refusal
        if problem := self._position_problem(newest, facts):
            return self.halt(problem)
        with self._guard:
            self._ledger.saw_offsets(newest.offsets)
        known = tuple(one for one in facts.partitions if one in newest.offsets)  # all, unless it is paused
        return Answer(result=Result.OK, committed=newest.offsets, partitions=known)

    def _lost(self, newest: TableState | None, facts: SourceFacts) -> str:
        """Return why the run must not continue from `newest`, empty if it may: the timeline lost commits."""
        signs = [self._table.lost_commits(newest)]
        if newest is None:
            signs += [self._earlier_commits(facts)]
        said = "; ".join(filter(None, signs))
        return lost_commits(self._pipeline, newest, said, facts.partitions) if said else ""

    def _genesis(self, epoch: int, facts: SourceFacts) -> TableState:
        """Resolve all starting offsets once and commit them; whoever is first wins."""
        nothing = TableState(pipeline=self._pipeline, run=self._run, epoch=epoch, transaction="", offsets={})
        state = self._placed(epoch, nothing, facts, kind="genesis")
        newest = self._commit_places({}, state)
        if newest.transaction == state.transaction:
            log.info(
                "genesis: instant %s holds the starting offsets",
                newest.instant,
                extra={"instant": newest.instant, "transaction": newest.transaction},
            )
        return newest

    def _admit(self, epoch: int, newest: TableState, facts: SourceFacts) -> TableState:
        """Resolve once, and commit, where source partitions begin that the table has no offset of.

        Nothing is read of them before: a log may have lost its beginning when nobody here knew of it.
        """
        if all(partition in newest.offsets for partition in facts.partitions):
            return newest
        state = self._placed(epoch, newest, facts, kind="admission")
        now = self._commit_places(newest.offsets, state)
        if now.transaction == state.transaction:
            fresh = sorted(state.offsets.keys() - newest.offsets.keys())
            log.info(
                "source partitions that are new to the table, %d of them, are read from %s on (instant %s)",
                *(len(fresh), some([f"{one}={state.offsets[one]}" for one in fresh]), now.instant),
                extra={"instant": now.instant, "transaction": now.transaction},
            )
        return now

    def _placed(self, epoch: int, before: TableState, facts: SourceFacts, *, kind: str) -> TableState:
        """What a commit leaves behind that gives every source partition a place to begin.

        A topic of which the table knows nothing begins where `starting_offsets` says. A source partition that
        is added to a topic begins at its beginning: its first records belong to what is followed already.
        """
        followed = {partition.topic for partition in before.offsets}
        wanted = [partition for partition in facts.partitions if partition not in before.offsets]
        fresh = [partition for partition in wanted if partition.topic not in followed]
        later = [partition for partition in wanted if partition.topic in followed]
        resolve = self._source.earliest if self._starting_offsets == "earliest" else self._source.end
        starting = {**(resolve(fresh) if fresh else {}), **(self._source.earliest(later) if later else {})}
        return TableState(
            pipeline=self._pipeline,
            run=self._run,
            epoch=epoch,
            transaction=self._new_id(),
            offsets={**before.offsets, **{partition: starting[partition] for partition in wanted}},
            witnesses=before.witnesses,
            watermark=before.watermark.carried() if before.watermark is not None else None,
            cluster=facts.cluster or before.cluster,
            topics={**before.topics, **{topic: name for topic, name in facts.topics.items() if name}},
            kind=kind,
        )

    def _commit_places(self, expected: Offsets, state: TableState) -> TableState:
        """Commit offsets alone. What the table holds then: ours, or what somebody committed before us."""
        instant = self._table.begin(run=self._run, transaction=state.transaction)
        try:
            self._table.commit(
                Commit(instant=instant, expected=expected, state=state, files=()),
                fence=self._ledger.fence(state.epoch),
            )
        except Refused:
            self._table.roll_back(instant)
            newest = self._table.newest()
            if newest is None or not state.offsets.keys() <= newest.offsets.keys():
                raise
            return newest
        return replace(state, instant=instant)

    def _position_problem(self, newest: TableState, facts: SourceFacts) -> str:
        partitions = tuple(facts.partitions)
        earliest, end = self._source.earliest(partitions), self._source.end(partitions)
        return position_problem(newest, partitions, earliest, end, self._on_data_loss)

    # --- transactions ---------------------------------------------------------------------------

    @answers(effect=True)
    def begin(self, epoch: int, transaction: str) -> Answer:
        """Open an instant for the transaction, the same one again where it has one."""
        refusal = self._stale(epoch) or self._closed()
        if refusal is not None:
            return refusal
        known = self._known.get(transaction)
        if known is not None and known.ended:
            return Answer(result=Result.REFUSED, reason=f"transaction {transaction} has ended already")
        if known is not None and known.instant and known.stood is not None:
            return self._begun(known.stood, known.instant)
        with self._guard:
            wait_ms = self._ledger.wait_ms(self._clock_ms())
            paused = known is None and self._ledger.paused(self._clock_ms())
        if paused:
            self._remember(transaction).ended = True  # who asked forgets it: a late repeat begins nothing
            return Answer(result=Result.REFUSED, reason="the run is paused", wait_ms=PAUSED_WAIT_MS)
        if wait_ms:
            return Answer(result=Result.UNAVAILABLE, reason="waiting after a failure", wait_ms=wait_ms)
        newest = self._table.newest()
        self._see(newest)
        if (refusal := self._stale(epoch)) is not None:
            return refusal
        if newest is None:
            self._remember(transaction).ended = True
            return Answer(result=Result.REFUSED, reason="the table holds no offsets yet: recover first")
        instant = self._instant_of(transaction) if known is not None else ""
        known = self._remember(transaction)
        try:
            known.instant = instant or self._table.begin(run=self._run, transaction=transaction)
        except Refused as error:
            return self._refused_begin(transaction, error)
        known.stood = newest
        with self._guard:
            self._ledger.began(transaction)
        return self._begun(newest, known.instant)

    def _begun(self, stood: TableState, instant: str) -> Answer:
        return replace(stands(stood, instant=instant), watermark_ms=self._marking.told(stood))

    def _refused_begin(self, transaction: str, error: Refused) -> Answer:
        """Nobody aborts what did not begin, so that it is counted here."""
        self._remember(transaction).ended = True
        reason, fault = f"no instant could be opened: {error}", Fault.PIPELINE
        with self._guard:
            now_ms = self._clock_ms()
            wait_ms = self._ledger.aborted(now_ms, transaction=transaction, reason=reason, fault=fault)
        return self._closed() or Answer(result=Result.REFUSED, reason=reason, wait_ms=wait_ms)

    @answers(effect=True)
    def commit(
        self, epoch: int, transaction: str, instant: str, expected: Offsets, statuses: Sequence[WriteStatus]
    ) -> Answer:
        """Complete the instant with everybody's files and ranges, whole or not at all."""
        plan = self._plan(transaction, expected, statuses)
        known = self._remember(transaction)
        known.rows = plan.rows
        stale = self._stale(epoch)
        if stale is not None or known.attempted or known.ended:
            done = self._table.find(transaction)
            if done is not None:
                return self._committed(done, plan.ranges, Result.OK)
            if stale is not None:
                return stale
        facts = self._source.facts()
        newest = self.view.newest
        problem = identity_problem(newest, facts.cluster, facts.topics) if newest is not None else ""
        problem = problem or too_many_rejects(plan, self._rejects_max)
        if problem:
            return self.halt(problem)
        state = self._state(epoch, transaction, plan, facts)
        known.attempted = True
        try:
            took_ms = self._table.commit(
                Commit(
                    instant=instant, expected=expected, state=state, files=plan.files, columns=plan.columns
                ),
                fence=self._ledger.fence(epoch),
            )
        except (Refused, OutcomeUnknown) as error:
            return self._after_failed_commit(epoch, transaction, plan.ranges, error)
        self._landed(replace(state, instant=instant))
        return Answer(result=Result.OK, instant=instant, committed=plan.offsets, took_ms=took_ms)

    def _plan(self, transaction: str, expected: Offsets, statuses: Sequence[WriteStatus]) -> CommitPlan:
        return assemble(
            transaction,
            expected,
            statuses,
            rows_are_records=self._rows_are_records,
            rejects_listed_max=self._rejects_listed_max,
        )

    def _state(self, epoch: int, transaction: str, plan: CommitPlan, facts: SourceFacts) -> TableState:
        """What the commit leaves behind. A topic that is not read any more keeps its id, as its offsets."""
        newest = self.view.newest
        seen = newest.topics if newest is not None else {}
        return TableState(
            pipeline=self._pipeline,
            run=self._run,
            epoch=epoch,
            transaction=transaction,
            offsets=plan.offsets,
            ranges=plan.ranges,
            lost=plan.lost,
            rejects=plan.rejects,
            reject_count=plan.reject_count,
            witnesses=plan.witnesses_after(newest),
            watermark=self._marking.after(newest, plan, facts, self._clock_ms()),
            cluster=facts.cluster or (newest.cluster if newest is not None else ""),
            topics={**seen, **{topic: name for topic, name in facts.topics.items() if name}},
        )

    @answers(effect=True)
    def abort(self, epoch: int, transaction: str, instant: str, reason: str, fault: Fault) -> Answer:
        """Remove the transaction's instant and files, unless it proves to be complete.

        OK says that they are gone, also where this abort is one too many: the next call says that the run
        halts. HALTED says that the run halts before that was known to be done.
        """
        if (refusal := self._stale(epoch)) is not None:
            return refusal
        try:
            # Only instants that the table lists as ours are rolled back, whatever the caller names.
            for open_one in [one for one in self._table.unfinished() if one.transaction == transaction]:
                self._table.roll_back(open_one.instant)
            done = self._table.find(transaction)
        except Refused as error:  # an abort is asked for until it is done: count it, or it never ends
            return self.unavailable(f"instant {instant} could not be rolled back: {error}")
        if done is not None:
            self._landed(done)
            return Answer(result=Result.COMMITTED, instant=done.instant, committed=self._offsets())
        self._remember(transaction).ended = True
        with self._guard:
            now_ms = self._clock_ms()
            wait_ms = self._ledger.aborted(now_ms, transaction=transaction, reason=reason, fault=fault)
            halted = self._ledger.halted and self._ledger.closed
        log.warning("transaction %s was rolled back: %s", transaction, reason)
        if halted:
            log.error("the run halts: %s", halted)
        return Answer(result=Result.OK, wait_ms=wait_ms, committed=self._offsets())

    @answers(effect=False)
    def refresh(self) -> Answer:
        """Read the table's newest offsets anew."""
        self._see(self._table.newest())
        return Answer(result=Result.OK, committed=self._offsets())

    def sweep(self, grace_ms: int) -> SweepReport:
        """Remove files that no commit names."""
        return self._table.sweep(grace_ms=grace_ms)

    # --- what is known --------------------------------------------------------------------------

    def _landed(self, state: TableState) -> None:
        """A transaction is durable. Counted once, however often it is found."""
        super()._landed(state)
        view, now_ms = self.view, self._clock_ms()
        self._marking.landed(state, now_ms)
        known = self._known.get(state.transaction)
        if state.run != self._run or known is None or known.ended:
            return
        known.ended = True
        with self._guard:
            self._ledger.committed(state.transaction, state.offsets)
        self.view = replace(
            view,
            commits=view.commits + 1,
            rows=view.rows + known.rows,
            rejects=view.rejects + state.reject_count,
            late=view.late + (state.watermark.late if state.watermark is not None else 0),
            absurd=view.absurd + (state.watermark.absurd if state.watermark is not None else 0),
            last_commit_at_ms=now_ms,
        )

    def _instant_of(self, transaction: str) -> str:
        """The open instant of a transaction whose begin was not answered, empty where there is none."""
        for open_one in self._table.unfinished():
            if open_one.transaction == transaction and not open_one.rollback_requested:
                return open_one.instant
        return ""

    def _remember(self, transaction: str) -> _Known:
        known = self._known.setdefault(transaction, _Known())
        self._known.move_to_end(transaction)
        while len(self._known) > TRANSACTIONS_REMEMBERED:
            self._known.popitem(last=False)
        return known


def _emptied(pipeline: str, seen: TableState) -> str:
    """Beginning anew by oneself would pass over what was read and not committed, or bring all of it again."""
    return (
        f"the table has lost every commit of pipeline {pipeline} while this run went on; instant "
        f"{seen.instant} was there (TRUNCATE TABLE, a table made anew). Nothing was committed since. "
        "If that was meant, `lockstep offsets --set … --execute` begins the pipeline again"
    )
