"""Small files that are copied together and table partitions that go out of the table, in S3: real Spark, real
Hudi, a real server; and what a driver leaves of it that died at any step.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from control_topic.messages import DataFile
from table.errors import TableError, Unavailable
from table.hudi.driver.session import Session
from table.hudi.files.base_file import KeyRange, create_marker, create_partition, file_name, new_file_id
from table.hudi.upkeep import clustering, plans, retention
from table.hudi.upkeep.cleaning import Cleaning
from table.hudi.upkeep.clustering import Clustering, Planned
from table.hudi.upkeep.due import Done
from table.hudi.upkeep.retention import Retention
from table.store.port import Store
from tests.integration import test_s3_table
from tests.integration.clusterings import COPIED
from tests.integration.test_hudi_table import PIPELINE
from tests.integration.test_retention import NEW, OLD, OLDER, keys
from tests.integration.test_s3_table import S3Driver, TablePlace

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("s3")]
place = test_s3_table.place

RETAINED = {"hoodie.clean.commits.retained": "1"}


class There(S3Driver):
    """Its transactions write into the table partition of a day, and no service of its own is at work."""

    day = NEW

    def run_in(self, day: str, number: int) -> str:
        """Four rows."""
        self.day = day
        return str(self.run(f"t{number}", rows=4))

    def write(self, instant: str, rows: int, *, first: int = 0) -> DataFile:
        file_id = new_file_id(uuid.uuid4())
        name = file_name(file_id, "0-0-0", instant)
        create_partition(self.store, instant, self.day)
        create_marker(self.store, instant, self.day, name)
        made = self.rows(instant, name, rows, first)
        for column in ("_hoodie_partition_path", "day"):
            at = made.schema.get_field_index(column)
            made = made.set_column(at, made.schema.field(at), pa.array([self.day] * rows, pa.string()))
        found = KeyRange()
        found.add(made["_hoodie_record_key"])
        buffer = pa.BufferOutputStream()
        with pq.ParquetWriter(buffer, made.schema, store_schema=False) as writer:
            writer.write_table(made)
            writer.add_key_value_metadata(found.footers())
        data = buffer.getvalue().to_pybytes()
        self.store.put(f"{self.day}/{name}", data)
        return DataFile(
            path=f"{self.day}/{name}",
            body=file_id,
            table_partition=self.day,
            rows=rows,
            size_bytes=len(data),
        )


@pytest.fixture
def there(spark: SparkSession, place: TablePlace) -> Iterator[Callable[..., There]]:
    with ExitStack() as closing:

        def make(**changes: Any) -> There:
            made = There(spark, place, services=False, retention_ms=90 * 86_400_000, **changes)
            closing.callback(made.table.close)
            return made

        yield make


def rows(spark: SparkSession, place: TablePlace) -> list[str]:
    spark.catalog.clearCache()
    return sorted(row[0] for row in spark.read.format("hudi").load(place.path).select("event_id").collect())


def names(store: Store, day: str) -> set[str]:
    return {name for name in store.names(day) if name.endswith(".parquet")}


# --- what is past its time ----------------------------------------------------------------------------


def retain(made: There, session: Session | None = None) -> Done | None:
    work = Retention(made.spec, PIPELINE)
    return work.run(session or work.open(made.table._session_beside), lambda _doing: None)


def test_what_is_past_its_time_goes_out_and_its_files_later(
    there: Callable[..., There], spark: SparkSession, place: TablePlace
) -> None:
    made = there(properties=RETAINED)
    for number, day in enumerate((OLDER, NEW, OLD)):
        made.run_in(day, number)
    before = names(place.direct, OLD)
    done = retain(made)
    assert done is not None and done.what == "2 table partitions taken out, of 2 file groups"
    assert rows(spark, place) == keys(1) and names(place.direct, OLD) == before
    made.run_in(OLD, 3)
    for number in (4, 5):
        made.run_in(NEW, number)
    assert rows(spark, place) == keys(1, 3, 4, 5)
    cleaning = Cleaning(made.spec)
    assert cleaning.run(cleaning.open(made.table._session_beside), lambda _doing: None) is not None
    assert not before & names(place.direct, OLD) and len(names(place.direct, OLD)) == 1
    assert rows(spark, place) == keys(1, 3, 4, 5)
    assert made.table.sweep(grace_ms=0).removed == 0


@pytest.mark.parametrize("step", ["requested", "noted", "inflight", "checked"])
def test_what_a_driver_leaves_that_died_as_it_took_table_partitions_out_is_taken_away_and_done_anew(
    there: Callable[..., There],
    spark: SparkSession,
    place: TablePlace,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
) -> None:
    made = there()
    made.run_in(OLD, 0)
    made.run_in(NEW, 1)
    dead, successor = (Retention(made.spec, PIPELINE).open(made.table._session_beside) for _ in range(2))
    instant = retention.request(dead, PIPELINE)

    hurt = {
        "noted": (dead, "keep_alive"),
        "inflight": (retention, "file_groups"),
        "checked": (retention, "_check"),
    }
    if step != "requested":
        monkeypatch.setattr(*hurt[step], _dies)
        with pytest.raises(TableError):
            retention.take_out(dead, PIPELINE, instant, [OLD])
        monkeypatch.undo()
    made.run_in(OLD, 2)
    assert retention.tidy(successor, PIPELINE).taken == [instant]
    assert rows(spark, place) == keys(0, 1, 2)
    done = retain(made, successor)
    assert done is not None and done.instant > instant
    made.run_in(NEW, 3)
    assert rows(spark, place) == keys(1, 3)


# --- small files --------------------------------------------------------------------------------------


class Copying:
    """The clustering of a driver, which copies files however small."""

    def __init__(self, made: There) -> None:
        self.work = Clustering(replace(made.spec, clustering_files=2), PIPELINE)
        self.session = self.work.open(made.table._session_beside)
        self.work.tidy(self.session)
        self.work._choose(self.session, copied=True)

    def plan(self) -> Planned:
        planned = clustering.plan(self.session, PIPELINE)
        assert planned is not None and planned.copied
        return planned


def copies(store: Store, instant: str) -> list[str]:
    """The files of a clustering, each of which is a copy."""
    found = [f"{NEW}/{name}" for name in names(store, NEW) if name.endswith(f"_{instant}.parquet")]
    for path in found:
        with store.source(path) as file:
            assert COPIED in (pq.read_metadata(file).metadata or {})
    return found


@pytest.mark.parametrize("step", ["planned", "begun", "written"])
def test_what_a_driver_leaves_that_died_as_it_copied_files_is_taken_away_and_done_anew(
    there: Callable[..., There],
    spark: SparkSession,
    place: TablePlace,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
) -> None:
    made = there()
    for number in range(3):
        made.run_in(NEW, number)
    dead = Copying(made)
    planned = dead.plan()
    if step == "begun":
        plans.begin(dead.session, clustering.ACTION, planned.instant)
    if step == "written":
        with monkeypatch.context() as patched, pytest.raises(TableError):
            patched.setattr(clustering, "check", _dies)
            clustering.carry_out(dead.session, planned)
    assert len(copies(place.direct, planned.instant)) == (step == "written")
    made.run_in(NEW, 3)
    assert rows(spark, place) == keys(0, 1, 2, 3)

    successor = Copying(made)
    assert copies(place.direct, planned.instant) == []
    assert rows(spark, place) == keys(0, 1, 2, 3)
    again = successor.plan()
    assert again.files == 4
    clustering.carry_out(successor.session, again)
    (copy,) = copies(place.direct, again.instant)
    assert rows(spark, place) == keys(0, 1, 2, 3)
    late_copies_go(made, place.direct, copy, [planned.instant, again.instant])
    made.run_in(NEW, 4)
    assert rows(spark, place) == keys(0, 1, 2, 3, 4)


def _dies(*_: object, **__: object) -> None:
    raise Unavailable("the driver is gone at this moment")


def late_copies_go(made: There, store: Store, copy: str, instants: list[str]) -> None:
    """Of an executor that was taken for lost, for what was taken away and for what is complete."""
    with store.source(copy) as file:
        data = file.read()
    before = names(store, NEW)
    for instant in instants:
        store.put(f"{NEW}/{uuid.uuid4()}-0_0-1-2_{instant}.parquet", data)
    assert made.table.sweep(grace_ms=0).removed == len(instants)
    assert names(store, NEW) == before
