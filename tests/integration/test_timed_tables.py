"""Tables whose key generator makes folders of times, made by Spark: ours are in the same ones."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from table.catalog import CatalogSpec
from table.errors import Refused
from table.hudi.driver.hive_sync import HiveSync
from table.hudi.files.timed import folders_of_times
from table.hudi.generators import TYPES, fields_of_kinds, timed_of
from table.schema import parse_ddl
from tests.integration.laid import Laid
from tests.integration.test_foreign_writers import INSERT, TOLD, Foreign

pytestmark = pytest.mark.integration

PREFIX = "hoodie.keygen.timebased."
PACKAGE = "org.apache.hudi.keygen"
SINCE = datetime(1900, 1, 1, tzinfo=UTC)
"""Before that Java and the zones' own tables differ where they differ, in local mean times."""
ENDS = ("2026-03-29T01:00:00", "2026-10-25T00:59:59", "2026-10-25T01:00:00", "1970-01-01T00:00:00")
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "GMT+8:00", "GMT-3")
READ = "yyyy-MM-dd HH:mm:ss"
MICROS: Mapping[str, int] = {
    "EPOCHMICROSECONDS": 1,
    "EPOCHMILLISECONDS": 1_000,
    "UNIX_TIMESTAMP": 1_000_000,
    "minutes": 60_000_000,
    "HOURS": 3_600_000_000,
    "DAYS": 86_400_000_000,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a field is, and how folders are made of it."""

    kind: str
    said: Mapping[str, str]
    unit: str = ""
    """In `MICROS`; empty: texts."""
    flags: Mapping[str, str] = field(default_factory=dict)

    def value(self, micros: int) -> Any:
        if self.kind == "STRING":
            return (datetime(1970, 1, 1) + timedelta(microseconds=micros)).strftime("%Y-%m-%d %H:%M:%S")
        number = micros // MICROS[self.unit]
        if self.kind == "TIMESTAMP":
            return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
        return date(1970, 1, 1) + timedelta(days=number) if self.kind == "DATE" else number


def numbers(kind: str, unit: str, shape: str, zone: str, **more: str) -> Shape:
    said = {"timestamp.type": "SCALAR", "timestamp.scalar.time.unit": unit}
    if unit in TYPES:
        said = {"timestamp.type": unit}
    said |= {"output.dateformat": shape, "timezone": zone}
    return Shape(kind=kind, unit=unit, said=said, flags=more)


def texts(shape: str, kind: str = "DATE_STRING", **zones: str) -> Shape:
    said = {"timestamp.type": kind, "input.dateformat": READ, "output.dateformat": shape}
    return Shape(kind="STRING", said={**said, **{f"{one}timezone": zone for one, zone in zones.items()}})


SHAPES: Mapping[str, Shape] = {
    "milliseconds": numbers("BIGINT", "EPOCHMILLISECONDS", "yyyy-MM-dd", "UTC"),
    "milliseconds, slashes": numbers("BIGINT", "EPOCHMILLISECONDS", "yyyy/MM/dd", "Europe/Berlin"),
    "microseconds": numbers("BIGINT", "EPOCHMICROSECONDS", "yyyyMMddHHmmss", "America/New_York"),
    "seconds": numbers("BIGINT", "UNIX_TIMESTAMP", "yyyy/MM/dd/HH", "Asia/Kathmandu"),
    "minutes": numbers("INT", "minutes", "dd.MM.YYYY", "GMT+8:00"),
    "hours": numbers("BIGINT", "HOURS", "'Y'yyyy/'M'M", "GMT-3"),
    "days": numbers("INT", "DAYS", "yyyy-MM-dd", "UTC"),
    "days, dates": numbers("DATE", "DAYS", "yyyy/MM", "UTC"),
    "texts": texts("yyyy/MM/dd", **{"": "Europe/Berlin"}),
    "texts, mixed": texts("yyyy-MM-dd", "MIXED", **{"": "UTC"}),
    "texts, no zone": texts("yyyyMMddHH"),
    "texts, read in UTC": texts("yyyy-MM-dd-HH", **{"input.": "UTC", "output.": "Asia/Kathmandu"}),
}


def times(seed: int, count: int) -> list[int | None]:
    """Microseconds since 1970, at the ends of summer time and at any time, and nulls."""
    chance = random.Random(seed)
    found: list[int | None] = [None, -1, 0, 1, -1_000_001]
    while len(found) < count:
        if chance.random() < 0.3:
            end = datetime.fromisoformat(chance.choice(ENDS)).replace(tzinfo=UTC)
            time = end + timedelta(seconds=chance.randint(-7_300, 7_300))
        else:
            time = SINCE + timedelta(microseconds=chance.randint(0, 200 * 366 * 86_400 * 10**6))
        found.append((time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1))
    return found


def values(shape: Shape, seed: int, count: int) -> list[Any]:
    gap = timedelta(hours=2, minutes=30), date(2026, 3, 29)
    made = [None if one is None else shape.value(one) for one in times(seed, count)]
    if shape.kind != "STRING":
        return made
    # by the clock of Berlin there is no such time: Hudi fails at it
    return [one for one in made if one is None or not one.startswith(f"{gap[1]} 02")]


BY_ROWS = [name for name, shape in SHAPES.items() if shape.kind != "DATE"]
"""What a key generator makes folders of when it is given Spark's rows; it fails at dates."""


@pytest.mark.parametrize("name", BY_ROWS)
@pytest.mark.parametrize("styled", [False, True], ids=["", "hive style, encoded"])
def test_a_folder_is_what_the_jars_timestamp_key_generator_makes(
    spark: SparkSession, name: str, styled: bool
) -> None:
    shape = SHAPES[name]
    properties = {f"{PREFIX}{one}": said for one, said in shape.said.items()}
    timed = timed_of(properties, fields_of_kinds(["ts"], "TIMESTAMP"))
    assert timed is not None
    given = values(shape, len(name), 400)
    table = pa.table({"ts": given}, schema=parse_ddl(f"ts {shape.kind}"))
    made = folders_of_times(timed, "ts", table.column("ts"))
    assert not made.bad
    jvm: Any = spark._jvm
    java = jvm.org.apache.hudi.common.config.TypedProperties()
    for key, value in {
        **properties,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "ts",
        "hoodie.datasource.write.hive_style_partitioning": str(styled).lower(),
        "hoodie.datasource.write.partitionpath.urlencode": str(styled).lower(),
    }.items():
        java.setProperty(key, value)
    generator = jvm.org.apache.hudi.keygen.TimestampBasedKeyGenerator(java)
    frame = spark.createDataFrame([("k", one) for one in given], f"id STRING, ts {shape.kind}")
    rows = frame.coalesce(1)._jdf.collectAsList()
    theirs = [str(generator.getPartitionPath(rows.get(at))) for at in range(rows.size())]
    ours = made.values.to_pylist()
    if styled:
        ours = [f"ts={one}".replace("/", "%2F") for one in ours]
    wrong = [pair for pair in zip(given, ours, theirs, strict=True) if pair[1] != pair[2]]
    assert not wrong


# --- tables -------------------------------------------------------------------------------------------

HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
CODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
TABLES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "numbers": ("milliseconds, slashes", {}),
    "texts, hive style": ("texts", HIVE),
    "dates, hive style, encoded": ("days, dates", {**HIVE, **CODED}),
}
COUNT = 12
"""Times of a table: each is a table partition, mostly."""


