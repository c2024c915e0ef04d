"""Engines select the same rows with and without pushdown, of files that we write and that Hudi makes of them.

Spark, DuckDB, Arrow and the hudi reader are asked. Columns of every type hold NaN, both zeros, long strings.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi import HudiReadOptions, HudiTableBuilder
from pyspark.sql import SparkSession

from table.hudi.upkeep.compaction import Compaction
from tests.integration.clusterings import COPIED, copied, put_together
from tests.integration.test_upserts import Upserts
from tests.predicates import (
    COLUMNS,
    FLOATS,
    Answering,
    Answers,
    Arrow,
    Column,
    Duck,
    Kind,
    Predicate,
    ddl_of,
    differences,
    document,
    predicates,
    rows,
)

pytestmark = pytest.mark.integration

TRANSACTIONS, ROWS = 6, 40
AT_ONCE = 10
"""Predicates in a query."""
FLOATS_EACH = 12
"""Predicates on each FLOAT and DOUBLE."""
SKIPPING = "hoodie.enable.data.skipping"
"""By indexes of the metadata table, which no writer of this table makes: Spark's own SQL does by default."""
FILTERS = ("=", "!=", "<", "<=", ">", ">=")
REQUIRED = "id STRING NOT NULL, region STRING, ts BIGINT, deleted BOOLEAN"
INSERT = {"mode": "insert", "ordering_field": "", "bucket_count": 0}
LOCAL_TIMES = tuple(column for column in COLUMNS if column.kind.ddl == "TIMESTAMP_NTZ")
OTHERS = tuple(column for column in COLUMNS if column not in LOCAL_TIMES)
"""The hudi reader ends where it sees TIMESTAMP_NTZ."""
RANGED = tuple(one for one in OTHERS if one.kind.ddl not in ("DOUBLE", "FLOAT", "STRING", "BINARY"))
"""All files have statistics of them, and may be copied together."""


