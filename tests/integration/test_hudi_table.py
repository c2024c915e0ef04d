"""The Hudi table of the driver, on real Spark, real Hudi and real files."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi import HudiTableBuilder
from pyspark.sql import SparkSession

from control_topic.messages import DataFile, Range, SourcePartition
from table.errors import Contradiction, Refused, Unavailable
from table.hudi.definition import TERMS, Definition, check_table, layout, schema_of, terms_of
from table.hudi.driver import opening
from table.hudi.driver.file_clock import NAME as CLOCK
from table.hudi.driver.history import History
from table.hudi.driver.holder import LOCK, process_said, said_by, started_at
from table.hudi.driver.java import THROWN
from table.hudi.driver.rollback import _request, table_lock
from table.hudi.files.base_file import KeyRange, create_marker, create_partition, file_name, new_file_id
from table.hudi.layout import HudiLayout
from table.hudi.modes import LOCK_PROVIDER
from table.hudi.properties import READ_BUFFER_BYTES, merge
from table.hudi.properties import check as check_properties
from table.hudi.table import HudiTable
from table.port import Commit, TableSpec
from table.state import StateError, TableState, owner
from table.store.local import LocalStore
from tests.data_files import data_files
from tests.harness import await_that

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
PIPELINE = "events"
DDL = "event_id STRING, amount DOUBLE, day STRING"
SOURCE = SourcePartition("events", 0)
PLAIN = {"hoodie.metadata.enable": "false"}
"""Most tests do not need the metadata table, whose first commit alone costs seconds."""
FOREIGN = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.clean.failed.writes.policy": "LAZY",
}
CLOCK_SKEW = "hoodie.time.generator.max_expected_clock_skew_ms"
QUICK_ARCHIVE = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.commits.archival.batch": "1",
}
WITHIN_COMMITS = {"hoodie.archive.automatic": "true"}
"""When Hudi archives; ours does so beside them."""


def accept(_newest: TableState | None) -> str:
    return ""


@contextmanager
def as_in_another_process() -> Iterator[None]:
    """Whoever opens a table within knows the table lock's file, and not who holds it in this JVM."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("table.hudi.driver.table_lock.one_holder_lock", lambda *_: LOCK_PROVIDER)
        yield


class Driver:
    """One driver's table, with the steps of a transaction spelled as the service and the workers do them."""

    def __init__(
        self,
        spark: SparkSession,
        path: Path,
        properties: Mapping[str, str] = PLAIN,
        *,
        pipeline: str = PIPELINE,
        key: tuple[str, ...] = ("event_id",),
        services: bool = False,
        **changes: Any,
    ) -> None:
        self.path = path
        spec = TableSpec(
            path=f"file://{path}",
            name="events",
            mode="insert",
            ddl=DDL,
            key_fields=key,
            partition_fields=("day",),
            properties=properties,
            **changes,
        )
        self.pipeline, self.spec = pipeline, spec
        self.table = HudiTable(spark, spec, pipeline, services=services)
        self.layout = self.table.open()

    def begin(self, transaction: str) -> str:
        instant = self.table.begin(run="run", transaction=transaction)
        self.table.tend()
        return instant

    def write(self, instant: str, rows: int, *, first: int = 0) -> DataFile:
        """A data file of table partition `a`, with its marker, as a worker leaves it."""
        file_id = new_file_id(uuid.uuid4())
        name = file_name(file_id, "0-0-0", instant)
        store, folder = LocalStore(self.path), self.path / "a"
        create_partition(store, instant, "a")
        create_marker(store, instant, "a", name)
        made = self.rows(instant, name, rows, first)
        keys = KeyRange()
        keys.add(made["_hoodie_record_key"])
        with pq.ParquetWriter(folder / name, made.schema, store_schema=False) as writer:
            writer.write_table(made)
            writer.add_key_value_metadata(keys.footers())
        size_bytes = (folder / name).stat().st_size
        return DataFile(path=f"a/{name}", body=file_id, table_partition="a", rows=rows, size_bytes=size_bytes)

    @staticmethod
    def rows(instant: str, name: str, rows: int, first: int) -> pa.Table:
        keys = [f"e{first + row}" for row in range(rows)]
        columns = {
            "_hoodie_commit_time": [instant] * rows,
            "_hoodie_commit_seqno": [f"{instant}_0_{row}" for row in range(rows)],
            "_hoodie_record_key": keys,
            "_hoodie_partition_path": ["a"] * rows,
            "_hoodie_file_name": [name] * rows,
            "event_id": keys,
            "amount": [0.5] * rows,
            "day": ["a"] * rows,
            "_kafka_topic": ["events"] * rows,
            "_kafka_partition": pa.array([0] * rows, pa.int32()),
            "_kafka_offset": list(range(first, first + rows)),
            "_kafka_timestamp": pa.array([0] * rows, pa.timestamp("us", tz="UTC")),
        }
        return pa.table(columns)

    def planned(self, transaction: str, instant: str, rows: int, *files: DataFile) -> Commit:
        """The commit of `rows` records that follow what the table holds now."""
        newest = self.table.newest()
        expected = dict(newest.offsets) if newest is not None else {}
        start = expected.get(SOURCE, 0)
        state = TableState(
            pipeline=self.pipeline,
            run="run",
            epoch=1,
            transaction=transaction,
            offsets={SOURCE: start + rows},
            ranges=(Range(partition=SOURCE, start=start, next=start + rows, records=rows),),
        )
        return Commit(instant=instant, expected=expected, state=state, files=files)

    def run(self, transaction: str, rows: int = 0) -> str:
        """A whole transaction; its instant."""
        instant = self.begin(transaction)
        newest = self.table.newest()
        first = newest.offsets[SOURCE] if newest is not None else 0
        files = [self.write(instant, rows, first=first)] if rows else []
        self.table.commit(self.planned(transaction, instant, rows, *files), fence=accept)
        return instant

    def timeline(self) -> set[str]:
        names = {entry.name for entry in (self.path / ".hoodie" / "timeline").iterdir()}
        return {name for name in names if not name.startswith(".") and name != "history"}

    def files(self) -> set[str]:
        return {path.name for path in data_files(self.path)}


@pytest.fixture
def driver(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., Driver]]:
    """Makes drivers on `tmp_path/t`; closes them."""
    made: list[Driver] = []

    def make(properties: Mapping[str, str] = PLAIN, **kwargs: object) -> Driver:
        made.append(Driver(spark, tmp_path / "t", properties, **kwargs))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for one in made:
        one.table.close()


def hudi(made: Driver) -> HudiLayout:
    return HudiLayout.of(made.layout)


def rows_in(spark: SparkSession, path: Path) -> list[tuple[str, int]]:
    spark.catalog.clearCache()
    read = spark.read.format("hudi").load(str(path)).select("event_id", "_kafka_offset")
    return sorted((row[0], row[1]) for row in read.collect())


# --- opening ------------------------------------------------------------------------------------------


