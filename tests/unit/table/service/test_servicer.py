"""The table service over real loopback gRPC, against the in-memory table."""

from __future__ import annotations

import math
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import grpc
import pytest

from control_topic.causes import COMMIT_PARTS
from control_topic.codec import offsets_to_proto
from control_topic.controls import COMMIT, Controls, Tuning
from control_topic.errors import Malformed
from control_topic.messages import (
    Control,
    DataFile,
    EventTimes,
    Lost,
    Offsets,
    Range,
    Reject,
    SourcePartition,
    Witness,
    WriteStatus,
)
from control_topic.stubs import control_pb2
from table.errors import ClockAhead, Contradiction, OutcomeUnknown, Unavailable
from table.memory.table import TIMED, Interruption, MemoryTable
from table.memory.timeline import InstantPhase, MemoryTimeline
from table.port import Commit
from table.service import codec
from table.service.calls import (
    Answer,
    CoordinatorReport,
    Directive,
    Fault,
    Order,
    Ordered,
    Result,
    RunMode,
    Unreached,
    WorkerReport,
)
from table.service.channel import TOKEN_KEY
from table.service.client import Deadlines, TableClient
from table.service.ledger import Ledger, LedgerLimits, RunOutcomeKind
from table.service.running import QUEUE_MAX
from table.service.server import RunningServer, serve
from table.service.servicer import TableService
from table.service.source_facts import SourceFacts, SourceUnavailable
from table.state import TableState
from table.stubs import table_pb2 as pb
from table.stubs import table_pb2_grpc as pb_grpc
from table.watermark import MarkRule, Watermark

P0 = SourcePartition("events", 0)
P1 = SourcePartition("events", 1)
TOKEN = "a-token-of-this-run"
WAIT_S = 10.0
TUNING = Tuning(interval_ms=1_000, write_timeout_ms=20_000, schedule="", align_ms=0)


@dataclass(slots=True)
class Topics:
    """A broker's topics, as `lockstep.brokers.source_topics.SourceTopics` shows them."""

    cluster: str = "cluster-1"
    topic_id: str = "topic-1"
    start: dict[SourcePartition, int] = field(default_factory=lambda: {P0: 3, P1: 0})
    stop: dict[SourcePartition, int] = field(default_factory=lambda: {P0: 1_000, P1: 1_000})
    stable: dict[SourcePartition, int] = field(default_factory=dict)
    """Where open transactions of producers begin."""
    silent: threading.Event | None = None
    """Until it is set, nobody answers where logs end that cannot be read yet."""
    away: bool = False
    without_ids: bool = False

    def facts(self) -> SourceFacts:
        if self.away:
            raise SourceUnavailable("the broker at 127.0.0.1:9092 does not answer")
        ids = {} if self.without_ids else {"events": self.topic_id}
        return SourceFacts(cluster=self.cluster, topics=ids, partitions=tuple(sorted(self.start)))

    def earliest(self, partitions: Sequence[SourcePartition]) -> Offsets:
        return {partition: self.start[partition] for partition in partitions}

    def end(self, partitions: Sequence[SourcePartition], read_committed: bool = True) -> Offsets:
        if self.away:
            raise SourceUnavailable("the broker at 127.0.0.1:9092 does not answer")
        if self.silent is not None and not read_committed:
            assert self.silent.wait(WAIT_S)
        ends = {partition: self.stop[partition] for partition in partitions}
        return {**ends, **{p: self.stable[p] for p in partitions if p in self.stable and read_committed}}


@dataclass(slots=True)
class Clock:
    """The service's clock, moved by the test alone."""

    ms: int = 1_000

    def __call__(self) -> int:
        return self.ms


class WrittenTable(MemoryTable):
    """Its workers have written what they report."""

    odd_parts: Mapping[str, Any] | None = None
    """What it says of its time instead of what it knows."""

    def commit(self, commit: Commit, *, fence: Callable[[TableState | None], str]) -> Mapping[str, int]:
        for file in commit.files:
            self.timeline.write_file(file.path, commit.instant)
        took_ms = super().commit(commit, fence=fence)
        return took_ms if self.odd_parts is None else self.odd_parts


class Driver:
    """A driver's table service on a socket of its own, and a client of it."""

    def __init__(
        self,
        timeline: MemoryTimeline,
        topics: Topics,
        *,
        run: str = "run-1",
        limits: LedgerLimits | None = None,
        until: Offsets | None = None,
        deadlines: Deadlines | None = None,
        starting_offsets: str = "earliest",
        on_data_loss: str = "fail",
        rows_are_records: bool = True,
        rejects_max: int | None = None,
        mark_rule: MarkRule | None = None,
        earlier_commits: str = "",
    ) -> None:
        self.clock = Clock()
        self.step: Callable[[Interruption], None] = lambda _step: None
        self.said: list[Control] = []
        self.table = WrittenTable(timeline, "p", at=lambda step: self.step(step))
        self.service = TableService(
            table=self.table,
            ledger=Ledger(run=run, now_ms=self.clock.ms, limits=limits, until=until, tuning=TUNING),
            source=topics,
            pipeline="p",
            run=run,
            rows_are_records=rows_are_records,
            starting_offsets=starting_offsets,
            on_data_loss=on_data_loss,
            rejects_max=rejects_max,
            clock_ms=self.clock,
            workers=2,
            objection=self.objection,
            ordered=self.said.append,
            mark_rule=mark_rule,
            earlier_commits=lambda _facts: earlier_commits,
        )
        self.server: RunningServer = serve(self.service, token=TOKEN)
        self.client = TableClient(self.server.address, TOKEN, deadlines=deadlines)

    @staticmethod
    def objection(tuning: Tuning) -> str:
        """The configuration's."""
        return "transaction.interval: too short" if tuning.interval_ms < 100 else ""

    def lead(self, epoch: int = 1, incarnation: str = "c1") -> Answer:
        """Register and recover."""
        registered = self.client.register(epoch, incarnation)
        assert registered.result is Result.OK, registered
        return self.client.recover(epoch)

    def commit(
        self, transaction: str, start: Offsets, ends: Offsets, *, epoch: int = 1, instant: str = ""
    ) -> Answer:
        """Commit `[start, end)` of each partition in `ends`."""
        return self.client.commit(epoch, transaction, instant, start, [status(transaction, start, ends)])

    def close(self) -> None:
        self.client.close()
        self.server.stop(grace_s=0.0)
        self.service.close(timeout_s=WAIT_S)


def status(transaction: str, start: Offsets, ends: Offsets) -> WriteStatus:
    ranges = tuple(
        Range(partition=p, start=start.get(p, 0), next=end, records=end - start.get(p, 0))
        for p, end in sorted(ends.items())
    )
    rows = sum(item.records for item in ranges)
    path = f"{transaction}-{min(ends)}.parquet"
    file = DataFile(path=path, body=path, table_partition="", rows=rows, size_bytes=100)
    return WriteStatus(transaction=transaction, ranges=ranges, files=(file,))


def fails_at(step: Interruption, error: Exception) -> Callable[[Interruption], None]:
    def at(reached: Interruption) -> None:
        if reached is step:
            raise error

    return at


def waits_at(step: Interruption) -> tuple[Callable[[Interruption], None], threading.Event, threading.Event]:
    """A step that says it was reached and then waits to be let go."""
    reached, let_go = threading.Event(), threading.Event()

    def at(now: Interruption) -> None:
        if now is step:
            reached.set()
            assert let_go.wait(WAIT_S)

    return at, reached, let_go


@pytest.fixture
def timeline() -> MemoryTimeline:
    return MemoryTimeline()


@pytest.fixture
def topics() -> Topics:
    return Topics()


Make = Callable[..., Driver]


@pytest.fixture
def make(timeline: MemoryTimeline, topics: Topics) -> Iterator[Make]:
    drivers: list[Driver] = []

    def driver(**options: object) -> Driver:
        drivers.append(Driver(timeline, topics, **options))  # type: ignore[arg-type]
        return drivers[-1]

    yield driver
    for one in drivers:
        one.close()


@pytest.fixture
def driver(make: Make) -> Driver:
    return make()


# --- the whole way ----------------------------------------------------------------------------


def test_a_transaction_goes_from_survey_to_commit(driver: Driver, timeline: MemoryTimeline) -> None:
    assert driver.client.offsets().result is Result.UNAVAILABLE
    survey = driver.client.survey()
    assert (survey.result, survey.epoch) == (Result.OK, 0)
    recovered = driver.lead()
    assert recovered.result is Result.OK
    assert recovered.committed == {P0: 3, P1: 0}
    assert recovered.partitions == (P0, P1)
    begun = driver.client.begin(1, "t1")
    assert begun.result is Result.OK
    assert begun.committed == {P0: 3, P1: 0}
    committed = driver.commit("t1", begun.committed, {P0: 10, P1: 5}, instant=begun.instant)
    assert (committed.result, committed.instant) == (Result.OK, begun.instant)
    assert committed.committed == driver.client.offsets().committed == {P0: 10, P1: 5}
    state = driver.table.newest()
    assert state is not None
    assert (state.run, state.epoch, state.transaction, state.kind) == ("run-1", 1, "t1", "data")
    assert (state.cluster, state.topics) == ("cluster-1", {"events": "topic-1"})
    assert [file.path for file in timeline.completed[-1].files] == ["t1-events:0.parquet"]
    progress = driver.service.progress()
    assert (progress.commits, progress.rows, progress.last_commit_age_ms) == (1, 12, 0)
    assert progress.to_json()["newest"]["epoch"] == 1
    assert driver.client.survey().epoch == 1


