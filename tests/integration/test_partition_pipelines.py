"""Whole pipelines of several partition fields, with workers killed: every row is in its folder."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from hudi import HudiReadOptions, HudiTable
from pyspark.sql import SparkSession

from tests.data_files import data_files
from tests.harness import Pipeline, await_that
from tests.integration.test_foreign_writers import TOLD, Foreign

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

SCHEMA = "event_id STRING NOT NULL, region STRING, ts TIMESTAMP"
FIRST = datetime(2026, 11, 20, 22, 30, tzinfo=UTC)
COUNT, ROUNDS = 3_000, 4
STARTED_S = 240
"""A machine that does much else takes minutes to start Spark."""
DAY = "date_format(to_utc_timestamp(ts, current_timezone()), 'yyyy-MM-dd')"


def events(first: int) -> Iterator[bytes]:
    """In three regions and over some days, a minute each."""
    for number in range(first, first + COUNT):
        ts = (FIRST + timedelta(minutes=number)).isoformat().replace("+00:00", "Z")
        yield json.dumps({"event_id": f"e-{number}", "region": "abc"[number % 3], "ts": ts}).encode()


def play(pipeline: Pipeline, by: list[str]) -> int:
    """All of them, each a row."""
    pipeline.settings |= {"record.schema": SCHEMA, "table.partition_by": json.dumps(by)}

    def produce(first: int) -> int:
        for place in range(pipeline.partitions):
            some = [one for at, one in enumerate(events(first)) if at % pipeline.partitions == place]
            pipeline.produce_raw(some, partition=place)
        return COUNT

    in_rounds(pipeline, produce)
    pipeline.assert_exact(ROUNDS * COUNT)
    return ROUNDS * COUNT


def in_rounds(pipeline: Pipeline, produce: Callable[[int], int]) -> None:
    """Records in four rounds, with a worker killed after the first and the coordinator's after the second.

    `produce`: those from this number on; how many of them are rows.
    """
    run, rows = pipeline.start(), 0
    for number in range(ROUNDS):
        rows += produce(number * COUNT)
        if number in (1, 2):
            run.kill_worker(coordinator=number == 2)
        run.await_rows(rows, deadline_s=STARTED_S)
    every = ROUNDS * COUNT  # the last of them need be no rows
    await_that("commit of all", lambda: pipeline.committed() == every)
    assert run.stop() == 0


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


# --- late and absurd times ------------------------------------------------------------------------------

HOUR_MS = 3_600_000
BOUNDS = {"partition.max_age": "48h", "partition.max_ahead": "24h"}
AGES_MS = (48 * HOUR_MS, -24 * HOUR_MS, 0, 3 * HOUR_MS, 48 * HOUR_MS + 1, -24 * HOUR_MS - 1, 10**12)
"""Of times, before their records' timestamps in Kafka, in turn. The last three are beyond."""
ALLOWED = 4


class Aged:
    """Records whose times are so much before their timestamps in Kafka, and the numbers of those beyond."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline, self._now_ms = pipeline, round(time.time() * 1_000)
        self.beyond: set[int] = set()
        pipeline.settings |= {"record.schema": SCHEMA, "table.partition_by": '["day(ts)"]', **BOUNDS}

    def produce(self, first: int) -> int:
        """COUNT of them from this number on; how many are not beyond."""
        producer = Producer({**self._pipeline.kafka, "enable.idempotence": True})  # which keeps the order
        before = len(self.beyond)
        for number in range(first, first + COUNT):
            stamp_ms, turn = self._now_ms - number, number % len(AGES_MS)
            ts = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=stamp_ms - AGES_MS[turn])
            value = {"event_id": f"e-{number}", "region": "a", "ts": ts.isoformat().replace("+00:00", "Z")}
            producer.produce(
                self._pipeline.topic,
                json.dumps(value).encode(),
                partition=number % self._pipeline.partitions,
                timestamp=stamp_ms,
            )
            self.beyond |= {number} if turn >= ALLOWED else set()
        assert producer.flush(30) == 0
        return COUNT - (len(self.beyond) - before)


def test_times_that_are_further_away_than_allowed_are_dead_letters_that_say_so_after_aborts_too(
    pipeline: Pipeline,
) -> None:
    aged = Aged(pipeline)
    pipeline.settings["record.on_error"] = "dead_letter"
    in_rounds(pipeline, aged.produce)
    verdict, beyond = pipeline.verify(), len(aged.beyond)
    assert verdict["exact"] is True and beyond > 0, verdict
    assert (verdict["rows"], verdict["rejected"]) == (ROUNDS * COUNT - beyond, beyond)
    options = [part for one in pipeline.settings.items() for part in ("--set", "=".join(one))]
    done = pipeline.command("dead-letters", "--output", "json", "--limit", "100000", *options)
    *letters, _summary = [json.loads(line) for line in done.stdout.splitlines()]
    why = "field ts: further from the record's timestamp than partition.max_age and partition.max_ahead allow"
    assert {one["reason"] for one in letters} == {why}
    assert {(one["partition"], one["offset"]) for one in letters} == {
        (number % pipeline.partitions, number // pipeline.partitions) for number in aged.beyond
    }


def test_times_that_are_further_away_than_allowed_are_in_the_table_partition_for_such_after_aborts_too(
    pipeline: Pipeline,
) -> None:
    aged = Aged(pipeline)
    pipeline.settings["partition.beyond"] = "late"

    def produce(first: int) -> int:
        aged.produce(first)
        return COUNT

    in_rounds(pipeline, produce)
    pipeline.assert_exact(ROUNDS * COUNT)
    columns = ["event_id", "ts", "ts_day", "_hoodie_partition_path"]
    late: set[str] = set()
    for batch in HudiTable(str(pipeline.table)).read(HudiReadOptions(projection=columns)):
        read = pa.record_batch(batch)
        for event, ts, day, folder in zip(*(read[name].to_pylist() for name in columns), strict=True):
            assert folder == day and day in ("late", ts.strftime("%Y-%m-%d"))
            late |= {event} if day == "late" else set()
    assert late == {f"e-{number}" for number in aged.beyond}
