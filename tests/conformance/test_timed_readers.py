"""What Hudi's own readers make of tables whose folders are times: why some are refused, and what is told of
others. A test that fails after a new Hudi says that it is to be looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hudi import HudiTable
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

PREFIX = "hoodie.keygen.timebased."
MILLIS = {"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "yyyy-MM-dd", "timezone": "UTC"}
ROWS = [("k0", "a", 1_767_225_600_123), ("k1", "b", -1), ("k2", "a", None)]


class Made:
    """A table of Spark's datasource, and what it reads of it."""

    def __init__(self, spark: SparkSession, path: Path, generator: str, by: str) -> None:
        self.spark, self.path = spark.newSession(), path
        options = {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": by,
            "hoodie.datasource.write.keygenerator.class": f"org.apache.hudi.keygen.{generator}",
            "hoodie.datasource.write.operation": "insert",
            "hoodie.metadata.enable": "false",
            **{f"{PREFIX}{name}": value for name, value in MILLIS.items()},
        }
        frame = self.spark.createDataFrame(ROWS, "id STRING, region STRING, ts BIGINT").coalesce(1)
        frame.write.format("hudi").options(**options).mode("overwrite").save(str(path))

    def read(self) -> DataFrame:
        return self.spark.read.format("hudi").option("hoodie.metadata.enable", "false").load(str(self.path))

    def kept(self) -> Mapping[str, str]:
        lines = (self.path / ".hoodie" / "hoodie.properties").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if line.startswith(PREFIX))


@pytest.fixture
def make(spark: SparkSession, tmp_path: Path) -> Callable[..., Made]:
    return lambda generator, by: Made(spark, tmp_path / "t", generator, by)


def test_spark_shows_a_number_as_a_text_where_folders_are_its_times_and_finds_none_by_it(
    make: Callable[..., Made],
) -> None:
    made = make("TimestampBasedKeyGenerator", "ts")
    seen = {
        row[0]: tuple(row)[1:] for row in made.read().select("id", "ts", "_hoodie_partition_path").collect()
    }
    assert seen == {
        "k0": ("1767225600123", "2026-01-01"),
        "k1": ("-1", "1969-12-31"),
        "k2": (None, "1970-01-01"),
    }
    assert made.read().where("ts = 1767225600123L").count() == 0
    assert made.read().where("ts = '2026-01-01'").count() == 1
    assert made.kept() == {f"{PREFIX}{name}": value for name, value in MILLIS.items()}
    made.spark.sql(f"create table timed_readers using hudi location '{made.path}'")
    try:
        with pytest.raises(PySparkException, match="CANNOT_SAFELY_CAST"):
            made.spark.sql("insert into timed_readers (id, region, ts) select 'k3', 'a', 1L")
    finally:
        made.spark.sql("drop table timed_readers")


def test_every_query_fails_where_a_custom_key_generator_makes_folders_of_a_number(
    make: Callable[..., Made],
) -> None:
    made = make("CustomKeyGenerator", "region:SIMPLE,ts:TIMESTAMP")
    with pytest.raises((Py4JError, PySparkException), match=r"Failed to cast value `.*` to `LongType`"):
        made.read().collect()
    assert not made.kept()


def test_the_reader_without_a_jvm_knows_no_table_of_a_custom_key_generator(make: Callable[..., Made]) -> None:
    made = make("CustomKeyGenerator", "region:SIMPLE")
    assert made.read().count() == len(ROWS)
    with pytest.raises(Exception, match=r"Partition field .* is not present in the table schema"):
        HudiTable(str(made.path)).read()
