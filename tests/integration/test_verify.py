"""`lockstep verify` and its readers on a real table, a real broker, and real damage."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from control_topic.clocks import wall_ms
from control_topic.codec import encode
from control_topic.messages import (
    EPOCH_MAX,
    Body,
    CoordinatorClaim,
    DataFile,
    Halt,
    Message,
    Offsets,
    Range,
    RunAnnounce,
    SourcePartition,
)
from control_topic.topic import ControlTopic
from control_topic.trust import HEADER
from lockstep.brokers.local import Broker
from lockstep.brokers.source_topics import SourceTopics
from lockstep.offsets.plan import plan_set
from lockstep.offsets.standing import look
from lockstep.verify import SourceLog, VerifyReport, verify_table
from table.hudi.files.base_file import create_partition, file_name, new_file_id
from table.hudi.reader.timeline import Timeline
from table.hudi.table import HudiTable
from table.port import Commit, TableSpec
from table.service.place import Place
from table.state import TableState
from table.store.local import LocalStore
from tests.transactions import end_transaction

pytestmark = pytest.mark.integration

DEADLINE_S = 30.0
PIPELINE = "verified"
PLAIN = {"hoodie.metadata.enable": "false"}
QUICK_ARCHIVE = {
    **PLAIN,
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.commits.archival.batch": "1",
}
FOREIGN = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.metadata.enable": "false",
}

UNKNOWN_TO_RUST = "note STRING, at TIMESTAMP_NTZ"
"""A column whose type the hudi reader does not know."""
BY_BOTH = pytest.mark.parametrize("ddl", ["note STRING", UNKNOWN_TO_RUST], ids=["hudi reader", "base files"])


@dataclass
class Pipeline:
    """A topic of two partitions, a table, and commits made of both by hand."""

    spark: SparkSession
    kafka: dict[str, str]
    topic: str
    path: Path
    properties: Mapping[str, str] = field(default_factory=lambda: PLAIN)
    kafka_columns: bool = True
    ddl: str = "note STRING"

    def __post_init__(self) -> None:
        spec = TableSpec(
            path=f"file://{self.path}",
            name="events",
            mode="insert",
            ddl=self.ddl,
            kafka_columns=self.kafka_columns,
            properties=self.properties,
        )
        self.table = HudiTable(self.spark, spec, PIPELINE)
        self.table.open()
        self.source = SourceTopics(self.kafka, [self.topic])
        self.facts = self.source.facts()
        self._commit(ranges=(), offsets=dict.fromkeys(self.facts.partitions, 0), kind="genesis")

    def part(self, number: int) -> SourcePartition:
        return SourcePartition(self.topic, number)

    def produce(self, count: int, *, partition: int = 0) -> None:
        producer = Producer(self.kafka)
        for number in range(count):
            producer.produce(self.topic, f"note {number}", partition=partition)
        assert producer.flush(DEADLINE_S) == 0

    def produce_in_transaction(self, count: int, *, commit: bool, partition: int = 0) -> None:
        """`count` records and the marker."""
        producer = Producer({**self.kafka, "transactional.id": uuid.uuid4().hex})
        producer.init_transactions(DEADLINE_S)
        producer.begin_transaction()
        for number in range(count):
            producer.produce(self.topic, f"note {number}", partition=partition)
        assert producer.flush(DEADLINE_S) == 0
        end_transaction(producer, self.topic, self.kafka, commit=commit)

    def take(self, start: int, end: int, *, partition: int = 0, without: tuple[int, ...] = ()) -> str:
        """One transaction: the offsets `[start, end)` but for those that hold no record."""
        offsets = [offset for offset in range(start, end) if offset not in without]
        part = self.part(partition)
        ranges = (Range(partition=part, start=start, next=end, records=len(offsets)),)
        newest = self.table.newest()
        assert newest is not None
        return self._commit(ranges=ranges, offsets={**newest.offsets, part: end}, rows=offsets)

    def by_hand(self, state: TableState, expected: Offsets) -> str:
        """An operator's commit, as `lockstep/entry/job.py --operator-commit` makes it."""
        return self._land(state, expected, [])

    def _commit(
        self,
        *,
        ranges: tuple[Range, ...],
        offsets: Offsets,
        rows: list[int] | None = None,
        kind: str = "data",
    ) -> str:
        newest = self.table.newest()
        state = TableState(
            pipeline=PIPELINE,
            run="run",
            epoch=newest.epoch if newest is not None else 1,
            transaction="",
            offsets=offsets,
            ranges=ranges,
            cluster=self.facts.cluster,
            topics=self.facts.topics,
            kind=kind,
        )
        return self._land(state, newest.offsets if newest is not None else {}, rows or [])

    def _land(self, state: TableState, expected: Offsets, offsets: list[int]) -> str:
        transaction = uuid.uuid4().hex
        instant = self.table.begin(run="run", transaction=transaction)
        files = [self._write(instant, state.ranges[0].partition.number, offsets)] if offsets else []
        self.table.commit(
            Commit(
                instant=instant, expected=expected, state=replace(state, transaction=transaction), files=files
            ),
            fence=lambda _: "",
        )
        return instant

    def _write(self, instant: str, partition: int, offsets: list[int]) -> DataFile:
        count = len(offsets)
        file_id = new_file_id(uuid.uuid4())
        name = file_name(file_id, "0-0-0", instant)
        folder = self.path
        create_partition(LocalStore(self.path), instant, "")
        columns: dict[str, Any] = {
            "_hoodie_commit_time": [instant] * count,
            "_hoodie_commit_seqno": [f"{instant}_0_{row}" for row in range(count)],
            "_hoodie_record_key": [f"{self.topic}-{partition}-{offset}" for offset in offsets],
            "_hoodie_partition_path": [""] * count,
            "_hoodie_file_name": [name] * count,
            "note": [f"note {offset}" for offset in offsets],
        }
        if self.ddl == UNKNOWN_TO_RUST:
            columns["at"] = pa.array([0] * count, pa.timestamp("us"))
        if self.kafka_columns:
            columns |= {
                "_kafka_topic": [self.topic] * count,
                "_kafka_partition": pa.array([partition] * count, pa.int32()),
                "_kafka_offset": offsets,
                "_kafka_timestamp": pa.array([0] * count, pa.timestamp("us", tz="UTC")),
            }
        pq.write_table(pa.table(columns), folder / name)
        return DataFile(
            path=name,
            body=file_id,
            table_partition="",
            rows=count,
            size_bytes=(folder / name).stat().st_size,
        )

    # --- afterwards -------------------------------------------------------------------------------

    def files(self, instant: str) -> list[Path]:
        return sorted(self.path.glob(f"*_{instant}.parquet"))

    def rewrite(self, instant: str, change: Callable[[pa.Table], pa.Table]) -> None:
        """Damage a committed file, as no writer would."""
        (file,) = self.files(instant)
        # Without partitioning: a folder's name must not become a column.
        pq.write_table(change(pq.ParquetFile(file).read()), file)
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)

    def sql(self, statement: str) -> None:
        """A foreign writer: Spark SQL."""
        name = f"t_{uuid.uuid4().hex[:8]}"
        self.spark.sql(f"create table {name} using hudi location '{self.path}'")
        for key, value in FOREIGN.items():
            self.spark.sql(f"set {key}={value}")
        try:
            self.spark.sql(statement.format(t=name))
        finally:
            for key in FOREIGN:
                self.spark.conf.unset(key)
            self.spark.sql(f"drop table {name}")

    def verify(self) -> VerifyReport:
        return verify_table(f"file://{self.path}", PIPELINE, SourceLog(self.kafka, timeout_s=DEADLINE_S))


