"""Days before 1582 in files of ours that Spark writes again: who reads them, and what keeps them readable.

Spark 3 reads such a day only where a file's footer says by which calendar it is, or where it is told. Files
of ours say it, and those of compactions and clusterings. Those that statements of Spark SQL write with Hudi
1.2 do not, unless Hudi is told to write Spark's own rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from table.hudi.driver.java import THROWN
from table.schema import parse_ddl
from tests.integration.laid import Laid
from tests.integration.test_foreign_writers import TOLD, Foreign

pytestmark = pytest.mark.integration

DDL = "id STRING, region STRING, day DATE, at TIMESTAMP"
ROWS = [
    {"id": "a", "region": "eu", "day": date(1582, 10, 1), "at": datetime(1582, 10, 10, tzinfo=UTC)},
    {"id": "b", "region": "eu", "day": date(1066, 10, 14), "at": datetime(1066, 10, 14, tzinfo=UTC)},
]
SHOWN = {("a", "1582-10-01", "1582-10-10 00:00:00"), ("b", "1066-10-14", "1066-10-14 00:00:00")}
NEW = ("c", "2026-11-27", "2026-11-27 00:00:00")
INSERT = (
    "insert into {t} (id, region, day, at) select 'c', 'eu', date'2026-11-27', timestamp'2026-11-27 00:00:00'"
)
READING = {"spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED"}
KEEPING = {
    "hoodie.write.record.merge.custom.implementation.classes": "org.apache.hudi.DefaultSparkRecordMerger",
    "hoodie.logfile.data.block.format": "parquet",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}
"""As docs/operations.md has them."""


@pytest.fixture
def written(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[[Mapping[str, str]], Path]]:
    """A table of `ROWS`, into whose file a session that is told so much has inserted `NEW`."""
    made: list[Laid | Foreign] = []

    def write(told: Mapping[str, str]) -> Path:
        table = Laid(
            spark,
            tmp_path / "t",
            mode="insert",
            ddl=DDL,
            partition_fields=("region",),
            ordering_field="",
            bucket_count=0,
            kafka_columns=False,
        )
        made.append(table)
        table.run(pa.Table.from_pylist(ROWS, schema=parse_ddl(DDL)))
        assert read(spark, table.path, {}) == SHOWN
        foreign = Foreign(spark, table.path, tmp_path, {**TOLD, "spark.sql.session.timeZone": "UTC", **told})
        made.append(foreign)
        foreign.run(INSERT)
        return table.path

    yield write
    for one in reversed(made):
        if isinstance(one, Foreign):
            one.close()
        else:
            one.table.close()


def read(spark: SparkSession, path: Path, told: Mapping[str, str]) -> set[tuple[str, ...]]:
    """By a session that is told so much."""
    session = spark.newSession()
    for name, value in {"spark.sql.session.timeZone": "UTC", **told}.items():
        session.conf.set(name, value)
    session.catalog.clearCache()
    frame = session.read.format("hudi").load(str(path))
    return {
        tuple(row) for row in frame.selectExpr("id", "cast(day as string)", "cast(at as string)").collect()
    }


def test_days_before_1582_in_a_file_that_spark_wrote_again_are_read_where_the_calendar_is_said(
    spark: SparkSession, written: Callable[[Mapping[str, str]], Path]
) -> None:
    """Should a session that is told nothing read them one day, docs/operations.md says too much."""
    path = written({})
    with pytest.raises((PySparkException, *THROWN), match="READ_ANCIENT_DATETIME"):
        read(spark, path, {})
    assert read(spark, path, READING) == {*SHOWN, NEW}


def test_a_session_that_writes_sparks_own_rows_keeps_days_before_1582_readable(
    spark: SparkSession, written: Callable[[Mapping[str, str]], Path]
) -> None:
    assert read(spark, written(KEEPING), {}) == {*SHOWN, NEW}