@pytest.mark.parametrize(
    ("says", "told"),
    [
        (dict.fromkeys(COMMIT_PARTS, 7), dict.fromkeys(COMMIT_PARTS, 7)),
        ({}, {}),
        ({"write": 7, "prayer": 1, "\ud800": 2, "x" * 10**6: 3}, {"write": 7}),
        ({"files": -1, "lock": 2**63, "check": 2**64, "write": 2**63 - 1}, {"write": 2**63 - 1}),
        ({"files": None, "lock": "2", "check": float("nan"), "write": 0.5}, {}),
    ],
    ids=["all of them", "nothing", "what is no part", "what is no time", "what is no number"],
)
def test_a_commit_that_landed_is_ok_whatever_the_table_says_of_its_time(
    driver: Driver, says: Mapping[str, Any], told: Mapping[str, int]
) -> None:
    driver.lead()
    begun = driver.client.begin(1, "t1")
    driver.table.odd_parts = says
    committed = driver.commit("t1", begun.committed, {P0: 10}, instant=begun.instant)
    assert (committed.result, committed.committed[P0]) == (Result.OK, 10)
    assert committed.took_ms == told


def test_only_who_saw_a_commit_land_says_how_long_it_took(driver: Driver) -> None:
    driver.lead()
    begun = driver.client.begin(1, "t1")
    first = driver.commit("t1", begun.committed, {P0: 10}, instant=begun.instant)
    assert first.took_ms == dict.fromkeys(TIMED, 0)
    again = driver.commit("t1", begun.committed, {P0: 10}, instant=begun.instant)
    found = driver.client.find("t1", status("t1", begun.committed, {P0: 10}).ranges)
    aborted = driver.client.abort(1, "t1", begun.instant, "too late", Fault.NONE)
    assert (again.result, found.result, aborted.result) == (Result.OK, Result.COMMITTED, Result.COMMITTED)
    assert again.took_ms == found.took_ms == aborted.took_ms == {}


def test_a_call_without_the_runs_token_has_no_effect(driver: Driver, timeline: MemoryTimeline) -> None:
    for wrong in ("another token", "", "ä"):
        stranger = TableClient(driver.server.address, wrong)
        try:
            assert stranger.register(9, "c9").result is Result.UNAVAILABLE
            assert stranger.begin(9, "t9").result is Result.UNKNOWN
            assert isinstance(stranger.report(WorkerReport(slot=0, incarnation="w")), Unreached)
            assert isinstance(stranger.status(), Unreached)
        finally:
            stranger.close()
    with grpc.insecure_channel(driver.server.address) as channel, pytest.raises(grpc.RpcError) as refused:
        pb_grpc.TableServiceStub(channel).Survey(pb.SurveyRequest(), timeout=WAIT_S)
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert TOKEN not in str(refused.value)
    assert not timeline.instants
    assert driver.client.survey().epoch == 0


def test_a_commit_of_many_megabytes_passes(driver: Driver) -> None:
    driver.lead()
    begun = driver.client.begin(1, "t1")
    big = status("t1", begun.committed, {P0: 90})
    big = replace(big, files=(replace(big.files[0], rows=big.files[0].rows - 80),))
    rejects = tuple(Reject(partition=P0, offset=3, reason="x" * 100_000) for _ in range(80))
    big = WriteStatus(transaction="t1", ranges=big.ranges, files=big.files, rejects=rejects)
    assert driver.client.commit(1, "t1", begun.instant, begun.committed, [big]).result is Result.OK


# --- recovery ---------------------------------------------------------------------------------


def test_genesis_resolves_starting_offsets_once(make: Make, topics: Topics) -> None:
    assert make(starting_offsets="latest").lead().committed == {P0: 1_000, P1: 1_000}
    topics.stop = {P0: 2_000, P1: 2_000}
    assert make(run="run-2", starting_offsets="latest").lead(epoch=2).committed == {P0: 1_000, P1: 1_000}


GROUP = "consumer group p has committed offsets (events:0=7)"


def test_a_pipeline_that_has_committed_before_does_not_begin_by_itself(
    make: Make, timeline: MemoryTimeline
) -> None:
    """A part of the timeline is lost: records would be read twice, or skipped."""
    answer = make(earlier_commits=GROUP).lead()
    assert answer.result is Result.HALTED and not timeline.instants
    assert GROUP in answer.reason
    assert "lockstep offsets -c … --set 'events:*=earliest' --execute --reason TEXT" in answer.reason
    assert make(run="run-2").lead().result is Result.OK
    assert make(run="run-3", earlier_commits=GROUP).lead(epoch=2).result is Result.OK, "it has commits"


def test_a_table_that_has_lost_commits_halts_a_run_before_it_commits(
    make: Make, timeline: MemoryTimeline
) -> None:
    driver = make()
    instant = driver.table.begin(run="run-0", transaction="t0")
    timeline.write_file("a.parquet", instant)
    timeline.instants.clear()
    answer = driver.lead()
    assert answer.result is Result.HALTED and not timeline.completed
    assert "the timeline does not know the instant of a.parquet" in answer.reason
    assert "Restore .hoodie/timeline" in answer.reason


def test_whoever_loses_the_race_for_genesis_takes_the_winners(make: Make, timeline: MemoryTimeline) -> None:
    loser, winner = make(), make(run="run-2", starting_offsets="latest")

    def another_wins(step: Interruption) -> None:
        if step is Interruption.BEGIN_INFLIGHT:
            loser.step = lambda _step: None
            assert winner.lead(epoch=1).result is Result.OK

    loser.step = another_wins
    stale = loser.lead()
    assert stale.result is Result.STALE
    assert "another run has committed with it" in stale.reason
    assert len(timeline.completed) == 1
    assert not loser.table.unfinished()
    answer = loser.lead(epoch=2)
    assert (answer.result, answer.committed) == (Result.OK, {P0: 1_000, P1: 1_000})


def test_recovery_rolls_back_what_a_predecessor_left_open(make: Make, timeline: MemoryTimeline) -> None:
    first = make()
    first.lead()
    left = first.client.begin(1, "t1").instant
    timeline.write_file("orphan.parquet", left)
    second = make(run="run-2")
    assert second.lead(epoch=2).result is Result.OK
    assert timeline.instants[left].phase is InstantPhase.ROLLED_BACK
    assert not timeline.files
    late = first.commit("t1", {P0: 3, P1: 0}, {P0: 10}, instant=left)
    assert late.result is Result.REFUSED
    assert second.client.begin(2, "t2").result is Result.OK


def test_what_earlier_runs_left_open_is_rolled_back_before_a_coordinator_asks(
    make: Make, timeline: MemoryTimeline
) -> None:
    first = make()
    first.lead()
    left = first.client.begin(1, "t1").instant
    second = make(run="run-2")
    second.service.clear()
    second.service.newest(timeout_s=5)  # done after it, on the same thread
    assert timeline.instants[left].phase is InstantPhase.ROLLED_BACK
    assert second.lead(epoch=2).result is Result.OK
    own = second.client.begin(2, "t2").instant
    second.service.clear()
    second.service.newest(timeout_s=5)
    assert timeline.instants[own].phase is InstantPhase.INFLIGHT


def test_a_second_coordinator_makes_the_first_one_stale(driver: Driver) -> None:
    driver.lead()
    begun = driver.client.begin(1, "t1")
    assert driver.client.register(1, "another").result is Result.STALE
    assert driver.lead(epoch=2, incarnation="c2").result is Result.OK
    assert driver.client.recover(1).result is Result.STALE
    assert driver.client.begin(1, "t2").result is Result.STALE
    assert driver.commit("t1", begun.committed, {P0: 9}, instant=begun.instant).result is Result.STALE
    assert driver.client.abort(1, "t1", begun.instant, "x", Fault.NONE).result is Result.STALE


def test_a_driver_whose_table_carries_a_newer_epoch_is_stale(make: Make) -> None:
    old, new = make(), make(run="run-2")
    old.lead()
    new.lead(epoch=2)
    begun = new.client.begin(2, "t1")
    assert new.commit("t1", begun.committed, {P0: 9}, epoch=2, instant=begun.instant).result is Result.OK
    stale = old.client.begin(1, "t2")
    assert stale.result is Result.STALE
    assert "the table carries epoch 2" in stale.reason
    assert old.client.register(2, "c2").result is Result.STALE


def restarted(make: Make, **options: object) -> tuple[Driver, Answer]:
    """A first run commits up to events:0 = 9, a second one recovers."""
    first = make()
    first.lead()
    begun = first.client.begin(1, "t1")
    assert first.commit("t1", begun.committed, {P0: 9}, instant=begun.instant).result is Result.OK
    return (second := make(run="run-2", **options)), second.lead(epoch=2)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: setattr(t, "cluster", "cluster-2"), ["cluster-1", "cluster-2", "offsets --adopt"]),
        (lambda t: setattr(t, "topic_id", "topic-2"), ["events", "topic-1", "topic-2", "offsets --adopt"]),
        (lambda t: t.stop.update({P0: 8}), ["events:0", "9", "8", "truncated or recreated"]),
        (lambda t: t.start.update({P0: 20}), ["events:0", "[9, 20)", "on_data_loss", "--set events:0=20"]),
        (lambda t: t.start.pop(P1), ["events:1", "does not exist"]),
    ],
    ids=["cluster", "topic id", "beyond the end", "lost", "fewer partitions"],
)
def test_offsets_that_do_not_fit_the_broker_halt_the_run_and_say_the_way_out(
    make: Make, topics: Topics, change: Callable[[Topics], object], says: list[str]
) -> None:
    make().lead()
    first_run = make(run="run-1b")
    first_run.lead(epoch=2)
    begun = first_run.client.begin(2, "t1")
    first_run.commit("t1", begun.committed, {P0: 9}, epoch=2, instant=begun.instant)
    change(topics)
    second = make(run="run-2")
    answer = second.lead(epoch=3)
    assert answer.result is Result.HALTED
    for part in says:
        assert part in answer.reason
    assert second.service.progress().standing.halted == answer.reason
    assert second.client.begin(3, "t2").result is Result.HALTED


def test_lost_offsets_are_accepted_where_the_configuration_says_so(make: Make, topics: Topics) -> None:
    topics.start[P1] = 0
    first = make()
    first.lead()
    topics.start[P1] = 50
    assert make(run="run-2", on_data_loss="earliest").lead(epoch=2).result is Result.OK


NEW = SourcePartition("events", 2)
AUDIT = SourcePartition("audit", 0)


