"""What every kind of table promises, asked through `table.port` alone: driver, workers and readers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from control_topic.clocks import wall_ms
from control_topic.messages import DataFile, Range, SourcePartition
from lockstep.verify import verify_table
from table.errors import Contradiction, Refused, StorageError
from table.instants import Instant, MissingTable
from table.kinds import table_kind
from table.port import INSTANT, Commit, TableLayout, TableSpec, TransactionalTable, Written
from table.rows import Rows
from table.schema import parse_ddl, record_schema
from table.state import TableState
from tests.conformance.table_sides import accept, answer

SOURCE = SourcePartition("events", 0)
DDL = "id STRING, amount DOUBLE, day STRING"
DAYS = ("a", "b")
WORKER: Mapping[str, Any] = {"incarnation": "cafe", "pending_bytes_max": 64 << 20, "held_bytes_max": 8 << 20}


class NoLog:
    """Where nothing is missing, nobody is asked."""

    def look(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("a row is missing")


@dataclass(kw_only=True)
class Site:
    """A place where a table of one kind is, and what comes there. `properties`: of the kind's own."""

    kind_name: str
    path: str
    spark: SparkSession
    opened: ExitStack
    properties: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.kind = table_kind(self.kind_name)
        self.spec = TableSpec(
            path=self.path,
            name="events",
            mode="insert",
            ddl=DDL,
            key_fields=("id",),
            partition_fields=("day",),
            properties=self.properties,
        )

    def reader(self) -> Any:
        return self.kind.reader(self.path)

    def driver(self, pipeline: str = "events", **changes: Any) -> Driver:
        table = self.kind.committer(self.spark, replace(self.spec, **changes), pipeline)
        self.opened.callback(table.close)
        return Driver(site=self, table=table, pipeline=pipeline)

    def in_table(self) -> list[tuple[str, int | None]]:
        """(instant, offset) per row."""
        rows = self.reader().rows()
        found = []
        for file in rows.files:
            for batch in file.batches:
                offsets = batch["_kafka_offset"].to_pylist() if rows.kafka_columns else [None] * len(batch)
                found += zip(batch[INSTANT].to_pylist(), offsets, strict=True)
        return sorted(found)


@dataclass(kw_only=True)
class Driver:
    site: Site
    table: TransactionalTable
    pipeline: str
    layout: TableLayout = field(init=False)

    def __post_init__(self) -> None:
        self.layout = self.table.open()

    def begin(self, transaction: str) -> str:
        return self.table.begin(run="run", transaction=transaction)

    def files(self, slot: int = 0) -> Any:
        """A worker's half, in what comes from the driver's as it comes through the wire."""
        layout = TableLayout(**json.loads(json.dumps(asdict(self.layout))))
        kind = table_kind(layout.kind)
        return kind.files(
            layout=replace(layout, key_fields=tuple(layout.key_fields)),
            slot=slot,
            **WORKER,
        )

    def write(self, instant: str, count: int, *, first: int = 0, slot: int = 0) -> tuple[DataFile, ...]:
        """A worker's files of so many records."""
        files = self.files(slot)
        writer = files.writer(instant, lambda _: None)
        writer.write(files.shape(records(count, first=first)))
        closed: tuple[DataFile, ...] = writer.close()
        return closed

    def planned(self, transaction: str, instant: str, count: int, files: Sequence[DataFile] = ()) -> Commit:
        newest = self.table.newest()
        expected = dict(newest.offsets) if newest is not None else {}
        start = expected.get(SOURCE, 0)
        state = TableState(
            pipeline=self.pipeline,
            run="run",
            epoch=1,
            transaction=transaction,
            offsets={SOURCE: start + count},
            ranges=(Range(partition=SOURCE, start=start, next=start + count, records=count),),
        )
        return Commit(instant=instant, expected=expected, state=state, files=files)

    def genesis(self) -> None:
        """The first commit of a pipeline: where it begins to read."""
        instant = self.begin("genesis")
        state = replace(self.planned("genesis", instant, 0).state, kind="genesis", ranges=())
        self.table.commit(Commit(instant=instant, expected={}, state=state, files=()), fence=accept)

    def run(self, transaction: str, count: int = 0, *, first: int = 0) -> str:
        instant = self.begin(transaction)
        files = self.write(instant, count, first=first) if count else ()
        self.table.commit(self.planned(transaction, instant, count, files), fence=accept)
        return instant


