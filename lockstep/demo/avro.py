"""The demo's events in Avro, with a real schema registry beside, as a producer of Confluent's writes them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import fastavro

from lockstep.demo.records import ACTIONS, COUNTRIES, DAY_0, DAY_TEXTS, DAYS, SECONDS, DemoRecord
from lockstep.errors import Failed

SCHEMA_TEXT = json.dumps(
    {
        "type": "record",
        "name": "Event",
        "namespace": "demo",
        "fields": [
            {"name": "event_id", "type": "string"},
            {"name": "user_id", "type": "long"},
            {"name": "country", "type": "string"},
            {"name": "action", "type": "string"},
            {"name": "amount", "type": "double"},
            {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "day", "type": "string"},
            {"name": "page", "type": "string"},
        ],
    }
)
_PARSED: Any = fastavro.parse_schema(json.loads(SCHEMA_TEXT))
_DAY_0_MS = int(DAY_0.timestamp()) * 1_000
_BY_ID = b"\0"
ID_BYTES = 4


def register(url: str, subject: str) -> int:
    """The schema's id at the registry. Raises `Failed`."""
    try:
        from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
        from confluent_kafka.schema_registry.error import SchemaRegistryError
    except ImportError as error:
        raise Failed(
            f"The client of the schema registry is not installed ({error.name or error}): pip install "
            "'lockstep[registry]'"
        ) from None
    try:
        return int(SchemaRegistryClient({"url": url}).register_schema(subject, Schema(SCHEMA_TEXT, "AVRO")))
    except (SchemaRegistryError, OSError) as error:
        raise Failed(f"The schema could not be registered at {url}: {error}") from error


def value(number: int, schema_id: int) -> bytes:
    """Behind the id of its schema, about 80 bytes: what `lockstep.demo.records.event` says in JSON."""
    mixed = (number * 2_654_435_761) & 0xFFFF_FFFF
    day = number % DAYS
    one = {
        "event_id": f"e-{number:010d}",
        "user_id": mixed % 250_000,
        "country": COUNTRIES[mixed >> 28],
        "action": ACTIONS[mixed % 7],
        "amount": mixed % 20_000 / 100,
        "ts": _DAY_0_MS + 1_000 * (SECONDS * day + mixed % SECONDS) + mixed % 1_000,
        "day": DAY_TEXTS[day],
        "page": f"/p/{mixed % 5_000}",
    }
    out = io.BytesIO(_BY_ID + schema_id.to_bytes(ID_BYTES, "big"))
    out.seek(0, io.SEEK_END)
    fastavro.schemaless_writer(out, _PARSED, one)
    return out.getvalue()


def records(events: int, source_partitions: int, schema_id: int) -> Iterator[DemoRecord]:
    """As `lockstep.demo.records.records`."""
    for number in range(events):
        yield DemoRecord(number % source_partitions, None, value(number, schema_id))