@pytest.mark.parametrize("starting_offsets", ["earliest", "latest"])
def test_a_partition_that_appears_later_begins_where_its_log_does_whatever_the_table_was_begun_with(
    make: Make, topics: Topics, starting_offsets: str
) -> None:
    start = make(starting_offsets=starting_offsets).lead().committed
    topics.start[NEW], topics.stop[NEW] = 600, 700
    second = make(run="run-2", starting_offsets=starting_offsets)
    answer = second.lead(epoch=2)
    assert answer.result is Result.OK
    assert answer.partitions == (P0, P1, NEW)
    assert answer.committed == {**start, NEW: 600}
    newest = second.table.newest()
    assert newest is not None
    assert (newest.kind, newest.epoch, newest.ranges, newest.offsets) == (
        "admission",
        2,
        (),
        answer.committed,
    )


@pytest.mark.parametrize(("starting_offsets", "begins"), [("earliest", 600), ("latest", 700)])
def test_a_topic_that_is_added_begins_as_the_first_ones_did_and_once(
    make: Make, topics: Topics, timeline: MemoryTimeline, starting_offsets: str, begins: int
) -> None:
    make(starting_offsets=starting_offsets).lead()
    topics.start[AUDIT], topics.stop[AUDIT] = 600, 700
    assert make(run="run-2", starting_offsets=starting_offsets).lead(epoch=2).committed[AUDIT] == begins
    topics.start[AUDIT], topics.stop[AUDIT] = 600, 900
    third = make(run="run-3", starting_offsets=starting_offsets)
    assert third.lead(epoch=3).committed[AUDIT] == begins
    assert third.client.recover(3).committed[AUDIT] == begins
    assert len(timeline.completed) == 2


def test_of_two_drivers_that_admit_the_same_partition_one_decides_and_nothing_is_left_open(
    make: Make, topics: Topics, timeline: MemoryTimeline
) -> None:
    make(starting_offsets="latest").lead()
    topics.start[AUDIT], topics.stop[AUDIT] = 600, 700
    loser, winner = make(run="run-2", starting_offsets="latest"), make(run="run-3", starting_offsets="latest")

    def another_wins(step: Interruption) -> None:
        if step is Interruption.BEGIN_INFLIGHT:
            loser.step = lambda _step: None
            assert winner.lead(epoch=3).committed[AUDIT] == 700
            topics.stop[AUDIT] = 800

    loser.step = another_wins
    assert loser.lead(epoch=2).result is Result.STALE
    assert loser.lead(epoch=4).committed[AUDIT] == 700
    assert [state.kind for state in timeline.states("p")] == ["admission", "genesis"]
    assert not loser.table.unfinished()


def test_an_admission_that_was_perhaps_committed_is_found_and_not_made_again(
    make: Make, topics: Topics, timeline: MemoryTimeline
) -> None:
    make().lead()
    topics.start[NEW], topics.stop[NEW] = 600, 700
    second = make(run="run-2")
    second.step = fails_at(Interruption.COMMIT_COMPLETED, OutcomeUnknown("the connection broke"))
    assert second.lead(epoch=2).result is Result.UNAVAILABLE
    second.step = lambda _step: None
    topics.start[NEW] = 650
    assert second.client.recover(2).result is Result.HALTED  # 600 it is: what retention took since is lost
    assert [state.offsets[NEW] for state in timeline.states("p") if state.kind == "admission"] == [600]


def test_nothing_is_admitted_from_a_cluster_that_the_offsets_are_not_of(
    make: Make, topics: Topics, timeline: MemoryTimeline
) -> None:
    make().lead()
    topics.start[NEW], topics.stop[NEW] = 600, 700
    topics.cluster = "cluster-2"
    assert make(run="run-2").lead(epoch=2).result is Result.HALTED
    assert len(timeline.instants) == 1


def test_a_topic_that_is_left_out_for_a_while_keeps_its_id_in_the_table(make: Make, topics: Topics) -> None:
    make().lead()
    second = make(run="run-2")
    second.lead(epoch=2)
    topics.without_ids = True
    begun = second.client.begin(2, "t1")
    assert second.commit("t1", begun.committed, {P0: 9}, epoch=2, instant=begun.instant).result is Result.OK
    newest = second.table.newest()
    assert newest is not None and newest.topics == {"events": "topic-1"}
    topics.without_ids = False
    topics.topic_id = "topic-2"
    assert make(run="run-3").lead(epoch=3).result is Result.HALTED


def test_a_restart_goes_on_from_the_table_alone(make: Make) -> None:
    _, answer = restarted(make)
    assert (answer.result, answer.committed) == (Result.OK, {P0: 9, P1: 0})


@pytest.mark.parametrize("records", [0, 1])
def test_the_last_records_of_a_commit_are_told_to_whoever_reads_on_and_stay_until_there_are_others(
    make: Make, records: int
) -> None:
    """A range of marks has none of its own; one of records that names none leaves none that is the last."""
    driver = make()
    driver.lead()
    known = {p: Witness(partition=p, offset=o, fingerprint=o) for p, o in ((P0, 9), (P1, 4))}
    begun = driver.client.begin(1, "t1")
    said = replace(status("t1", begun.committed, {P0: 10, P1: 5}), witnesses=tuple(known.values()))
    assert driver.client.commit(1, "t1", begun.instant, begun.committed, [said]).result is Result.OK
    begun = driver.client.begin(1, "t2")
    moved = WriteStatus(
        transaction="t2",
        ranges=(Range(partition=P1, start=5, next=7, records=records),),
        reject_count=records,
    )
    assert driver.client.commit(1, "t2", begun.instant, begun.committed, [moved]).result is Result.OK
    left = tuple(known.values())[: 1 if records else 2]
    assert driver.client.offsets().witnesses == left
    restarted = make(run="run-2")
    restarted.lead(epoch=2)
    assert restarted.client.begin(2, "t3").witnesses == left


def test_none_is_known_to_be_the_last_where_offsets_behind_it_were_lost(driver: Driver) -> None:
    """Records stood there: where the log's beginning comes back, they are no others' in their place."""
    driver.lead()
    begun = driver.client.begin(1, "t1")
    known = tuple(Witness(partition=p, offset=o, fingerprint=o) for p, o in ((P0, 3), (P1, 9)))
    said = replace(
        status("t1", begun.committed, {P0: 10, P1: 10}),
        witnesses=known,
        lost=(Lost(partition=P0, start=4, next=10), Lost(partition=P1, start=2, next=5)),
    )
    assert driver.client.commit(1, "t1", begun.instant, begun.committed, [said]).result is Result.OK
    assert driver.client.offsets().witnesses == known[1:]
    begun = driver.client.begin(1, "t2")
    lost = WriteStatus(
        transaction="t2",
        ranges=(Range(partition=P1, start=10, next=20),),
        lost=(Lost(partition=P1, start=10, next=20),),
    )
    assert driver.client.commit(1, "t2", begun.instant, begun.committed, [lost]).result is Result.OK
    assert driver.client.offsets().witnesses == ()


def test_a_record_outside_of_what_was_written_is_refused(driver: Driver) -> None:
    begun = begun_driver(driver)
    said = status("t1", begun.committed, {P0: 9})
    said = replace(said, witnesses=(Witness(partition=P0, offset=9, fingerprint=1),))
    refused = driver.client.commit(1, "t1", begun.instant, begun.committed, [said])
    assert refused.result is Result.REFUSED
    assert "a record of events:0 outside of its range" in refused.reason


# --- the watermark ----------------------------------------------------------------------------

MARKED = MarkRule(of="at", lateness_ms=10, idle_after_ms=60_000)


def happened(transaction: str, start: Offsets, ends: Offsets, **greatest_ms: int) -> WriteStatus:
    """`greatest_ms`: of `p0` and `p1`."""
    times = {SourcePartition("events", int(name[1:])): at for name, at in greatest_ms.items()}
    event_times = tuple(EventTimes(partition=p, greatest_ms=at, late=1) for p, at in sorted(times.items()))
    return replace(status(transaction, start, ends), event_times=event_times)


def goes_on(
    driver: Driver, transaction: str, *, epoch: int = 1, records: int = 2, **greatest_ms: int
) -> None:
    """Both are read; each that has an event time brings records, the other nothing."""
    begun = driver.client.begin(epoch, transaction)
    ends = {p: o + records * (f"p{p.number}" in greatest_ms) for p, o in begun.committed.items()}
    said = happened(transaction, begun.committed, ends, **greatest_ms)
    done = driver.client.commit(epoch, transaction, begun.instant, begun.committed, [said])
    assert done.result is Result.OK, done.reason


def watermark(driver: Driver) -> Watermark:
    newest = driver.table.newest()
    assert newest is not None and newest.watermark is not None
    return newest.watermark


def test_the_watermark_of_a_commit_is_told_to_the_next_transaction_and_to_the_next_run(make: Make) -> None:
    driver = make(mark_rule=MARKED)
    driver.lead()
    assert driver.client.begin(1, "t0").watermark_ms is None
    driver.client.abort(1, "t0", "", "for the test", Fault.NONE)
    goes_on(driver, "t1", p0=1_000, p1=700)
    assert watermark(driver).late == 2 and driver.service.progress().late == 2
    assert driver.client.begin(1, "t2").watermark_ms == 690
    restarted = make(run="run-2", mark_rule=MARKED)
    restarted.lead(epoch=2)
    assert restarted.client.begin(2, "t3").watermark_ms == 690


def test_a_source_partition_is_idle_only_where_the_broker_says_that_nothing_is_left_of_it(
    make: Make, topics: Topics
) -> None:
    driver = make(mark_rule=MARKED)
    driver.lead()
    goes_on(driver, "t1", p0=1_000, p1=700)
    driver.clock.ms += 60_000
    goes_on(driver, "t2", p0=2_000)
    assert watermark(driver).holder == P1, "more is in its log"
    topics.stop[P1] = 2
    driver.clock.ms += 5_000
    goes_on(driver, "t3", p0=3_000)
    assert watermark(driver).holder == P1, "it was looked at a moment ago"
    driver.clock.ms += 5_000
    for number in range(100):  # nobody waits for the answer, so that it is known to a later one
        goes_on(driver, f"t{4 + number}", p0=4_000)
        if watermark(driver).holder == P0:
            break
    assert (watermark(driver).holder, watermark(driver).at_ms) == (P0, 3_990)


