"""Tables whose columns change: what Spark and Hudi's services read of old files and of new ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from table.errors import Contradiction, Unavailable
from table.hudi.driver.session import Session
from table.hudi.upkeep.clustering import Clustering
from table.hudi.upkeep.compaction import Compaction
from tests.integration.clusterings import copied, put_together
from tests.integration.test_upserts import Record, Upserts

pytestmark = pytest.mark.integration

DDL = "id STRING NOT NULL, region STRING, amount BIGINT, ts BIGINT, deleted BOOLEAN"
KINDS: Mapping[str, dict[str, Any]] = {
    "insert": {"mode": "insert", "ordering_field": "", "bucket_count": 0},
    "upsert": {"compaction_every": 1},
}

# (column, type before, type after, value before, value after); a type before of "" is a new column.
CHANGES: list[tuple[str, str, str, Any, Any]] = [
    ("int_bigint", "INT", "BIGINT", -7, 3_000_000_000),
    ("int_double", "INT", "DOUBLE", 2_147_483_647, 0.5),
    ("float_double", "FLOAT", "DOUBLE", 1.5, 0.1),
    ("wider", "DECIMAL(9,2)", "DECIMAL(18,2)", "-1.50", "1234567890123456.25"),
    ("much_wider", "DECIMAL(10,2)", "DECIMAL(38,2)", "3.25", "123456789012345678901234567890.25"),
    ("finer", "DECIMAL(5,2)", "DECIMAL(10,4)", "-3.25", "123456.2501"),
    ("less_strict", "INT NOT NULL", "INT", 5, None),
    ("wider_less_strict", "INT NOT NULL", "BIGINT", 5, None),
    ("stays", "DECIMAL(10,2)", "DECIMAL(10,2)", "1.50", "2.75"),
    ("new_int", "", "INT", None, 1),
    ("new_text", "", "STRING", None, "x"),
    ("new_decimal", "", "DECIMAL(12,3)", None, "1.125"),
    ("new_date", "", "DATE", None, "2020-01-02"),
    ("new_timestamp", "", "TIMESTAMP", None, "2020-01-02T00:00:00Z"),
    ("new_struct", "", "STRUCT<a: INT, b: ARRAY<STRING>>", None, {"a": 1, "b": ["x"]}),
    ("new_map", "", "MAP<STRING,STRUCT<a: INT>>", None, {"k": {"a": 1}}),
    ("struct", "STRUCT<a: INT, b: STRING>", "STRUCT<c: INT, b: STRING, a: INT>", {"a": 1, "b": "x"},
     {"a": 2, "b": "y", "c": 3}),
    ("structs", "ARRAY<STRUCT<a: INT>>", "ARRAY<STRUCT<c: DECIMAL(5,2), a: INT>>", [{"a": 1}],
     [{"a": 2, "c": "1.50"}]),
    ("map", "MAP<STRING,STRUCT<a: INT>>", "MAP<STRING,STRUCT<a: INT, c: STRING>>", {"k": {"a": 1}},
     {"k": {"a": 2, "c": "x"}}),
    ("deep", "STRUCT<a: STRUCT<b: INT NOT NULL>>", "STRUCT<a: STRUCT<b: INT, c: DATE>>", {"a": {"b": 1}},
     {"a": {"b": None, "c": "2020-01-02"}}),
]  # fmt: skip
OLD_DDL = DDL + "".join(f", {name} {old}" for name, old, *_ in CHANGES if old)
NEW_DDL = "".join(f"{name} {new}, " for name, _, new, *_ in reversed(CHANGES)) + DDL
OLD: dict[str, Any] = {name: value for name, old, _, value, _ in CHANGES if old}
OLD_NULLS: dict[str, Any] = {name: value for name, old, _, value, _ in CHANGES if "NOT NULL" in old[-8:]}
NEW: dict[str, Any] = {name: value for name, *_, value in CHANGES}


def record(key: str, ts: int, **values: Any) -> Record:
    value = {"id": key, "region": "a", "amount": ts, "ts": ts, **values}
    return key.encode(), json.dumps(value).encode()


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., Upserts]]:
    """Makes drivers of one table, one after another."""
    made: list[Upserts] = []

    def make(kind: str, ddl: str, **changes: Any) -> Upserts:
        made.append(Upserts(spark, tmp_path / "t", ddl=ddl, **{**KINDS[kind], **changes}))
        made[-1]._transactions = 100 * len(made)
        return made[-1]

    yield make
    for one in made:
        one.table.close()


def schema_of(table: Upserts) -> str:
    return Session(table.spark, str(table.path)).load().schema


def columns_of(table: Upserts) -> list[str]:
    """As Hudi has them, Lockstep's own aside."""
    names = [field["name"] for field in json.loads(schema_of(table))["fields"]]
    return [name for name in names if not name.startswith("_kafka_")]


