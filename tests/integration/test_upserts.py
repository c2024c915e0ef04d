"""Upsert tables on real Spark and real Hudi: what readers see equals a model in plain Python."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hudi import HudiTableBuilder
from pyspark.sql import SparkSession
from tenacity import Retrying, retry_if_exception_type, stop_after_delay

from control_topic.messages import DataFile, Range, SourcePartition
from participant.records.port import RecordSpec
from participant.records.raw import RawBatch, Values
from participant.worker.memory import MemoryBudget
from participant.worker.stages import stages
from table.errors import Contradiction, Unavailable
from table.hudi.driver.java import THROWN
from table.hudi.driver.session import Session
from table.hudi.files import log_writer
from table.hudi.reader.timeline import Timeline
from table.hudi.table import HudiTable
from table.hudi.upkeep import plans
from table.hudi.upkeep.compaction import Compaction, plan, tidy
from table.port import Commit, TableSpec
from table.state import TableState
from tests.data_files import data_files
from tests.harness import await_that
from tests.merge_model import Change, Model

pytestmark = pytest.mark.integration

DDL = "id STRING NOT NULL, region STRING, amount BIGINT, ts BIGINT, deleted BOOLEAN"
SOURCE = SourcePartition("changes", 0)
MEMORY_BYTES = 64_000_000
PATIENTLY = Retrying(retry=retry_if_exception_type(Unavailable), stop=stop_after_delay(90), reraise=True)
"""As a coordinator calls the table: while somebody else holds its lock, it is waited for."""
Record = tuple[bytes | None, bytes | None]
"""A Kafka record: (key, value)."""


class Upserts:
    """One driver's upsert table and the workers that write to it."""

    def __init__(
        self,
        spark: SparkSession,
        path: Path,
        *,
        services: bool = False,
        record: RecordSpec | None = None,
        **changes: Any,
    ) -> None:
        self.spark, self.path, self.record = spark, path, record
        spec: dict[str, Any] = {
            "path": f"file://{path}",
            "name": "changes",
            "mode": "upsert",
            "ddl": DDL,
            "key_fields": ("id",),
            "partition_fields": ("region",),
            "ordering_field": "ts",
            "bucket_count": 2,
            **changes,
        }
        self.spec = TableSpec(**spec)
        self.table = HudiTable(spark, self.spec, "changes", services=services)
        self.layout = self.table.open()
        self.memory_bytes = MEMORY_BYTES
        self._transactions = 0

    def write(self, instant: str, *workers: Sequence[Record]) -> list[DataFile]:
        """What each worker writes of its records, as it leaves it."""
        files: list[DataFile] = []
        for slot, records in enumerate(workers):
            made = stages(
                layout=self.layout,
                slot=slot,
                incarnation=f"{slot:08d}",
                memory=MemoryBudget(self.memory_bytes),
                record=self.record
                or (
                    RecordSpec(envelope="debezium")
                    if self.spec.source_position
                    else RecordSpec(delete_field="deleted")
                ),
            )
            writer = made.files.writer(instant, lambda _written: None)
            for first in range(0, len(records), 7):  # in several batches, as they come
                batch = raw(records[first : first + 7], first)
                decoded = made.decoder.decode(batch)
                shaped = made.files.shape(decoded.rows(batch))
                assert not decoded.rejects and not shaped.refused
                writer.write(shaped)
            files += writer.close()
        return files

    def begin(self) -> tuple[str, str]:
        """The next transaction, and its instant."""
        self._transactions += 1
        transaction = f"t{self._transactions}"
        return transaction, PATIENTLY(self.table.begin, run="run", transaction=transaction)

    def run(self, *workers: Sequence[Record], meanwhile: Callable[[], object] = lambda: None) -> str:
        """A whole transaction; its instant. `meanwhile` happens before it is committed."""
        transaction, instant = self.begin()
        files = self.write(instant, *workers)
        meanwhile()
        newest = self.table.newest()
        expected = dict(newest.offsets) if newest is not None else {}
        start, count = expected.get(SOURCE, 0), sum(map(len, workers))
        state = TableState(
            pipeline="changes",
            run="run",
            epoch=1,
            transaction=transaction,
            offsets={SOURCE: start + count},
            ranges=(Range(partition=SOURCE, start=start, next=start + count, records=count),),
        )
        commit = Commit(instant=instant, expected=expected, state=state, files=files)
        PATIENTLY(self.table.commit, commit, fence=lambda _newest: "")
        return instant

    def service_session(self) -> Session:
        """As the compaction of another driver has it."""
        return Compaction(self.spec, "changes").open(self.table._session_beside)

    def logs(self) -> list[Path]:
        """The data's log files."""
        return sorted(data_files(self.path, ".*.log.*"))

    def rows(self) -> dict[tuple[str, str], tuple[int, int]]:
        """(table partition, key) -> (amount, ts), as Spark's snapshot query says; a key twice is an error."""
        self.spark.catalog.clearCache()
        read = self.spark.read.format("hudi").load(str(self.path)).select("region", "id", "amount", "ts")
        found = [((one[0], one[1]), (one[2], one[3])) for one in read.collect()]
        assert len(dict(found)) == len(found), "a key is there twice"
        return dict(found)

    def rows_without_jvm(self) -> dict[tuple[str, str], tuple[int, int]]:
        """The same by the `hudi` reader, which sees what is compacted."""
        batches = HudiTableBuilder.from_base_uri(str(self.path)).build().read()
        rows = [one for batch in batches for one in pa.record_batch(batch).to_pylist()]
        return {(one["region"], one["id"]): (one["amount"], one["ts"]) for one in rows}