def test_records_in_an_open_transaction_of_a_producer_are_to_come(make: Make, topics: Topics) -> None:
    driver = make(mark_rule=MARKED)
    driver.lead()
    goes_on(driver, "t1", p0=1_000, p1=700)
    topics.stop[P1], topics.stable[P1] = 3, 2
    driver.clock.ms += 60_000
    goes_on(driver, "t2", p0=2_000)
    assert watermark(driver).holder == P1


def test_a_broker_that_does_not_say_where_logs_end_holds_up_no_commit_and_nobody_is_idle_by_it(
    make: Make, topics: Topics
) -> None:
    driver = make(mark_rule=MARKED)
    driver.lead()
    goes_on(driver, "t1", p0=1_000, p1=700)
    topics.stop[P1], topics.silent = 2, threading.Event()
    driver.clock.ms += 60_000
    goes_on(driver, "t2", p0=2_000)
    assert watermark(driver).holder == P1
    topics.silent.set()
    driver.clock.ms += 10_000
    for number in range(100):
        goes_on(driver, f"t{3 + number}", p0=3_000)
        if watermark(driver).holder == P0:
            return
    pytest.fail("what was answered is not known")


def test_how_long_nothing_came_is_known_to_the_next_run_and_what_lay_between_is_not_counted(
    make: Make, topics: Topics
) -> None:
    topics.stop[P1] = 2
    first = make(mark_rule=MARKED)
    first.lead()
    goes_on(first, "t1", p0=1_000, p1=700)
    first.clock.ms += 50_000
    goes_on(first, "t2", p0=2_000)
    second = make(run="run-2", mark_rule=MARKED)
    second.clock.ms += 10**9
    second.lead(epoch=2)
    goes_on(second, "t3", epoch=2, p0=3_000)
    assert watermark(second).at_ms == 690
    second.clock.ms += 10_000
    goes_on(second, "t4", epoch=2, p0=4_000)
    assert watermark(second).at_ms == 3_990


def test_a_run_that_declares_no_event_time_carries_the_watermark_on_as_it_is(make: Make) -> None:
    first = make(mark_rule=MARKED)
    first.lead()
    goes_on(first, "t1", p0=1_000, p1=700)
    second = make(run="run-2")
    second.lead(epoch=2)
    goes_on(second, "t2", epoch=2, p0=9_000, p1=9_000)
    assert (watermark(second).at_ms, watermark(second).late) == (690, 0)


def test_another_declaration_counts_no_record_late_by_the_watermark_of_the_one_before(make: Make) -> None:
    """One that a wrong unit has carried away would have all of them late."""
    first = make(mark_rule=MARKED)
    first.lead()
    goes_on(first, "t1", p0=10**15, p1=10**15)
    second = make(run="run-2", mark_rule=replace(MARKED, of="at:us"))
    second.lead(epoch=2)
    assert second.client.begin(2, "t2").watermark_ms is None
    second.client.abort(2, "t2", "", "for the test", Fault.NONE)
    goes_on(second, "t3", epoch=2, p0=1_000, p1=700)
    assert second.client.begin(2, "t4").watermark_ms == 690


def test_who_had_records_while_no_event_time_was_declared_has_not_been_quiet_meanwhile(
    make: Make, topics: Topics
) -> None:
    topics.stop[P1] = 4
    first = make(mark_rule=MARKED)
    first.lead()
    goes_on(first, "t1", p0=1_000, p1=700)
    first.clock.ms += 60_000
    goes_on(first, "t2", p0=2_000)
    second = make(run="run-2")
    second.lead(epoch=2)
    goes_on(second, "t3", epoch=2, p0=9_000, p1=9_000)
    third = make(run="run-3", mark_rule=MARKED)
    third.lead(epoch=3)
    goes_on(third, "t4", epoch=3, p0=3_000)
    assert (watermark(third).holder, watermark(third).at_ms) == (P1, 690)


def test_event_times_outside_of_what_was_written_are_refused(make: Make) -> None:
    driver = make(mark_rule=MARKED)
    begun = begun_driver(driver)
    said = happened("t1", begun.committed, {P0: 9}, p1=7)
    refused = driver.client.commit(1, "t1", begun.instant, begun.committed, [said])
    assert refused.result is Result.REFUSED
    assert "event times of events:1 outside of its range" in refused.reason


# --- begin ------------------------------------------------------------------------------------


def test_begin_is_idempotent_by_transaction(driver: Driver, timeline: MemoryTimeline) -> None:
    driver.lead()
    first, again = driver.client.begin(1, "t1"), driver.client.begin(1, "t1")
    assert first == again
    assert len(driver.table.unfinished()) == 1


def test_begin_finds_the_instant_of_a_begin_that_was_not_answered(driver: Driver) -> None:
    driver.lead()
    driver.step = fails_at(Interruption.BEGIN_INFLIGHT, OutcomeUnknown("the connection to the JVM broke"))
    assert driver.client.begin(1, "t1").result is Result.UNKNOWN
    driver.step = lambda _step: None
    driver.clock.ms += 60_000
    assert driver.client.begin(1, "t1").instant == driver.table.unfinished()[0].instant
    assert len(driver.table.unfinished()) == 1


def test_a_transaction_that_has_ended_does_not_begin_again(driver: Driver) -> None:
    driver.lead()
    begun = driver.client.begin(1, "t1")
    driver.client.abort(1, "t1", begun.instant, "everybody left", Fault.NONE)
    assert driver.client.begin(1, "t1").result is Result.REFUSED


def test_begin_waits_out_the_back_off(driver: Driver) -> None:
    driver.lead()
    begun = driver.client.begin(1, "t1")
    aborted = driver.client.abort(1, "t1", begun.instant, "no WRITE_STATUS", Fault.PIPELINE)
    assert (aborted.result, aborted.wait_ms) == (Result.OK, 500)
    driver.clock.ms += 200
    early = driver.client.begin(1, "t2")
    assert (early.result, early.wait_ms) == (Result.UNAVAILABLE, 300)
    driver.clock.ms += 300
    assert driver.client.begin(1, "t2").result is Result.OK


def test_a_drain_lets_a_last_transaction_begin_and_a_stop_none(driver: Driver) -> None:
    driver.lead()
    driver.service.request_stop("Ctrl-C")
    assert report(driver, coordinator="idle").mode is RunMode.DRAIN
    begun = driver.client.begin(1, "t1")
    assert begun.result is Result.OK
    assert driver.commit("t1", begun.committed, {P0: 9}, instant=begun.instant).result is Result.OK
    assert report(driver, coordinator="drained").mode is RunMode.STOP
    late = driver.client.begin(1, "t2")
    assert (late.result, late.reason) == (Result.UNAVAILABLE, "Ctrl-C")
    assert late.wait_ms > 0


# --- commit -----------------------------------------------------------------------------------


def begun_driver(driver: Driver) -> Answer:
    driver.lead()
    return driver.client.begin(1, "t1")


def test_a_commit_that_is_asked_for_again_is_answered_the_same(driver: Driver) -> None:
    begun = begun_driver(driver)
    answers = [driver.commit("t1", begun.committed, {P0: 9}, instant=begun.instant) for _ in range(3)]
    assert [answer.result for answer in answers] == [Result.OK] * 3
    assert {answer.instant for answer in answers} == {begun.instant}
    assert driver.service.progress().commits == 1


def test_a_committed_transaction_with_other_ranges_is_refused(driver: Driver) -> None:
    begun = begun_driver(driver)
    driver.commit("t1", begun.committed, {P0: 9}, instant=begun.instant)
    other = driver.commit("t1", begun.committed, {P0: 8}, instant=begun.instant)
    assert other.result is Result.REFUSED
    assert driver.client.offsets().committed[P0] == 9


def test_a_commit_that_landed_although_its_call_failed_is_ok(driver: Driver) -> None:
    begun = begun_driver(driver)
    driver.step = fails_at(Interruption.COMMIT_COMPLETED, OutcomeUnknown("the connection to the JVM broke"))
    answer = driver.commit("t1", begun.committed, {P0: 9}, instant=begun.instant)
    assert (answer.result, answer.committed) == (Result.OK, {P0: 9, P1: 0})


def test_a_commit_whose_outcome_cannot_be_read_is_unknown_and_found_later(
    driver: Driver, timeline: MemoryTimeline
) -> None:
    begun = begun_driver(driver)

    def break_down(step: Interruption) -> None:
        if step is Interruption.COMMIT_COMPLETED:
            timeline.available = False
            raise OutcomeUnknown("the connection to the storage broke")

    driver.step = break_down
    ranges = status("t1", begun.committed, {P0: 9}).ranges
    assert driver.commit("t1", begun.committed, {P0: 9}, instant=begun.instant).result is Result.UNKNOWN
    assert driver.client.find("t1", ranges).result is Result.UNKNOWN
    timeline.available = True
    found = driver.client.find("t1", ranges)
    assert (found.result, found.instant, found.committed[P0]) == (Result.COMMITTED, begun.instant, 9)
    assert driver.client.find("t1", ranges[:0]).result is Result.REFUSED
    progress = driver.service.progress()
    assert (progress.commits, progress.rows) == (1, 6)


def test_a_commit_that_did_not_land_is_unknown_then_absent_then_aborted(driver: Driver) -> None:
    begun = begun_driver(driver)
    driver.step = fails_at(Interruption.COMMIT_CHECKED, OutcomeUnknown("the connection to the JVM broke"))
    assert driver.commit("t1", begun.committed, {P0: 9}, instant=begun.instant).result is Result.UNKNOWN
    assert driver.client.find("t1", []).result is Result.ABSENT
    aborted = driver.client.abort(1, "t1", begun.instant, "the commit did not land", Fault.ENVIRONMENT)
    assert aborted.result is Result.OK
    assert aborted.wait_ms > 0
    assert not driver.table.unfinished()