def read(table: Upserts, **options: str) -> DataFrame:
    table.spark.catalog.clearCache()
    return table.spark.read.format("hudi").options(**options).load(str(table.path))


def plain(value: Any) -> Any:
    """A value that Spark read as the record spelled it."""
    if isinstance(value, Row):
        return {name: plain(inner) for name, inner in value.asDict().items()}
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if isinstance(value, Decimal):
        return f"{value:f}"
    return value.isoformat() if isinstance(value, date) else value


OLD_AS_READ: dict[str, Any] = {
    **dict.fromkeys(NEW),
    **OLD,
    "finer": "-3.2500",
    "struct": {"a": 1, "b": "x", "c": None},
    "structs": [{"a": 1, "c": None}],
    "map": {"k": {"a": 1, "c": None}},
    "deep": {"a": {"b": 1, "c": None}},
}


def rows(frame: DataFrame) -> dict[str, dict[str, Any]]:
    found = frame.select("id", *NEW).collect()
    assert len({row["id"] for row in found}) == len(found), "a key is there twice"
    return {row["id"]: {name: plain(row[name]) for name in NEW} for row in found}


def assert_every_reader_reads(table: Upserts, expected: Mapping[str, Mapping[str, Any]]) -> None:
    vectorized = "spark.sql.parquet.enableVectorizedReader"
    for setting in ("true", "false"):
        table.spark.conf.set(vectorized, setting)
        try:
            assert rows(read(table)) == expected, f"{vectorized}={setting}"
        finally:
            table.spark.conf.unset(vectorized)
    changed = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": "000",
    }
    assert rows(read(table, **changed)) == expected
    for name in ("int_bigint", "finer", "less_strict", "new_text"):  # filters go down to the files
        for value in {row[name] for row in expected.values()}:
            same = F.col(name).isNull() if value is None else F.col(name) == F.lit(value)
            found = {row["id"] for row in read(table).where(same).select("id").collect()}
            assert found == {key for key, row in expected.items() if row[name] == value}, (name, value)


def serve(table: Upserts, kind: str) -> None:
    """Let Hudi rewrite the files, as Spark SQL does it."""
    if kind == "upsert":
        options = "options => 'hoodie.compact.inline.max.delta.commits=1'"
        call = f"call run_compaction(op => 'scheduleandexecute', path => '{table.path}', {options})"
    else:
        call = f"call run_clustering(path => '{table.path}', order => 'id')"
    assert table.spark.sql(call).collect()


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_reader_gets_old_values_right_in_changed_columns(
    table: Callable[..., Upserts], kind: str
) -> None:
    """Of files that were written here, of files that Hudi's services made of them, before and after."""
    before = table(kind, OLD_DDL)
    before.run([record("k0", 1, **OLD), record("k1", 1, **OLD), record("k2", 1, **OLD_NULLS)])
    serve(before, kind)
    if kind == "upsert":
        before.run([record("k1", 2, **OLD)])
    before.run([record("k3", 1, **OLD), record("k4", 1, **OLD_NULLS)])
    columns = columns_of(before)

    after = table(kind, NEW_DDL)
    after.run([record("k5", 3, **NEW), record("k6", 3, **NEW)])
    nulls = dict.fromkeys(NEW) | OLD_NULLS
    expected = {f"k{n}": nulls if n in (2, 4) else OLD_AS_READ for n in range(5)} | {"k5": NEW, "k6": NEW}
    if kind == "upsert":
        after.run([record("k0", 3, **NEW)])
        expected["k0"] = NEW
    new_ones = [name for name, old, *_ in reversed(CHANGES) if not old]
    assert columns_of(after) == [*columns, *new_ones]
    assert_every_reader_reads(after, expected)
    serve(after, kind)
    assert_every_reader_reads(after, expected)


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_column_is_there_with_the_first_commit_that_has_it_and_not_before(
    table: Callable[..., Upserts], kind: str
) -> None:
    first = table(kind, DDL + ", note INT")
    first.run([record("k1", 1, note=1)])
    columns, properties = columns_of(first), first.path / ".hoodie" / "hoodie.properties"
    untouched = properties.read_bytes()

    def as_before() -> bool:
        found = [tuple(row) for row in read(first).select("id", "note").collect()]
        return (columns_of(first), properties.read_bytes(), found) == (columns, untouched, [("k1", 1)])

    wider = table(kind, DDL + ", added STRING, note BIGINT")
    assert as_before()
    _, instant = wider.begin()
    assert wider.write(instant, [record("k2", 2, note=2, added="lost")])
    assert as_before()
    assert wider.table.roll_back(instant)
    assert as_before()
    first.run([record("k1" if kind == "upsert" else "k3", 3, note=1)])  # the older configuration goes on
    assert columns_of(first) == columns

    wider.run([record("k2", 2, note=3_000_000_000, added="x")])
    assert columns_of(wider) == [*columns, "added"]
    found = {row["id"]: (row["note"], row["added"]) for row in read(wider).collect()}
    assert found["k1"] == (1, None) and found["k2"] == (3_000_000_000, "x")