def test_a_missing_table_is_created_readable_and_found_again(
    spark: SparkSession, driver: Callable[..., Driver]
) -> None:
    first = driver({**PLAIN, "hoodie.datasource.write.hive_style_partitioning": "true"})
    assert (first.layout.created, hudi(first).key_format, hudi(first).hive_style) == (True, "plain", True)
    assert rows_in(spark, first.path) == []
    assert first.table.newest() is None
    again = driver()
    assert (again.layout.created, hudi(again).hive_style) == (False, True)
    assert again.layout.path == str(first.path)


def test_a_table_without_key_fields_keys_by_coordinates(driver: Callable[..., Driver]) -> None:
    made = driver(key=())
    assert hudi(made).key_format == "coordinates"
    properties = (made.path / ".hoodie" / "hoodie.properties").read_text()
    assert "recordkey.fields" not in properties


def test_a_table_with_another_key_is_refused_and_left_as_it_is(
    spark: SparkSession, driver: Callable[..., Driver]
) -> None:
    made = driver()
    before = (made.path / ".hoodie" / "hoodie.properties").read_bytes()
    with pytest.raises(Contradiction, match=r"hoodie\.table\.recordkey\.fields is event_id.*says amount"):
        driver(key=("amount",))
    assert (made.path / ".hoodie" / "hoodie.properties").read_bytes() == before


def test_a_table_whose_schema_has_other_fields_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    frame = spark.createDataFrame([("e1", 1, "a")], "event_id STRING, amount BIGINT, day STRING")
    options = {
        "hoodie.table.name": "events",
        "hoodie.datasource.write.recordkey.field": "event_id",
        "hoodie.datasource.write.partitionpath.field": "day",
        **PLAIN,
    }
    frame.write.format("hudi").options(**options).save(str(path))
    spec = TableSpec(
        path=str(path),
        name="events",
        mode="insert",
        ddl=DDL,
        key_fields=("event_id",),
        partition_fields=("day",),
        kafka_columns=False,
    )
    table = HudiTable(spark, spec, PIPELINE)
    with pytest.raises(Contradiction, match="field amount is BIGINT, the configuration says DOUBLE"):
        table.open()
    table.close()


def test_a_folder_that_is_no_table_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "letters.txt").write_text("mine")
    with pytest.raises(Refused, match=r"letters\.txt and is no Hudi table"):
        Driver(spark, tmp_path / "t")


SPEC = TableSpec(
    path="/t", name="t", mode="insert", ddl=DDL, key_fields=("event_id",), partition_fields=("day",)
)
FITTING = {
    "hoodie.table.version": "9",
    "hoodie.table.recordkey.fields": "event_id",
    "hoodie.table.partition.fields": "day",
    "hoodie.table.keygenerator.type": "SIMPLE",
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hoodie.table.recordkey.fields", "event_id,amount"),
        ("hoodie.table.partition.fields", ""),
        ("hoodie.table.type", "MERGE_ON_READ"),
        ("hoodie.table.base.file.format", "ORC"),
        ("hoodie.populate.meta.fields", "false"),
        ("hoodie.datasource.write.drop.partition.columns", "true"),
        ("hoodie.table.keygenerator.type", "TIMESTAMP"),
        ("hoodie.table.keygenerator.type", "CUSTOM"),
        ("hoodie.table.keygenerator.type", "AVRO_CUSTOM"),
        ("hoodie.datasource.write.slash.separated.date.partitioning", "true"),
        ("hoodie.table.version", "6"),
    ],
)
def test_a_contradicting_table_property_is_named_with_what_to_do(name: str, value: str) -> None:
    check_table(Definition(properties=FITTING), SPEC)
    with pytest.raises(Contradiction, match=r"table /t: .*: [a-z].+") as refused:
        check_table(Definition(properties={**FITTING, name: value}), SPEC)
    if "keygenerator" not in name:
        assert name in str(refused.value)


def test_now_is_refused_where_a_tables_instants_are_in_local_time_and_slashes_where_they_would_nest() -> None:
    by = {"partition_fields": ("d",), "partition_terms": ('format(now(), "yyyy/MM") as d',)}
    named = {**FITTING, "hoodie.table.partition.fields": "d", TERMS: terms_of(replace(SPEC, **by))}
    with pytest.raises(Contradiction, match=r"timeline\.timezone is not UTC"):
        check_table(Definition(properties=named), replace(SPEC, **by))
    utc = {**named, "hoodie.table.timeline.timezone": "UTC"}
    with pytest.raises(Contradiction, match=r"a value with '/'.*urlencode = true"):
        check_table(Definition(properties=utc), replace(SPEC, **by))
    encoded = {**utc, "hoodie.datasource.write.partitionpath.urlencode": "true"}
    check_table(Definition(properties=encoded), replace(SPEC, **by))


def test_a_custom_key_generator_is_taken_where_it_is_known_how_each_folder_is_made() -> None:
    custom = {**FITTING, "hoodie.table.keygenerator.type": "CUSTOM"}
    simple = Definition(properties={**custom, "hoodie.table.partition.fields": "day:SIMPLE"})
    check_table(simple, SPEC)
    assert layout(simple, SPEC, schema_of(SPEC), created=False).key_format == "plain"
    for fields, sentence in (
        ("day:TIMESTAMP", "CUSTOM: it makes folders of times, and"),
        ("day:simple,ts:timestamp", "CUSTOM: it makes folders of times, and"),
        ("day", "CUSTOM: day is neither day:SIMPLE nor day:TIMESTAMP"),
    ):
        with pytest.raises(Contradiction, match=sentence):
            check_table(Definition(properties={**custom, "hoodie.table.partition.fields": fields}), SPEC)


def test_a_complex_key_of_one_field_is_taken_where_all_of_hudi_spells_it_alike() -> None:
    complex_key = {**FITTING, "hoodie.table.keygenerator.type": "COMPLEX"}
    check_table(Definition(properties=complex_key), SPEC)
    made = layout(Definition(properties=complex_key), SPEC, schema_of(SPEC), created=False)
    assert made.key_format == "complex"
    with pytest.raises(Contradiction, match=r"COMPLEX with the one key field event_id.*below version 9"):
        check_table(Definition(properties={**complex_key, "hoodie.table.version": "8"}), SPEC)


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"hoodie.datasource.hive_sync.enable": "true"}, "no effect.*sync tool"),
        ({"hoodie.meta.sync.client.tool.class": "x"}, "no effect.*sync tool"),
        ({"hoodie.datasource.write.operation": "upsert"}, r"say it with table\.kind"),
        ({"hoodie.upsert.shuffle.parallelism": "8"}, "no effect"),
        ({"hoodie.clean.failed.writes.policy": "EAGER"}, "exactly once needs 'LAZY'"),
        ({"hoodie.cleaner.policy.failed.writes": "EAGER"}, "exactly once needs 'LAZY'"),
        ({"hoodie.write.concurrency.mode": "single_writer"}, "exactly once needs"),
        ({"hoodie.write.lock.filesystem.expire": "0"}, "say 1 or more"),
        ({"hoodie.write.lock.provider": "org.x.InProcessLockProvider"}, "another process does not see"),
        (
            {"hoodie.write.lock.storage.validity.timeout.secs": "21"},
            "ends drivers that do well; say 60 or more",
        ),
        ({"hoodie.parquet.compression.codec": "gzip"}, "clustering only"),
    ],
)
def test_a_property_that_would_be_ignored_or_break_the_protocol_is_refused(
    properties: dict[str, str], reason: str
) -> None:
    with pytest.raises(Refused, match=reason):
        check_properties(properties)