def raw(records: Sequence[Record], first: int) -> RawBatch:
    offsets = np.arange(first, first + len(records), dtype=np.int64)
    return RawBatch(
        partition=SOURCE,
        offsets=offsets,
        timestamps_ms=offsets,
        values=Values.of([value for _, value in records]),
        keys={i: key for i, (key, value) in enumerate(records) if value is None},
    )


def record(change: Change) -> Record:
    """A change as a Kafka record. In a partitioned table a tombstone names region and id."""
    region, name = change.key
    key = json.dumps({"region": region, "id": name}).encode()
    if change.tombstone:
        return key, None
    value = {"id": name, "region": region, "amount": change.amount, "ts": change.ts}
    return key, json.dumps({**value, "deleted": change.deleted}).encode()


@pytest.fixture
def upserts(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., Upserts]]:
    made: list[Upserts] = []

    def make(**changes: Any) -> Upserts:
        made.append(Upserts(spark, tmp_path / "t", **changes))
        return made[-1]

    yield make
    for one in made:
        one.table.close()


def history(seed: int, *, length: int, tombstones: bool, late: bool = True) -> list[Change]:
    """Updates, late versions, deletes of both kinds and re-inserts of few keys in two table partitions."""
    chance = random.Random(seed)
    changes = []
    for place in range(length):
        kind = chance.random()
        changes.append(
            Change(
                key=(chance.choice("ab"), f"k{chance.randrange(12)}"),
                amount=place,
                ts=place + chance.choice((0, 0, 0, -20, 5)) if late else 1_000 * seed + place,
                deleted=kind < 0.15,
                tombstone=tombstones and kind > 0.9,
            )
        )
    return changes


@pytest.mark.parametrize("tombstones", [False, True])
@pytest.mark.parametrize("ordering", ["ts", ""])
def test_a_snapshot_equals_the_model_after_every_transaction(
    upserts: Callable[..., Upserts], ordering: str, tombstones: bool
) -> None:
    table = upserts(ordering_field=ordering)
    model = Model(by_event_time=bool(ordering))
    for number in range(6):
        changes = history(number, length=40, tombstones=tombstones)
        # keys are divided among the workers as Kafka divides them among source partitions
        workers = [
            [one for one in changes if one.key[1] < "k3"],
            [one for one in changes if one.key[1] >= "k3"],
        ]
        table.run(*([record(one) for one in worker] for worker in workers))
        for one in changes:
            model.apply(one)
        assert table.rows() == model.rows(), number


def test_of_a_group_whose_file_had_to_end_early_the_later_file_counts(
    upserts: Callable[..., Upserts], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_writer, "STREAMS_MAX", 0)  # else what is written is the system's at once
    table = upserts(ordering_field="")
    table.memory_bytes = 1_000
    changes = [Change(key=("eu", f"k{n % 9}"), amount=n, ts=1) for n in range(200)]
    table.run([record(one) for one in changes])
    assert {path.name.split(".log.")[1][0] for path in table.logs()} >= {"1", "2", "3"}
    assert table.rows() == {one.key: (one.amount, 1) for one in changes}


def test_what_is_rolled_back_leaves_nothing(upserts: Callable[..., Upserts]) -> None:
    table = upserts()
    first = [Change(key=("a", f"k{n}"), amount=n, ts=n) for n in range(9)]
    table.run([record(one) for one in first])
    before = table.rows()
    logs = table.logs()
    _, instant = table.begin()
    late = [Change(key=("a", f"k{n}"), amount=-1, ts=99) for n in range(9)]
    assert table.write(instant, [record(one) for one in late])
    assert len(table.logs()) > len(logs)
    assert table.table.roll_back(instant)
    assert table.logs() == logs
    assert table.rows() == before


