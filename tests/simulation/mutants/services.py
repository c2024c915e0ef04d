"""Bugs of what the driver knows and does: the ledger, the transactions, the table.

Some protections are doubled: the table compares offsets under its lock, whatever epoch asks. Where a mutant
takes two of them away, its docstring says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from control_topic.controls import PAUSE, Tuning
from control_topic.messages import EPOCH_LEAD_MAX, Offsets, SourcePartition, WriteStatus
from participant.rounds import Rounds
from table.checks import CommitPlan, assemble
from table.memory.table import Interruption, MemoryTable
from table.memory.timeline import InstantPhase, StoredFile
from table.orphans import NOT_LISTED
from table.port import Commit
from table.service.answering import answers
from table.service.calls import Answer, Fault, Result
from table.service.ledger import Ledger
from table.service.orders import Orders
from table.service.source_facts import SourceFacts
from table.service.transactions import SourceBroker, Transactions
from table.state import TableState


class NoFence(Ledger):
    """Epochs are registered and then never asked for: neither before a call nor under the table lock."""

    def is_current(self, epoch: int) -> bool:
        return True

    def fence(self, epoch: int) -> Callable[[TableState | None], str]:
        return lambda newest: ""


class FenceOutsideTheLockOnly(Ledger):
    """Epochs are compared before a call begins, and not again under the table lock.

    With it goes the table's comparison of offsets, which would refuse what a newer epoch has overtaken.
    """

    def fence(self, epoch: int) -> Callable[[TableState | None], str]:
        return lambda newest: ""


class AnyEpochRegistered(Ledger):
    """An epoch is registered however far it leads the table's, and nothing is ever committed with it.

    With it goes the bound by which workers would not have heard of such an epoch, and their look at marks.
    """

    def register(self, epoch: int, incarnation: str, table_epoch: int) -> bool:
        return super().register(epoch, incarnation, max(table_epoch, epoch - EPOCH_LEAD_MAX))


class _AnyEpochCommits(Ledger):
    def fence(self, epoch: int) -> Callable[[TableState | None], str]:
        objection = super().fence(epoch)

        def near(newest: TableState | None) -> str:
            said = objection(newest)
            return "" if "it is nobody's" in said else said

        return near


class FarEpochCommits(_AnyEpochCommits):
    """An epoch that was earned step by step, and leads the table's too far, commits.

    With it goes the bound by which workers would not have heard of such an epoch, and their look at marks.
    """


class EpochsDrivenToTheirEnd(AnyEpochRegistered, _AnyEpochCommits):
    """An epoch is registered and commits however far it leads the table's: a few claims use all of them up.

    With it goes the bound by which workers would not have heard of such an epoch, and their look at marks.
    """


class RowsNotCompared(Transactions):
    """A commit is made of files that hold fewer rows than there were records, which nobody rejected."""

    def _plan(self, transaction: str, expected: Offsets, statuses: Sequence[WriteStatus]) -> CommitPlan:
        listed_max = self._rejects_listed_max
        return assemble(
            transaction, expected, statuses, rows_are_records=False, rejects_listed_max=listed_max
        )


class AllRejectsNamed(Transactions):
    """A commit names every reject that some worker names, however many that are."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**{**arguments, "rejects_listed_max": 10**9})


class RejectsCountedByName(Transactions):
    """A commit counts the rejects that it names, and forgets that there were more."""

    def _state(self, epoch: int, transaction: str, plan: CommitPlan, facts: SourceFacts) -> TableState:
        state = super()._state(epoch, transaction, plan, facts)
        return replace(state, reject_count=len(state.rejects))


class RejectsNotCounted(Transactions):
    """However many rejects the workers have together, they are committed: each judges its own part."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**{**arguments, "rejects_max": None})


class NothingCompared(MemoryTable):
    """A commit is made whatever the table's offsets are by then, and whoever has another instant open."""

    def _check(self, commit: Commit, fence: Callable[[TableState | None], str]) -> None:
        newest = self.newest()
        expected = newest.offsets if newest is not None else {}
        super()._check(replace(commit, expected=expected), fence)

    def _check_rivals(self, instant: str) -> None:
        """Not looked at."""