def test_given_properties_win_over_defaults_and_the_protocol_over_both() -> None:
    merged = merge(
        {"hoodie.keep.max.commits": "50", "hoodie.write.lock.filesystem.expire": "3"},
        {"hoodie.table.name": "t"},
    )
    assert merged["hoodie.keep.max.commits"] == "50"
    assert merged["hoodie.write.lock.filesystem.expire"] == "3"
    assert merged["hoodie.clean.failed.writes.policy"] == "LAZY"
    assert merged["hoodie.table.name"] == "t"


# --- transactions -------------------------------------------------------------------------------------


def test_a_commit_is_read_whole_by_spark_and_by_a_second_reader(
    spark: SparkSession, driver: Callable[..., Driver]
) -> None:
    made = driver({})
    made.run("genesis")
    assert rows_in(spark, made.path) == []
    instant = made.run("t1", rows=5)
    assert rows_in(spark, made.path) == [(f"e{row}", row) for row in range(5)]
    spark.sql(f"CREATE TABLE read_by_sql USING hudi LOCATION '{made.path}'")
    assert spark.sql("SELECT sum(amount) FROM read_by_sql WHERE day = 'a'").first()[0] == 2.5
    batches = HudiTableBuilder.from_base_uri(str(made.path)).build().read()
    assert sorted(key for batch in batches for key in batch["event_id"].to_pylist()) == [
        f"e{row}" for row in range(5)
    ]
    newest = made.table.newest()
    assert newest is not None
    assert (newest.instant, newest.transaction, dict(newest.offsets)) == (instant, "t1", {SOURCE: 5})


def test_begin_gives_the_same_instant_for_the_same_transaction(driver: Callable[..., Driver]) -> None:
    made = driver()
    instant = made.begin("t1")
    assert made.begin("t1") == instant
    assert made.begin("t2") != instant
    first, second = made.table.unfinished()
    assert (first.instant, first.run, first.transaction, first.rollback_requested) == (
        instant,
        "run",
        "t1",
        False,
    )
    assert second.transaction == "t2"


def test_an_instant_that_would_be_earlier_than_another_is_not_opened(driver: Callable[..., Driver]) -> None:
    """A clock that went back, or a writer whose clock is ahead: instants are ordered by their times alone."""
    one = driver()
    one.run("t1")
    ahead = one.path / ".hoodie" / "timeline" / "99990101000000000.deltacommit.requested"
    ahead.touch()
    before = one.timeline()
    with pytest.raises(Unavailable, match="behind the table"):
        one.begin("t2")
    assert one.timeline() == before
    ahead.unlink()
    one.run("t2")


@pytest.mark.parametrize(("given", "wanted"), [({}, "1"), ({CLOCK_SKEW: "50"}, "50")])
def test_on_a_file_system_of_one_machine_nothing_waits_for_other_clocks(
    driver: Callable[..., Driver], given: dict[str, str], wanted: str
) -> None:
    one = driver({**PLAIN, **given})
    assert str(one.table._session.client.getConfig().getProps().getProperty(CLOCK_SKEW)) == wanted


def test_begin_of_a_committed_transaction_is_refused(driver: Callable[..., Driver]) -> None:
    made = driver()
    made.run("t1")
    with pytest.raises(Refused, match="committed already"):
        made.begin("t1")


def test_a_commit_that_the_fence_refuses_has_no_effect_and_may_be_rolled_back(
    spark: SparkSession, driver: Callable[..., Driver], caplog: pytest.LogCaptureFixture
) -> None:
    made = driver()
    made.run("t1", rows=2)
    instant = made.begin("t2")
    commit = made.planned("t2", instant, 3, made.write(instant, 3, first=2))
    seen: list[TableState | None] = []

    def fence(newest: TableState | None) -> str:
        seen.append(newest)
        return "epoch 1 is stale: epoch 2 is registered"

    before = made.timeline()
    with pytest.raises(Refused, match=r"^epoch 1 is stale: epoch 2 is registered$"):
        made.table.commit(commit, fence=fence)
    assert made.timeline() == before
    assert [state.transaction for state in seen if state is not None] == ["t1"]
    assert "Traceback" not in caplog.text, "a refusal is no accident: it leaves no stack trace"
    assert not (made.path / ".hoodie" / "lock").exists()
    assert made.table.roll_back(instant)
    assert len(rows_in(spark, made.path)) == 2


def test_a_commit_that_starts_elsewhere_than_the_table_is_refused(driver: Callable[..., Driver]) -> None:
    made = driver()
    made.run("t1", rows=2)
    driver().run("t3", rows=4)
    instant = made.begin("t2")
    right = made.planned("t2", instant, 3, made.write(instant, 3, first=6))
    late = Commit(instant=instant, expected={SOURCE: 2}, state=right.state, files=right.files)
    with pytest.raises(Refused, match="events:0 offset 2, the table is at 6"):
        made.table.commit(late, fence=accept)
    never = Commit(instant=instant, expected={}, state=right.state, files=right.files)
    with pytest.raises(Refused, match="events:0 offset none, the table is at 6"):
        made.table.commit(never, fence=accept)
    assert made.table.find("t2") is None


def test_nothing_is_committed_while_another_instant_of_the_pipeline_is_open(
    driver: Callable[..., Driver],
) -> None:
    """Whoever opened it may be paused past its own check; rolled back, it can complete nothing."""
    paused, successor = driver(), driver()
    earlier = paused.begin("t1")
    commit = paused.planned("t1", earlier, 3, paused.write(earlier, 3))
    instant = successor.begin("t2")
    later = successor.planned("t2", instant, 2, successor.write(instant, 2))
    with pytest.raises(Refused, match=f"{earlier} of this pipeline is open too, and is rolled back first"):
        successor.table.commit(later, fence=accept)
    assert successor.table.roll_back(earlier)
    successor.table.commit(later, fence=accept)
    with pytest.raises(Refused):
        paused.table.commit(commit, fence=accept)
    newest = successor.table.newest()
    assert newest is not None and newest.transaction == "t2"


