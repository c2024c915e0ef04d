"""Every type of record.schema, from JSON to each of the forms in which a table holds a row, and back."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi import HudiTableBuilder
from pyspark.sql import SparkSession

from tests.fuzz.reference import same
from tests.integration.clusterings import copied, put_together
from tests.integration.test_upserts import Record, Upserts

pytestmark = pytest.mark.integration

LONG = 'é☃😀𝄞\u0000\n"\\ ' * 50
VALUES: dict[str, list[tuple[str, Any]]] = {
    "STRING": [
        ('""', ""),
        (json.dumps(LONG), LONG),
        (json.dumps(LONG, ensure_ascii=False), LONG),
        (r'"\ud83d\ude00"', "😀"),
    ],
    "BOOLEAN": [("true", True), ("false", False)],
    "INT": [("-2147483648", -(2**31)), ("2147483647", 2**31 - 1), ("0", 0)],
    "BIGINT": [("-9223372036854775808", -(2**63)), ("9223372036854775807", 2**63 - 1), ("0", 0)],
    "FLOAT": [
        ("3.4028234663852886e38", 3.4028234663852886e38),
        ("1.401298464324817e-45", 1.401298464324817e-45),
        ("0.1", 0.10000000149011612),
        ("-0.0", 0.0),
        ("NaN", math.nan),
    ],
    "DOUBLE": [
        ("-1.7976931348623157e308", -1.7976931348623157e308),
        ("5e-324", 5e-324),
        ("0.1", 0.1),
        ("NaN", math.nan),
        ("-Infinity", -math.inf),
    ],
    "DECIMAL(9,2)": [("9999999.99", Decimal("9999999.99")), ('"-0.01"', Decimal("-0.01"))],
    "DECIMAL(18,0)": [("9" * 18, Decimal("9" * 18)), ("-" + "9" * 18, Decimal("-" + "9" * 18))],
    "DECIMAL(38,0)": [("9" * 38, Decimal("9" * 38)), ("-" + "9" * 38, Decimal("-" + "9" * 38))],
    "DECIMAL(38,38)": [("0." + "9" * 38, Decimal("0." + "9" * 38)), ("-1e-38", Decimal("-1e-38"))],
    "DATE": [
        ('"0001-01-01"', date(1, 1, 1)),
        ('"1582-10-10"', date(1582, 10, 10)),
        ('"1969-12-31"', date(1969, 12, 31)),
        ('"9999-12-31"', date(9999, 12, 31)),
    ],
    "TIMESTAMP": [
        ('"0001-01-01"', datetime(1, 1, 1, tzinfo=UTC)),
        ('"1899-12-31T23:59:59.999999+01:00"', datetime(1899, 12, 31, 22, 59, 59, 999_999, UTC)),
        ('"1969-12-31T23:59:59.999999Z"', datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)),
        ('"9999-12-31T23:59:59.999999Z"', datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)),
    ],
    "TIMESTAMP_NTZ": [
        ('"0001-01-01"', datetime(1, 1, 1)),
        ('"1582-10-10 01:02:03"', datetime(1582, 10, 10, 1, 2, 3)),
        ('"2026-03-29T02:30:00.000001"', datetime(2026, 3, 29, 2, 30, 0, 1)),  # in no clock of Berlin
        ('"9999-12-31T23:59:59.999999"', datetime(9999, 12, 31, 23, 59, 59, 999_999)),
    ],
    "BINARY": [('""', b""), ('"AP+A"', b"\x00\xff\x80"), (json.dumps("AAEC" * 500), b"\x00\x01\x02" * 500)],
}
"""By type: what JSON says, and the value that it is."""
NULL = ("null", None)
Pair = tuple[str, Any]


def in_struct(one: Pair) -> Pair:
    text, value = one
    return f'{{"x":{text},"l":[{text},null,{text}]}}', {"x": value, "y": None, "l": [value, None, value]}


def in_map(one: Pair) -> Pair:
    text, value = one
    return f'[{{"m":{{"":{text},"é":null}}}},null,{{}}]', [{"m": {"": value, "é": None}}, None, {"m": None}]


FORMS: tuple[tuple[str, Callable[[Pair], Pair]], ...] = (
    ("{0}", lambda one: one),
    ("STRUCT<x: {0}, y: {0}, l: ARRAY<{0}>>", in_struct),
    ("ARRAY<STRUCT<m: MAP<STRING,{0}>>>", in_map),
)
COLUMNS = {
    f"c{place}_{form}": (shape.format(kind), wrap, values)
    for place, (kind, values) in enumerate(VALUES.items())
    for form, (shape, wrap) in enumerate(FORMS)
}
REQUIRED = (
    "id STRING NOT NULL, region STRING, ts BIGINT, deleted BOOLEAN, s STRUCT<x: BINARY NOT NULL> NOT NULL"
)
ROWS = 1 + max(map(len, VALUES.values()))
"""The last row is null wherever it may be."""


def columns(*, local_times: bool) -> dict[str, Any]:
    """The columns of TIMESTAMP_NTZ, or all others: the reader without a JVM ends where it sees the former."""
    return {name: one for name, one in COLUMNS.items() if ("TIMESTAMP_NTZ" in one[0]) == local_times}


def row(number: int, of: dict[str, Any], *, shifted: int = 0) -> tuple[Record, dict[str, Any]]:
    """A record, and what the table must hold of it. `shifted`: with the values of a later row, later."""
    wanted: dict[str, Any] = {"id": f"r{number}", "region": "a", "ts": shifted, "s": {"x": b"\xff"}}
    members = [f'"id":"r{number}","region":"a","ts":{shifted},"s":{{"x":"/w=="}}']
    place = (number + shifted) % ROWS
    for name, (_, wrap, values) in of.items():
        text, wanted[name] = wrap(values[place % len(values)]) if place < ROWS - 1 else NULL
        members.append(f'"{name}":{text}')
    return (None, f"{{{','.join(members)}}}".encode()), wanted


class Table:
    """One table and what it must hold."""

    def __init__(self, spark: SparkSession, path: Path, *, local_times: bool, **changes: Any) -> None:
        self.spark = spark
        self.columns = columns(local_times=local_times)
        self.without_jvm = not local_times
        ddl = ", ".join([REQUIRED, *(f"{name} {kind}" for name, (kind, _, _) in self.columns.items())])
        self.driven = Upserts(spark, path, ddl=ddl, **changes)
        self.wanted: dict[str, dict[str, Any]] = {}

    def write(self, numbers: range, *, shifted: int = 0) -> None:
        made = [row(number, self.columns, shifted=shifted) for number in numbers]
        self.driven.run([record for record, _ in made])
        self.wanted |= {wanted["id"]: wanted for _, wanted in made}

    def compact(self) -> None:
        before = self.completed("commit")
        self._call("run_compaction", ", options => 'hoodie.compact.inline.max.delta.commits=1'")
        assert self.completed("commit") == before + 1

    def cluster(self) -> None:
        self._call("run_clustering")
        assert self.completed("replacecommit") == 1

    def _call(self, procedure: str, options: str = "") -> None:
        at = f"path => '{self.driven.path}'"
        self.spark.sql(f"call {procedure}(op => 'scheduleandexecute', {at}{options})").collect()

    def completed(self, action: str) -> int:
        return len(list(self.driven.path.glob(f".hoodie/timeline/*_*.{action}")))

    def check(self, *, compacted: bool = True) -> None:
        self.spark.catalog.clearCache()
        frame = self.spark.read.format("hudi").load(str(self.driven.path))
        self._compare(frame._collect_as_arrow(), "Spark")
        if compacted and self.without_jvm:
            batches = HudiTableBuilder.from_base_uri(str(self.driven.path)).build().read()
            self._compare([pa.record_batch(batch) for batch in batches], "the reader without a JVM")

    def _compare(self, batches: list[pa.RecordBatch], reader: str) -> None:
        found = {one["id"]: one for batch in batches for one in batch.to_pylist(maps_as_pydicts="strict")}
        assert found.keys() == self.wanted.keys()
        for key, wanted in self.wanted.items():
            for name, value in wanted.items():
                kind = self.columns[name][0] if name in self.columns else name
                got = comparable(found[key][name])
                assert same(got, value), f"{reader}, row {key}, {kind}: {got!r} is not {value!r}"


def comparable(value: Any) -> Any:
    """Times in UTC, whatever zone the reader names."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    if isinstance(value, dict):
        return {name: comparable(inner) for name, inner in value.items()}
    return [comparable(inner) for inner in value] if isinstance(value, list) else value