@pytest.fixture
def kafka(broker: Broker) -> dict[str, str]:
    return {"bootstrap.servers": broker.bootstrap_servers}


@pytest.fixture
def make(
    spark: SparkSession, kafka: dict[str, str], make_topic: Callable[..., str], tmp_path: Path
) -> Iterator[Callable[..., Pipeline]]:
    made: list[Pipeline] = []

    def make_one(**more: Any) -> Pipeline:
        made.append(Pipeline(spark, kafka, make_topic(partitions=2), tmp_path / f"t{len(made)}", **more))
        return made[-1]

    yield make_one
    for one in made:
        one.table.close()


def figures(report: VerifyReport) -> tuple[bool | None, int, int, int, int]:
    return report.exact, report.rows, report.missing, report.duplicated, report.unexpected


def without_offset(offset: int) -> Callable[[pa.Table], pa.Table]:
    return lambda rows: rows.filter(pc.not_equal(rows.column("_kafka_offset"), offset))


@BY_BOTH
def test_commits_are_exact_and_gaps_of_the_log_are_no_losses(make: Callable[..., Pipeline], ddl: str) -> None:
    pipeline = make(ddl=ddl)
    pipeline.produce(10)
    pipeline.produce_in_transaction(3, commit=False)  # 10, 11, 12 and their marker 13
    pipeline.produce_in_transaction(2, commit=True)  # 14, 15 and their marker 16
    pipeline.produce(5, partition=1)
    pipeline.take(0, 8)
    pipeline.take(8, 17, without=(10, 11, 12, 13, 16))
    pipeline.take(0, 5, partition=1)
    report = pipeline.verify()
    assert figures(report) == (True, 17, 0, 0, 0), report
    assert report.gaps == 5
    assert report.commits == 4