def test_a_commit_whose_rollback_is_requested_is_refused_and_the_rollback_is_finished(
    spark: SparkSession, driver: Callable[..., Driver]
) -> None:
    made = driver()
    instant = made.begin("t1")
    file = made.write(instant, 3)
    commit = made.planned("t1", instant, 3, file)
    successor = driver()
    died = _request_rollback_and_die(successor, instant)
    assert [one.rollback_requested for one in made.table.unfinished()] == [True]
    with pytest.raises(Refused, match="its rollback is requested"):
        made.table.commit(commit, fence=accept)
    with pytest.raises(Refused, match=f"rollback of its instant {instant} is requested"):
        made.begin("t1")
    assert made.table.roll_back(instant)
    assert died in {name.split(".")[0] for name in made.timeline()}
    assert made.files() == set()
    assert list(made.table.unfinished()) == []
    with pytest.raises(Refused, match="not inflight any more"):
        made.table.commit(Commit(instant=instant, expected={}, state=commit.state, files=()), fence=accept)


def _request_rollback_and_die(driver: Driver, instant: str) -> str:
    """Do what a driver does that dies before it carries a rollback out; the rollback's instant."""

    table = driver.table
    with table_lock(table._session, table._watchdog):
        rollback = _request(table._session, table._history, instant, table._fence)
    assert rollback is not None
    return str(rollback.getRollbackInstant().requestedTime())


def test_a_repeated_commit_succeeds_and_one_with_other_ranges_is_refused(
    spark: SparkSession, driver: Callable[..., Driver]
) -> None:
    made = driver()
    instant = made.begin("t1")
    file = made.write(instant, 3)
    commit = made.planned("t1", instant, 3, file)
    made.table.commit(commit, fence=accept)
    before = made.timeline()
    made.table.commit(commit, fence=lambda _: "nobody is asked any more")
    driver().table.commit(commit, fence=accept)
    other = made.planned("t1", instant, 4, file)
    with pytest.raises(Refused, match="committed already, as instant"):
        made.table.commit(other, fence=accept)
    assert made.timeline() == before
    assert len(rows_in(spark, made.path)) == 3


def test_a_look_under_the_lock_that_takes_long_is_said_to_have_taken_long(
    driver: Callable[..., Driver],
) -> None:
    made = driver()
    commit = made.planned("t1", made.begin("t1"), 0)

    def look(_newest: TableState | None) -> str:
        time.sleep(0.3)
        return ""

    took_ms = made.table.commit(commit, fence=look)
    assert took_ms["check"] >= 300


def test_a_commit_that_lands_although_its_call_fails_is_a_success(driver: Callable[..., Driver]) -> None:
    made = driver(
        {
            **PLAIN,
            "hoodie.write.commit.callback.on": "true",
            "hoodie.write.commit.callback.class": "org.example.NotThere",
        }
    )
    instant = made.begin("t1")
    file = made.write(instant, 1)
    assert made.table.commit(made.planned("t1", instant, 1, file), fence=accept) == {}, (
        "it was read, not seen"
    )
    found = made.table.find("t1")
    assert found is not None and found.instant == instant


def test_a_commit_of_a_file_that_is_not_there_or_not_whole_is_refused(driver: Callable[..., Driver]) -> None:
    made = driver()
    instant = made.begin("t1")
    file = made.write(instant, 3)
    commit = made.planned("t1", instant, 3, file)
    os.truncate(made.path / file.path, 10)
    with pytest.raises(Refused, match="has 10 bytes"):
        made.table.commit(commit, fence=accept)
    (made.path / file.path).unlink()
    with pytest.raises(Refused, match="is not there"):
        made.table.commit(commit, fence=accept)


def test_a_lock_that_somebody_holds_makes_the_table_unavailable_without_effect(
    driver: Callable[..., Driver],
) -> None:
    made = driver({**PLAIN, "hoodie.write.lock.client.num_retries": "2"})
    instant = made.begin("t1")
    commit = made.planned("t1", instant, 0)
    lock = made.path / ".hoodie" / "lock"
    lock.touch()
    before = made.timeline()
    with pytest.raises(Unavailable, match=r"(?i)lock"):
        made.begin("t2")
    with pytest.raises(Unavailable, match=r"(?i)lock"):
        made.table.commit(commit, fence=accept)
    with pytest.raises(Unavailable, match=r"(?i)lock"):
        made.table.roll_back(instant)
    assert made.timeline() == before
    made.table.close()
    assert lock.exists(), "closing a table must not take away a lock that somebody else holds"
    lock.unlink()
    again = driver()
    again.table.commit(commit, fence=accept)
    assert again.table.find("t1") is not None


# --- rolling back -------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["file://", "file:", ""])
def test_a_lock_folder_of_ones_own_is_the_same_to_hudi_and_to_us(
    driver: Callable[..., Driver], tmp_path: Path, scheme: str
) -> None:
    """Hudi's lock and the clock's file are in it, none of them in the table."""
    locks = tmp_path / "locks"
    made = driver({**PLAIN, "hoodie.write.lock.filesystem.path": f"{scheme}{locks}"})
    seen: list[set[str]] = []

    def look(_newest: TableState | None) -> str:
        seen.append({path.name for path in locks.iterdir()})
        return ""

    made.table.commit(made.planned("t1", made.begin("t1"), 0), fence=look)
    assert seen
    assert {LOCK, CLOCK} <= seen[-1]
    assert not {LOCK, CLOCK} & {path.name for path in (made.path / ".hoodie").iterdir()}


def test_a_lock_folder_that_is_no_local_path_is_refused_by_name(driver: Callable[..., Driver]) -> None:
    with pytest.raises(Refused, match=r"^hoodie\.write\.lock\.filesystem\.path hdfs:///locks: it can only"):
        driver({**PLAIN, "hoodie.write.lock.filesystem.path": "hdfs:///locks"})


def test_the_rollback_of_a_complete_instant_takes_nothing_away(
    spark: SparkSession, driver: Callable[..., Driver]
) -> None:
    made = driver()
    instant = made.run("t1", rows=3)
    before = made.timeline()
    assert made.table.roll_back(instant) is False
    assert made.timeline() == before
    assert len(rows_in(spark, made.path)) == 3


def test_an_aborted_transaction_leaves_no_file(spark: SparkSession, driver: Callable[..., Driver]) -> None:
    made = driver({})
    made.run("t1", rows=2)
    kept = made.files()
    instant = made.begin("t2")
    made.write(instant, 3, first=2)
    assert made.table.roll_back(instant)
    assert made.files() == kept
    assert not (made.path / ".hoodie" / ".temp" / instant).exists()
    assert made.table.roll_back(instant), "what is gone already may be asked for again"
    made.run("t3", rows=1)
    assert len(rows_in(spark, made.path)) == 3


def test_a_commit_takes_away_a_file_that_it_does_not_name_and_all_markers(
    spark: SparkSession, driver: Callable[..., Driver]
) -> None:
    """As of a worker that was given up: Hudi finds it by its marker."""
    made = driver()
    instant = made.begin("t1")
    named, stray = made.write(instant, 3), made.write(instant, 5)
    made.table.commit(made.planned("t1", instant, 3, named), fence=accept)
    assert made.files() == {Path(named.path).name} != {Path(stray.path).name}
    assert not (made.path / ".hoodie" / ".temp" / instant).exists()
    assert len(rows_in(spark, made.path)) == 3