def test_a_stale_coordinator_hears_of_its_own_commit_and_of_nothing_else(driver: Driver) -> None:
    begun = begun_driver(driver)
    driver.commit("t1", begun.committed, {P0: 9}, instant=begun.instant)
    assert driver.lead(epoch=2, incarnation="c2").result is Result.OK
    again = driver.commit("t1", begun.committed, {P0: 9}, instant=begun.instant)
    assert again.result is Result.OK
    assert driver.commit("t0", begun.committed, {P0: 9}, instant=begun.instant).result is Result.STALE


def test_offsets_that_moved_on_refuse_the_commit(driver: Driver) -> None:
    begun = begun_driver(driver)
    driver.commit("t1", begun.committed, {P0: 9}, instant=begun.instant)
    second = driver.client.begin(1, "t2")
    answer = driver.commit("t2", begun.committed, {P0: 20}, instant=second.instant)
    assert answer.result is Result.REFUSED
    assert "no longer those that transaction t2 started from" in answer.reason
    assert answer.committed[P0] == 9


@pytest.mark.parametrize(
    ("statuses", "says"),
    [
        ([status("t1", {P0: 3}, {P0: 9}), status("t1", {P0: 3}, {P0: 8})], "in two write statuses"),
        ([status("t1", {P0: 4}, {P0: 9})], "starts at 4, committed is 3"),
        ([status("t0", {P0: 3}, {P0: 9})], "transaction t0 came with t1"),
        ([status("t1", {P0: 3}, {P0: 9}), status("t1", {}, {P1: 0})], ""),
        (
            [
                WriteStatus(
                    transaction="t1",
                    ranges=(Range(partition=P0, start=3, next=9),),
                    lost=(Lost(partition=P0, start=0, next=4),),
                )
            ],
            "lost offsets of events:0 outside of its range",
        ),
        (
            [
                WriteStatus(
                    transaction="t1",
                    ranges=(Range(partition=P0, start=3, next=9, records=1),),
                    rejects=(Reject(partition=P0, offset=9, reason="x"),),
                )
            ],
            "a reject of events:0 outside of its range",
        ),
        (
            [WriteStatus(transaction="t1", ranges=(), files=status("t1", {}, {P0: 9}).files)],
            "9 rows of 0 records",
        ),
        (
            [WriteStatus(transaction="t1", ranges=status("t1", {P0: 3}, {P0: 9}).ranges)],
            "0 rows of 6 records, of which 0 were rejected; nothing of it is committed (events:0 [3, 9))",
        ),
        (
            [
                replace(status("t1", {P0: 3}, {P0: 9}), files=()),
                replace(status("t1", {}, {P1: 6}), files=status("t1", {}, {P0: 12}).files),
            ],
            "0 rows of 6 records",
        ),
        ([replace(status("t1", {P0: 3}, {P0: 9}), reject_count=1)], "6 rows of 6 records, of which 1 were"),
        ([replace(status("t1", {P0: 3}, {P0: 9}), files=(), reject_count=6)], ""),
    ],
    ids=[
        *("overlap", "start", "transaction", "fine", "lost", "reject", "rows"),
        *("too few", "evened out", "rejected and written", "all rejected"),
    ],
)
def test_write_statuses_are_taken_together_or_refused_whole(
    driver: Driver, statuses: list[WriteStatus], says: str
) -> None:
    begun = begun_driver(driver)
    answer = driver.client.commit(1, "t1", begun.instant, begun.committed, statuses)
    assert answer.result is (Result.REFUSED if says else Result.OK)
    assert says in answer.reason
    assert bool(says) == (len(driver.table.unfinished()) == 1)


def test_several_records_of_an_upsert_table_may_be_one_row_and_never_more_rows_than_records(
    make: Make,
) -> None:
    driver = make(rows_are_records=False)
    begun = begun_driver(driver)
    one = status("t1", {P0: 3}, {P0: 9})
    for rows, says in ((7, "7 rows of 6 records"), (1, "")):
        files = (replace(one.files[0], rows=rows),)
        answer = driver.client.commit(1, "t1", begun.instant, begun.committed, [replace(one, files=files)])
        assert answer.result is (Result.REFUSED if says else Result.OK)
        assert says in answer.reason


def test_a_commit_names_at_most_1_000_rejects_and_counts_all_of_them(driver: Driver) -> None:
    begun = begun_driver(driver)
    named = tuple(Reject(partition=P0, offset=offset, reason="x") for offset in range(3, 703))
    statuses = [
        WriteStatus(
            transaction="t1",
            ranges=(Range(partition=P0, start=3, next=2_003, records=2_000),),
            rejects=named,
            reject_count=2_000,
        ),
        WriteStatus(
            transaction="t1",
            ranges=(Range(partition=P1, start=0, next=700, records=700),),
            rejects=tuple(Reject(partition=P1, offset=offset, reason="y") for offset in range(700)),
        ),
    ]
    assert driver.client.commit(1, "t1", begun.instant, begun.committed, statuses).result is Result.OK
    state = driver.table.newest()
    assert state is not None
    assert state.reject_count == 2_700
    assert state.rejects[:700] == named
    assert [reject.partition for reject in state.rejects[700:]] == [P1] * 300
    assert driver.service.progress().rejects == 2_700


@pytest.mark.parametrize(("allowed", "result"), [(3, Result.HALTED), (4, Result.OK), (None, Result.OK)])
def test_rejects_that_are_too_many_only_with_all_workers_together_halt_the_run(
    make: Callable[..., Driver], allowed: int | None, result: Result
) -> None:
    driver = make(rejects_max=allowed)
    begun = begun_driver(driver)
    statuses = [
        WriteStatus(
            transaction="t1",
            ranges=(Range(partition=partition, start=start, next=start + 2, records=2),),
            rejects=tuple(Reject(partition=partition, offset=start + i, reason="no JSON") for i in range(2)),
        )
        for partition, start in ((P0, 3), (P1, 0))
    ]
    before = driver.table.newest()
    answer = driver.client.commit(1, "t1", begun.instant, begun.committed, statuses)
    assert answer.result is result
    if result is Result.HALTED:
        assert "4 of the 4 records" in answer.reason and "record.max_rejects (3)" in answer.reason
        assert "events:0 at offset 3: no JSON" in answer.reason
        assert driver.table.newest() == before


def test_a_topic_that_is_recreated_while_running_is_refused(driver: Driver, topics: Topics) -> None:
    begun = begun_driver(driver)
    topics.topic_id = "topic-2"
    answer = driver.commit("t1", begun.committed, {P0: 9}, instant=begun.instant)
    assert answer.result is Result.HALTED
    assert "recreated" in answer.reason
    assert driver.client.find("t1", []).result is Result.ABSENT


def test_a_table_that_is_emptied_under_a_run_is_not_begun_anew_by_it(
    make: Make, timeline: MemoryTimeline, topics: Topics
) -> None:
    """As by TRUNCATE TABLE: with `latest` what was read and not committed would be passed over."""
    driver = make(starting_offsets="latest")
    driver.lead()
    topics.stop = {P0: 2_000, P1: 2_000}
    timeline.instants.clear()
    answer = driver.client.recover(1)
    assert answer.result is Result.HALTED
    assert "has lost every commit of pipeline p while this run went on" in answer.reason
    assert not timeline.completed
    assert make(run="run-2", starting_offsets="latest").lead(epoch=1).committed == {P0: 2_000, P1: 2_000}


def test_a_table_that_contradicts_the_configuration_at_a_commit_halts_the_run_at_once(driver: Driver) -> None:
    begun = begun_driver(driver)
    driver.step = fails_at(Interruption.COMMIT_CHECKED, Contradiction("it has the field seen_at: add it"))
    answer = driver.commit("t1", begun.committed, {P0: 9}, instant=begun.instant)
    assert (answer.result, answer.reason) == (Result.HALTED, "it has the field seen_at: add it")
    assert driver.client.find("t1", []).result is Result.ABSENT


def test_a_broker_that_is_away_costs_time_and_not_the_commit(driver: Driver, topics: Topics) -> None:
    begun = begun_driver(driver)
    topics.away = True
    first = driver.commit("t1", begun.committed, {P0: 9}, instant=begun.instant)
    second = driver.commit("t1", begun.committed, {P0: 9}, instant=begun.instant)
    assert (first.result, second.result) == (Result.UNAVAILABLE, Result.UNAVAILABLE)
    assert second.wait_ms > first.wait_ms > 0
    topics.away = False
    assert driver.commit("t1", begun.committed, {P0: 9}, instant=begun.instant).result is Result.OK


def test_an_outage_beyond_its_budget_halts_the_run(make: Make, timeline: MemoryTimeline) -> None:
    driver = make(limits=LedgerLimits(outage_step_ms=60_000, outage_budget_ms=120_000))
    driver.lead()
    timeline.available = False
    results = []
    for _ in range(4):
        results.append(driver.client.recover(1).result)
        driver.clock.ms += 60_000
    assert results == [Result.UNAVAILABLE] * 3 + [Result.HALTED]
    assert "does not answer" in driver.service.progress().standing.halted


def behind_the_table(driver: Driver, timeline: MemoryTimeline) -> str:
    driver.table._wall_ms = lambda: int(timeline.newest_time()) - 45_000
    return "the clock is 45001 ms behind the table"


def ahead_of_the_file_systems(driver: Driver, _timeline: MemoryTimeline) -> str:
    said = "the clock is 1 h ahead of the file system's"

    def refuse(**_asked: str) -> str:
        raise ClockAhead(said)

    driver.table.begin = refuse  # type: ignore[method-assign]
    return said


