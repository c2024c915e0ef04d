"""Functions in `table.partition_by`, beside Spark SQL's and the jar's key generators': the same results."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from table.errors import Contradiction
from table.hudi.table import HudiTable
from table.partitioners.bounds import ANY_TIME
from table.partitioners.expressions import FUNCTIONS, parse
from table.partitioners.making import made
from table.partitioners.patterns import pattern as pattern_of
from table.partitioners.times import micros_of
from table.schema import parse_ddl
from tests.integration.test_foreign_writers import TOLD, Foreign
from tests.integration.test_upserts import Upserts
from tests.unit.table.partitioners.test_times import READ

pytestmark = pytest.mark.integration

DDL = "id STRING, ts TIMESTAMP, d DATE, user_id BIGINT, n INT, name STRING, ms BIGINT, said STRING"
ROWS = 300
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Pacific/Auckland")
SUMMER = ("2026-03-29T01:00:00", "2026-10-25T00:59:59", "2026-10-25T01:00:00", "2026-11-01T05:30:00")
SINCE = datetime(1900, 1, 1, tzinfo=UTC)
"""Before that Java and the zones' own tables differ where they differ, in local mean times."""
IN_SPARK = {
    "year(ts{z})": "date_format(ts, 'yyyy')",
    "month(ts{z})": "date_format(ts, 'yyyy-MM')",
    "day(ts{z})": "date_format(ts, 'yyyy-MM-dd')",
    "hour(ts{z})": "date_format(ts, 'yyyy-MM-dd-HH')",
    "minutes(15, ts{z})": (
        "concat(date_format(ts, 'yyyy-MM-dd-HH-'), lpad(minute(ts) - minute(ts) % 15, 2, '0'))"
    ),
    "format(ts, \"d.M.yyyy 'at' H\"{z}) as f": "date_format(ts, \"d.M.yyyy 'at' H\")",
    "day(d)": "date_format(d, 'yyyy-MM-dd')",
    "hour(epoch_ms(ms){z})": "date_format(timestamp_millis(ms), 'yyyy-MM-dd-HH')",
    'day(parse(said, "yyyy-MM-dd HH:mm:ss"))': "left(said, 10)",
    "bucket(16, user_id)": "pmod(hash(user_id), 16)",
    "bucket(7, n)": "pmod(hash(n), 7)",
    "bucket(16, name)": "pmod(hash(name), 16)",
    "truncate(4, name)": "left(name, 4)",
    "truncate(10, user_id)": "user_id - pmod(user_id, 10)",
    "truncate(3, n)": "n - pmod(n, 3)",
}
TEXTS = (
    "",
    "a",
    "abc",
    "abcd",
    "ü€😀x",
    "x" * 100,
    "Müller-Lüdenscheidt",
    "\U0001f600\U0001f600\U0001f600\U0001f600\U0001f600",
)


def by_chance(seed: int) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    ends = [datetime.fromisoformat(one).replace(tzinfo=UTC) for one in SUMMER]

    def some(value: Any) -> Any:
        return value if chance.random() > 0.1 else None

    def time() -> datetime:
        if chance.random() < 0.2:
            return chance.choice(ends) + timedelta(seconds=chance.randint(-3_700, 3_700))
        return SINCE + timedelta(microseconds=chance.randint(0, 200 * 366 * 86_400 * 10**6))

    return [
        {
            "id": f"k{number}",
            "ts": some(time()),
            "d": some(date(1970, 1, 1) + timedelta(days=chance.randint(-200_000, 200_000))),
            "user_id": some(chance.randint(-(2**62), 2**62)),
            "n": some(chance.randint(-(2**30), 2**30)),
            "name": some(chance.choice(TEXTS) + str(chance.randint(0, 9))),
            "ms": some((time() - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)),
            "said": some(time().strftime("%Y-%m-%d %H:%M:%S")),
        }
        for number in range(ROWS)
    ]


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    return spark.newSession()


def test_every_function_has_a_case_here() -> None:
    assert {text.partition("(")[0] for text in IN_SPARK} == set(FUNCTIONS)