@pytest.mark.parametrize("more", [{}, {"hoodie.table.services.enabled": "true"}], ids=["Java", "Spark"])
def test_markers_of_files_that_are_all_in_the_commit_are_removed_beside_it_and_not_by_hudi(
    spark: SparkSession,
    driver: Callable[..., Driver],
    monkeypatch: pytest.MonkeyPatch,
    more: Mapping[str, str],
) -> None:
    """Its heartbeat is gone with the commit, as where Hudi does both."""
    made = driver({**PLAIN, **more})
    left: list[str] = []
    with monkeypatch.context() as held:
        held.setattr(made.table._markers, "completed", left.append)
        instant = made.run("t1", rows=3)
    markers = made.path / ".hoodie" / ".temp" / instant
    assert left == [instant] and markers.is_dir()
    assert not (made.path / ".hoodie" / ".heartbeat" / instant).exists()
    made.run("t2", rows=2)
    made.table._markers.completed(instant)
    await_that("end of all markers", lambda: not list(markers.parent.iterdir()))
    assert len(rows_in(spark, made.path)) == 5


def test_a_predecessor_that_resumes_after_its_lock_expired_cannot_complete_a_rolled_back_instant(
    spark: SparkSession, driver: Callable[..., Driver]
) -> None:
    paused = driver()
    instant = paused.begin("t1")
    commit = paused.planned("t1", instant, 3, paused.write(instant, 3))

    def pause(_newest: TableState | None) -> str:
        """Hudi's lock is held; meanwhile it expires and the successor recovers."""
        (paused.path / ".hoodie" / "lock").unlink()
        with as_in_another_process():
            successor = Driver(spark, paused.path)  # here: Hudi calls back on another thread
        assert successor.table.roll_back(instant)
        successor.table.close()
        return ""

    with pytest.raises(Refused, match="does not exist"):
        paused.table.commit(commit, fence=pause)
    assert paused.table.newest() is None
    assert rows_in(spark, paused.path) == []
    driver().run("t2", rows=3)
    assert len(rows_in(spark, paused.path)) == 3


def test_an_instant_that_completes_after_its_rollback_was_requested_keeps_its_rows(
    spark: SparkSession, driver: Callable[..., Driver]
) -> None:
    paused, successor = driver(), driver()
    instant = paused.begin("t1")
    commit = paused.planned("t1", instant, 3, paused.write(instant, 3))

    def pause(_newest: TableState | None) -> str:
        """After the check; the lock expires, the successor requests the rollback and is slow, too."""
        (paused.path / ".hoodie" / "lock").unlink()
        with as_in_another_process():
            other = Driver(spark, paused.path)  # here: Hudi calls back on another thread
        _request_rollback_and_die(other, instant)
        other.table.close()
        return ""

    paused.table.commit(commit, fence=pause)
    assert successor.table.roll_back(instant) is False
    assert not [name for name in paused.timeline() if ".rollback" in name], paused.timeline()
    assert list(successor.table.unfinished()) == []
    assert len(rows_in(spark, paused.path)) == 3
    successor.run("t2", rows=2)
    assert len(rows_in(spark, paused.path)) == 5


HOLDS_THE_LOCK = """
import sys, time
from pathlib import Path
from tests.integration.conftest import spark
from tests.integration.test_hudi_table import Driver

table = Driver(next(spark.__wrapped__()), Path(sys.argv[1])).table
table._session.client.getTransactionManager().getLockManager().lock()
print("held", flush=True)
time.sleep(300)
"""