@pytest.mark.parametrize("wrong", [behind_the_table, ahead_of_the_file_systems])
def test_a_clock_that_stays_wrong_is_said_and_halts_the_run_when_the_outage_s_budget_is_spent(
    make: Make, timeline: MemoryTimeline, wrong: Callable[[Driver, MemoryTimeline], str]
) -> None:
    driver = make(limits=LedgerLimits(outage_step_ms=60_000, outage_budget_ms=120_000))
    driver.lead()
    said, before = wrong(driver, timeline), dict(timeline.instants)
    answers = []
    for _ in range(4):
        answers.append(driver.client.begin(1, "t1"))
        driver.clock.ms += 60_000
        assert any(said in reason for reason in driver.service.progress().standing.reasons)
    assert [one.result for one in answers] == [Result.UNAVAILABLE] * 3 + [Result.HALTED]
    halted = driver.service.progress().standing.halted
    assert "Nothing could be committed for 180 s" in halted and said in halted
    assert timeline.instants == before


def test_a_clock_that_is_put_right_within_the_outage_s_budget_is_forgotten(
    make: Make, timeline: MemoryTimeline
) -> None:
    driver = make(limits=LedgerLimits(outage_step_ms=60_000, outage_budget_ms=120_000))
    committed, right = driver.lead().committed, driver.table._wall_ms
    behind_the_table(driver, timeline)
    assert driver.client.begin(1, "t1").result is Result.UNAVAILABLE
    driver.table._wall_ms = right
    driver.clock.ms += 60_000
    instant = driver.client.begin(1, "t1").instant
    assert driver.commit("t1", committed, {P0: 9}, instant=instant).result is Result.OK
    assert driver.service.progress().standing.outage_ms == 0


def test_a_lock_that_somebody_holds_is_waited_for(driver: Driver, timeline: MemoryTimeline) -> None:
    begun = begun_driver(driver)
    timeline.lock_holder = object()
    assert driver.commit("t1", begun.committed, {P0: 9}, instant=begun.instant).result is Result.UNAVAILABLE
    timeline.expire_lock()
    assert driver.commit("t1", begun.committed, {P0: 9}, instant=begun.instant).result is Result.OK


# --- abort ------------------------------------------------------------------------------------


def test_an_abort_of_what_is_complete_says_committed(driver: Driver, timeline: MemoryTimeline) -> None:
    begun = begun_driver(driver)
    driver.commit("t1", begun.committed, {P0: 9}, instant=begun.instant)
    answer = driver.client.abort(1, "t1", begun.instant, "write timeout", Fault.PIPELINE)
    assert (answer.result, answer.instant, answer.committed[P0]) == (Result.COMMITTED, begun.instant, 9)
    assert timeline.instants[begun.instant].phase is InstantPhase.COMPLETED
    assert driver.service.progress().standing.pipeline_failures == 0


def test_an_abort_never_touches_an_instant_of_somebody_else(driver: Driver, timeline: MemoryTimeline) -> None:
    driver.lead()
    foreign = timeline.new_instant(timeline.later(0))
    foreign.phase = InstantPhase.INFLIGHT
    answer = driver.client.abort(1, "t9", foreign.time, "write timeout", Fault.NONE)
    assert answer.result is Result.OK
    assert foreign.phase is InstantPhase.INFLIGHT


def test_aborts_in_a_row_halt_the_run(make: Make) -> None:
    driver = make(limits=LedgerLimits(max_consecutive_failures=2))
    driver.lead()
    results = []
    for name in ("t1", "t2"):
        driver.clock.ms += 10_000
        begun = driver.client.begin(1, name)
        results.append(driver.client.abort(1, name, begun.instant, f"{name} failed", Fault.PIPELINE).result)
    assert results == [Result.OK, Result.OK], "both are rolled back, and that is what an abort asks"
    assert not driver.table.unfinished()
    assert driver.client.begin(1, "t3").result is Result.HALTED
    outcome = None
    while outcome is None:
        driver.clock.ms += 1_000
        outcome = driver.service.finished()
    assert outcome.kind is RunOutcomeKind.HALTED
    assert "t1 failed; t2 failed" in outcome.reason


# --- reports ----------------------------------------------------------------------------------


def report(
    driver: Driver,
    *,
    slot: int = 0,
    who: str = "w0",
    coordinator: str = "",
    poison: str = "",
    fenced: bool = False,
    records: int = 0,
    alarms: tuple[str, ...] = (),
) -> Directive:
    held = CoordinatorReport(epoch=1, state=coordinator, transaction="t1", answered=("w0",))
    directive = driver.client.report(
        WorkerReport(
            slot=slot,
            incarnation=who,
            partitions=(P0,),
            seconds={"decode": 1.5},
            coordinator=held if coordinator else None,
            poison=poison,
            fenced=fenced,
            metrics={"records": records},
            alarms=alarms,
        )
    )
    assert isinstance(directive, Directive)
    return directive


def test_what_does_not_go_on_in_a_worker_is_shown_and_bounded(driver: Driver) -> None:
    report(driver, alarms=("events:0 at offset 7: nothing can be read", *map(str, range(100)), "x" * 100_000))
    (worker,) = driver.service.progress().to_json()["workers"]
    assert worker["alarms"][0] == "events:0 at offset 7: nothing can be read"
    assert len(worker["alarms"]) == codec.ALARMS_MAX
    report(driver)
    assert driver.service.progress().to_json()["workers"][0]["alarms"] == []


def test_what_the_driver_sees_not_going_on_is_shown_until_it_does(driver: Driver) -> None:
    def told() -> tuple[list[str], bool]:
        document = driver.service.progress().to_json()
        return document["alarms"], document["stands"]

    assert told() == ([], False)
    driver.service.alarm("starts", "worker-1 does not come up", stands=False)
    assert told() == (["worker-1 does not come up"], False)
    driver.service.alarm("group", "nobody reads", stands=True)
    driver.service.alarm("group", "nobody reads yet", stands=True)
    assert told() == (["worker-1 does not come up", "nobody reads yet"], True)
    driver.service.alarm("group", "", stands=True)
    driver.service.alarm("starts", "", stands=False)
    assert told() == ([], False)


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -1.0])
def test_a_report_with_a_time_that_is_none_is_refused(seconds: float) -> None:
    """JSON has no such number, and the status is JSON."""
    message = pb.WorkerReport(slot=1, incarnation="w", seconds={"decode": seconds})
    with pytest.raises(Malformed, match="decode"):
        codec.report_from_proto(message)


@pytest.mark.parametrize(
    "metrics",
    [
        {"records": math.nan},
        {"x": math.inf},
        {"Rows": 1},
        {"": 1},
        {"x" * 61: 1},
        {f"m{n}": 1 for n in range(101)},
    ],
)
def test_a_report_with_a_metric_that_is_none_is_refused(metrics: dict[str, float]) -> None:
    with pytest.raises(Malformed, match="metric"):
        codec.report_from_proto(pb.WorkerReport(slot=1, incarnation="w", metrics=metrics))


def test_a_metric_that_nobody_here_knows_is_passed_on_and_counts_stay_whole(driver: Driver) -> None:
    made = WorkerReport(slot=0, incarnation="w0", metrics={"records": 2**53, "lag_s": 0.5})
    back = codec.report_from_proto(codec.report_to_proto(made))
    assert back == made and isinstance(back.metrics["records"], int)
    driver.client.report(made)
    document = driver.client.status()
    assert isinstance(document, dict)
    (worker,) = document["workers"]
    assert (worker["records"], worker["lag_s"]) == (2**53, 0.5)


def test_a_report_is_answered_with_the_mode_and_remembered_for_status(driver: Driver) -> None:
    assert report(driver, coordinator="started", records=7).mode is RunMode.RUN
    driver.clock.ms += 300
    document = driver.client.status()
    assert isinstance(document, dict)
    (worker,) = document["workers"]
    assert (worker["slot"], worker["incarnation"], worker["records"]) == (0, "w0", 7)
    assert (worker["age_ms"], worker["partitions"], worker["seconds"]) == (300, ["events:0"], {"decode": 1.5})
    assert document["coordinator"]["state"] == "started"
    assert document["coordinator"]["answered"] == ["w0"]
    assert (document["mode"], document["halted"], document["commits"]) == ("RUN", None, 0)


def test_workers_join_the_group_together_or_after_three_seconds(driver: Driver) -> None:
    assert not report(driver).join
    driver.clock.ms += 2_999
    assert not report(driver).join
    assert report(driver, slot=1, who="w1").join
    assert report(driver).join
    assert report(driver, who="its successor").join


def test_a_worker_whose_fellows_do_not_come_joins_without_them(driver: Driver) -> None:
    assert not report(driver).join
    driver.clock.ms += 3_000
    assert report(driver).join


def test_poison_drains_halts_and_stops_every_worker_with_its_reason(driver: Driver) -> None:
    driver.lead()
    reason = "events:0 offset 7: not JSON"
    assert report(driver, poison=reason, coordinator="started").mode is RunMode.DRAIN
    assert report(driver, slot=1, who="w1").reason == reason
    assert report(driver, poison=reason, coordinator="drained").mode is RunMode.HALT
    last = report(driver, poison=reason, coordinator="halted")
    assert (last.mode, last.reason) == (RunMode.STOP, reason)
    outcome = driver.service.finished()
    assert outcome is not None
    assert (outcome.kind, outcome.reason) == (RunOutcomeKind.HALTED, reason)


def test_the_dead_are_stopped_and_everybody_hears_of_them(driver: Driver) -> None:
    report(driver)
    driver.service.worker_died("w0", "its process died")
    assert report(driver, slot=1, who="w1").dead == ("w0",)
    zombie = report(driver, poison="a zombie's poison")
    assert zombie.mode is RunMode.STOP
    assert "w0 has ended" in zombie.reason
    assert not driver.service.progress().standing.halted
    assert report(driver, who="w0b").mode is RunMode.RUN


def test_a_dead_workers_coordinator_does_not_answer_for_a_drain(driver: Driver) -> None:
    driver.lead()
    report(driver, coordinator="drained")
    driver.service.worker_died("w0", "its process died")
    driver.service.request_stop("Ctrl-C")
    assert [report(driver, slot=1, who="w1").mode for _ in range(3)] == [RunMode.DRAIN] * 3