@pytest.mark.parametrize("zone", ZONES)
def test_a_column_holds_what_spark_sql_makes_of_the_same(session: SparkSession, zone: str) -> None:
    session.conf.set("spark.sql.session.timeZone", zone)
    rows = by_chance(len(zone))
    table = pa.Table.from_pylist(rows, schema=parse_ddl(DDL))
    frame = session.createDataFrame([tuple(row.values()) for row in rows], DDL).coalesce(1)
    theirs = frame.selectExpr(*IN_SPARK.values()).collect()
    for place, text in enumerate(IN_SPARK):
        term = parse(text.replace("{z}", f', "{zone}"'))
        ours = made(term, table, np.zeros(ROWS, dtype=np.int64), ANY_TIME)
        assert not ours.bad
        for row, one, other in zip(rows, ours.values.to_pylist(), theirs, strict=True):
            assert one == other[place], (text, row)


@pytest.mark.parametrize("shape", READ)
def test_a_text_is_a_time_where_spark_sql_reads_it_as_one(session: SparkSession, shape: str) -> None:
    for name, value in {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    }.items():
        session.conf.set(name, value)
    texts = list(READ[shape])
    frame = session.createDataFrame([(text,) for text in texts], "said STRING").coalesce(1)
    theirs = [row[0] for row in frame.selectExpr(f"unix_micros(to_timestamp(said, '{shape}'))").collect()]
    assert micros_of(pa.array(texts), pattern=pattern_of(shape)).to_pylist() == theirs


@pytest.mark.parametrize("zone", ZONES)
def test_a_folder_is_what_the_jars_timestamp_key_generator_makes_of_the_same(
    spark: SparkSession, zone: str
) -> None:
    """Of a pattern, as its `output.dateformat`."""
    rows = [{"id": row["id"], "ms": row["ms"]} for row in by_chance(1) if row["ms"] is not None]
    table = pa.Table.from_pylist(rows, schema=parse_ddl("id STRING, ms BIGINT"))
    frame = spark.createDataFrame([tuple(row.values()) for row in rows], "id STRING, ms BIGINT").coalesce(1)
    java = frame._jdf.collectAsList()
    jvm: Any = spark._jvm
    for pattern in ("yyyy-MM-dd-HH", "yyyy-MM", "dd.MM.yyyy"):
        properties = jvm.org.apache.hudi.common.config.TypedProperties()
        for name, value in {
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "ms",
            "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
            "hoodie.keygen.timebased.output.dateformat": pattern,
            "hoodie.keygen.timebased.timezone": zone,
        }.items():
            properties.setProperty(name, value)
        generator = jvm.org.apache.hudi.keygen.TimestampBasedKeyGenerator(properties)
        theirs = [str(generator.getPartitionPath(java.get(at))) for at in range(java.size())]
        term = parse(f'format(epoch_ms(ms), "{pattern}", "{zone}")')
        assert made(term, table, np.zeros(len(rows), dtype=np.int64), ANY_TIME).values.to_pylist() == theirs


# --- tables -------------------------------------------------------------------------------------------

TABLE: dict[str, Any] = {
    "mode": "insert",
    "ddl": "id STRING, region STRING, ts BIGINT, amount BIGINT, deleted BOOLEAN",
    "ordering_field": "",
    "bucket_count": 0,
    "kafka_columns": False,
}
DAY_MS = 86_400_000


def record(number: int, **more: Any) -> tuple[bytes | None, bytes | None]:
    value = {"id": f"k{number}", "region": "ab"[number % 2], "ts": number * DAY_MS // 2, "amount": number}
    return None, json.dumps({**value, **more}).encode()


@pytest.fixture
def make(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., Upserts]]:
    made: list[Upserts] = []

    def make(**changes: Any) -> Upserts:
        made.append(Upserts(spark, tmp_path / "t", **{**TABLE, **changes}))
        return made[-1]

    yield make
    for one in made:
        one.table.close()


def places(table: Upserts, *columns: str) -> dict[str, Sequence[Any]]:
    """id -> its folder, and these columns."""
    table.spark.catalog.clearCache()
    read = table.spark.read.format("hudi").load(str(table.path))
    rows = read.select("id", "_hoodie_partition_path", *columns).collect()
    return {row[0]: tuple(row)[1:] for row in rows}