@BY_BOTH
def test_a_row_that_was_taken_away_is_missing(make: Callable[..., Pipeline], ddl: str) -> None:
    pipeline = make(ddl=ddl)
    pipeline.produce(10)
    instant = pipeline.take(0, 10)
    pipeline.rewrite(instant, without_offset(7))
    report = pipeline.verify()
    assert figures(report) == (False, 9, 1, 0, 0)
    assert report.partitions[0].missing_examples == [7]


@BY_BOTH
def test_a_file_that_is_gone_is_missing_rows(make: Callable[..., Pipeline], ddl: str) -> None:
    pipeline = make(ddl=ddl)
    pipeline.produce(10)
    pipeline.take(0, 6)
    for file in pipeline.files(pipeline.take(6, 10)):
        file.unlink()
    report = pipeline.verify()
    assert figures(report) == (False, 6, 4, 0, 0)
    assert report.partitions[0].missing_examples == [6, 7, 8, 9]


@BY_BOTH
def test_rows_that_are_there_twice_or_should_not_be_are_found(
    make: Callable[..., Pipeline], ddl: str
) -> None:
    pipeline = make(ddl=ddl)
    pipeline.produce(10)
    instant = pipeline.take(0, 6)

    def double_and_invent(rows: pa.Table) -> pa.Table:
        last = rows.slice(5, 1)
        beyond = last.set_column(
            last.column_names.index("_kafka_offset"), "_kafka_offset", pa.array([8], pa.int64())
        )
        return pa.concat_tables([rows, rows.slice(2, 1), beyond])

    pipeline.rewrite(instant, double_and_invent)
    report = pipeline.verify()
    assert figures(report) == (False, 8, 0, 1, 1)
    assert report.partitions[0].duplicated_examples == [2]
    assert report.partitions[0].unexpected_examples == [8]


def test_a_gap_whose_stretch_of_the_log_is_gone_is_not_checkable(make: Callable[..., Pipeline]) -> None:
    pipeline = make()
    pipeline.produce(4)
    pipeline.produce_in_transaction(2, commit=False)  # 4, 5 and their marker 6
    pipeline.produce(3)
    pipeline.take(0, 10, without=(4, 5, 6))
    place = TopicPartition(pipeline.topic, 0, 6)
    admin = AdminClient(pipeline.kafka)
    admin.delete_records([place])[place].result(DEADLINE_S)
    report = pipeline.verify()
    assert figures(report) == (None, 7, 0, 0, 0)
    assert "retention has removed everything below 6" in report.not_checkable[0]
    assert (report.partitions[0].unknown, report.gaps) == (2, 1)


def test_a_broker_that_is_away_matters_only_where_an_offset_has_no_row(
    make: Callable[..., Pipeline],
) -> None:
    pipeline = make()
    pipeline.produce(10)
    pipeline.take(0, 5)
    away = SourceLog({"bootstrap.servers": "127.0.0.1:1"}, timeout_s=5)
    assert verify_table(str(pipeline.path), PIPELINE, away).exact is True
    pipeline.produce_in_transaction(1, commit=False)  # 10 and its marker 11
    pipeline.take(5, 12, without=(10, 11))
    found = verify_table(str(pipeline.path), PIPELINE, away)
    assert found.exact is None
    assert found.not_checkable


def test_what_other_writers_do_to_rows_makes_it_not_checkable_and_what_they_add_does_not(
    make: Callable[..., Pipeline],
) -> None:
    pipeline = make()
    pipeline.produce(10)
    pipeline.take(0, 5)
    pipeline.take(5, 10)
    pipeline.sql(
        "insert into {t} (note, _kafka_topic, _kafka_partition, _kafka_offset, _kafka_timestamp)"
        " values ('theirs', 'elsewhere', 0, 0, current_timestamp())"
    )
    report = pipeline.verify()
    assert figures(report) == (True, 10, 0, 0, 0)
    assert report.foreign_rows == 1
    pipeline.sql("update {t} set note = 'changed' where _kafka_offset = 3 and _kafka_topic != 'elsewhere'")
    report = pipeline.verify()
    assert figures(report) == (None, 9, 0, 0, 0)
    assert report.partitions[0].rewritten == 1
    pipeline.sql("delete from {t} where _kafka_offset = 4 and _kafka_topic != 'elsewhere'")
    assert pipeline.verify().exact is None