@pytest.mark.parametrize(
    ("ddl", "sentence"),
    [
        (DDL + ", note INT", "it has the field more BIGINT, the configuration has not: add it"),
        (DDL + ", note INT, more INT", "field more is BIGINT, the configuration says INT"),
        (
            DDL + ", note INT, more BIGINT, third INT NOT NULL",
            "it has no field third, the configuration says",
        ),
        (DDL.replace("ts BIGINT", "ts INT") + ", note INT, more BIGINT", "field ts is BIGINT"),
    ],
)
def test_what_is_refused_leaves_the_table_as_it_is(
    table: Callable[..., Upserts], tmp_path: Path, ddl: str, sentence: str
) -> None:
    made = table("upsert", DDL + ", note INT, more BIGINT")

    def held() -> set[tuple[str, int]]:
        return {(str(one), one.stat().st_mtime_ns) for one in made.path.rglob("*") if one.is_file()}

    before = held()
    with pytest.raises(Contradiction) as refused:
        table("upsert", ddl)
    assert str(refused.value).startswith(f"table {made.path}: ") and sentence in str(refused.value)
    assert held() == before


@pytest.mark.parametrize("kind", list(KINDS))
def test_columns_that_come_while_a_service_is_at_work_stay_the_tables(
    table: Callable[..., Upserts], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it says is taken for the table's columns, by readers and by the next run, for it ends last."""
    narrow = table(kind, DDL + ", note INT")
    for number in range(3):
        narrow.run([record(f"k{number}", number, note=number)])
    work = (Compaction if kind == "upsert" else Clustering)(narrow.table._spec, "changes")
    session = work.open(narrow.table._session_beside)
    last_step = {"upsert": "compaction.await_clock", "insert": "clustering.check"}[kind]
    going_on = resolve_name(f"table.hudi.upkeep.{last_step}")

    def meanwhile(*arguments: Any, **options: Any) -> Any:
        monkeypatch.undo()
        wider = Upserts(narrow.spark, narrow.path, ddl=DDL + ", note INT, added STRING", **KINDS[kind])
        wider._transactions = 9_000
        wider.run([record("k9", 9, note=9, added="x")])
        wider.table.close()  # it is this thread's, which may be another
        return going_on(*arguments, **options)

    def assert_there() -> None:
        assert columns_of(narrow)[-1] == "added"
        assert {row["id"]: row["added"] for row in read(narrow).collect()} == {
            **dict.fromkeys(("k0", "k1", "k2")),
            "k9": "x",
        }

    monkeypatch.setattr(f"table.hudi.upkeep.{last_step}", meanwhile)
    with pytest.raises(Unavailable, match="columns came meanwhile"):
        work.run(session, print)
    assert_there()
    assert work.tidy(session) == ""
    assert work.run(session, print)
    assert_there()


@pytest.mark.parametrize("kind", list(KINDS))
def test_services_write_the_columns_that_the_table_has_when_they_run(
    table: Callable[..., Upserts], kind: str
) -> None:
    """Whatever the configuration of the driver that does them says: one that is ahead, one that is behind."""
    service = Compaction if kind == "upsert" else Clustering
    behind = table(kind, DDL + ", note INT")
    for number in range(3):  # of two small files nothing is made
        behind.run([record(f"k{number}", number, note=number)])
    columns = columns_of(behind)
    work = service(behind.table._spec, "changes")
    session_behind = work.open(behind.table._session_beside)

    ahead = table(kind, DDL + ", note BIGINT, added STRING")
    work_ahead = service(ahead.table._spec, "changes")
    assert work_ahead.run(work_ahead.open(ahead.table._session_beside), print)
    assert columns_of(behind) == columns
    assert {row["id"]: row["note"] for row in read(behind).collect()} == {"k0": 0, "k1": 1, "k2": 2}

    for number in (3, 4, 5):
        ahead.run([record(f"k{number}", number, note=number * 10**10, added="x")])
    assert work.run(session_behind, print)
    assert columns_of(ahead) == [*columns, "added"]
    found = {row["id"]: (row["note"], row["added"]) for row in read(ahead).collect()}
    assert found == {f"k{n}": (n, None) if n < 3 else (n * 10**10, "x") for n in range(6)}


def test_files_of_other_columns_are_not_copied_together_and_every_reader_gets_their_values_right(
    table: Callable[..., Upserts], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = table("insert", OLD_DDL)
    for number in range(3):
        before.run([record(f"k{number}", 1, **OLD)])
    after = table("insert", NEW_DDL)
    for number in range(3, 6):
        after.run([record(f"k{number}", 3, **NEW)])
    instant = put_together(after.table, "changes", monkeypatch)
    assert len(copied(after.path, instant)) == 2
    expected = {f"k{n}": OLD_AS_READ if n < 3 else NEW for n in range(6)}
    assert_every_reader_reads(after, expected)
    after.run([record("k6", 3, **NEW)])  # of what did not change Hudi makes no plan
    serve(after, "insert")
    assert_every_reader_reads(after, expected | {"k6": NEW})


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_commit_without_data_says_the_columns_as_any_other(
    table: Callable[..., Upserts], kind: str
) -> None:
    """As genesis, an idle interval's commit and `lockstep offsets --execute` are."""
    table(kind, DDL).run([record("k1", 1)])
    made = table(kind, DDL + ", added STRING")
    made.run()
    assert columns_of(made)[-1] == "added"
    made.run([record("k2", 2, added="x")])
    made.run()
    assert columns_of(made)[-1] == "added"
    assert {row["id"]: row["added"] for row in read(made).collect()} == {"k1": None, "k2": "x"}


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_column_that_spark_adds_meanwhile_is_not_taken_away(
    spark: SparkSession, table: Callable[..., Upserts], kind: str
) -> None:
    """Neither by the transaction that is open nor by a later one; the run that knows it goes on."""
    made = table(kind, DDL)
    made.run([record("k1", 1)])
    # the catalog's table, for Spark SQL knows columns of tables that it was told of
    name = f"evolving_{kind}"
    spark.sql(f"create table {name} using hudi location '{made.path}'")

    def add() -> None:
        spark.sql(f"alter table {name} add columns (seen_at STRING)").collect()

    try:
        with pytest.raises(Contradiction) as refused:
            made.run([record("k2", 2)], meanwhile=add)
        assert "it has the field seen_at STRING, the configuration has not: add it to record.schema" in str(
            refused.value
        )
        instant = made.table.unfinished()[0].instant
        assert made.table.roll_back(instant)
        with pytest.raises(Contradiction, match="seen_at"):
            made.run([record("k2", 2)])
        assert made.table.roll_back(made.table.unfinished()[0].instant)
        columns = columns_of(made)
        assert "seen_at" in columns
    finally:
        spark.sql(f"drop table {name}")
    with pytest.raises(Contradiction, match="seen_at"):
        table(kind, DDL)
    again = table(kind, DDL + ", seen_at STRING")
    again.run([record("k2", 2, seen_at="now")])
    assert columns_of(again) == columns
    assert {row["id"]: row["seen_at"] for row in read(again).collect()} == {"k1": None, "k2": "now"}