@pytest.fixture
def table(utc_files: SparkSession, tmp_path: Path) -> Iterator[Callable[..., Table]]:
    made: list[Table] = []

    def make(**changes: Any) -> Table:
        made.append(Table(utc_files, tmp_path / "t", **changes))
        return made[-1]

    yield make
    for one in made:
        one.driven.table.close()


@pytest.mark.parametrize("local_times", [False, True], ids=["others", "timestamp_ntz"])
def test_every_type_comes_back_from_log_files_and_from_what_compactions_make_of_them(
    table: Callable[..., Table], local_times: bool
) -> None:
    made = table(local_times=local_times)
    made.write(range(ROWS))
    made.check(compacted=False)
    made.compact()
    made.check()
    made.write(range(0, ROWS, 2), shifted=1)
    made.check(compacted=False)
    made.compact()
    made.check()


@pytest.mark.parametrize("local_times", [False, True], ids=["others", "timestamp_ntz"])
def test_every_type_comes_back_from_base_files_and_from_what_a_clustering_makes_of_them(
    table: Callable[..., Table], local_times: bool
) -> None:
    made = table(local_times=local_times, mode="insert", ordering_field="", bucket_count=0)
    made.write(range(ROWS))
    made.check()
    made.cluster()
    made.check()


@pytest.mark.parametrize("local_times", [False, True], ids=["others", "timestamp_ntz"])
def test_every_type_comes_back_from_files_whose_row_groups_were_copied_together(
    table: Callable[..., Table], monkeypatch: pytest.MonkeyPatch, local_times: bool
) -> None:
    made = table(local_times=local_times, mode="insert", ordering_field="", bucket_count=0)
    for first in (0, ROWS):  # of the same values: files with NaN and files without are not copied together
        made.write(range(first, first + ROWS))
    assert len(copied(made.driven.path, put_together(made.driven.table, "changes", monkeypatch))) == 1
    made.check()
