"""A schema that changes within a transaction: workers' planes on real files, Hudi's commit, its readers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hudi import HudiTableBuilder
from pyspark.sql import SparkSession

from control_topic.messages import Range, SourcePartition
from participant import events as ev
from participant.records.changes import EVOLVE
from participant.records.port import RecordSpec
from participant.records.raw import RawBatch, Values
from participant.records.registry.settings import RegistrySettings
from participant.source.fetched import Fetched
from participant.worker.memory import MemoryBudget
from participant.worker.plane import Plane
from participant.worker.stages import stages
from table.errors import Contradiction, Refused, Unavailable
from table.hudi.reader.reader import HudiReader
from table.hudi.table import HudiTable
from table.port import Commit, TableLayout, TableSpec
from table.state import TableState
from tests.avro_types import record, written
from tests.harness import await_that
from tests.integration.planes import NOBODY
from tests.integration.test_upserts import PATIENTLY
from tests.registry_server import Registry

pytestmark = pytest.mark.integration

DDL = "id STRING, region STRING, ts BIGINT, n INT, s STRUCT<x: INT>"
BASE: dict[str, Any] = {"id": "string", "region": "string", "ts": "long"}


def struct(name: str, **fields: Any) -> Any:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": k} for n, k in fields.items()]}


OLD = record({**BASE, "n": "int", "s": struct("s", x="int")})
NEW = record({**BASE, "n": "long", "s": struct("s", x="int", y=["null", "string"]), "note": "string"})
OTHER = record({**BASE, "n": "int", "s": struct("s", x="int"), "more": ["null", "double"]})
CONTRARY = record({**BASE, "n": "int", "s": struct("s", x="int"), "note": "boolean"})
KINDS = {
    "insert": {"mode": "insert", "partition_fields": ("region",)},
    "upsert": {
        "mode": "upsert",
        "partition_fields": ("region",),
        "ordering_field": "ts",
        "bucket_count": 2,
    },
}


def row(key: str, ts: int, **more: Any) -> dict[str, Any]:
    return {"id": key, "region": "a", "ts": ts, "n": ts, "s": {"x": ts}, **more}


class Writing:
    """A worker's plane, of one source partition."""

    def __init__(self, layout: TableLayout, spec: RecordSpec, number: int) -> None:
        self.partition = SourcePartition("events", number)
        self.next = 0
        self._posted: list[Any] = []
        self.written = 0
        memory = MemoryBudget(64_000_000)
        self._plane = Plane(
            stages=stages(
                layout=layout, slot=number, incarnation=f"{number:08d}", memory=memory, record=spec
            ),
            queued_bytes_max=memory.queued_bytes,
            dead_letters=None,
            post=self._posted.append,
            now_ms=lambda: 0,
            callbacks=NOBODY,
        )
        self._plane.start()
        self._plane.order(ev.Rewind(partition=self.partition, offset=0, generation=1))

    def take(self, values: Sequence[bytes]) -> None:
        """Consumed, one batch."""
        offsets = np.arange(self.next, self.next + len(values), dtype=np.int64)
        raw = RawBatch(
            partition=self.partition, offsets=offsets, timestamps_ms=offsets, values=Values.of(list(values))
        )
        self.next += len(values)
        fetched = Fetched(
            partition=self.partition, generation=1, start=int(offsets[0]), next=self.next, raw=raw
        )
        assert self._plane.deliver(fetched)
        self._await(ev.Buffered)

    def open(self, transaction: str, instant: str) -> None:
        self._plane.order(ev.Open(transaction=transaction, instant=instant))

    def write(self, transaction: str) -> None:
        """All that was taken."""
        order = ev.Write(transaction=transaction, partition=self.partition, generation=1, upto=self.next)
        self._plane.order(order)

    def flush(self, transaction: str) -> ev.Flushed:
        self._plane.order(ev.Flush(transaction=transaction, call=1))
        flushed: ev.Flushed = self._await(ev.Flushed)
        return flushed

    def range(self) -> Range:
        """What the transaction has of it."""
        start, self.written = self.written, self.next
        return Range(partition=self.partition, start=start, next=self.next, records=self.next - start)

    def close(self) -> None:
        assert self._plane.stop(30)

    def _await(self, kind: type) -> Any:
        def there() -> list[Any]:
            failed = [one for one in self._posted if isinstance(one, ev.EffectFailed | ev.Blocked)]
            assert not failed, failed
            return [one for one in self._posted if isinstance(one, kind)]

        (found,) = await_that(kind.__name__, there)
        self._posted.clear()
        return found


