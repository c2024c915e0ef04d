"""Folders of values by chance, without tables: Hudi's key generators make the same of them, and Spark
reads each back as the value that it was made of. Values that name no folder are refused, and not looked at.
"""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from table.hudi.files.folders import Folders
from table.hudi.layout import HudiLayout
from table.schema import parse_ddl
from tests.integration.partition_fuzz import CODED, DDL, HIVE, TEXTS, rows_of

pytestmark = pytest.mark.integration

SIGNS = [*map(chr, range(1, 0x100)), *"üß€😀\u2028\u202e\ufeff\u3000\u0301", *"%=:/. \\+" * 6]
COUNT = 150
FIELDS = (
    ("text",),
    ("n",),
    ("big",),
    ("ok",),
    ("day",),
    ("price",),
    ("huge",),
    ("text", "other"),
    ("ok", "price", "text"),
)


def by_chance(seed: int) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    texts = [*TEXTS, *("".join(chance.choices(SIGNS, k=chance.randint(0, 12))) for _ in range(COUNT))]
    made: list[dict[str, Any]] = []
    while len(made) < len(texts):
        made += rows_of(chance)
    return [
        {**row, "id": f"k{at}", "text": text} for at, (row, text) in enumerate(zip(made, texts, strict=False))
    ]


def folders_of(
    rows: list[dict[str, Any]], fields: tuple[str, ...], *, hive: bool, encoded: bool
) -> tuple[list[str], dict[int, str]]:
    layout = HudiLayout(
        path="file:///lake/t",
        key_fields=("id",),
        partition_fields=fields,
        hive_style=hive,
        url_encode=encoded,
        kafka_columns=False,
        target_file_bytes=1_000_000,
        ddl=DDL,
    )
    found, refused = Folders(layout).of(pa.Table.from_pylist(rows, schema=parse_ddl(DDL)))
    return found.to_pylist(), refused


class Spark:
    """Hudi's own halves, in the JVM."""

    def __init__(self, spark: SparkSession, fields: tuple[str, ...]) -> None:
        self.jvm: Any = spark._jvm
        self.fields = fields
        self.schema = spark.createDataFrame([], DDL)._jdf.schema()
        self.names = spark.sparkContext._gateway.new_array(self.jvm.java.lang.String, len(fields))
        for at, name in enumerate(fields):
            self.names[at] = name

    def read(self, folder: str) -> list[Any]:
        """The values that a query prunes by, and shows."""
        base = self.jvm.org.apache.hudi.storage.StoragePath("file:///lake/t")
        read = self.jvm.org.apache.hudi.HoodieSparkUtils.doParsePartitionColumnValues
        found = read(self.names, folder, base, self.schema, "UTC", True, False)
        return [one.toString() if hasattr(one, "toString") else one for one in found]

    def generator(self, *, hive: bool, encoded: bool) -> Any:
        properties = self.jvm.org.apache.hudi.common.config.TypedProperties()
        for name, value in {
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": ",".join(self.fields),
            HIVE: str(hive).lower(),
            CODED: str(encoded).lower(),
        }.items():
            properties.setProperty(name, value)
        keygen = self.jvm.org.apache.hudi.keygen
        return (keygen.ComplexKeyGenerator if len(self.fields) > 1 else keygen.SimpleKeyGenerator)(properties)


def shown(value: Any) -> Any:
    """As Spark holds it."""
    if isinstance(value, datetime):
        return (value - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1_000_000
    if isinstance(value, date):
        return (value - date(1970, 1, 1)).days
    return None if value == "" else value


@pytest.mark.parametrize("fields", FIELDS, ids="+".join)
def test_a_folder_is_what_hudi_makes_of_the_value_and_spark_reads_the_value_back(
    spark: SparkSession, fields: tuple[str, ...]
) -> None:
    rows = by_chance(len(fields))
    hudi = Spark(spark, fields)
    java = spark.createDataFrame([tuple(row.values()) for row in rows], DDL).coalesce(1)._jdf.collectAsList()
    for hive, encoded in ((False, False), (False, True), (True, False), (True, True)):
        folders, refused = folders_of(rows, fields, hive=hive, encoded=encoded)
        generator = hudi.generator(hive=hive, encoded=encoded)
        seen = {folder: at for at, folder in enumerate(folders) if at not in refused}
        assert seen and (len(fields) > 1 or "text" not in fields or len(seen) > COUNT / 2)
        for folder, at in seen.items():
            wanted = [shown(rows[at][name]) for name in fields]
            found = hudi.read(folder)
            found = [
                Decimal(one) if isinstance(of, Decimal) else one
                for one, of in zip(found, wanted, strict=True)
            ]
            assert found == wanted, (folder, rows[at])
            if "day" not in fields:  # the generator is given a row, where Java has no 10th of October 1582
                assert generator.getPartitionPath(java.get(at)) == folder


def test_spark_reads_no_time_out_of_a_folder_of_microseconds_so_that_none_is_made(
    spark: SparkSession,
) -> None:
    """Should it one day, and its INSERT make the same of it, a TIMESTAMP may be a partition field."""
    assert Spark(spark, ("at",)).read("1774746000000000") == [None]
