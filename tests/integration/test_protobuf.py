"""Protobuf, from confluent-kafka's own serializer and a registry to rows that Spark SQL and pyarrow read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from pyspark.sql import SparkSession

from participant.records.port import RecordSpec
from tests.harness import Pipeline
from tests.integration.typed import IDS, MODES, Typed
from tests.json_decoders import compiled as module_compiled
from tests.proto_files import Classes, compiled, encoded
from tests.proto_types import IMPORTS, TAKEN, TYPES
from tests.registry_server import Registry

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

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


def one_message(columns: Mapping[str, tuple[str, str, Any, Any]]) -> FileDescriptorSet:
    fields = " ".join(declared for declared, _, _, _ in columns.values())
    return compiled({"t.proto": f'syntax = "proto3"; package t; {IMPORTS} {TYPES} message R {{ {fields} }}'})


@pytest.mark.parametrize("mode", MODES)
def test_every_type_comes_back_from_log_blocks_base_files_and_services(
    spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    ddl = {name: one for name, (_, one, _, _) in COLUMNS.items()}
    made = one_message(COLUMNS)
    spec = RecordSpec(format="protobuf", framing="none", schema_text=encoded(made), message="t.R")
    table = Typed(spark, tmp_path / "t", spec, mode, ddl=ddl)
    message = Classes(made)["t.R"]
    try:
        values = {name: value for name, (_, _, value, _) in COLUMNS.items() if value is not None}
        records = [(None, message(**{**values, "id": one}).SerializeToString()) for one in IDS]
        table.check(records, {name: read for name, (_, _, _, read) in COLUMNS.items()})
    finally:
        table.table.table.close()