def test_a_worker_that_kafka_fenced_is_seen_by_the_supervisor_which_may_give_up(driver: Driver) -> None:
    report(driver, fenced=True)
    assert driver.service.progress().standing.fenced == ("w0",)
    driver.service.supersede("run run-2 has taken over")
    assert report(driver).mode is RunMode.STOP
    outcome = driver.service.finished()
    assert outcome is not None and outcome.kind is RunOutcomeKind.SUPERSEDED


def test_a_report_from_a_slot_that_cannot_be_is_stopped(driver: Driver) -> None:
    assert report(driver, slot=10**6).mode is RunMode.STOP


def test_targets_that_are_committed_end_the_run(make: Make) -> None:
    driver = make(until={P0: 9, P1: 0})
    driver.lead()
    begun = driver.client.begin(1, "t1")
    assert report(driver, coordinator="started").mode is RunMode.RUN
    driver.commit("t1", begun.committed, {P0: 9}, instant=begun.instant)
    assert report(driver, coordinator="idle").mode is RunMode.DRAIN
    assert report(driver, coordinator="drained").mode is RunMode.STOP
    outcome = driver.service.finished()
    assert outcome is not None and outcome.kind is RunOutcomeKind.REACHED


# --- the one thread ---------------------------------------------------------------------------


def test_reports_offsets_and_status_do_not_wait_for_a_commit(make: Make) -> None:
    driver = make(deadlines=Deadlines(commit_s=3.0, find_s=WAIT_S))
    begun = begun_driver(driver)
    driver.step, reached, let_go = waits_at(Interruption.COMMIT_LOCKED)
    answers: list[Answer] = []
    committing = threading.Thread(
        target=lambda: answers.append(driver.commit("t1", begun.committed, {P0: 9}, instant=begun.instant))
    )
    committing.start()
    assert reached.wait(WAIT_S)
    reporting = [threading.Thread(target=lambda n=n: report(driver, slot=n, who=f"w{n}")) for n in range(40)]
    for thread in reporting:
        thread.start()
    for thread in reporting:
        thread.join(WAIT_S)
    assert len(driver.service.progress().workers) == 40
    assert driver.client.offsets().committed == begun.committed
    document = driver.client.status()
    assert isinstance(document, dict)
    assert document["table"]["busy_with"].startswith("commit")
    committing.join(WAIT_S)
    assert [answer.result for answer in answers] == [Result.UNKNOWN]
    assert "still being done" in answers[0].reason
    let_go.set()
    found = driver.client.find("t1", status("t1", begun.committed, {P0: 9}).ranges)
    assert (found.result, found.committed[P0]) == (Result.COMMITTED, 9)
    assert driver.service.progress().commits == 1


def test_calls_that_never_reached_the_table_are_unavailable_and_have_no_effect(
    make: Make, timeline: MemoryTimeline
) -> None:
    driver = make(deadlines=Deadlines(begin_s=3.0, commit_s=WAIT_S))
    begun = begun_driver(driver)
    driver.step, reached, let_go = waits_at(Interruption.COMMIT_LOCKED)
    committing = threading.Thread(
        target=lambda: driver.commit("t1", begun.committed, {P0: 9}, instant=begun.instant)
    )
    committing.start()
    assert reached.wait(WAIT_S)
    late = [driver.client.begin(1, "t2")]
    waiting = [
        threading.Thread(target=lambda n=n: late.append(driver.client.begin(1, f"t3-{n}")))
        for n in range(QUEUE_MAX + 4)
    ]
    for thread in waiting:
        thread.start()
    for thread in waiting:
        thread.join(WAIT_S)
    assert {answer.result for answer in late} == {Result.UNAVAILABLE}
    assert any("calls wait behind commit" in answer.reason for answer in late)
    let_go.set()
    committing.join(WAIT_S)
    assert driver.client.survey().result is Result.OK
    assert not driver.table.unfinished()


def test_an_unexpected_error_is_a_sentence_and_not_a_stack_trace(driver: Driver) -> None:
    begun = begun_driver(driver)
    driver.step = fails_at(Interruption.COMMIT_CHECKED, ZeroDivisionError("oops"))
    answer = driver.commit("t1", begun.committed, {P0: 9}, instant=begun.instant)
    assert answer.result is Result.UNKNOWN
    assert "commit failed unexpectedly, see the driver's log: ZeroDivisionError('oops')" in answer.reason
    assert "Traceback" not in answer.reason


def test_a_request_that_cannot_be_is_refused(driver: Driver) -> None:
    begun = begun_driver(driver)
    twice = [*offsets_to_proto({P0: 1}), *offsets_to_proto({P0: 2})]
    uneven = control_pb2.TopicOffsets(topic="events", partitions=[0, 1], offsets=[1])
    with grpc.insecure_channel(driver.server.address) as channel:
        stub = pb_grpc.TableServiceStub(channel)
        for expected in (twice, [uneven]):
            request = pb.CommitRequest(
                epoch=1, transaction="t1", instant=begun.instant, expected=expected, statuses=[]
            )
            reply = stub.Commit(request, timeout=WAIT_S, metadata=((TOKEN_KEY, TOKEN),))
            assert reply.result == pb.REFUSED
            assert "cannot be read" in reply.reason


def test_the_offsets_of_an_earlier_run_are_known_before_anybody_recovers(make: Make) -> None:
    make().lead()
    second = make(run="run-2")
    deadline = time.monotonic() + WAIT_S
    while (answer := second.client.offsets()).result is not Result.OK:
        assert answer.result is Result.UNAVAILABLE and answer.wait_ms > 0
        assert time.monotonic() < deadline
    assert answer.committed == {P0: 3, P1: 0}


def test_the_wait_that_a_survey_is_told_reaches_the_coordinator() -> None:
    told = Answer(result=Result.UNAVAILABLE, reason="the lock is held", wait_ms=5_000)
    assert codec.survey_from_proto(codec.survey_to_proto(told)) == told


def test_the_sweep_takes_its_turn_on_the_tables_thread(driver: Driver, timeline: MemoryTimeline) -> None:
    begun = begun_driver(driver)
    driver.client.abort(1, "t1", begun.instant, "x", Fault.NONE)
    timeline.write_file("late.parquet", begun.instant)
    timeline.now_ms += 5_000
    assert driver.service.sweep(grace_ms=5_000, timeout_s=WAIT_S).removed == 1
    assert not timeline.files