class Table:
    """A driver's table, and its workers."""

    envelope = "none"

    def __init__(self, spark: SparkSession, path: Path, registry: Registry, kind: str) -> None:
        self.spark, self.path, self.registry = spark, path, registry
        self.spec = self._spec(kind)
        settings = RegistrySettings(url=registry.url, cache_folder=str(path.parent / "schemas"))
        self.record = RecordSpec(
            format="avro",
            key_format="avro",
            envelope=self.envelope,
            registry=settings,
            on_schema_change=EVOLVE,
        )
        self.workers: list[Writing] = []
        self._transactions = 0
        self.open()

    def _spec(self, kind: str) -> TableSpec:
        return TableSpec(
            path=f"file://{self.path}", name="t", ddl=DDL, key_fields=("id",), follows=True, **KINDS[kind]
        )

    def open(self) -> None:
        """A driver begins, with what the table is now, and two workers."""
        self.table = HudiTable(self.spark, self.spec, "t")
        self.layout = self.table.open()
        self.workers = [Writing(self.layout, self.record, number) for number in range(2)]

    def close(self) -> None:
        for worker in self.workers:
            worker.close()
        self.table.close()

    def value(self, text: str, one: dict[str, Any]) -> bytes:
        number = self.registry.known.register("events-value", {"schema": text})
        return b"\0" + number.to_bytes(4, "big") + written(text, one)

    def begin(self) -> tuple[str, str]:
        self._transactions += 1
        transaction = f"t{self._transactions}"
        instant = PATIENTLY(self.table.begin, run="run", transaction=transaction)
        for worker in self.workers:
            worker.open(transaction, instant)
        return transaction, instant

    def end(self, transaction: str, instant: str, meanwhile: Callable[[], object] = lambda: None) -> None:
        flushed = [worker.flush(transaction) for worker in self.workers]
        meanwhile()
        newest = self.table.newest()
        expected = dict(newest.offsets) if newest is not None else {}
        ranges = tuple(worker.range() for worker in self.workers)
        state = TableState(
            pipeline="t",
            run="run",
            epoch=1,
            transaction=transaction,
            offsets={**expected, **{one.partition: one.next for one in ranges}},
            ranges=ranges,
        )
        commit = Commit(
            instant=instant,
            expected=expected,
            state=state,
            files=[file for one in flushed for file in one.files],
            columns={one.columns: one.columns_from for one in flushed if one.columns},
        )
        PATIENTLY(self.table.commit, commit, fence=lambda _newest: "")

    def run(self, *batches: tuple[int, Sequence[tuple[str, dict[str, Any]]]], **more: Any) -> None:
        """A transaction; of each batch the worker's number, and records with their schemas. Each is written
        before the next is taken."""
        transaction, instant = self.begin()
        for number, records in batches:
            worker = self.workers[number]
            worker.take([self.value(text, one) for text, one in records])
            worker.write(transaction)
        self.end(transaction, instant, **more)

    def rows(self) -> dict[str, dict[str, Any]]:
        """By Spark SQL, by either of its readers."""
        found: dict[str, dict[str, Any]] = {}
        setting = "spark.sql.parquet.enableVectorizedReader"
        for vectorized in ("false", "true"):
            self.spark.conf.set(setting, vectorized)
            self.spark.catalog.clearCache()
            read = self.spark.read.format("hudi").load(str(self.path)).collect()
            before, found = found, {one["id"]: one.asDict(recursive=True) for one in read}
            assert len(found) == len(read), "a key is there twice"
            assert vectorized == "false" or before == found
        self.spark.conf.unset(setting)
        return {
            key: {name: value for name, value in one.items() if not name.startswith(("_hoodie", "_kafka"))}
            for key, one in found.items()
        }

    def counted(self) -> int:
        """As `lockstep verify` counts them."""
        files = HudiReader(str(self.path)).rows().files
        return sum(batch.num_rows for file in files for batch in file.batches)

    def rows_without_jvm(self) -> dict[str, dict[str, Any]]:
        """The same by the `hudi` reader."""
        batches = HudiTableBuilder.from_base_uri(str(self.path)).build().read()
        found = [one for batch in batches for one in pa.record_batch(batch).to_pylist()]
        return {
            one["id"]: {n: v for n, v in one.items() if not n.startswith(("_hoodie", "_kafka"))}
            for one in found
        }


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry() as running:
        yield running


