"""Change events in Avro, shaped as Debezium writes PostgreSQL's, by confluent-kafka's own serializer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from tests.registry_server import Registry

TOPIC = "server.public.orders"
DDL = (
    "id BIGINT NOT NULL, paid DECIMAL(10,2) NOT NULL, due DATE, made TIMESTAMP_NTZ, seen TIMESTAMP, "
    "free DECIMAL(20,4), note STRING"
)


def connect(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "connect.version": 1, "connect.name": name, **more}


def optional(kind: Any) -> list[Any]:
    return ["null", kind]


VALUE = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "id", "type": "int"},
        {
            "name": "paid",
            "type": connect(
                *("bytes", "org.apache.kafka.connect.data.Decimal"),
                **{"scale": 2, "precision": 10, "logicalType": "decimal"},
                **{"connect.parameters": {"scale": "2", "connect.decimal.precision": "10"}},
            ),
        },
        {"name": "due", "type": optional(connect("int", "io.debezium.time.Date")), "default": None},
        {
            "name": "made",
            "type": optional(connect("long", "io.debezium.time.MicroTimestamp")),
            "default": None,
        },
        {
            "name": "seen",
            "type": optional(connect("string", "io.debezium.time.ZonedTimestamp")),
            "default": None,
        },
        {
            "name": "free",
            "type": optional(
                {
                    "type": "record",
                    "name": "VariableScaleDecimal",
                    "namespace": "io.debezium.data",
                    "fields": [{"name": "scale", "type": "int"}, {"name": "value", "type": "bytes"}],
                    "connect.doc": "Variable scaled decimal",
                    "connect.version": 1,
                    "connect.name": "io.debezium.data.VariableScaleDecimal",
                }
            ),
            "default": None,
        },
        {"name": "note", "type": optional("string"), "default": None},
        {"name": "kind", "type": connect("string", "io.debezium.data.Enum"), "default": "a"},
    ],
    "connect.name": f"{TOPIC}.Value",
}
SOURCE = {
    "type": "record",
    "name": "Source",
    "namespace": "io.debezium.connector.postgresql",
    "fields": [
        {"name": "version", "type": "string"},
        {"name": "connector", "type": "string"},
        {"name": "name", "type": "string"},
        {"name": "ts_ms", "type": "long"},
        {
            "name": "snapshot",
            "type": [
                connect(
                    *("string", "io.debezium.data.Enum"),
                    **{"connect.parameters": {"allowed": "true,last,false"}, "connect.default": "false"},
                ),
                "null",
            ],
            "default": "false",
        },
        {"name": "db", "type": "string"},
        {"name": "sequence", "type": optional("string"), "default": None},
        {"name": "txId", "type": optional("long"), "default": None},
        {"name": "lsn", "type": optional("long"), "default": None},
        {"name": "xmin", "type": optional("long"), "default": None},
    ],
    "connect.name": "io.debezium.connector.postgresql.Source",
}
ENVELOPE: dict[str, Any] = {
    "type": "record",
    "name": "Envelope",
    "namespace": TOPIC,
    "fields": [
        {"name": "before", "type": optional(VALUE), "default": None},
        {"name": "after", "type": optional("Value"), "default": None},
        {"name": "source", "type": SOURCE},
        {
            "name": "transaction",
            "type": optional(
                {
                    "type": "record",
                    "name": "block",
                    "namespace": "event",
                    "fields": [{"name": "id", "type": "string"}, {"name": "total_order", "type": "long"}],
                    "connect.version": 1,
                    "connect.name": "event.block",
                }
            ),
            "default": None,
        },
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": optional("long"), "default": None},
    ],
    "connect.version": 2,
    "connect.name": f"{TOPIC}.Envelope",
}
KEY = {
    "type": "record",
    "name": "Key",
    "namespace": TOPIC,
    "fields": [{"name": "id", "type": "int"}],
    "connect.name": f"{TOPIC}.Key",
}


def serialized(registry: Registry, schema: Mapping[str, Any], row: Any, field: str) -> bytes:
    client = SchemaRegistryClient({"url": registry.url})
    made = AvroSerializer(client, json.dumps(schema))(row, SerializationContext(TOPIC, field))
    assert isinstance(made, bytes)
    return made


def envelope(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Of events whose rows have these fields."""
    row = {**VALUE, "fields": [{"name": name, "type": kind} for name, kind in fields.items()]}
    before, *others = ENVELOPE["fields"]
    return {**ENVELOPE, "fields": [{**before, "type": optional(row)}, *others]}


def event(
    registry: Registry,
    op: str,
    lsn: int | None = 7,
    ts_ms: int = 1,
    *,
    schema: Mapping[str, Any] = ENVELOPE,
    **sides: Any,
) -> bytes:
    source = {"version": "3.2.0.Final", "connector": "postgresql", "name": "server", "db": "shop"}
    source |= {"ts_ms": ts_ms, "lsn": lsn, "sequence": f'["{lsn}","{lsn}"]', "snapshot": "false"}
    said = {"before": None, "after": None, **sides, "source": source, "op": op, "ts_ms": ts_ms + 5}
    return serialized(registry, schema, said, MessageField.VALUE)


def key(registry: Registry, number: int) -> bytes:
    return serialized(registry, KEY, {"id": number}, MessageField.KEY)
