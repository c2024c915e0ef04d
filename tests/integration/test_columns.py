"""Columns from anywhere in a record, on the real parts: broker, Spark, Hudi."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from control_topic.clocks import wall_ms
from tests.harness import Pipeline, await_that

pytestmark = pytest.mark.integration

Sent = tuple[bytes | None, bytes | None, list[tuple[str, bytes]]]
DAY_MS = 86_400_000
SENT_MS = wall_ms() - 3 * DAY_MS
"""Within what topics keep."""


def sent_on(number: int) -> date:
    return datetime.fromtimestamp((SENT_MS + number % 3 * DAY_MS) / 1_000, UTC).date()


def send(pipeline: Pipeline, records: list[Sent]) -> None:
    """Record n to source partition n, as they go round, sent on day n of three."""
    producer = Producer(pipeline.kafka)
    for number, (key, value, headers) in enumerate(records):
        producer.produce(
            pipeline.topic,
            value,
            key=key,
            headers=headers,
            partition=number % pipeline.partitions,
            timestamp=SENT_MS + number % 3 * DAY_MS,
        )
    assert producer.flush(30) == 0


def asked(pipeline: Pipeline, schema: str, columns: dict[str, str], **more: str) -> None:
    told = {"record.schema": schema, "record.columns": json.dumps(columns)}
    pipeline.settings |= told | {name.replace("__", "."): value for name, value in more.items()}


def held(spark: SparkSession, pipeline: Pipeline, *names: str) -> list[dict[str, Any]]:
    spark.catalog.clearCache()
    read = spark.read.format("hudi").load(str(pipeline.table)).select(*names)
    return [row.asDict(recursive=True) for row in read.collect()]


def test_rows_have_what_their_records_had_in_and_beside_the_value(
    pipeline: Pipeline, spark: SparkSession
) -> None:
    asked(
        pipeline,
        "event_id STRING NOT NULL, city STRING, n BIGINT, day DATE, source STRING, "
        "headers ARRAY<STRUCT<key: STRING, value: BINARY>>, raw BINARY, p INT, o BIGINT, extra STRING",
        {
            "event_id": "key",
            "city": "value.address.city",
            "n": "value.n as STRING",
            "day": "timestamp as DATE",
            "source": "header.source",
            "headers": "headers",
            "raw": "value",
            "p": "partition",
            "o": "offset",
        },
        record__on_error="dead_letter",
        record__rest="extra",
    )

    def sent(number: int) -> Sent:
        value: dict[str, Any] = {
            "n": f"{number}" if number % 100 else "no number",
            "address": {"city": f"c{number % 7}"},
        }
        if number % 2:
            value |= {"more": [number, 1.50]}
        headers = [("source", b"old"), ("source", b"s%d" % (number % 5))]
        return b"e-%d" % number, json.dumps(value).encode(), headers

    send(pipeline, [sent(number) for number in range(2_000)])
    run = pipeline.start()
    run.await_commits(1)
    run.kill_worker(coordinator=True)
    send(pipeline, [sent(number) for number in range(2_000, 4_000)])
    run.await_rows(3_960)
    assert run.stop() == 0, run.text()
    pipeline.assert_exact(3_960)

    found = held(spark, pipeline, "*")
    by_number = {int(row["event_id"][2:]): row for row in found}
    assert sorted(by_number) == [number for number in range(4_000) if number % 100]
    for number, row in by_number.items():
        assert (row["n"], row["city"], row["source"]) == (number, f"c{number % 7}", f"s{number % 5}")
        assert row["day"] == sent_on(number % 2_000)
        assert [(one["key"], bytes(one["value"])) for one in row["headers"]] == sent(number)[2]
        assert row["extra"] == (f'{{"more":[{number}, 1.5]}}' if number % 2 else None)
        assert bytes(row["raw"]) == sent(number)[1]
        assert (row["p"], row["o"]) == (row["_kafka_partition"], row["_kafka_offset"])

    said = pipeline.command("dead-letters", *_sets(pipeline), "--output", "json")
    assert said.returncode == 0, said.stderr
    assert "column n, from value.n: a STRING that is no BIGINT" in said.stdout


def _sets(pipeline: Pipeline) -> list[str]:
    return [word for name, value in pipeline.settings.items() for word in ("--set", f"{name}={value}")]


def test_rows_are_changed_and_deleted_by_what_stands_in_keys_and_headers(
    pipeline: Pipeline, spark: SparkSession
) -> None:
    asked(
        pipeline,
        "id BIGINT NOT NULL, tenant STRING NOT NULL, amount BIGINT, seen BIGINT",
        {"id": "key.id", "tenant": "header.tenant", "amount": "value.order.amount", "seen": "offset"},
        table__kind="upsert",
        table__key='["id", "tenant"]',
        table__partition_by="tenant",
        table__buckets="2",
        source__reader="plain",
    )
    model: dict[tuple[int, str], int] = {}
    rounds: list[list[Sent]] = []
    for first in (0, 300, 600):
        records: list[Sent] = []
        for number in range(first, first + 300):
            one, tenant = number % 45, f"t{number % 3}"
            key, headers = json.dumps({"id": one}).encode(), [("tenant", tenant.encode())]
            if number % 11 == 0:
                model.pop((one, tenant), None)
                records.append((key, None, headers))
            else:
                model[one, tenant] = number
                records.append((key, b'{"order":{"amount":%d}}' % number, headers))
        rounds.append(records)

    run = pipeline.start()
    done = 0
    for number, records in enumerate(rounds):
        producer = Producer(pipeline.kafka)
        for key, value, headers in records:  # one after the other, so that the later one counts
            producer.produce(pipeline.topic, value, key=key, headers=headers, partition=0)
        assert producer.flush(30) == 0
        done += len(records)
        if number == 1:
            run.kill_worker(coordinator=False)
        await_that(f"offset {done} committed", lambda upto=done: pipeline.committed() == upto)
    assert run.stop() == 0, run.text()
    found = held(spark, pipeline, "id", "tenant", "amount", "seen")
    assert {(row["id"], row["tenant"]): row["amount"] for row in found} == model
    assert len(found) == len(model)
    assert all(row["seen"] == row["amount"] for row in found)
    said = pipeline.command("validate", *_sets(pipeline), "--output", "json")
    checks = {check["name"]: check for check in json.loads(said.stdout)["checks"]}
    assert checks["record decoder"]["verdict"] == checks["table"]["verdict"] == "ok", said.stdout