@BY_BOTH
def test_clustering_moves_rows_and_leaves_them_exact(make: Callable[..., Pipeline], ddl: str) -> None:
    pipeline = make(ddl=ddl)
    pipeline.produce(10)
    pipeline.take(0, 5)
    pipeline.take(5, 10)
    pipeline.sql("call run_clustering(table => '{t}', op => 'scheduleandexecute')")
    assert any(i.operation == "CLUSTER" for i in Timeline(pipeline.path).completed())
    report = pipeline.verify()
    assert figures(report) == (True, 10, 0, 0, 0)


def test_commits_are_found_in_the_archived_timeline_and_pending_ones_name_their_owner(
    make: Callable[..., Pipeline],
) -> None:
    pipeline = make(properties={**QUICK_ARCHIVE, "hoodie.archive.automatic": "true"})
    pipeline.produce(20)
    for start in range(0, 20, 2):
        pipeline.take(start, start + 2)
    active = {path.name for path in (pipeline.path / ".hoodie" / "timeline").glob("*.commit")}
    assert len(active) < 11, "nothing was archived"
    timeline = Timeline(pipeline.path)
    assert len([i for i in timeline.completed() if i.state is not None]) == 11
    assert timeline.newest(PIPELINE) == pipeline.table.newest()
    assert figures(pipeline.verify()) == (True, 20, 0, 0, 0)
    instant = pipeline.table.begin(run="run-2", transaction="open")
    (pending,) = timeline.pending()
    assert (pending.requested, pending.phase) == (instant, "inflight")
    assert pending.owner == {"pipeline": PIPELINE, "run": "run-2", "transaction": "open"}
    age_ms = time.time_ns() // 1_000_000 - timeline.time_ms(instant)
    assert -1_000 < age_ms < 60_000


def test_offsets_that_an_operator_moves_back_are_rows_twice_and_still_exact(
    make: Callable[..., Pipeline],
) -> None:
    pipeline = make()
    pipeline.produce(10)
    pipeline.take(0, 10)
    newest = Timeline(pipeline.path).newest(PIPELINE)
    assert newest is not None
    view = look(pipeline.source, "nobody")
    plan = plan_set(newest, {pipeline.part(0): 6}, view, operator="ann", reason="again")
    pipeline.by_hand(plan.state, plan.expected)
    pipeline.take(6, 10)
    report = pipeline.verify()
    assert figures(report) == (True, 14, 0, 0, 0)
    assert report.partitions[0].reread == 4
    assert [(m.before, m.after, m.operator) for m in report.operator] == [(10, 6, "ann")]


def test_without_kafka_columns_it_is_not_checkable(make: Callable[..., Pipeline]) -> None:
    pipeline = make(kafka_columns=False)
    pipeline.produce(5)
    pipeline.take(0, 5)
    report = pipeline.verify()
    assert figures(report) == (None, 5, 0, 0, 0)
    assert "kafka_columns" in report.not_checkable[0]


# --- the command -----------------------------------------------------------------------------------------