@pytest.fixture
def make(spark: SparkSession, tmp_path: Path, registry: Registry) -> Iterator[Callable[[str], Table]]:
    made: list[Table] = []

    def table(kind: str) -> Table:
        made.append(Table(spark, tmp_path / "t", registry, kind))
        return made[-1]

    yield table
    for one in made:
        one.close()


def wide(one: dict[str, Any], **more: Any) -> dict[str, Any]:
    """As the table has it."""
    return {**one, "s": {"y": None, **one["s"]}, "note": None, "more": None, **more} | {
        name: value for name, value in one.items() if name in ("note", "more")
    }


def serve(table: Table, kind: str) -> None:
    """Let Hudi rewrite the files, as Spark SQL does it."""
    if kind == "upsert":
        options = "options => 'hoodie.compact.inline.max.delta.commits=1'"
        call = f"call run_compaction(op => 'scheduleandexecute', path => '{table.path}', {options})"
    else:
        call = f"call run_clustering(path => '{table.path}', order => 'id')"
    assert table.spark.sql(call).collect()


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_a_transaction_in_which_schemas_change_are_read_with_all_their_fields(
    make: Callable[[str], Table], kind: str
) -> None:
    """One worker meets two newer schemas between older records, the other none of them, or a third."""
    table = make(kind)
    table.run((0, [(OLD, row("k0", 1))]), (1, [(OLD, row("k1", 1))]))
    expected = {"k0": row("k0", 1), "k1": row("k1", 1)}
    assert table.rows() == expected

    new = row("k3", 3_000_000_000, note="x", s={"x": 3, "y": "z"})
    table.run(
        (0, [(OLD, row("k2", 2))]),
        (0, [(OLD, row("k2a", 2)), (NEW, new), (OLD, row("k4", 2))]),
        (1, [(OLD, row("k5", 2))]),
        (0, [(OLD, row("k6", 2))]),
        (1, [(OTHER, row("k7", 7, more=0.5)), (OLD, row("k8", 8))]),
    )
    for key in ("k2", "k2a", "k4", "k5", "k6"):
        expected[key] = row(key, 2)
    expected |= {"k3": new, "k7": row("k7", 7, more=0.5), "k8": row("k8", 8)}
    in_full = {key: wide(one) for key, one in expected.items()}
    assert table.rows() == in_full
    if kind == "insert":
        assert table.rows_without_jvm() == in_full

    if kind == "upsert":  # a newer row by an older schema is all of the row
        table.run((1, [(OLD, row("k3", 4_000))]), (0, [(NEW, row("k0", 9, note="y"))]))
        in_full["k0"] = wide(row("k0", 9, note="y"))
        assert table.rows() == in_full, "of two versions the larger ts counts"
    serve(table, kind)
    assert table.rows() == in_full
    assert table.rows_without_jvm() == in_full
    again = [(OLD, row("k5", 10))] if kind == "upsert" else []
    table.run((1, [(OLD, row("k9", 9)), *again]))  # narrower than the files that were made anew
    in_full |= {"k9": wide(row("k9", 9))}
    in_full |= {"k5": wide(row("k5", 10))} if again else {}
    assert table.rows() == in_full
    if kind == "upsert":  # the `hudi` reader stops at a narrower column in a log block, until it is compacted
        with pytest.raises(Unavailable, match="'n' has type Int32"):
            table.counted()
        serve(table, kind)
    assert table.counted() == len(in_full)

    table.close()
    table.open()  # another driver, of the same configuration, whose workers begin with all columns
    at = (table.layout.ddl, table.layout.created)
    assert at[0].endswith("`note` STRING, `more` DOUBLE") and not at[1]


