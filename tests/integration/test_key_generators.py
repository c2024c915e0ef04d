"""Keys and folders as Hudi's own key generators, out of its jar, spell them, on values by chance."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from table.hudi.files.folders import Folders
from table.hudi.files.keys import complex_keys, plain_keys
from table.hudi.generators import KEY_GENERATORS, key_generator
from table.hudi.layout import HudiLayout
from table.port import TableSpec
from table.schema import parse_ddl

pytestmark = pytest.mark.integration

DDL = "id STRING, region STRING, day DATE, n INT, big BIGINT, ok BOOLEAN, price DECIMAL(12,3)"
TEXTS = (
    "eu",
    "us",
    "",
    "a b",
    "ü ß",
    "x=y",
    "50%",
    "a/b",
    "a:b",
    "{1}",
    "#",
    "[z]",
    "it's",
    "%41",
    "\U0001f600",
    "-",
)
ROWS = 160
BY = (
    ("region",),
    ("day",),
    ("region", "day"),
    ("day", "region", "n"),
    ("ok", "big", "price", "region"),
)
KEYS = (("id",), ("id", "region"))


def by_chance(seed: int) -> list[dict[str, Any]]:
    """Rows with nulls, and days before 1970."""
    chance = random.Random(seed)

    def some(value: Any) -> Any:
        return value if chance.random() > 0.1 else None

    return [
        {
            "id": f"k{number}",
            "region": some(chance.choice(TEXTS)),
            "day": some(date(1970, 1, 1) + timedelta(days=chance.randint(-40_000, 40_000))),
            "n": some(chance.randint(-(2**31), 2**31 - 1)),
            "big": some(chance.randint(-(2**63), 2**63 - 1)),
            "ok": some(chance.random() < 0.5),
            "price": some(Decimal(chance.randint(-(10**9), 10**9)).scaleb(-3)),
        }
        for number in range(ROWS)
    ]


def java_rows(spark: SparkSession, rows: Sequence[dict[str, Any]]) -> list[Any]:
    """As the key generators are given them."""
    frame = spark.createDataFrame([tuple(row.values()) for row in rows], DDL)
    listed = frame.coalesce(1)._jdf.collectAsList()
    return [listed.get(at) for at in range(listed.size())]


def said_by_hudi(
    spark: SparkSession, rows: Sequence[Any], spec: TableSpec, **flags: bool
) -> list[tuple[str, str]]:
    """Per row its key and its folder."""
    jvm: Any = spark._jvm
    properties = jvm.org.apache.hudi.common.config.TypedProperties()
    for name, value in {
        "hoodie.datasource.write.recordkey.field": ",".join(spec.key_fields),
        "hoodie.datasource.write.partitionpath.field": ",".join(spec.partition_fields),
        "hoodie.datasource.write.hive_style_partitioning": str(flags["hive_style"]).lower(),
        "hoodie.datasource.write.partitionpath.urlencode": str(flags["url_encode"]).lower(),
        "hoodie.write.table.version": "9",
    }.items():
        properties.setProperty(name, value)
    package = jvm.org.apache.hudi.keygen
    made = getattr(package, KEY_GENERATORS[key_generator(spec)].rpartition(".")[2])(properties)
    return [(str(made.getRecordKey(row)), str(made.getPartitionPath(row))) for row in rows]


@pytest.mark.parametrize("hive_style", [False, True])
@pytest.mark.parametrize("url_encode", [False, True])
@pytest.mark.parametrize("by", BY, ids="+".join)
def test_keys_and_folders_are_those_of_the_jars_key_generators(
    spark: SparkSession, by: tuple[str, ...], url_encode: bool, hive_style: bool
) -> None:
    rows = by_chance(len(by))
    table = pa.Table.from_pylist(rows, schema=parse_ddl(DDL))
    java = java_rows(spark, rows)
    for key in KEYS:
        spec = TableSpec(path="/t", name="t", mode="insert", ddl=DDL, key_fields=key, partition_fields=by)
        is_plain = key_generator(spec) == "SIMPLE"
        layout = HudiLayout(
            path="/t",
            key_fields=key,
            key_format="plain" if is_plain else "complex",
            partition_fields=by,
            hive_style=hive_style,
            url_encode=url_encode,
            kafka_columns=False,
            target_file_bytes=1_000_000,
            ddl=DDL,
        )
        folders, refused = Folders(layout).of(table)
        columns = [table.column(name) for name in key]
        keys = (plain_keys(columns[0]) if is_plain else complex_keys(key, columns)).keys.to_pylist()
        theirs = said_by_hudi(spark, java, spec, hive_style=hive_style, url_encode=url_encode)
        ours = list(zip(keys, folders.to_pylist(), strict=True))
        for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            if place not in refused:
                assert one == other, rows[place]
        assert len(refused) < ROWS and (not refused or any(ch in str(rows[min(refused)]) for ch in "/:%="))