class Theirs:
    """A table that Spark's datasource made, and rows of every time in it."""

    def __init__(self, spark: SparkSession, folder: Path, shape: Shape, styles: Mapping[str, str]) -> None:
        self.path, self.ddl = folder / "t", f"id STRING, ts {shape.kind}"
        self.given = values(shape, 1, COUNT)
        self.spark = spark.newSession()
        self.spark.conf.set("spark.sql.session.timeZone", "UTC")
        self.options = {
            "hoodie.table.name": "changes",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "ts",
            "hoodie.datasource.write.keygenerator.class": f"{PACKAGE}.TimestampBasedKeyGenerator",
            "hoodie.datasource.write.operation": "insert",
            "hoodie.metadata.enable": "false",
            **{f"{PREFIX}{one}": said for one, said in shape.said.items()},
            **TOLD,
            **styles,
        }

    def write(self, prefix: str) -> None:
        """As the datasource does."""
        rows = [(f"{prefix}{place}", one) for place, one in enumerate(self.given)]
        frame = self.spark.createDataFrame(rows, self.ddl).coalesce(1)
        mode = "append" if self.path.exists() else "overwrite"
        frame.write.format("hudi").options(**self.options).mode(mode).save(str(self.path))

    def columns(self) -> pa.Table:
        """Of ours: the same rows again."""
        ids = [f"k{place}" for place in range(len(self.given))]
        return pa.table({"id": ids, "ts": self.given}, schema=parse_ddl(self.ddl))

    def seen(self) -> dict[str, tuple[str, str, Any]]:
        """id -> (folder, key, ts)."""
        self.spark.catalog.clearCache()
        read = self.spark.read.format("hudi").option("hoodie.metadata.enable", "false").load(str(self.path))
        rows = read.select("id", "_hoodie_partition_path", "_hoodie_record_key", "ts").collect()
        return {row[0]: (row[1], row[2], row[3]) for row in rows}


@pytest.mark.parametrize("name", TABLES)
def test_what_we_write_and_what_spark_writes_is_in_the_same_folders_and_shows_the_same(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    shape, styles = TABLES[name]
    theirs = Theirs(spark, tmp_path, SHAPES[shape], styles)
    theirs.write("s")
    spec = {**INSERT, "ddl": theirs.ddl, "partition_fields": ("ts",), "kafka_columns": False}
    table = Laid(spark, theirs.path, **spec, properties={"hoodie.metadata.enable": "false"})
    try:
        table.run(theirs.columns())
        assert not table.refused
        theirs.write("n")
        seen = theirs.seen()
        for place in range(len(theirs.given)):
            ours, first, later = (seen[f"{prefix}{place}"] for prefix in "ksn")
            assert ours == (first[0], f"k{place}", first[2])
            assert (later[0], later[2]) == (ours[0], ours[2])
            assert (theirs.path / ours[0]).is_dir()
        assert len({folder for folder, _, _ in seen.values()}) >= COUNT // 3
        foreign = Foreign(spark, theirs.path, tmp_path, {**TOLD, "hoodie.metadata.enable": "false"})
        try:
            foreign.run("delete from {t} where id in ('k1', 's2')")
        finally:
            foreign.close()
        left = theirs.seen()
        assert left == {name: row for name, row in seen.items() if name not in ("k1", "s2")}
    finally:
        table.table.close()


def test_a_metastore_is_told_of_no_table_whose_folders_are_not_its_fields_values(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Nobody is asked: the address is no metastore's."""
    theirs = Theirs(spark, tmp_path, SHAPES["milliseconds"], {})
    theirs.write("s")
    sync = HiveSync(spark, CatalogSpec(uris="thrift://h:1", database="d", table="t", path=str(theirs.path)))
    with pytest.raises(Refused, match="makes folders of times, which a metastore would take for the fields'"):
        sync.sync()
