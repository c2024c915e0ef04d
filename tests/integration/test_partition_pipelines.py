"""Whole pipelines of several partition fields, with workers killed: every row is in its folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from hudi import HudiReadOptions, HudiTable
from pyspark.sql import SparkSession

from tests.data_files import data_files
from tests.harness import Pipeline
from tests.integration.test_foreign_writers import TOLD, Foreign

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

SCHEMA = "event_id STRING NOT NULL, region STRING, ts TIMESTAMP"
FIRST = datetime(2026, 11, 20, 22, 30, tzinfo=UTC)
COUNT = 3_000
DAY = "date_format(to_utc_timestamp(ts, current_timezone()), 'yyyy-MM-dd')"


def events(first: int) -> Iterator[bytes]:
    """In three regions and over some days, a minute each."""
    for number in range(first, first + COUNT):
        ts = (FIRST + timedelta(minutes=number)).isoformat().replace("+00:00", "Z")
        yield json.dumps({"event_id": f"e-{number}", "region": "abc"[number % 3], "ts": ts}).encode()


def play(pipeline: Pipeline, by: list[str]) -> int:
    """Records in four rounds, with a worker killed after the first and the coordinator's after the second."""
    pipeline.settings |= {"record.schema": SCHEMA, "table.partition_by": json.dumps(by)}
    run = pipeline.start()
    for number in range(4):
        for place in range(pipeline.partitions):
            some = [one for at, one in enumerate(events(number * COUNT)) if at % pipeline.partitions == place]
            pipeline.produce_raw(some, partition=place)
        if number in (1, 2):
            run.kill_worker(coordinator=number == 2)
        run.await_rows((number + 1) * COUNT)
    assert run.stop() == 0
    pipeline.assert_exact(4 * COUNT)
    return 4 * COUNT


def test_rows_by_region_and_day_are_exact_found_by_day_and_shared_with_spark(
    pipeline: Pipeline, spark: SparkSession, tmp_path: Path
) -> None:
    rows = play(pipeline, ["region", "day(ts)"])
    spark.catalog.clearCache()
    table = spark.read.format("hudi").load(str(pipeline.table))
    misplaced = (
        "_hoodie_partition_path != concat(region, '/', ts_day) or ts_day != date_format(ts, 'yyyy-MM-dd')"
    )
    assert table.where(misplaced).count() == 0 and table.count() == rows
    foreign = Foreign(spark, pipeline.table, tmp_path, TOLD)
    try:
        foreign.run(
            "insert into {t} (event_id, ts, _kafka_topic, _kafka_partition, _kafka_offset, _kafka_timestamp,"
            f" region, ts_day) select 'f', ts, 't', 0, 0L, ts, 'a', {DAY}"
            " from (select timestamp'2026-11-21T12:00:00Z' ts)"
        )
    finally:
        foreign.close()
    folder = pipeline.table / "a" / "2026-11-21"
    for path in data_files(pipeline.table):  # what a query must not look at
        if path.parent != folder:
            path.write_bytes(b"rubbish".ljust(path.stat().st_size, b"."))
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    spark.catalog.clearCache()
    table = spark.read.format("hudi").load(str(pipeline.table))
    found = table.where("region = 'a' and ts_day = '2026-11-21'").select("event_id").collect()
    assert len(found) == 24 * 60 // 3 + 1 and "f" in {row[0] for row in found}
    filters = [("region", "=", "a"), ("ts_day", "=", "2026-11-21")]
    batches = HudiTable(str(pipeline.table)).read(HudiReadOptions(filters=filters))
    assert sum(pa.record_batch(batch).num_rows for batch in batches) == len(found)


def test_rows_by_now_are_where_their_commits_instant_says_after_aborts_too(
    pipeline: Pipeline, spark: SparkSession
) -> None:
    play(pipeline, ['format(now(), "yyyyMMddHHmmss") as second', "region"])
    spark.catalog.clearCache()
    table = spark.read.format("hudi").load(str(pipeline.table))
    folder = "concat(substr(_hoodie_commit_time, 1, 14), '/', region)"
    misplaced = f"concat(second, '/', region) != {folder} or _hoodie_partition_path != {folder}"
    assert table.where(misplaced).count() == 0
    assert table.select("second").distinct().count() > 2
