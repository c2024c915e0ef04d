"""Whole pipelines without `record.schema`: schemas change in the middle of a run whose workers are killed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hudi import HudiTableBuilder
from pyspark.sql import SparkSession

from tests.avro_types import record, written
from tests.harness import DEADLINE_S, Pipeline, await_that
from tests.registry_server import Registry

pytestmark = pytest.mark.integration

BASE: dict[str, Any] = {"event_id": "string", "day": "string", "n": "int"}
OLD = record(BASE)
MORE: dict[str, Any] = {"note": ["null", "string"], "at": "double"}
NEW = {"insert": record({**BASE, **MORE, "n": "long"}), "upsert": record({**BASE, **MORE})}
"""The `hudi` reader does not read a log block whose column is narrower than the base file's."""
KINDS = {
    "insert": {},
    "upsert": {"table.kind": "upsert", "table.buckets": "2", "services.compaction_every": "2"},
}


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry() as running:
        yield running


class Following:
    """A pipeline of Avro whose columns nobody has given."""

    def __init__(self, pipeline: Pipeline, registry: Registry, kind: str) -> None:
        self.pipeline, self._registry = pipeline, registry
        text = pipeline.config.read_text(encoding="utf-8")
        lines = ['format = "avro"' if one.startswith("schema = ") else one for one in text.splitlines()]
        lines += ["[registry]", f'url = "{registry.url}"']
        lines += [f'cache_folder = "{pipeline.folder / "schemas"}"']
        pipeline.config.write_text("\n".join(lines), encoding="utf-8")
        pipeline.settings |= KINDS[kind]
        self.expected: dict[str, dict[str, Any]] = {}
        self.register(OLD)

    def register(self, text: str) -> int:
        return self._registry.known.register(f"{self.pipeline.topic}-value", {"schema": text})

    def send(self, text: str, partition: int, first: int, count: int, **more: Any) -> None:
        """Rows by this schema; each has a key of its own."""
        number, values = self.register(text), []
        for place in range(first, first + count):
            one = {"event_id": f"e-{place}", "day": f"2026-01-{1 + place % 2:02d}", "n": place, **more}
            self.expected[one["event_id"]] = one
            values.append(b"\0" + number.to_bytes(4, "big") + written(text, one))
        self.pipeline.produce_raw(values, partition=partition)

    def await_all(self) -> None:
        count = len(self.expected)
        await_that(f"offset {count} committed", lambda: self.pipeline.committed() == count)

    def assert_there(self, spark: SparkSession) -> None:
        """All rows, whole, by Spark SQL and by the `hudi` reader."""
        names = ["event_id", "day", "n", "note", "at"]
        wanted = {key: {name: one.get(name) for name in names} for key, one in self.expected.items()}
        spark.catalog.clearCache()
        read = spark.read.format("hudi").load(str(self.pipeline.table)).select(names).collect()
        found = {one["event_id"]: one.asDict() for one in read}
        assert len(read) == len(found) == len(wanted) and found == wanted
        batches = HudiTableBuilder.from_base_uri(str(self.pipeline.table)).build().read()
        rows = [one for batch in batches for one in pa.record_batch(batch).to_pylist()]
        by_rust = {one["event_id"]: {name: one.get(name) for name in names} for one in rows}
        assert {key: wanted[key] for key in by_rust} == by_rust
        if not self.pipeline.settings.get("table.kind"):
            assert len(rows) == len(by_rust) == len(wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_no_field_is_lost_where_one_worker_meets_a_newer_schema_and_is_killed_over_it(
    pipeline: Pipeline, registry: Registry, spark: SparkSession, kind: str
) -> None:
    """Source partition 1 alone has records by it, with older ones behind them; then the other one, too."""
    following = Following(pipeline, registry, kind)
    for partition in range(pipeline.partitions):
        following.send(OLD, partition, 1_000 * partition, 300)
    run = pipeline.start()
    following.await_all()

    large = {"n": 3_000_000_000} if kind == "insert" else {}
    following.send(NEW[kind], 1, 10_000, 200, note="x", at=0.5, **large)
    run.kill_worker(coordinator=False)
    following.send(OLD, 1, 20_000, 200)
    following.send(OLD, 0, 30_000, 200)
    following.await_all()

    following.send(NEW[kind], 0, 40_000, 200, note=None, at=1.5)
    run.kill_worker(coordinator=True)
    following.send(OLD, 0, 50_000, 100)
    following.await_all()
    assert run.stop() == 0, run.text()
    following.assert_there(spark)
    if kind == "insert":
        pipeline.assert_exact(len(following.expected))

    following.send(OLD, 1, 60_000, 50)
    assert pipeline.run_to_end().process.returncode == 0, "a later run begins with what the table has"
    following.assert_there(spark)
    assert "the columns are those of the table" in pipeline.runs[-1].text()


@pytest.mark.parametrize("kind", KINDS)
def test_columns_from_elsewhere_stay_as_they_are_while_the_others_follow(
    pipeline: Pipeline, registry: Registry, spark: SparkSession, kind: str
) -> None:
    """A text that is made a number, and the source partition; a worker is killed over the newer schema."""
    following = Following(pipeline, registry, kind)
    pipeline.settings |= {
        "record.schema": "event_id STRING, day STRING, n BIGINT, p INT",
        "record.columns": json.dumps({"n": "value.counted as STRING", "p": "partition"}),
        "record.on_schema_change": "evolve",
    }
    old = record({"event_id": "string", "day": "string", "counted": "string"})
    new = record({"event_id": "string", "day": "string", "counted": "string", **MORE, "p": "boolean"})
    for partition in range(pipeline.partitions):
        following.send(old, partition, 1_000 * partition, 200, counted="7")
    run = pipeline.start()
    following.await_all()
    following.send(new, 1, 10_000, 100, counted="8", note="x", at=0.5, p=True)
    run.kill_worker(coordinator=False)
    following.send(old, 0, 20_000, 100, counted="9")
    following.await_all()
    assert run.stop() == 0, run.text()
    for one in following.expected.values():
        one["n"] = int(one["counted"])
    following.assert_there(spark)
    read = spark.read.format("hudi").load(str(pipeline.table))
    assert "counted" not in read.columns
    assert [tuple(row) for row in read.selectExpr("p = _kafka_partition").distinct().collect()] == [(True,)]
    assert dict(read.dtypes)["p"] == "int"


def test_what_no_column_holds_halts_the_run_behind_everything_before_it(
    pipeline: Pipeline, registry: Registry
) -> None:
    following = Following(pipeline, registry, "insert")
    following.send(OLD, 0, 0, 100)
    run = pipeline.start()
    following.await_all()
    number = following.register(record({**BASE, "n": "string"}))
    row = written(record({**BASE, "n": "string"}), {"event_id": "x", "day": "2026-01-01", "n": "no"})
    following.send(OLD, 1, 200, 50)
    pipeline.produce_raw([b"\0" + number.to_bytes(4, "big") + row], partition=1)
    assert run.wait(DEADLINE_S) == 3, "halted"
    said = " ".join(run.text().split())
    assert f"schema {number} ({pipeline.topic}-value version 2): field n is INT and would be STRING" in said
    assert pipeline.committed() == 150


def test_validate_prints_the_columns_that_a_run_would_begin_with(
    pipeline: Pipeline, registry: Registry
) -> None:
    following = Following(pipeline, registry, "insert")
    done = pipeline.command("validate", "--output", "json")
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["columns"]["detail"].endswith(": event_id STRING, day STRING, n INT")
    assert done.returncode == 0, done.stdout
    following.send(OLD, 0, 0, 10)
    assert pipeline.run_to_end().process.returncode == 0
    following.register(NEW["insert"])
    done = pipeline.command("validate", "--output", "json")
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["columns"]["detail"] == "those of the table: event_id STRING, day STRING, n INT"
    newest = checks[f"schemas of {pipeline.topic}-value"]["detail"]
    assert newest.endswith("has more than the table: n BIGINT, note STRING, at DOUBLE, which a run adds")