def test_a_log_file_closed_too_late_is_swept(upserts: Callable[..., Upserts]) -> None:
    table = upserts()
    table.run([record(Change(key=("a", "k1"), amount=1, ts=1))])
    before = table.logs()
    _, instant = table.begin()
    assert table.table.roll_back(instant)
    table.write(instant, [record(Change(key=("a", "k1"), amount=2, ts=2))])
    assert len(table.logs()) == len(before) + 1
    assert table.table.sweep(grace_ms=0).removed == 1
    assert table.logs() == before


def test_spark_sql_that_is_told_nothing_meets_the_same_rows(
    spark: SparkSession, upserts: Callable[..., Upserts]
) -> None:
    table = upserts()
    table.run([record(Change(key=("a", f"k{n}"), amount=n, ts=n)) for n in range(20)])
    spark.sql(f"create table upserts_met using hudi location '{table.path}'")
    try:
        spark.sql("update upserts_met set amount = 500, ts = 50 where id = 'k5'")
        spark.sql("delete from upserts_met where id = 'k6'")
        spark.sql(
            "merge into upserts_met met using (select 'k8' id, 'a' region, 80L amount, 80L ts) new"
            " on met.id = new.id and met.region = new.region"
            " when matched then update set id = new.id, amount = new.amount, ts = new.ts"
        )
        table.run([record(Change(key=("a", f"k{n}"), amount=700, ts=70)) for n in (5, 6, 7)])
    finally:
        spark.sql("drop table upserts_met")
    expected = {("a", f"k{n}"): (n, n) for n in range(20)}
    expected |= {("a", f"k{n}"): (700, 70) for n in (5, 6, 7)} | {("a", "k8"): (80, 80)}
    assert table.rows() == expected


def test_a_merge_of_some_columns_leaves_whole_rows_for_readers_of_all_columns(
    spark: SparkSession, upserts: Callable[..., Upserts]
) -> None:
    """Hudi 1.2.0 would write blocks of those columns alone, and lose rows where whole blocks follow."""
    table = upserts()
    keys = [("a", f"k{n}") for n in range(300)]
    table.run([record(Change(key=key, amount=1, ts=1)) for key in keys])
    spark.sql(f"create table merged using hudi location '{table.path}'")
    try:
        for number in (2, 4):
            spark.sql(
                f"merge into merged met using (select concat('k', id) id, 'a' region, {number}L amount,"
                f" {number}L ts from range(100, 200)) new on met.id = new.id and met.region = new.region"
                " when matched then update set id = new.id, amount = new.amount, ts = new.ts"
            )
            changed = keys[150:250]
            table.run([record(Change(key=key, amount=number + 1, ts=number + 1)) for key in changed])
    finally:
        spark.sql("drop table merged")
    spark.catalog.clearCache()
    read = spark.read.format("hudi").load(str(table.path)).collect()
    expected = {key: 1 for key in keys} | dict.fromkeys(keys[100:200], 4) | dict.fromkeys(keys[150:250], 5)
    assert {(one["region"], one["id"]): one["amount"] for one in read} == expected
    assert len(read) == 300


@pytest.mark.parametrize("ordering", ["ts", ""])
def test_a_compaction_by_others_at_any_time_leaves_the_rows_as_they_are(
    spark: SparkSession, upserts: Callable[..., Upserts], ordering: str
) -> None:
    """Planned while a transaction is open, carried out while the next one is, and read without a JVM."""
    table, model = upserts(ordering_field=ordering), Model(by_event_time=bool(ordering))

    def compaction(operation: str) -> Callable[[], object]:
        options = "options => 'hoodie.compact.inline.max.delta.commits=1'"
        text = f"call run_compaction(op => '{operation}', path => '{table.path}', {options})"
        return lambda: spark.sql(text).collect()

    def one_more(number: int, meanwhile: Callable[[], object] = lambda: None) -> None:
        changes = history(number, length=40, tombstones=True)
        table.run([record(one) for one in changes], meanwhile=meanwhile)
        for one in changes:
            model.apply(one)

    for number in range(3):
        one_more(number)
    assert table.rows() == model.rows()
    model.compact()  # of what is committed when it is planned; the open transaction's files come after it
    one_more(3, compaction("schedule"))
    one_more(4, compaction("run"))
    assert len(list(table.path.glob(".hoodie/timeline/*_*.commit"))) == 1
    assert table.rows() == model.rows()
    one_more(5)
    assert table.rows() == model.rows()
    compaction("scheduleandexecute")()
    model.compact()
    assert table.rows() == model.rows() == table.rows_without_jvm()
    assert table.table.newest() == before_and_after(table)


def completed_compactions(table: Upserts) -> int:
    return len(list(table.path.glob(".hoodie/timeline/*_*.commit")))


