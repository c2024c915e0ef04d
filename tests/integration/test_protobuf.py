"""Protobuf, from confluent-kafka's own serializer and a registry to rows that Spark SQL and pyarrow read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from pyspark.sql import SparkSession

from participant.records.port import RecordSpec
from tests.data_files import data_files
from tests.harness import Pipeline
from tests.integration.test_types import comparable
from tests.integration.test_upserts import Upserts
from tests.json_decoders import compiled as module_compiled
from tests.proto_files import Classes, compiled, encoded
from tests.proto_types import IMPORTS, TAKEN, TYPES
from tests.registry_server import Registry

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

MONEY = 'syntax = "proto3"; package shop; message Money { double amount = 1; string currency = 2; }'
EVENT = """
syntax = "proto3"; package shop;
import "shop/money.proto"; import "google/protobuf/wrappers.proto";
message Strange { int32 event_id = 1; }
message Event {
  string event_id = 1; google.protobuf.Int64Value user_id = 2; double amount = 3; string day = 4;
  repeated Money paid = 5;
}
"""


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry() as running:
        yield running


def test_records_of_confluents_serializer_are_rows_once_and_the_strange_ones_letters(
    pipeline: Pipeline, registry: Registry
) -> None:
    text = pipeline.config.read_text(encoding="utf-8")
    text = text.replace("[record]", '[record]\nformat = "protobuf"\non_error = "dead_letter"\n')
    text += f'\n[registry]\nurl = "{registry.url}"\ncache_folder = "{pipeline.folder / "schemas"}"\n'
    pipeline.config.write_text(text, encoding="utf-8")
    classes = Classes(compiled({"shop/money.proto": MONEY, "shop/event.proto": EVENT}))
    client = SchemaRegistryClient({"url": registry.url})
    context = SerializationContext(pipeline.topic, MessageField.VALUE)
    event, strange = classes["shop.Event"], classes["shop.Strange"]
    events, strangers = ProtobufSerializer(event, client), ProtobufSerializer(strange, client)
    values = [
        events(
            event(
                event_id=f"e-{number:09d}",
                user_id={"value": number},
                amount=number / 4,
                day=f"2026-01-{1 + number % 3:02d}",
                paid=[{"amount": 1.5, "currency": "EUR"}],
            ),
            context,
        )
        for number in range(2_000)
    ]
    values.insert(1_000, strangers(strange(event_id=1), context))
    for partition in range(pipeline.partitions):
        pipeline.produce_raw(
            [one for one in values[partition :: pipeline.partitions] if isinstance(one, bytes)],
            partition=partition,
        )
    done = pipeline.command("validate", "--output", "json")
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks[f"schemas of {pipeline.topic}-value"]["detail"].endswith("fits record.schema")
    reads = "native, in one pass" if module_compiled() else "plain: protobuf, a record at a time"
    assert checks["record decoder"]["detail"].startswith(reads)
    assert pipeline.run_to_end().process.returncode == 0
    pipeline.assert_exact(2_000)
    assert pipeline.verify()["rejected"] == 1


# --- types ------------------------------------------------------------------------------------------

KEYED: dict[str, tuple[str, str, Any, Any]] = {
    "id": ("string id = 1;", "STRING NOT NULL", None, None),
    "region": ("string region = 2;", "STRING", "a", "a"),
    "ts": ("int64 ts = 3;", "BIGINT", 0, 0),
    "deleted": ("bool deleted = 4;", "BOOLEAN", False, False),
}


def renamed(declared: str, place: int) -> str:
    """The field under a name and number of its own."""
    name, number = f"c{place}", 2 * place + 11
    one = declared.replace(" x = 1", f" {name} = {number}").replace(" y = 2", f" {name}y = {number + 1}")
    return one.replace("oneof o", f"oneof o{place}")


COLUMNS = KEYED | {
    f"c{place}": (renamed(declared, place), ddl, value, read)
    for place, (declared, ddl, value, read) in enumerate(TAKEN)
}
DDL = ", ".join(f"{name} {ddl}" for name, (_, ddl, _, _) in COLUMNS.items())


@cache
def one_message() -> FileDescriptorSet:
    fields = " ".join(declared for declared, _, _, _ in COLUMNS.values())
    return compiled({"t.proto": f'syntax = "proto3"; package t; {IMPORTS} {TYPES} message R {{ {fields} }}'})


@pytest.mark.parametrize("mode", ["upsert", "insert"])
def test_every_type_comes_back_from_log_blocks_and_base_files(
    spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    plain = {} if mode == "upsert" else {"ordering_field": "", "bucket_count": 0}
    spec = RecordSpec(format="protobuf", framing="none", schema_text=encoded(one_message()), message="t.R")
    table = Upserts(spark, tmp_path / "t", record=spec, ddl=DDL, mode=mode, **plain)
    message = Classes(one_message())["t.R"]
    try:
        values = {name: value for name, (_, _, value, _) in COLUMNS.items() if value is not None}
        table.run([(None, message(**values, id=f"r{row}").SerializeToString()) for row in range(3)])
        wanted = {name: read for name, (_, _, _, read) in COLUMNS.items()}
        spark.catalog.clearCache()
        spark.read.format("hudi").load(str(table.path)).createOrReplaceTempView("protobuf_types")
        batches = spark.sql(
            f"SELECT {', '.join(COLUMNS)} FROM protobuf_types ORDER BY id"
        )._collect_as_arrow()
        _compare([row for batch in batches for row in batch.to_pylist()], wanted)
        if mode == "insert":
            files = data_files(table.path)
            read = [row for path in files for row in pq.read_table(path, columns=list(COLUMNS)).to_pylist()]
            _compare(sorted(read, key=lambda row: str(row["id"])), wanted)
        else:
            assert table.logs()
    finally:
        table.table.close()


def _compare(found: list[dict[str, Any]], wanted: dict[str, Any]) -> None:
    assert [row["id"] for row in found] == ["r0", "r1", "r2"]
    for row in found:
        for name, value in wanted.items():
            if name != "id":
                assert comparable(row[name]) == comparable(value), (name, COLUMNS[name][:2])