class FilesNotLookedAt(MemoryTable):
    """A commit does not look whether its files are there and of its instant."""

    def _check_files(self, commit: Commit) -> None:
        """Not looked at."""


class OffsetsNotCarriedOver(Transactions):
    """A commit stores the offsets of its own ranges, and not those of all the other source partitions."""

    def _state(self, epoch: int, transaction: str, plan: CommitPlan, facts: SourceFacts) -> TableState:
        own = {r.partition: r.next for r in plan.ranges}
        state = super()._state(epoch, transaction, plan, facts)
        return replace(
            state, offsets=own, witnesses={p: known for p, known in state.witnesses.items() if p in own}
        )


class OldRecordsForgotten(Transactions):
    """A commit names the last records of its own ranges, and not those of all the other source partitions."""

    def _state(self, epoch: int, transaction: str, plan: CommitPlan, facts: SourceFacts) -> TableState:
        own = {witness.partition: witness for witness in plan.witnesses}
        return replace(super()._state(epoch, transaction, plan, facts), witnesses=own)


class ZeroRowRangesUnrecorded(Transactions):
    """A commit's state leaves out the ranges without records, though its offsets pass them."""

    def _state(self, epoch: int, transaction: str, plan: CommitPlan, facts: SourceFacts) -> TableState:
        state = super()._state(epoch, transaction, plan, facts)
        return replace(state, ranges=tuple(r for r in state.ranges if r.records))


class GroupsOffsetsSeen(Rounds):
    """Says what it commits to the consumer group."""

    shared: ClassVar[dict[SourcePartition, int]]

    def _commit_group(self, committed: Offsets, partitions: Iterable[SourcePartition]) -> None:
        partitions = tuple(partitions)
        super()._commit_group(committed, partitions)
        self.shared.update({p: committed[p] for p in partitions if p in committed})


class OffsetsFromTheGroup(Transactions):
    """A transaction starts where the consumer group stands, not where the table does."""

    shared: ClassVar[dict[SourcePartition, int]]

    def begin(self, epoch: int, transaction: str) -> Answer:
        answer = super().begin(epoch, transaction)
        if answer.result is not Result.OK:
            return answer
        return replace(answer, committed={p: self.shared.get(p, 0) for p in answer.committed})


class LatestResolvedTwice(Transactions):
    """`latest` is resolved for the genesis, and again when the first transaction begins.

    What came between is skipped. With it goes the table's comparison of offsets, which would refuse that.
    """

    def begin(self, epoch: int, transaction: str) -> Answer:
        answer = super().begin(epoch, transaction)
        newest = self.view.newest
        if answer.result is not Result.OK or self._starting_offsets != "latest":
            return answer
        if newest is None or newest.kind != "genesis":
            return answer
        return replace(answer, committed=self._source.end(tuple(answer.committed)))


class RollbackWithoutProof(MemoryTable):
    """An instant is rolled back without a look whether it completed.

    Neither the coordinator looks before it asks for that, nor the service, nor the table under its lock.
    """

    def roll_back(self, instant: str) -> bool:
        self._reach()
        target = self.timeline.instants[instant]
        with self._lock(instant):
            target.rollback_requested = True
        self.at(Interruption.ROLLBACK_REQUESTED)
        self.timeline.remove(self.timeline.paths_of(instant))
        target.phase = InstantPhase.ROLLED_BACK
        self.at(Interruption.ROLLBACK_DONE)
        return True


class RollsBackWhatItIsTold(Transactions):
    """An abort rolls back the instant that it names, and asks nobody whether it completed."""

    @answers(effect=True)
    def abort(self, epoch: int, transaction: str, instant: str, reason: str, fault: Fault) -> Answer:
        if (refusal := self._stale(epoch)) is not None:
            return refusal
        self._table.roll_back(instant)
        self._remember(transaction).ended = True
        with self._guard:
            now_ms = self._clock_ms()
            wait_ms = self._ledger.aborted(now_ms, transaction=transaction, reason=reason, fault=fault)
        return Answer(result=Result.OK, wait_ms=wait_ms, committed=self._offsets())