def test_the_lock_of_a_killed_driver_is_taken_over_at_once(
    driver: Callable[..., Driver], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Hudi has taken it by itself; nobody else knows."""
    made = driver()
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS_THE_LOCK, str(made.path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
        start_new_session=True,  # its JVM dies with it
    )
    assert process.stdout is not None
    assert "held\n" in iter(process.stdout.readline, "")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)
    held_by = process_said(said_by((made.path / ".hoodie" / LOCK).read_bytes()))
    assert held_by is not None
    await_that("end of the Java process", lambda: started_at(int(held_by["pid"])) is None)
    made.run("t1", rows=1)
    assert "which is dead: it is free again" in caplog.text


def test_instants_of_foreign_writers_are_not_listed(driver: Callable[..., Driver]) -> None:
    made = driver()
    session = made.table._session
    only_requested = session.client.startCommit("commit")
    without_owner = session.client.startCommit("commit")
    timeline = session.reload()
    for one in timeline.getInstants():
        if one.requestedTime() == without_owner:
            timeline.transitionRequestedToInflight(one, session.none())
    assert list(made.table.unfinished()) == []
    for instant in (only_requested, without_owner):
        with pytest.raises(Refused, match="not one of this pipeline"):
            made.table.roll_back(instant)


def test_an_instant_that_a_driver_requested_before_it_died_is_taken_back_by_the_next_and_nobody_elses(
    driver: Callable[..., Driver],
) -> None:
    """It was killed between the two files by which Hudi opens an instant."""
    made, other = driver(services=True), driver(pipeline="another/pipeline", services=True)
    made.run("t1", rows=1)
    foreign = made.table._session.client.startCommit("commit")
    others, _ = other.table._request_instant()
    instant, _ = made.table._request_instant()
    made.table._session.let_die(instant)
    (made.path / ".hoodie" / ".heartbeat" / instant).touch()
    assert [name for name in driver().timeline() if name.startswith(instant)], "who only looks leaves it"
    successor = driver(services=True)
    left = {name for name in successor.timeline() if name.endswith(".requested")}
    assert {name.split(".")[0] for name in left} >= {foreign, others}
    assert not [name for name in successor.timeline() if name.startswith(instant)]
    assert not (made.path / ".hoodie" / ".heartbeat" / instant).exists()
    successor.run("t2", rows=2)
    assert successor.table.newest().transaction == "t2"  # type: ignore[union-attr]


def test_who_stood_between_the_two_files_does_not_open_an_instant_that_was_taken_back(
    driver: Callable[..., Driver],
) -> None:
    """Hudi looks for the first before it makes the second."""
    paused = driver(services=True)
    instant, requested = paused.table._request_instant()
    driver(services=True)
    session = paused.table._session
    with pytest.raises(THROWN, match="does not exist"):
        session.meta.getActiveTimeline().transitionRequestedToInflight(requested, session.none())
    assert not [name for name in paused.timeline() if name.startswith(instant)]


def test_an_instant_that_is_opened_as_it_is_taken_back_is_whole_and_is_rolled_back(
    driver: Callable[..., Driver], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its driver had looked for the first file, stood still, and makes the second."""
    paused = driver(services=True)
    session = paused.table._session
    instant, requested = paused.table._request_instant()
    metadata = session.hudi.common.model.HoodieCommitMetadata()
    metadata.setOperationType(session.hudi.common.model.WriteOperationType.INSERT)
    for name, value in owner(PIPELINE, "run", "late").items():
        metadata.addMetadata(name, value)
    answers: list[bool] = []

    def opened_after_the_look(history: History, noted: str) -> bool:
        answers.append(is_only_requested(history, noted))
        if len(answers) == 2:  # under the lock, which nobody needs to open it
            session.meta.getActiveTimeline().transitionRequestedToInflight(requested, session.some(metadata))
        return answers[-1]

    is_only_requested = opening._is_only_requested
    monkeypatch.setattr(opening, "_is_only_requested", opened_after_the_look)
    successor = driver(services=True)
    assert answers == [True, True]
    assert {f"{instant}.commit.requested", f"{instant}.inflight"} <= set(successor.timeline())
    assert [one.instant for one in successor.table.unfinished()] == [instant]
    assert successor.table.roll_back(instant)
    assert not [name for name in successor.timeline() if name.startswith(instant)]


def test_hudi_reads_logs_and_the_metadata_table_with_buffers_of_a_megabyte(
    driver: Callable[..., Driver],
) -> None:
    """It takes the file system's size of a block for a buffer's: by default 32 MB, for some kilobytes."""
    session = driver().table._session
    assert session.client.getConfig().getMaxDFSStreamBufferSize() == READ_BUFFER_BYTES
    storage = session.meta.getStorage()
    assert storage.getDefaultBlockSize(session.meta.getBasePath()) == READ_BUFFER_BYTES


def test_another_pipelines_instant_is_neither_listed_nor_rolled_back(driver: Callable[..., Driver]) -> None:
    other = driver(pipeline="other")
    instant = other.begin("t1")
    made = driver()
    assert list(made.table.unfinished()) == []
    with pytest.raises(Refused, match="not one of this pipeline"):
        made.table.roll_back(instant)
    assert [one.instant for one in other.table.unfinished()] == [instant]


# --- history ------------------------------------------------------------------------------------------


def test_an_instant_that_another_driver_archives_in_the_middle_of_a_look_is_no_error(
    driver: Callable[..., Driver], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that starts while an older one still commits listed an instant and found it gone: it ended."""
    made = driver()
    first, second = made.run("t1", rows=1), made.run("t2", rows=1)
    again = driver()
    session = again.table._session
    list_instants = session.reload

    def reload() -> Any:
        timeline = list_instants()
        for file in (made.path / ".hoodie" / "timeline").glob(f"{first}*"):
            file.unlink()
        return timeline

    monkeypatch.setattr(session, "reload", reload)
    newest = again.table.newest()
    assert newest is not None and newest.instant == second


def test_the_newest_state_is_found_behind_foreign_commits_and_in_the_archive(
    spark: SparkSession, driver: Callable[..., Driver]
) -> None:
    properties = {**PLAIN, **QUICK_ARCHIVE}
    made = driver(properties)
    made.run("t1", rows=2)
    instant = made.run("t2", rows=2)
    frame = spark.read.format("hudi").load(str(made.path)).drop(*_meta_columns())
    options = {**FOREIGN, **properties, "hoodie.datasource.write.operation": "insert"}
    frame.limit(1).write.format("hudi").options(**options).mode("append").save(str(made.path))
    newest = made.table.newest()
    assert newest is not None and newest.instant == instant
    foreign = driver(properties, pipeline="other")
    for number in range(6):
        foreign.run(f"f{number}")
    assert not any(name.startswith(instant) for name in made.timeline()), "the instant is not archived yet"
    for one in (made, driver(properties)):
        newest = one.table.newest()
        assert newest is not None
        assert (newest.instant, newest.transaction, dict(newest.offsets)) == (instant, "t2", {SOURCE: 4})
        assert one.table.find("t2") is not None
        assert one.table.find("t0") is None
    assert made.table.roll_back(instant) is False
    third = made.run("t3", rows=1)
    assert made.table.newest().offsets == {SOURCE: 5}  # type: ignore[union-attr]
    made.run("t4", rows=1)
    for transaction, its_instant, end in (("t2", instant, 4), ("t3", third, 5)):  # archived, and active
        found = made.table.find(transaction)
        assert found is not None
        assert (found.instant, found.transaction, dict(found.offsets)) == (
            its_instant,
            transaction,
            {SOURCE: end},
        )


def _meta_columns() -> list[str]:
    names = ("commit_time", "commit_seqno", "record_key", "partition_path", "file_name")
    return [f"_hoodie_{name}" for name in names]


def test_a_state_of_ours_that_cannot_be_read_is_refused(driver: Callable[..., Driver]) -> None:
    made = driver()
    instant = made.begin("t1")
    session = made.table._session
    session.client.commitStats(
        instant,
        session.jvm.java.util.ArrayList(),
        session.some(session.java_map({"lockstep.pipeline": PIPELINE, "lockstep.offsets": "{"})),
        "commit",
    )
    with pytest.raises(Refused, match=f"instant {instant} is this pipeline's") as refused:
        made.table.newest()
    assert isinstance(refused.value, StateError)


def test_another_thread_is_turned_away(driver: Callable[..., Driver]) -> None:
    made = driver()
    raised: list[BaseException] = []

    def call() -> None:
        try:
            made.table.newest()
        except RuntimeError as error:
            raised.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert len(raised) == 1


# --- the sweep ----------------------------------------------------------------------------------------


def test_the_sweep_removes_what_a_zombie_wrote_late_and_nothing_else(
    spark: SparkSession, driver: Callable[..., Driver]
) -> None:
    properties = {**PLAIN, **QUICK_ARCHIVE}
    made = driver(properties)
    archived = made.run("t0", rows=1)
    after_archived = made.write(archived, 1)
    for number in range(6):
        made.run(f"a{number}")
    complete = made.run("t1", rows=2)
    aborted = made.begin("t2")
    made.write(aborted, 1)
    assert made.table.roll_back(aborted)
    open_instant = made.begin("t3")
    open_file = made.write(open_instant, 1)
    foreign = made.path / "a" / f"{uuid.uuid4()}-0_0-0-0_{aborted}.parquet"
    foreign.write_bytes(b"somebody else's")
    kept = made.files() - {Path(after_archived.path).name}
    late = [made.write(complete, 1), made.write(aborted, 1)]
    assert made.table.sweep(grace_ms=3_600_000).removed == 0
    assert made.table.sweep(grace_ms=0).removed == 3
    assert made.files() == kept
    assert all(not (made.path / file.path).exists() for file in late)
    markers = {folder.name for folder in (made.path / ".hoodie" / ".temp").iterdir()}
    assert markers == {open_instant}
    made.table.commit(made.planned("t3", open_instant, 1, open_file), fence=accept)
    again = made.write(complete, 1)
    assert made.table.sweep(grace_ms=0).removed == 1, "what is judged once does not hide what comes later"
    assert not (made.path / again.path).exists()
    assert made.table.sweep(grace_ms=0).removed == 0
    assert len(rows_in(spark, made.path)) == 4


def test_a_sweep_says_in_one_line_how_many_files_it_removed_and_names_one(
    driver: Callable[..., Driver], caplog: pytest.LogCaptureFixture
) -> None:
    made = driver()
    late: list[tuple[str, str]] = []
    for number in range(3):
        instant = made.begin(f"t{number}")
        assert made.table.roll_back(instant)
        late += [(made.write(instant, 1).path, instant) for _ in range(3)]
    with caplog.at_level(logging.DEBUG, logger="table.hudi.upkeep.sweep"):
        assert made.table.sweep(grace_ms=0).removed == len(late)
        assert made.table.sweep(grace_ms=0).removed == 0
    (line,) = [one for one in caplog.records if one.name == "table.hudi.upkeep.sweep"]
    said, _, example = line.getMessage().partition("; one of them: ")
    assert line.levelno == logging.WARNING
    assert said == "removed 9 files that no commit names, of 3 instants"
    assert example in {f"{path} of instant {instant}" for path, instant in late}


# --- the metadata table -------------------------------------------------------------------------------


@pytest.mark.parametrize("sweeps", [True, False], ids=["swept", "only begun"])
def test_a_table_with_a_metadata_table_is_archived_and_keeps_every_row(
    spark: SparkSession, driver: Callable[..., Driver], sweeps: bool
) -> None:
    """Hudi archives nothing before its metadata table is compacted, and compacts it only when it is asked."""
    properties = {**QUICK_ARCHIVE, "hoodie.metadata.compact.max.delta.commits": "2"}
    made = driver(properties)
    most = 0
    for number in range(11):
        instant = made.begin(f"t{number}")
        file = made.write(instant, 2, first=2 * number)
        if sweeps and number % 3 == 2:
            assert made.table.sweep(grace_ms=0).removed == 0, "a transaction is open, as it is in most sweeps"
        made.table.commit(made.planned(f"t{number}", instant, 2, file), fence=accept)
        most = max(most, len(commits_in(made.path / ".hoodie" / "timeline")))
    assert most <= 8
    metadata = made.path / ".hoodie" / "metadata" / ".hoodie" / "timeline"
    assert commits_in(metadata), "the metadata table was never compacted"
    for one in (made, driver(properties)):
        newest = one.table.newest()
        assert newest is not None
        assert (newest.instant, newest.transaction, dict(newest.offsets)) == (instant, "t10", {SOURCE: 22})
    assert_rows(spark, made.path, 22)
    frame = spark.read.format("hudi").load(str(made.path)).drop(*_meta_columns()).limit(1)
    options = {**FOREIGN, "hoodie.datasource.write.operation": "insert"}
    frame.write.format("hudi").options(**options).mode("append").save(str(made.path))
    made.run("t11", rows=2)
    made.table.sweep(grace_ms=0)
    made.run("t12", rows=2)
    for table in ("true", "false"):
        read = spark.read.format("hudi").option("hoodie.metadata.enable", table).load(str(made.path))
        assert (read.count(), read.select("event_id").distinct().count()) == (27, 26)


def test_the_write_client_follows_the_indexes_that_others_make(
    spark: SparkSession, driver: Callable[..., Driver]
) -> None:
    """Hudi's Java client cannot drop an index that the configuration does not have; its Spark client does."""

    def client() -> str:
        return str(made.table._session.client.getClass().getSimpleName())

    made = driver({})
    made.run("t0", rows=2)
    assert client() == "TimedJavaWriteClient"
    frame = spark.read.format("hudi").load(str(made.path)).drop(*_meta_columns()).limit(1)
    options = {**FOREIGN, "hoodie.datasource.write.operation": "insert"}
    frame.write.format("hudi").options(**options).mode("append").save(str(made.path))
    made.run("t1", rows=2)
    assert client() == "TimedSparkWriteClient"
    made.run("t2", rows=2)
    assert client() == "TimedJavaWriteClient", "the Spark client has dropped the index"
    assert spark.read.format("hudi").load(str(made.path)).count() == 7


def test_an_instant_that_could_not_be_opened_leaves_nothing_pending(driver: Callable[..., Driver]) -> None:
    """As on a full disk, where the timeline's empty file still fits and the heartbeat's write does not."""
    made = driver()
    hoodie = made.path / ".hoodie"
    beats = hoodie / ".heartbeat"
    shutil.rmtree(beats, ignore_errors=True)
    beats.touch()
    for _ in range(2):
        with pytest.raises(Unavailable, match="no instant could be opened"):
            made.begin("t1")
        assert not [*hoodie.glob("timeline/*.requested"), *hoodie.glob("timeline/*.inflight")]
    beats.unlink()
    made.run("t1", rows=1)


COMPACTS_FIRST = """
import sys
from pathlib import Path
from tests.integration.conftest import spark
from tests.integration.test_hudi_table import OFTEN_COMPACTED, Driver

made = Driver(next(spark.__wrapped__()), Path(sys.argv[1]), OFTEN_COMPACTED)
made.table.sweep(grace_ms=3_600_000)
made.run("later", rows=1)
made.table.close()
print("committed", flush=True)
"""
OFTEN_COMPACTED = {"hoodie.metadata.compact.max.delta.commits": "2"}


def test_a_driver_whose_first_act_is_a_compaction_of_the_metadata_table_commits(
    spark: SparkSession, driver: Callable[..., Driver]
) -> None:
    """In a Java process of its own: Hudi's schemas were compared by identity, in the order of first use."""
    made = driver(OFTEN_COMPACTED)
    for number in range(3):
        made.run(f"t{number}", rows=1)
    compacted = len(compactions(made.path))
    done = subprocess.run(
        [sys.executable, "-c", COMPACTS_FIRST, str(made.path)], capture_output=True, text=True, cwd=ROOT
    )
    assert "committed\n" in done.stdout, done.stderr[-4_000:]
    assert len(compactions(made.path)) > compacted
    assert len(rows_in(spark, made.path)) == 4


def compactions(path: Path) -> list[str]:
    timeline = path / ".hoodie" / "metadata" / ".hoodie" / "timeline"
    return [entry.name for entry in timeline.glob("*.commit")]


def test_a_metadata_table_that_cannot_be_tended_holds_up_nothing(
    driver: Callable[..., Driver], caplog: pytest.LogCaptureFixture
) -> None:
    made = driver({"hoodie.write.lock.client.num_retries": "2"})
    made.run("t1", rows=1)
    lock = made.path / ".hoodie" / "lock"
    lock.touch()
    with caplog.at_level("WARNING"):
        assert made.table.sweep(grace_ms=0).removed == 0
    assert "its metadata table could not be compacted" in caplog.text
    lock.unlink()
    made.run("t2", rows=1)


def commits_in(timeline: Path) -> list[str]:
    """Completed commits; of a metadata table these are its compactions."""
    return [entry.name for entry in timeline.iterdir() if entry.name.endswith(".commit")]


def assert_rows(spark: SparkSession, path: Path, rows: int) -> None:
    """Spark with the metadata table and without, and a reader that is not Hudi's own, see the same."""
    keys = sorted(f"e{row}" for row in range(rows))
    for table in ("true", "false"):
        read = spark.read.format("hudi").option("hoodie.metadata.enable", table).load(str(path))
        assert sorted(row[0] for row in read.select("event_id").collect()) == keys
    batches = HudiTableBuilder.from_base_uri(str(path)).build().read()
    assert sorted(str(key) for batch in batches for key in batch["event_id"].to_pylist()) == keys


# --- foreign writers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [("event_id",), ()], ids=["keyed", "keyless"])
def test_a_foreign_sql_insert_shares_the_table_and_its_layout(
    spark: SparkSession, driver: Callable[..., Driver], key: tuple[str, ...]
) -> None:
    made = driver({}, key=key)
    made.run("t1", rows=2)
    name = f"shared_{len(key)}"
    spark.sql(f"CREATE TABLE {name} USING hudi LOCATION '{made.path}'")
    for option, value in FOREIGN.items():
        spark.sql(f"SET {option}={value}")
    try:
        spark.sql(
            f"INSERT INTO {name} (event_id, amount, _kafka_topic, _kafka_partition, _kafka_offset, "
            "_kafka_timestamp, day) "
            "VALUES ('f1', 1.0D, 'events', 0, 100, timestamp'2026-01-01 00:00:00', 'a')"
        )
    finally:
        for option in FOREIGN:
            spark.conf.unset(option)
    rows = spark.sql(f"SELECT _hoodie_record_key, _hoodie_partition_path, event_id FROM {name}").collect()
    assert {row[1] for row in rows} == {"a"}
    assert {row[2] for row in rows} == {"e0", "e1", "f1"}
    if key:
        assert all(row[0] == row[2] for row in rows)
    instant = made.begin("t2")
    commit = made.planned("t2", instant, 2, made.write(instant, 2, first=2))
    with pytest.raises(Unavailable, match="which this commit is to say as well"):
        made.table.commit(commit, fence=accept)
    made.table.commit(commit, fence=accept)
    made.run("t3", rows=2)
    assert len(rows_in(spark, made.path)) == 7


# --- the watchdog -------------------------------------------------------------------------------------

CHILD = """
import os, signal, subprocess, sys, threading, time
from table.hudi.driver.held import SLOT, page_file
from table.hudi.driver.watchdog import CLOCK, LOCK_MARGIN_S, Watchdog
jvm = subprocess.Popen(["sleep", "300"])
if sys.argv[1] == "frozen":  # Python's stderr leads through the JVM: nobody reads it, and it is full
    unread, log = os.pipe()
    os.set_blocking(log, False)
    os.write(log, bytes(1 << 20))
    os.set_blocking(log, True)
    os.dup2(log, 2)
slow = sys.argv[1] == "slow"  # who is to live is not to be taken for mute where the machine is busy
dog = Watchdog(jvm.pid, silence_s=8 if slow else 2, callback_s=2)
mode = sys.argv[1]
if mode == "closed":
    with dog.armed(), dog.inside():
        pass
    guardian = dog._guardian.pid
    dog.close()
    print(jvm.pid, guardian, flush=True)
elif mode == "frozen":  # in a lock that lives for 23 s, which it has shown as a JVM shows it
    with open(page_file().path, "r+b") as page:
        page.write(SLOT.pack(int(1_000 * time.clock_gettime(CLOCK)), 1_000 * (LOCK_MARGIN_S + 3)))
    os.unlink(page_file().path)  # somebody tidies up
    dog.start()
    jvm.send_signal(signal.SIGSTOP)
    print(jvm.pid, dog._guardian.pid, flush=True)
    time.sleep(300)
else:
    with dog.armed():
        if mode == "hang":
            with dog.inside():
                print(jvm.pid, dog._guardian.pid, flush=True)
                time.sleep(300)
        print(jvm.pid, dog._guardian.pid, flush=True)
        time.sleep(10 if slow else 300)
    print("alive", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def child() -> Iterator[Callable[[str], tuple[subprocess.Popen[str], int, int]]]:
    """Starts a process with a watchdog and a stand-in for the JVM; gives (process, JVM pid, guardian pid)."""
    started: list[tuple[subprocess.Popen[str], int]] = []

    def start(mode: str) -> tuple[subprocess.Popen[str], int, int]:
        process = subprocess.Popen(
            [sys.executable, "-c", CHILD, mode],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        jvm, guardian = (int(pid) for pid in process.stdout.readline().split())
        started.append((process, jvm))
        return process, jvm, guardian

    yield start
    for process, jvm in started:
        process.kill()
        process.wait()
        if is_running(jvm):
            os.kill(jvm, signal.SIGKILL)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def await_gone(pid: int, *, within_s: float = 60.0) -> None:
    deadline = time.monotonic() + within_s
    while is_running(pid):
        assert time.monotonic() < deadline, f"process {pid} is still there"
        time.sleep(0.05)


def test_a_python_that_is_stopped_while_the_jvm_may_hold_the_lock_is_killed_with_it(
    child: Callable[[str], tuple[subprocess.Popen[str], int, int]],
) -> None:
    process, jvm, guardian = child("stopped")
    process.send_signal(signal.SIGSTOP)
    assert process.wait(timeout=60) == -signal.SIGKILL
    await_gone(jvm)
    await_gone(guardian)


def test_a_callback_that_hangs_is_killed_with_its_jvm(
    child: Callable[[str], tuple[subprocess.Popen[str], int, int]],
) -> None:
    process, jvm, guardian = child("hang")
    assert process.wait(timeout=60) == -signal.SIGKILL
    await_gone(jvm)
    await_gone(guardian)


def test_a_jvm_that_is_stopped_behind_the_check_is_killed_with_its_python_before_the_lock_expires(
    child: Callable[[str], tuple[subprocess.Popen[str], int, int]],
) -> None:
    process, jvm, guardian = child("frozen")
    assert process.wait(timeout=20) == -signal.SIGKILL
    await_gone(jvm)
    await_gone(guardian)
    assert process.stderr is not None
    assert "the JVM has held the table lock for" in process.stderr.read()


def test_a_python_that_lives_is_left_alone_however_long_hudi_waits_for_the_lock(
    child: Callable[[str], tuple[subprocess.Popen[str], int, int]],
) -> None:
    process, jvm, guardian = child("slow")
    assert process.stdout is not None and process.stdout.readline() == "alive\n"
    assert is_running(jvm)
    process.kill()
    process.wait()
    await_gone(guardian)
    assert is_running(jvm), "the end of Python alone is no reason to kill"


def test_a_closed_watchdog_leaves_no_process(
    child: Callable[[str], tuple[subprocess.Popen[str], int, int]],
) -> None:
    _, jvm, guardian = child("closed")
    await_gone(guardian)
    assert is_running(jvm)