@pytest.mark.parametrize("kind", KINDS)
def test_a_transaction_that_is_given_up_leaves_no_column_and_is_done_again_with_it(
    make: Callable[[str], Table], kind: str
) -> None:
    table = make(kind)
    table.run((0, [(OLD, row("k0", 1))]))
    transaction, instant = table.begin()
    table.workers[0].take([table.value(NEW, row("k1", 2, note="x"))])
    table.workers[0].write(transaction)
    assert table.workers[0].flush(transaction).columns
    assert table.table.roll_back(instant)
    assert set(table.rows()["k0"]) == set(row("", 0))
    fresh = table.workers[0] = Writing(table.layout, table.record, 0)  # as a worker that is replaced
    fresh.next = fresh.written = 1
    table.run((0, [(NEW, row("k1", 2, note="x"))]))
    assert table.rows()["k1"]["note"] == "x"


@pytest.mark.parametrize("kind", KINDS)
def test_a_foreign_writer_may_have_added_the_same_column_or_another(
    spark: SparkSession, make: Callable[[str], Table], kind: str
) -> None:
    table = make(kind)
    table.run((0, [(OLD, row("k0", 1))]))
    name = f"following_{kind}"
    spark.sql(f"create table {name} using hudi location '{table.path}'")
    added = f"alter table {name} add columns (note STRING, theirs INT)"
    try:
        transaction, instant = table.begin()
        table.workers[0].take([table.value(NEW, row("k1", 2, note="x"))])
        table.workers[0].write(transaction)
        with pytest.raises(Refused):  # by Hudi: both have changed them since the instant was opened
            table.end(transaction, instant, meanwhile=lambda: spark.sql(added).collect())
        assert table.table.roll_back(instant)
    finally:
        spark.sql(f"drop table {name}")
    again = table.workers[0] = Writing(table.layout, table.record, 0)
    again.next = again.written = 1
    table.run((0, [(NEW, row("k1", 2, note="x"))]))
    found = table.rows()
    assert (found["k1"]["note"], found["k1"]["theirs"], found["k1"]["s"]) == ("x", None, {"x": 2, "y": None})
    table.run((0, [(OLD, row("k2", 3))]))
    assert set(table.rows()["k2"]) == {*row("", 0), "note", "theirs"}


def test_what_two_workers_say_differently_of_a_new_column_is_refused_and_says_which_schema(
    make: Callable[[str], Table],
) -> None:
    table = make("insert")
    table.run((0, [(OLD, row("k0", 1))]))
    with pytest.raises(Contradiction) as refused:
        table.run((0, [(NEW, row("k1", 2, note="x"))]), (1, [(CONTRARY, row("k2", 2, note=True))]))
    said = str(refused.value)
    assert "field note is" in said and "events-value version" in said and "record.on_schema_change" in said
    assert table.table.roll_back(table.table.unfinished()[0].instant)
    assert set(table.rows()) == {"k0"}
