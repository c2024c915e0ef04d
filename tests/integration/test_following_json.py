"""A whole pipeline of JSON behind a registry's ids, without `record.schema`, that confluent-kafka writes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.sql import SparkSession

from tests.harness import DEADLINE_S, Pipeline, await_that
from tests.registry_server import Registry

pytestmark = pytest.mark.integration

TEXT = {"type": "string"}
BASE: dict[str, Any] = {"event_id": TEXT, "day": TEXT, "n": {"type": "integer", "connect.type": "int32"}}
MORE: dict[str, Any] = {
    "n": {"type": "integer", "connect.type": "int64"},
    "at": {"oneOf": [{"type": "null"}, {"type": "string", "format": "date-time"}]},
    "where": {"type": ["object", "null"], "properties": {"city": TEXT}},
    "tags": {"type": "array", "items": TEXT},
}


def schema_of(properties: dict[str, Any]) -> str:
    return json.dumps({"title": "Event", "type": "object", "properties": properties})


OLD, NEW = schema_of(BASE), schema_of({**BASE, **MORE})


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry() as running:
        yield running


class Writing:
    """Rows that the pipeline's topic has, by confluent-kafka's own serializer, and what comes of them."""

    def __init__(self, pipeline: Pipeline, registry: Registry) -> None:
        self.pipeline, self._client = pipeline, SchemaRegistryClient({"url": registry.url})
        self.expected: dict[str, dict[str, Any]] = {}
        text = pipeline.config.read_text(encoding="utf-8")
        kept = ['format = "json_schema"' if one.startswith("schema = ") else one for one in text.splitlines()]
        kept += ["[registry]", f'url = "{registry.url}"']
        kept += [f'cache_folder = "{pipeline.folder / "schemas"}"']
        pipeline.config.write_text("\n".join(kept), encoding="utf-8")

    def send(self, text: str, partition: int, first: int, count: int, **more: Any) -> None:
        write = JSONSerializer(text, self._client)
        context = SerializationContext(self.pipeline.topic, MessageField.VALUE)
        values: list[bytes] = []
        for place in range(first, first + count):
            one = {"event_id": f"e-{place}", "day": f"2026-01-{1 + place % 2:02d}", "n": place, **more}
            self.expected[one["event_id"]] = one
            written = write(one, context)
            assert isinstance(written, bytes)
            values.append(written)
        self.pipeline.produce_raw(values, partition=partition)

    def await_all(self) -> None:
        count = len(self.expected)
        await_that(f"offset {count} committed", lambda: self.pipeline.committed() == count)


def test_a_newer_json_schema_widens_the_table_in_the_commit_of_its_first_records(
    pipeline: Pipeline, registry: Registry, spark: SparkSession
) -> None:
    """The worker that met it is killed over it; then a choice of types halts the run behind all of them."""
    writing = Writing(pipeline, registry)
    for partition in range(pipeline.partitions):
        writing.send(OLD, partition, 1_000 * partition, 200)
    done = pipeline.command("validate", "--output", "json")
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["columns"]["detail"].endswith(": event_id STRING, day STRING, n INT"), done.stdout
    run = pipeline.start()
    writing.await_all()

    more = {"at": "2026-11-27T01:02:03.000004Z", "where": {"city": "Bern"}, "tags": ["a", "b"]}
    writing.send(NEW, 1, 10_000, 100, **{**more, "n": 3_000_000_000})
    run.kill_worker(coordinator=False)
    writing.send(OLD, 1, 20_000, 100)
    writing.send(OLD, 0, 30_000, 100)
    writing.await_all()
    count = len(writing.expected)

    other = schema_of({**BASE, "either": {"anyOf": [TEXT, {"type": "boolean"}]}})
    writing.send(other, 0, 40_000, 1, either=True)
    assert run.wait(DEADLINE_S) == 3, "halted"
    said = " ".join(run.text().split())
    assert f"({pipeline.topic}-value version 3): field either: a choice of 2 (boolean, string)" in said
    assert pipeline.committed() == count
    del writing.expected["e-40000"]

    spark.catalog.clearCache()
    found = spark.read.format("hudi").load(str(pipeline.table))
    kinds = {name: kind for name, kind in found.dtypes if not name.startswith("_")}
    assert kinds == {
        **{"event_id": "string", "day": "string", "n": "bigint", "at": "timestamp"},
        **{"where": "struct<city:string>", "tags": "array<string>"},
    }
    rows = found.selectExpr(*("event_id", "n", "unix_micros(at) at", "where.city city", "tags")).collect()
    assert {row["event_id"]: row.asDict() for row in rows} == {
        key: {
            "event_id": key,
            "n": one["n"],
            "at": 1_795_741_323_000_004 if "at" in one else None,
            "city": one.get("where", {}).get("city"),
            "tags": one.get("tags"),
        }
        for key, one in writing.expected.items()
    }
    assert len(rows) == count