def test_the_driver_compacts_beside_the_transactions(upserts: Callable[..., Upserts]) -> None:
    """No transaction waits for it or fails by it, whenever it is planned, carried out and completed."""
    table, model = upserts(services=True, compaction="async", compaction_every=2), Model(by_event_time=True)
    for number in range(8):
        changes = history(number, length=40, tombstones=True, late=False)
        table.run([record(one) for one in changes])
        for one in changes:
            model.apply(one)
        assert table.rows() == model.rows(), number
    await_that("compaction", lambda: completed_compactions(table))
    assert table.rows() == model.rows()
    assert table.table.sweep(grace_ms=0).removed == 0


def test_what_a_dead_driver_was_compacting_is_taken_away_and_it_cannot_complete_it_any_more(
    upserts: Callable[..., Upserts],
) -> None:
    table = upserts(compaction_every=1)
    for number in range(3):
        table.run([record(one) for one in history(number, length=30, tombstones=False, late=False)])
    rows, files = table.rows(), sorted(table.path.glob("*/*.parquet"))
    paused = table.service_session()
    instant, _ = plan(paused, "changes")
    plans.begin(paused, "compaction", instant)
    done = paused.client.compact(instant)
    done.getWriteStatuses().collect()  # Spark does it when somebody asks
    assert sorted(table.path.glob("*/*.parquet")) != files

    successor = table.service_session()
    assert tidy(successor, "changes").taken == [instant]
    assert sorted(table.path.glob("*/*.parquet")) == files and table.rows() == rows
    with pytest.raises(THROWN):
        paused.client.commitCompaction(instant, done, paused.none())
    assert completed_compactions(table) == 0 and table.rows() == rows

    again, groups = plan(successor, "changes")
    assert groups == 4
    assert again > instant
    successor.client.commitCompaction(again, successor.client.compact(again), successor.none())
    assert completed_compactions(table) == 1 and table.rows() == rows == table.rows_without_jvm()
    # what the paused one wrote later than that is nobody's
    (stray,) = (path for path in table.path.glob("a/*.parquet") if path.name.startswith("00000000"))
    late = stray.with_name(stray.name.replace(again, instant))
    late.write_bytes(stray.read_bytes())
    markers = table.path / ".hoodie" / ".temp" / instant
    (markers / "a").mkdir(parents=True)
    for name in (f"{late.name}.marker.MERGE", f".{late.name}.marker.MERGE.crc"):
        (markers / "a" / name).touch()
    assert table.table.sweep(grace_ms=0).removed == 1
    assert not markers.exists()
    assert table.rows() == rows


@pytest.mark.parametrize("free_slots", [1, 2])
def test_a_compaction_takes_no_more_slots_than_the_workers_leave_free(
    spark: SparkSession, upserts: Callable[..., Upserts], free_slots: int
) -> None:
    """The slot of a worker that dies is for the worker that replaces it, not for the next file group."""
    table = upserts(compaction_every=1)
    for number in range(2):
        table.run([record(one) for one in history(number, length=30, tombstones=False, late=False)])
    rows = table.rows()
    compaction = Compaction(table.spec, "changes", lambda: free_slots)
    session = compaction.open(table.table._session_beside)
    assert plan(session, "changes")[1] == 4
    assert tidy(session, "changes").taken
    group = f"compaction in {free_slots}"
    spark.sparkContext.setJobGroup(group, "of four file groups")
    try:
        assert compaction.run(session, lambda _doing: None)
        tracker = spark.sparkContext.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        merging = {stage.numTasks for stage in stages if stage and "SparkRDDWriteClient" in stage.name}
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    assert merging == {free_slots}
    assert table.rows() == rows == table.rows_without_jvm()


def test_plans_that_are_others_to_carry_out_are_left_alone(upserts: Callable[..., Upserts]) -> None:
    table = upserts(compaction_every=1)
    table.run([record(Change(key=("a", "k1"), amount=1, ts=1))])
    session = table.service_session()
    assert plan(session, "")[0]
    assert tidy(session, "changes").taken == []
    assert len(list(table.path.glob(".hoodie/timeline/*.compaction.requested"))) == 1


def before_and_after(table: Upserts) -> TableState | None:
    """The state as a driver finds it that has just started."""
    return Timeline(table.path).newest("changes")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"bucket_count": 3}, "hoodie.bucket.index.num.buckets is 2, the configuration says 3"),
        ({"ordering_field": "amount"}, "hoodie.table.ordering.fields is ts, the configuration says amount"),
        ({"ordering_field": ""}, "hoodie.table.ordering.fields is ts, the configuration says empty"),
        ({"mode": "insert"}, "hoodie.table.type is MERGE_ON_READ"),
    ],
)
def test_a_table_of_another_making_is_refused(
    upserts: Callable[..., Upserts], changes: dict[str, Any], sentence: str
) -> None:
    upserts()
    with pytest.raises(Contradiction) as refused:
        upserts(**changes)
    assert sentence in str(refused.value)