def records(count: int, *, first: int = 0, **columns: Sequence[Any]) -> Rows:
    """So many records, those at even offsets of day a and the others of day b."""
    offsets = np.arange(first, first + count, dtype=np.int64)
    values: dict[str, Sequence[Any]] = {
        "id": [f"e{offset}" for offset in offsets],
        "amount": [0.5] * count,
        "day": [DAYS[offset % 2] for offset in offsets],
        **columns,
    }
    types = [pa.string(), pa.float64(), pa.string()]
    table = pa.table(
        {name: pa.array(column, kind) for (name, column), kind in zip(values.items(), types, strict=True)}
    )
    return Rows(source=SOURCE, length=count, columns=table, offsets=offsets, timestamps_ms=offsets)


class TableKindPromises:
    """A kind passes when a subclass with a fixture `site` does."""

    # --- the table ------------------------------------------------------------------------------------

    def test_a_missing_table_is_told_from_one_that_is_empty(self, site: Site) -> None:
        with pytest.raises(MissingTable):
            site.reader()
        assert site.driver().layout.created
        assert site.in_table() == [] and site.reader().newest("events") is None
        assert not site.driver().layout.created

    def test_a_place_is_tried_before_a_table_is_there_and_none_is_made(self, site: Site) -> None:
        table = site.kind.committer(site.spark, site.spec, "events")
        site.opened.callback(table.close)
        table.reach()
        with pytest.raises(MissingTable):
            site.reader()

    def test_a_layout_says_what_the_specification_asks_for_and_names_its_kind(self, site: Site) -> None:
        layout = site.driver().layout
        assert layout.kind == site.kind_name
        assert (layout.key_fields, layout.partition_fields, layout.mode) == (("id",), ("day",), "insert")
        assert layout.path and layout.kafka_columns and layout.ddl == DDL

    def test_a_table_of_another_key_or_partitioning_is_refused(self, site: Site) -> None:
        site.driver()
        for changed in ({"key_fields": ("day",)}, {"partition_fields": ()}):
            table = site.kind.committer(site.spark, replace(site.spec, **changed), "events")
            site.opened.callback(table.close)
            with pytest.raises(Contradiction):
                table.open()

    def test_rows_by_a_function_of_a_field_are_in_their_own_files(self, site: Site) -> None:
        by = {"partition_fields": ("day", "half"), "partition_terms": ("truncate(1, id) as half",)}
        driver = site.driver(**by)
        assert driver.files().schema.names[3] == "half"
        driver.run("t1", 4)
        assert "half" in site.reader().columns().names and len(site.in_table()) == 4
        table = site.kind.committer(site.spark, replace(site.spec, **{**by, "partition_terms": ()}), "events")
        site.opened.callback(table.close)
        with pytest.raises(Contradiction):
            table.open()

    def test_a_mode_that_the_kind_has_not_is_refused(self, site: Site) -> None:
        assert "insert" in site.kind.modes
        if "upsert" not in site.kind.modes:
            with pytest.raises(Refused):
                site.driver(mode="upsert")

    def test_a_column_that_is_added_is_null_in_the_rows_before_it(self, site: Site) -> None:
        site.driver().run("t1", 2)
        later = site.driver(ddl=f"{DDL}, note STRING")
        assert later.files().schema.names[:4] == ["id", "amount", "day", "note"]
        assert len(site.in_table()) == 2

    def test_columns_that_a_worker_meets_come_with_the_commit_of_its_rows_and_stay(self, site: Site) -> None:
        """Within a transaction, beside older rows of its own and of another worker."""
        driver = site.driver(follows=True)
        driver.genesis()
        wide, instant = f"{DDL}, note STRING", driver.begin("t1")
        files = driver.files()
        writer = files.writer(instant, lambda _: None)
        writer.write(files.shape(records(2)))
        wider = files.widened(parse_ddl(wide))
        writer.widen(wider)
        newer = records(2, first=2)
        newer = replace(newer, columns=newer.columns.append_column("note", pa.array(["x", None])))
        writer.write(wider.shape(newer))
        writer.write(files.shape(records(2, first=4)))
        closed = (*writer.close(), *driver.write(instant, 2, first=6, slot=1))
        assert "note" not in site.reader().columns().names
        commit = replace(driver.planned("t1", instant, 8, closed), columns={wide: "schema 2"})
        driver.table.commit(commit, fence=accept)
        assert record_schema(site.reader().columns()).names == ["id", "amount", "day", "note"]
        assert [offset for _, offset in site.in_table()] == list(range(8))
        driver.run("t2", 2, first=8)
        assert "note" in site.reader().columns().names
        assert parse_ddl(site.driver(follows=True).layout.ddl) == parse_ddl(wide)
        with pytest.raises(Contradiction):
            site.driver()

    def test_columns_that_no_table_can_have_are_not_committed(self, site: Site) -> None:
        driver = site.driver(follows=True)
        driver.genesis()
        instant = driver.begin("t1")
        commit = replace(driver.planned("t1", instant, 0), columns={"id STRING, amount BOOLEAN": "schema 9"})
        with pytest.raises(Contradiction, match=r"field amount is DOUBLE and would be BOOLEAN.*schema 9"):
            driver.table.commit(commit, fence=accept)
        assert driver.table.roll_back(instant)
        driver.run("t2", 2)
        assert len(site.in_table()) == 2

    # --- transactions ---------------------------------------------------------------------------------

    def test_rows_are_there_once_their_instant_is_complete_and_not_before(self, site: Site) -> None:
        driver = site.driver()
        driver.genesis()
        instant = driver.begin("t1")
        files = driver.write(instant, 5)
        assert site.in_table() == []
        driver.table.commit(driver.planned("t1", instant, 5, files), fence=accept)
        assert site.in_table() == [(instant, offset) for offset in range(5)]
        second = driver.run("t2", 3, first=5)
        assert site.in_table()[5:] == [(second, offset) for offset in (5, 6, 7)]

    def test_several_workers_write_to_one_transaction(self, site: Site) -> None:
        driver = site.driver()
        instant = driver.begin("t1")
        files = (*driver.write(instant, 3), *driver.write(instant, 4, first=3, slot=1))
        assert len({file.path for file in files}) == len(files) == 4
        driver.table.commit(driver.planned("t1", instant, 7, files), fence=accept)
        assert [offset for _, offset in site.in_table()] == list(range(7))

    def test_a_transaction_without_rows_is_a_commit_like_others(self, site: Site) -> None:
        driver = site.driver()
        instant = driver.run("t1")
        newest = driver.table.newest()
        assert newest is not None and (newest.transaction, newest.instant) == ("t1", instant)
        assert site.in_table() == []

    def test_what_is_rolled_back_leaves_no_row_and_cannot_be_committed(self, site: Site) -> None:
        driver = site.driver()
        instant = driver.begin("t1")
        planned = driver.planned("t1", instant, 3, driver.write(instant, 3))
        assert driver.table.roll_back(instant) is True
        assert answer(lambda: driver.table.commit(planned, fence=accept)) == "Refused"
        assert site.in_table() == [] and driver.table.unfinished() == []
        assert driver.begin("t1") > instant

    def test_the_fence_and_the_offsets_decide_under_the_lock(self, site: Site) -> None:
        driver = site.driver()
        driver.run("t1", 2)
        instant = driver.begin("t2")
        files = driver.write(instant, 1, first=2)
        planned = driver.planned("t2", instant, 1, files)
        asked: list[TableState | None] = []

        def objects(newest: TableState | None) -> str:
            asked.append(newest)
            return "the epoch is stale"

        assert answer(lambda: driver.table.commit(planned, fence=objects)) == "Refused"
        assert [one.transaction for one in asked if one is not None] == ["t1"]
        behind = replace(planned, expected={SOURCE: 1})
        assert answer(lambda: driver.table.commit(behind, fence=accept)) == "Refused"
        driver.table.commit(planned, fence=accept)
        driver.table.commit(planned, fence=objects)  # which is done: a repeat, and nobody is asked
        assert len(site.in_table()) == 3

    def test_a_file_that_is_not_there_is_not_committed(self, site: Site) -> None:
        driver = site.driver()
        instant = driver.begin("t1")
        files = driver.write(instant, 2)
        missing = replace(files[0], path=files[0].path.replace(instant, f"{int(instant) + 1:017d}"))
        planned = driver.planned("t1", instant, 2, (missing, *files[1:]))
        assert answer(lambda: driver.table.commit(planned, fence=accept)) == "Refused"

    def test_a_file_of_another_size_or_with_other_rows_is_not_committed(self, site: Site) -> None:
        driver = site.driver()
        instant = driver.begin("t1")
        first, *rest = driver.write(instant, 4)
        for changed in (replace(first, rows=first.rows + 1), replace(first, size_bytes=first.size_bytes + 1)):
            planned = driver.planned("t1", instant, 4, (changed, *rest))
            assert answer(lambda planned=planned: driver.table.commit(planned, fence=accept)) == "Refused"

    def test_pipelines_of_one_table_do_not_see_each_other(self, site: Site) -> None:
        ours, theirs = site.driver(), site.driver("another")
        ours.run("t1", 2)
        open_one = theirs.begin("n1")
        assert ours.table.unfinished() == [] and theirs.table.newest() is None
        assert [one.instant for one in theirs.table.unfinished()] == [open_one]
        assert theirs.table.find("t1") is None
        assert answer(lambda: ours.table.roll_back(open_one)) == "Refused"

    # --- workers --------------------------------------------------------------------------------------

    def test_a_row_without_a_key_is_refused_by_its_place_and_the_others_are_written(self, site: Site) -> None:
        driver = site.driver()
        files = driver.files()
        shaped = files.shape(records(3, id=["e0", None, "e2"]))
        assert (shaped.count, list(shaped.refused)) == (2, [1])
        assert shaped.nbytes > 0
        instant = driver.begin("t1")
        writer = files.writer(instant, lambda _: None)
        writer.write(shaped)
        closed = writer.close()
        assert sum(file.rows for file in closed) == 2
        planned = driver.planned("t1", instant, 2, closed)
        driver.table.commit(planned, fence=accept)
        assert [offset for _, offset in site.in_table()] == [0, 2]

    def test_each_table_partition_has_files_of_its_own(self, site: Site) -> None:
        driver = site.driver()
        files = driver.write(driver.begin("t1"), 5)
        assert sorted((file.table_partition, file.rows) for file in files) == [("a", 3), ("b", 2)]
        assert all(file.size_bytes > 0 and file.deletes == 0 for file in files)

    def test_a_writer_tells_each_step_and_what_is_raised_there_ends_it(self, site: Site) -> None:
        driver = site.driver()
        files, told = driver.files(), []
        writer = files.writer(driver.begin("t1"), told.append)
        writer.write(files.shape(records(6)))
        closed = writer.close()
        assert all(isinstance(one, Written) for one in told)
        assert [one.steps for one in told] == sorted({one.steps for one in told})
        assert told[-1].files == len(closed) and writer.upload_s >= 0

        def enough(_: Written) -> None:
            raise StorageError("given up")

        given_up = files.writer(driver.begin("t2"), enough)
        with pytest.raises(StorageError, match="given up"):
            given_up.write(files.shape(records(6)))
            given_up.close()
        given_up.discard()

    def test_what_is_discarded_is_in_no_table(self, site: Site) -> None:
        driver = site.driver()
        files = driver.files()
        instant = driver.begin("t1")
        writer = files.writer(instant, lambda _: None)
        writer.write(files.shape(records(4)))
        writer.discard()
        driver.table.commit(driver.planned("t1", instant, 0), fence=accept)
        assert site.in_table() == []
        assert driver.table.sweep(grace_ms=0).removed == 0, "nothing is left to sweep"

    def test_what_a_dead_worker_left_is_swept_and_what_is_open_stays(self, site: Site) -> None:
        driver = site.driver()
        done = driver.run("t1", 2)
        driver.write(done, 2, first=7, slot=3)
        left = driver.begin("t2")
        files = driver.write(left, 2, first=2)
        assert driver.table.sweep(grace_ms=3_600_000).removed == 0
        assert driver.table.sweep(grace_ms=0).removed == 2
        driver.table.commit(driver.planned("t2", left, 2, files), fence=accept)
        assert [offset for _, offset in site.in_table()] == [0, 1, 2, 3]

    # --- readers --------------------------------------------------------------------------------------

    def test_a_reader_says_what_the_driver_says(self, site: Site) -> None:
        driver = site.driver()
        driver.run("t1", 2)
        done = driver.run("t2", 3, first=2)
        left = driver.begin("t3")
        reader = site.reader()
        newest = driver.table.newest()
        assert newest is not None and reader.newest("events") == newest == driver.table.find("t2")
        instant = reader.newest_instant("events")
        assert isinstance(instant, Instant) and (instant.requested, instant.state) == (done, newest)
        assert sum(file.rows for file in instant.files) == 3 and instant.writes
        assert [one.state.transaction for one in reader.completed() if one.state] == ["t2", "t1"]
        (pending,) = reader.pending()
        assert (pending.requested, pending.phase, dict(pending.owner)) == (
            *(left, "inflight"),
            {"pipeline": "events", "run": "run", "transaction": "t3"},
        )
        assert reader.newest("another") is None and reader.newest_instant("another") is None
        assert reader.mode == "insert" and reader.damage() == ""

    def test_a_reader_finds_what_the_newest_commit_says_by_a_name(self, site: Site) -> None:
        driver = site.driver()
        driver.run("t1", 2)
        done = driver.run("t2", 3, first=2)
        name = "lockstep.transaction"
        assert site.reader().said({name, "nobody.says"}) == (done, {name: "t2"})
        assert site.reader().said({"nobody.says"}) == ("", {})

    def test_a_census_counts_what_is_committed_and_looks_again_only_where_that_has_changed(
        self, site: Site
    ) -> None:
        def take(unless: str | None = None, files_max: int = 1_000) -> Any:
            return census.take(unless=unless, files_max=files_max, enough=lambda: False)

        census = site.kind.census(site.spec)
        with pytest.raises(MissingTable):
            take()
        driver = site.driver()
        instant = driver.begin("t1")
        files = driver.write(instant, 5)
        assert take().files.files == 0
        driver.table.commit(driver.planned("t1", instant, 5, files), fence=accept)
        first = take()
        assert (first.files.files, first.files.size_bytes) == (2, sum(file.size_bytes for file in files))
        assert first.files.is_whole and first.files.small_files == first.files.table_partitions == 2
        assert first.files.small_below_bytes == site.spec.target_file_bytes // 2
        assert sorted(one.path for one in first.files.worst) == ["a", "b"]
        assert [one.name for one in first.schema.columns][:3] == ["id", "amount", "day"]
        left = driver.begin("t2")
        driver.write(left, 3, first=5)
        assert take(first.as_of) is None, "nothing is complete that was not"
        driver.table.roll_back(left)
        driver.run("t3", 4, first=5)
        second = take(first.as_of)
        assert second.files.files == 4 and second.as_of != first.as_of
        assert not take(files_max=1).files.is_whole

    def test_instants_are_named_by_the_clock(self, site: Site) -> None:
        driver, reader_ms = site.driver(), []
        before_ms = wall_ms()
        for number in range(3):
            driver.run(f"t{number}")
        after_ms = wall_ms()
        reader = site.reader()
        for one in reader.completed():
            reader_ms += [reader.time_ms(one.completed), reader.time_ms(one.requested)]
        assert reader_ms == sorted(reader_ms, reverse=True)
        assert before_ms - 1_000 <= min(reader_ms) and max(reader_ms) <= after_ms + 1_000

    def test_a_verification_counts_every_row_once(self, site: Site) -> None:
        driver = site.driver()
        driver.genesis()
        driver.run("t1", 4)
        driver.run("t2", 5, first=4)
        report = verify_table(site.path, "events", NoLog(), kind=site.kind_name)
        assert (report.exact, report.rows, report.commits) == (True, 9, 3)

    def test_a_verification_sees_what_is_there_twice_or_missing(self, site: Site) -> None:
        driver = site.driver()
        instant = driver.begin("t1")
        files = (*driver.write(instant, 3), *driver.write(instant, 2, slot=1))
        driver.table.commit(driver.planned("t1", instant, 5, files), fence=accept)

        class Full:
            """Every offset that is looked up is a record."""

            def look(self, partition: Any, missing: Any, **_: Any) -> Any:
                raise LookupError(f"{partition} {missing}")

        with pytest.raises(LookupError, match=r"events.*3"):
            verify_table(site.path, "events", Full(), kind=site.kind_name)

    def test_without_kafka_columns_rows_say_their_instant(self, site: Site) -> None:
        driver = site.driver(kafka_columns=False)
        instant = driver.run("t1", 3)
        assert driver.files().schema.names == ["id", "amount", "day"]
        assert site.in_table() == [(instant, None)] * 3
        report = verify_table(site.path, "events", NoLog(), kind=site.kind_name)
        assert (report.rows, report.missing, report.unexpected) == (3, 0, 0)

    # --- what is beside -------------------------------------------------------------------------------

    def test_those_who_write_beside_us_are_told_what_to_know(self, site: Site) -> None:
        others = site.kind.other_writers(site.spec)
        assert bool(others.advice) == bool(others.settings)

    def test_upkeep_may_be_asked_for_at_any_time(self, site: Site) -> None:
        driver = site.driver()
        driver.table.tend()
        driver.run("t1", 1)
        driver.table.tend()
        assert all(one.failures == 0 for one in driver.table.services())
        assert driver.table.compare_clocks()


def sites(
    kind_name: str, place: str, spark: SparkSession, properties: Mapping[str, str] | None = None
) -> Iterator[Site]:
    """For a fixture `site`; ends what was opened."""
    with ExitStack() as opened:
        yield Site(kind_name=kind_name, path=place, spark=spark, opened=opened, properties=properties or {})