class Spark:
    """Spark on the table."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self._spark = spark
        spark.catalog.clearCache()
        read = spark.read.format("hudi").option(SKIPPING, "false").load(str(path))
        read.createOrReplaceTempView("asked")

    def takes(self, asked: Predicate) -> bool:
        return True

    def answers(self, asked: Sequence[Predicate], *, pushed: bool) -> Answers:
        found: dict[Predicate, frozenset[str]] = {}
        for first in range(0, len(asked), AT_ONCE):
            some = asked[first : first + AT_ONCE]
            told = [one.sql(literal) for one in some]
            if pushed:
                query = " UNION ALL ".join(
                    f"SELECT {at} AS at, id FROM asked WHERE {one}" for at, one in enumerate(told)
                )
                pairs = [(row.at, row.id) for row in self._spark.sql(query).collect()]
            else:
                columns = ", ".join(f"({one}) IS TRUE AS p{at}" for at, one in enumerate(told))
                answered = self._spark.sql(f"SELECT id, {columns} FROM asked").collect()
                pairs = [(at, row.id) for row in answered for at in range(len(some)) if row[f"p{at}"]]
            for at, one in enumerate(some):
                found[one] = frozenset(id for number, id in pairs if number == at)
        return found


def literal(kind: Kind, value: Any) -> str:
    if isinstance(value, str):
        return f"decode(unhex('{value.encode().hex()}'), 'utf-8')"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, datetime):
        return f"{kind.ddl.lower()}'{value.isoformat(sep=' ')}'"
    return f"cast('{value}' AS {kind.ddl})"


class Reader:
    """The hudi reader, which skips files by their footers. Without that it has no filters: DuckDB answers."""

    def __init__(self, path: Path, files: Sequence[Path]) -> None:
        self._table = HudiTableBuilder.from_base_uri(str(path)).build()
        self._plain = Duck(files)

    def takes(self, asked: Predicate) -> bool:
        """Values that a filter can spell, of columns in no struct; it orders -0.0 before 0.0."""
        kind = asked.column.kind
        is_plain = kind.special is FLOATS or kind.ddl in ("INT", "BIGINT", "DATE")
        is_zero = kind.special is FLOATS and 0 in asked.values
        return is_plain and "." not in asked.column.path and asked.operator in FILTERS and not is_zero

    def answers(self, asked: Sequence[Predicate], *, pushed: bool) -> Answers:
        return {one: self._ids(one) for one in asked} if pushed else self._plain.answers(asked, pushed=False)

    def _ids(self, asked: Predicate) -> frozenset[str]:
        filters = [(asked.column.path, asked.operator, str(asked.values[0]))]
        batches = self._table.read(HudiReadOptions(filters=filters))
        return frozenset(id for batch in batches for id in pa.record_batch(batch).column("id").to_pylist())


class Table:
    """A table with rows of every type."""

    def __init__(
        self, spark: SparkSession, path: Path, columns: Sequence[Column], seed: int, **changes: Any
    ) -> None:
        self.spark, self.columns = spark, columns
        self.chance = random.Random(seed)
        self.driven = Upserts(
            spark, path, ddl=f"{REQUIRED}, {ddl_of(columns)}", partition_fields=(), **changes
        )
        self._made = 0

    def write(self, *, ids: Callable[[int], int] = lambda n: n) -> None:
        """A transaction."""
        records = []
        for row in rows(self.chance, ROWS, self.columns):
            values = {"id": f"r{ids(self._made)}", "region": "a", "ts": self._made, "deleted": False, **row}
            records.append((None, document(values)))
            self._made += 1
        self.driven.run(records)

    def files(self, instant: str = "") -> list[Path]:
        """Base files, of this instant if one is given."""
        return sorted(self.driven.path.glob(f"*{instant}.parquet"))

    def check(self, files: Sequence[Path] = ()) -> None:
        """`files`: base files that hold all rows, if such are there. Other engines read them."""
        asked = predicates(self.chance, 1, self.columns, floats=FLOATS_EACH)
        engines: list[Answering] = [Spark(self.spark, self.driven.path)]
        if files:
            engines += [Duck(files), Arrow(files)]
            engines += [] if self.columns is LOCAL_TIMES else [Reader(self.driven.path, files)]
        for engine in engines:
            taken = [one for one in asked if engine.takes(one)]
            plain = engine.answers(taken, pushed=False)
            found = differences(engine.answers(taken, pushed=True), plain)
            assert found == [], f"{type(engine).__name__}: {len(found)} of {len(taken)}: " + "\n".join(found)
            assert any(plain.values())


@pytest.fixture
def table(utc_files: SparkSession, tmp_path: Path) -> Iterator[Callable[..., Table]]:
    made: list[Table] = []

    def make(columns: Sequence[Column], **changes: Any) -> Table:
        made.append(Table(utc_files, tmp_path / "t", columns, seed=len(made), **changes))
        return made[-1]

    yield make
    for one in made:
        one.driven.table.close()


@pytest.mark.parametrize("columns", [OTHERS, LOCAL_TIMES], ids=["others", "timestamp_ntz"])
def test_of_our_files_and_of_what_clusterings_make_of_them(
    table: Callable[..., Table], columns: Sequence[Column], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = table(columns, **INSERT)
    for _ in range(TRANSACTIONS):
        made.write()
    made.check(made.files())
    instant = put_together(made.driven.table, "changes", monkeypatch, copied_from_bytes=1_000_000)
    files = made.files(instant)
    assert files and not any(COPIED in (pq.read_metadata(file).metadata or {}) for file in files)
    made.check(files)


def test_of_files_whose_row_groups_were_copied_together(
    table: Callable[..., Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = table(RANGED, **INSERT)
    for _ in range(TRANSACTIONS):
        made.write()
    made.check(copied(made.driven.path, put_together(made.driven.table, "changes", monkeypatch)))


@pytest.mark.parametrize("columns", [OTHERS, LOCAL_TIMES], ids=["others", "timestamp_ntz"])
def test_of_log_files_and_of_what_compactions_make_of_them(
    table: Callable[..., Table], columns: Sequence[Column]
) -> None:
    made = table(columns)
    for _ in range(TRANSACTIONS):
        made.write()
    made.check()
    compaction = Compaction(replace(made.driven.spec, compaction_every=1), "changes")
    assert compaction.run(compaction.open(made.driven.table._session_beside), lambda _doing: None)
    made.check(made.files())
    made.write(ids=lambda number: number % (TRANSACTIONS * ROWS))
    made.check()