def command(pipeline: Pipeline, *words: str) -> subprocess.CompletedProcess[str]:
    config = pipeline.path.parent / "pipeline.toml"
    config.write_text(
        f"""
        [pipeline]
        id = "{PIPELINE}"
        [source]
        bootstrap_servers = "{pipeline.kafka["bootstrap.servers"]}"
        topics = ["{pipeline.topic}"]
        [record]
        schema = "note STRING"
        [table]
        path = "file://{pipeline.path}"
        name = "events"
        hudi = {{ "hoodie.metadata.enable" = "false" }}
        [control]
        topic = "control-{pipeline.topic}"
        """
    )
    return subprocess.run(
        [sys.executable, "-m", "lockstep.cli", words[0], "-c", str(config), *words[1:]],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def test_the_commands_tell_the_verdict_by_their_exit_codes(make: Callable[..., Pipeline]) -> None:
    pipeline = make()
    pipeline.produce(10)
    instant = pipeline.take(0, 8)
    done = command(pipeline, "verify", "--output", "json")
    assert done.returncode == 0, done.stderr
    verdict = json.loads(done.stdout)
    assert (verdict["exact"], verdict["rows"]) == (True, 8)
    done = command(pipeline, "offsets", "--output", "json")
    assert done.returncode == 0, done.stderr
    assert [
        (row["committed"], row["end"], row["lag"], row["verdict"]) for row in json.loads(done.stdout)
    ] == [
        (8, 10, 2, "behind"),
        (0, 0, 0, "ok"),
    ]
    done = command(pipeline, "status", "--output", "json")
    assert done.returncode == 0, done.stderr
    status = json.loads(done.stdout)
    assert (status["state"], status["lag"], status["last_commit"]["rows"]) == ("stopped", 2, 8)
    pipeline.rewrite(instant, without_offset(0))
    done = command(pipeline, "verify")
    assert done.returncode == 4, done.stderr
    assert done.stdout.startswith("NOT EXACT: 1 missing")


def test_a_change_of_offsets_is_shown_first_and_done_only_when_told(make: Callable[..., Pipeline]) -> None:
    pipeline = make()
    pipeline.produce(10)
    pipeline.take(0, 4)
    part = f"{pipeline.topic}:0"
    done = command(pipeline, "offsets", "--set", f"{part}=7", "--output", "json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["executed"] is False
    assert [(c["before"], c["after"], c["skipped"]) for c in plan["changes"]] == [(4, 7, 3)]
    done = command(pipeline, "offsets", "--set", f"{part}=7", "--execute")
    assert done.returncode == 2
    assert "--reason" in done.stderr
    done = command(pipeline, "offsets", "--set", f"{part}=7", "--execute", "--reason", "poison at 4")
    assert done.returncode == 0, done.stderr
    newest = Timeline(pipeline.path).newest(PIPELINE)
    assert newest is not None
    assert (newest.kind, newest.reason, newest.offsets[pipeline.part(0)]) == ("operator", "poison at 4", 7)
    assert pipeline.verify().exact is True


def test_what_a_stranger_writes_to_the_control_topic_hides_no_halt_and_blocks_no_operator(
    make: Callable[..., Pipeline],
) -> None:
    pipeline = make()
    pipeline.produce(10)
    pipeline.take(0, 4)
    Place(LocalStore(pipeline.path / ".hoodie"), pipeline=PIPELINE, run="true").occupy()
    topic = f"control-{pipeline.topic}"
    ControlTopic(pipeline.kafka, topic).ensure(timeout_s=DEADLINE_S)
    producer = Producer({"bootstrap.servers": pipeline.kafka["bootstrap.servers"]})

    def say(sender: str, body: Body, *, epoch: int = 2, run: str = "true", marked: bool = True) -> None:
        message = Message(
            pipeline=PIPELINE,
            run=run,
            epoch=epoch,
            sender=sender,
            incarnation=sender,
            sequence=1,
            sent_at_ms=wall_ms(),
            body=body,
        )
        headers = [(HEADER, bytes(32))] if marked else []  # a mark of this form anybody can write
        producer.produce(topic, encode(message)[0], partition=0, headers=headers)

    say("driver", RunAnnounce(started_at_ms=1), epoch=0)
    say("coordinator@worker-0", CoordinatorClaim(), epoch=EPOCH_MAX, marked=False)
    say("coordinator@worker-0", CoordinatorClaim(), epoch=EPOCH_MAX)
    say("coordinator@worker-0", CoordinatorClaim(), epoch=3)
    say("coordinator@worker-0", Halt(reason="the true one"))
    say("driver", RunAnnounce(table_epoch=9, started_at_ms=wall_ms()), epoch=0)
    say("driver", RunAnnounce(table_epoch=9, started_at_ms=wall_ms()), epoch=0, run="forged")
    assert producer.flush(DEADLINE_S) == 0
    done = command(pipeline, "status")
    assert done.returncode == 3, done.stdout
    assert "the true one" in done.stdout
    assert "2 messages on the control topic" in done.stdout
    say("driver", RunAnnounce(table_epoch=9, started_at_ms=wall_ms() + 1), epoch=0)
    assert producer.flush(DEADLINE_S) == 0
    part = f"{pipeline.topic}:0"
    done = command(pipeline, "offsets", "--set", f"{part}=7", "--execute", "--reason", "poison at 4")
    assert done.returncode == 0, done.stderr


def test_a_table_that_is_not_there_is_a_sentence(make: Callable[..., Pipeline]) -> None:
    pipeline = make()
    pipeline.path = pipeline.path.parent / "nothing"
    done = command(pipeline, "verify")
    assert done.returncode == 1
    assert "no Hudi table" in done.stderr
    done = command(pipeline, "offsets", "--output", "json")
    assert done.returncode == 0
    assert {row["verdict"] for row in json.loads(done.stdout)} == {"no offset yet"}


def test_a_pipeline_that_has_committed_nothing_yet_is_exact_and_another_one_is_not_checkable(
    make: Callable[..., Pipeline],
) -> None:
    pipeline = make()
    assert figures(pipeline.verify()) == (True, 0, 0, 0, 0)
    report = verify_table(str(pipeline.path), "another", SourceLog(pipeline.kafka))
    assert report.exact is None
    assert "pipeline another" in report.not_checkable[0]