def test_rows_that_spark_writes_with_the_same_value_are_in_the_same_folders(
    make: Callable[..., Upserts], tmp_path: Path
) -> None:
    by = {"partition_fields": ("region", "ts_day"), "partition_terms": ("day(epoch_ms(ts))",)}
    table = make(**by)
    table.run([record(n) for n in range(4)], [record(n) for n in range(4, 8)])
    before = places(table, "ts_day")
    assert before["k5"] == ("b/1970-01-03", "1970-01-03")
    foreign = Foreign(table.spark, tmp_path / "t", tmp_path, TOLD)
    try:
        foreign.run(
            "insert into {t} (id, ts, amount, deleted, region, ts_day)"
            " select 'n', 172800001L, 0L, false, 'b', date_format(timestamp_millis(172800001L), 'yyyy-MM-dd')"
        )
    finally:
        foreign.close()
    after = places(table, "ts_day")
    assert after == {**before, "n": before["k5"]}
    table.run([record(8)])
    assert len(places(table)) == 10
    again = make(**by)
    again._transactions = table._transactions
    again.run([record(9)])
    assert len(places(again)) == 11


def test_upserts_by_a_function_of_their_key_meet_their_older_versions(make: Callable[..., Upserts]) -> None:
    upserts = {**TABLE, "mode": "upsert", "ordering_field": "amount", "bucket_count": 2}
    by = {"partition_fields": ("id_bucket",), "partition_terms": ("bucket(4, id)",)}
    table = make(**{**upserts, **by})
    table.run([record(n) for n in range(20)])
    table.run([record(n, amount=100 + n) for n in range(10)])
    table.run([(b'{"id": "k3"}', None), record(4, amount=500, deleted=True)])
    found = places(table, "amount", "id_bucket")
    assert {int(name[1:]): row[1] for name, row in found.items()} == {
        n: n + 100 if n < 10 else n for n in range(20) if n not in (3, 4)
    }
    assert len(set(row[0] for row in found.values())) == 4
    assert all(row[0] == str(row[2]) for row in found.values())


def test_by_now_a_transaction_is_where_its_own_instant_says_in_all_workers(
    make: Callable[..., Upserts],
) -> None:
    zone = "Asia/Kathmandu"
    by = {
        "partition_fields": ("slot",),
        "partition_terms": (f'format(now(), "yyyyMMddHHmmss", "{zone}") as slot',),
    }
    table = make(**by)
    instants: list[str] = []
    while len({instant[:14] for instant in instants}) < 3:
        assert len(instants) < 100
        n = len(instants)
        instants.append(table.run([record(n)], [record(n + 100)]))
    found = places(table, "slot")
    for n, instant in enumerate(instants):
        when = datetime.strptime(instant[:14], "%Y%m%d%H%M%S") + timedelta(hours=5, minutes=45)
        wanted = (when.strftime("%Y%m%d%H%M%S"),) * 2
        assert found[f"k{n}"] == found[f"k{n + 100}"] == wanted


def test_what_a_table_cannot_be_laid_out_by_is_refused(make: Callable[..., Upserts]) -> None:
    table = make(partition_fields=("ts_day",), partition_terms=("day(epoch_ms(ts))",))
    for terms, fields, sentence in (
        (("month(epoch_ms(ts)) as m",), ("m",), r"partition\.fields is ts_day.*says m"),
        (
            ("hour(epoch_ms(ts)) as ts_day",),
            ("ts_day",),
            r"partition\.terms is day\(epoch_ms\(ts\)\) as ts_day",
        ),
    ):
        spec = replace(table.spec, partition_fields=fields, partition_terms=terms)
        other = HudiTable(table.spark, spec, "changes")
        with pytest.raises(Contradiction, match=sentence):
            other.open()
        other.close()


def test_a_pattern_that_makes_no_folder_is_refused_for_a_new_table(
    spark: SparkSession, make: Callable[..., Upserts]
) -> None:
    with pytest.raises(Contradiction, match=r"format as m: .*'/'.*urlencode"):
        make(partition_fields=("m",), partition_terms=('format(epoch_ms(ts), "yyyy/MM") as m',))