def test_the_tables_upkeep_is_done_when_a_transaction_has_begun_which_does_not_wait_for_it(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    tending, go_on = threading.Event(), threading.Event()

    def tend() -> None:
        tending.set()
        assert go_on.wait(WAIT_S)

    monkeypatch.setattr(driver.table, "tend", tend)
    begun = begun_driver(driver)
    assert tending.wait(WAIT_S)
    go_on.set()
    ends = {P0: 10, P1: 5}
    assert driver.commit("t1", begun.committed, ends, instant=begun.instant).result is Result.OK


def test_what_a_superseded_run_began_too_late_is_rolled_back_before_the_newer_one_commits(
    make: Make,
) -> None:
    """Otherwise the older run, paused inside a lock that has expired, might complete it afterwards."""
    older, newer = make(run="run-1"), make(run="run-2")
    older.lead(1, "c1")
    newer.lead(2, "c2")
    late = older.table.begin(run="run-1", transaction="t1")
    begun = newer.client.begin(2, "t2")
    refused = newer.commit("t2", begun.committed, {P0: 5}, epoch=2, instant=begun.instant)
    assert refused.result is Result.REFUSED and late in refused.reason
    assert newer.client.recover(2).result is Result.OK
    assert not newer.table.unfinished()
    again = newer.client.begin(2, "t3")
    assert newer.commit("t3", again.committed, {P0: 5}, epoch=2, instant=again.instant).result is Result.OK


def test_opening_goes_through_the_thread_and_raises_the_tables_own_errors(
    driver: Driver, timeline: MemoryTimeline
) -> None:
    assert driver.service.open(timeout_s=WAIT_S).path == "memory:"
    timeline.available = False
    with pytest.raises(Unavailable):
        driver.service.open(timeout_s=WAIT_S)
    driver.service.close(timeout_s=WAIT_S)
    with pytest.raises(Unavailable, match="closed"):
        driver.service.open(timeout_s=WAIT_S)


def test_a_call_that_hangs_does_not_hold_up_the_end_of_the_process(make: Make) -> None:
    driver = make()
    begun = begun_driver(driver)
    driver.step, reached, let_go = waits_at(Interruption.COMMIT_LOCKED)
    answers: dict[str, Answer] = {}

    def ask(name: str, call: Callable[[], Answer]) -> threading.Thread:
        thread = threading.Thread(target=lambda: answers.update({name: call()}))
        thread.start()
        return thread

    asking = [
        ask("commit", lambda: driver.commit("t1", begun.committed, {P0: 9}, instant=begun.instant)),
    ]
    assert reached.wait(WAIT_S)
    asking.append(ask("begin", lambda: driver.client.begin(1, "t2")))
    deadline = time.monotonic() + WAIT_S
    while driver.service.progress().queued < 1:
        assert time.monotonic() < deadline
    assert not driver.service.close(timeout_s=0.1)
    for thread in asking:
        thread.join(WAIT_S)
    assert answers["commit"].result is Result.UNKNOWN
    assert "is closed during commit" in answers["commit"].reason
    assert answers["begin"].result is Result.UNAVAILABLE
    let_go.set()
    assert driver.service.close(timeout_s=WAIT_S)


# --- the client without a driver --------------------------------------------------------------


def test_a_driver_that_is_gone_is_a_result_and_never_an_exception() -> None:
    with socket.socket() as taken:  # bound and not listening: nobody answers here
        taken.bind(("127.0.0.1", 0))
        client = TableClient(f"127.0.0.1:{taken.getsockname()[1]}", TOKEN)
        for _ in range(2):
            assert client.survey().result is Result.UNAVAILABLE
            assert client.register(1, "c1").result is Result.UNAVAILABLE
            assert client.recover(1).result is Result.UNAVAILABLE
            assert client.find("t1", []).result is Result.UNAVAILABLE
            assert client.offsets().result is Result.UNAVAILABLE
            assert client.begin(1, "t1").result is Result.UNKNOWN
            assert client.commit(1, "t1", "", {}, []).result is Result.UNKNOWN
            assert client.abort(1, "t1", "", "x", Fault.NONE).result is Result.UNKNOWN
            assert isinstance(client.report(WorkerReport(slot=0, incarnation="w0")), Unreached)
            assert isinstance(client.status(), Unreached)
            client.close()


def test_a_port_that_is_taken_is_an_error_of_the_system(driver: Driver) -> None:
    with pytest.raises(OSError, match="cannot listen"):
        serve(driver.service, token=TOKEN, port=int(driver.server.address.rsplit(":", 1)[1]))


def test_a_service_without_a_token_is_not_served(driver: Driver) -> None:
    with pytest.raises(ValueError, match="token"):
        serve(driver.service, token="")


# --- orders of operators ----------------------------------------------------------------------


def ordered(driver: Driver, action: str, **more: Any) -> Ordered:
    answer = driver.client.control(Order(action=action, who="me@here", **more))
    assert isinstance(answer, Ordered)
    return answer


def test_an_order_is_numbered_told_to_every_worker_and_said_on_the_control_topic(driver: Driver) -> None:
    first = ordered(driver, "set", settings={"interval_ms": 2_000}, why="a backlog")
    assert (first.result, first.number) == (Result.OK, 1)
    assert first.tuning == replace(TUNING, interval_ms=2_000)
    second = ordered(driver, "pause", why="maintenance")
    assert second.number == 2
    for who in ("w0", "w1"):
        assert report(driver, who=who).controls == Controls(number=2, pause=2, tuning=first.tuning)
    assert report(driver).mode is RunMode.PAUSE
    assert driver.said == [
        Control(number=1, action="set", settings={"interval_ms": 2_000}, who="me@here", why="a backlog"),
        Control(number=2, action="pause", who="me@here", why="maintenance"),
    ]
    document = driver.client.status()
    assert isinstance(document, dict)
    assert document["mode"] == "PAUSE"
    assert document["control"]["paused"]["why"] == "maintenance"
    assert document["control"]["settings"] == {"transaction.interval": 2_000}


def test_an_order_is_done_when_the_registered_coordinator_says_so(driver: Driver) -> None:
    driver.lead(3)
    number = ordered(driver, "commit").number

    def told(epoch: int, settled: int) -> int:
        held = CoordinatorReport(epoch=epoch, state="idle", settled=settled)
        directive = driver.client.report(WorkerReport(slot=0, incarnation="w0", coordinator=held))
        assert isinstance(directive, Directive) and directive.controls is not None
        return directive.controls.commit

    assert told(2, 1) == told(3, 0) == number
    assert told(3, 1) == 0
    document = driver.client.status()
    assert isinstance(document, dict) and document["control"]["settled"] == 1


@pytest.mark.parametrize(
    ("order", "why"),
    [
        (Order(action="dance"), "'dance' is no order"),
        (Order(action=""), "'' is no order"),
        (Order(action="x" * 10_000), "is no order"),
        (Order(action="set"), "names settings"),
        (Order(action="pause", settings={"interval_ms": 5}), "names settings"),
        (Order(action="set", settings={"workers": 5}), "'workers' cannot be set"),
        (Order(action="set", settings={f"s{n}": n for n in range(1_000)}), "cannot be set"),
        (Order(action="set", settings={"interval_ms": 99}), "transaction.interval: too short"),
        (Order(action="pause", who="x" * 201), "201 and 0 characters"),
        (Order(action="pause", why="x" * 1_001), "0 and 1001 characters"),
    ],
    ids=lambda case: case.action[:9] if isinstance(case, Order) else "",
)
def test_an_order_that_no_operators_command_gives_is_refused_and_changes_nothing(
    driver: Driver, order: Order, why: str
) -> None:
    answer = driver.client.control(order)
    assert isinstance(answer, Ordered)
    assert answer.result is Result.REFUSED
    assert why in answer.reason
    assert report(driver).controls is None
    assert driver.said == []


def test_an_order_without_the_runs_token_is_none(driver: Driver) -> None:
    stranger = TableClient(driver.server.address, "another token")
    try:
        assert isinstance(stranger.control(Order(action="pause")), Unreached)
    finally:
        stranger.close()
    assert report(driver).controls is None


def test_nothing_begins_while_the_run_is_paused_unless_it_has_begun_or_a_commit_is_wanted(
    driver: Driver,
) -> None:
    driver.lead()
    open_one = driver.client.begin(1, "t1")
    ordered(driver, "pause")
    assert driver.client.begin(1, "t1").instant == open_one.instant, "the answer was lost"
    refused = driver.client.begin(1, "t2")
    assert (refused.result, refused.reason) == (Result.REFUSED, "the run is paused")
    assert refused.wait_ms > 0
    assert driver.commit("t1", open_one.committed, {P0: 9}, instant=open_one.instant).result is Result.OK
    ordered(driver, "commit")
    assert driver.client.begin(1, "t3").result is Result.OK


def test_a_begin_that_was_refused_because_the_run_is_paused_is_refused_for_good(driver: Driver) -> None:
    """Whoever asked has forgotten it: what comes late, after the pause, would leave an instant open."""
    driver.lead()
    ordered(driver, "pause")
    assert driver.client.begin(1, "t1").result is Result.REFUSED
    ordered(driver, "resume")
    late = driver.client.begin(1, "t1")
    assert (late.result, late.reason) == (Result.REFUSED, "transaction t1 has ended already")
    assert not driver.table.unfinished()
    assert driver.client.begin(1, "t2").result is Result.OK


def test_while_the_run_is_paused_a_new_source_partition_is_not_given_a_place(
    driver: Driver, topics: Topics
) -> None:
    driver.lead()
    ordered(driver, "pause")
    topics.start[NEW], topics.stop[NEW] = 600, 700
    before = driver.table.newest()
    answer = driver.client.recover(1)
    assert answer.result is Result.OK
    assert answer.partitions == tuple(answer.committed) == (P0, P1)
    assert driver.table.newest() == before
    ordered(driver, "resume")
    answer = driver.client.recover(1)
    assert answer.committed[NEW] == 600 and answer.partitions == (P0, P1, NEW)


def test_a_run_that_ends_takes_no_order_and_one_that_is_told_to_stop_drains(driver: Driver) -> None:
    assert ordered(driver, "stop", why="for tonight").result is Result.OK
    drained = report(driver, coordinator="started")
    assert (drained.mode, drained.reason) == (RunMode.DRAIN, "me@here has stopped it: for tonight")
    late = ordered(driver, "pause")
    assert (late.result, late.reason) == (Result.REFUSED, "it ends already: " + drained.reason)


def test_an_older_worker_takes_a_pause_for_a_run_and_an_older_driver_says_nothing_of_orders() -> None:
    tuning = Tuning(interval_ms=1, write_timeout_ms=1)
    paused = Directive(mode=RunMode.PAUSE, controls=Controls(number=1, pause=1, tuning=tuning))
    wire = codec.directive_to_proto(paused)
    assert wire.mode == pb.RUN
    assert codec.directive_from_proto(wire) == paused
    wire.ClearField("controls")
    assert codec.directive_from_proto(wire) == Directive(mode=RunMode.RUN)


def test_settings_that_no_transaction_can_have_are_malformed() -> None:
    for interval_ms, write_timeout_ms in ((0, 1), (1, 0), (2**63, 1)):
        with pytest.raises(Malformed):
            codec.tuning_from_proto(pb.Tuning(interval_ms=interval_ms, write_timeout_ms=write_timeout_ms))


def test_a_schedule_that_was_taken_away_is_told_apart_from_one_that_nobody_speaks_of() -> None:
    for schedule, align_ms in (("", 0), ("every 1h", 3_600_000), (None, None)):
        tuning = replace(TUNING, schedule=schedule, align_ms=align_ms)
        wire = pb.Tuning.FromString(codec.tuning_to_proto(tuning).SerializeToString())  # type: ignore[union-attr]
        assert codec.tuning_from_proto(wire) == tuning


def test_an_order_is_read_as_it_was_given_and_a_text_is_no_number() -> None:
    order = Order(action="set", settings={"schedule": "", "interval_ms": 5, "align_ms": 0}, who="me")
    assert codec.order_from_proto(codec.order_to_proto(order)) == order
    for wrong in (
        pb.ControlRequest(action="set", settings={"schedule": 3}),
        pb.ControlRequest(action="set", texts={"interval_ms": "3"}),
        pb.ControlRequest(action="set", texts={"schedule": "x" * 201}),
        pb.ControlRequest(action="pause", texts={"schedule": ""}),
    ):
        with pytest.raises(Malformed):
            codec.order_from_proto(wrong)


def test_what_is_said_to_be_committed_is_never_older_than_the_orders_that_are_said_to_be_done(
    driver: Driver,
) -> None:
    """A commit lands, and its coordinator reports, as somebody asks: `lockstep commit` takes both."""
    start = dict(driver.lead().committed)
    number = driver.client.control(Order(action=COMMIT)).number  # type: ignore[union-attr]
    begun = driver.client.begin(1, "t1")
    guard, asks = driver.service._guard, threading.current_thread()

    class Late:
        """The lock, which another thread is given first."""

        committed = False

        def __enter__(self) -> bool:
            if threading.current_thread() is asks and not self.committed:
                self.committed = True
                upto = {P0: start[P0] + 5, P1: start[P1] + 5}
                assert driver.commit("t1", start, upto, instant=begun.instant).result is Result.OK
                said = CoordinatorReport(epoch=1, state="idle", settled=number)
                driver.client.report(WorkerReport(slot=0, incarnation="w0", coordinator=said))
            return guard.__enter__()

        def __exit__(self, *exc: object) -> None:
            guard.__exit__(*exc)  # type: ignore[arg-type]

    driver.service._guard = Late()  # type: ignore[assignment]
    progress = driver.service.progress()
    assert progress.standing.control["settled"] == number
    assert progress.newest_instant == begun.instant