class ClockNotAwaited(MemoryTable):
    """Instants are requested and completed by the clock as it is, be it behind what the table holds."""

    def _await_clock(self) -> int:
        return 0


class NewestByCompletion(MemoryTable):
    """The commit that completed last by the clock is taken for the newest.

    With it goes the look whether a commit leads further, and a clock is waited for only until it has passed
    the requested times.
    """

    def _await_clock(self) -> int:
        return max(0, int(max(self.timeline.instants, default="0")) + 1 - self._wall_ms())

    def newest(self) -> TableState | None:
        self._reach()
        return next(self.timeline.states(self.pipeline), None)

    def _follows(self, newest: TableState | None, state: TableState) -> bool:
        return True


class SweepTakesOpenFiles(MemoryTable):
    """The sweep removes every file that no commit names, those of an open transaction among them."""

    def _proof(self, file: StoredFile, grace_ms: int) -> str:
        instant = self.timeline.instants.get(file.instant)
        if (
            instant is not None
            and instant.phase is InstantPhase.INFLIGHT
            and instant.pipeline == self.pipeline
        ):
            return NOT_LISTED
        return super()._proof(file, grace_ms)


class _SameSource:
    """A broker whose identity is never asked again."""

    def __init__(self, source: SourceBroker, known: dict[str, Any]) -> None:
        self._source = source
        self._known = known

    def facts(self) -> SourceFacts:
        facts = self._source.facts()
        cluster = self._known.setdefault("cluster", facts.cluster)
        topics: Mapping[str, str] = self._known.setdefault("topics", facts.topics)
        return replace(facts, cluster=cluster, topics=topics)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


class IdentityBelieved(Transactions):
    """Cluster and topic ids are read once, by the first run, and believed from then on."""

    shared: ClassVar[dict[str, Any]]

    def __init__(self, *, source: SourceBroker, **rest: Any) -> None:
        super().__init__(source=_SameSource(source, self.shared), **rest)


class NothingAdmitted(Transactions):
    """Recovery leaves source partitions that are new to the table without a place."""

    def _admit(self, epoch: int, newest: TableState, facts: SourceFacts) -> TableState:
        return newest


class AddedPartitionsBeginAtTheEnd(Transactions):
    """A source partition that is added to a topic begins where `starting_offsets` says, as a topic does."""

    def _placed(self, epoch: int, before: TableState, facts: SourceFacts, *, kind: str) -> TableState:
        state = super()._placed(epoch, before, facts, kind=kind)
        new = tuple(p for p in state.offsets if p not in before.offsets)
        if self._starting_offsets != "latest" or not new:
            return state
        return replace(state, offsets={**state.offsets, **self._source.end(new)})


class BegunWhilePaused(Ledger):
    """The table service lets a coordinator begin that has not heard of the pause."""

    def paused(self, now_ms: int) -> bool:
        return False


class _CommitsOutliveAPause(Orders):
    def _give_up(self) -> None:
        """Only where nobody waits for them."""
        newest = self._taken[-1].order.action if self._taken else ""
        if newest != PAUSE:
            super()._give_up()


class BegunForACommitBeforeThePause(Ledger):
    """The table service lets a coordinator begin for an order to commit that the pause came after."""

    def __init__(self, *, tuning: Tuning | None = None, **rest: Any) -> None:
        super().__init__(tuning=tuning, **rest)
        self.orders = _CommitsOutliveAPause(tuning)

    def paused(self, now_ms: int) -> bool:
        controls = self.orders.controls(now_ms)
        return super().paused(now_ms) and (controls is None or not controls.commit)


class FirstWorkersColumns(Transactions):
    """A commit says the columns of the worker that is named first, and not of all that have written."""

    def _plan(self, transaction: str, expected: Offsets, statuses: Sequence[WriteStatus]) -> CommitPlan:
        plan = super()._plan(transaction, expected, statuses)
        return replace(plan, columns=dict(list(plan.columns.items())[:1]))


class TheTablesColumnsForgotten(MemoryTable):
    """A commit says the columns that its own workers have written, and not those that the table had."""

    def _columns_with(self, commit: Commit) -> str:
        return next(iter(commit.columns), self.timeline.columns)
