"""JSON behind a schema's id: written by confluent-kafka's own serializer, through a real server."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from participant.records.envelopes.debezium.envelope import ChangeEvents
from participant.records.errors import SchemasUnavailable
from participant.records.headers import pack
from participant.records.json_schema.format import JsonSchemaFormat
from participant.records.port import Asked, Decoded, RecordSpec
from participant.records.registry.settings import RegistrySettings
from participant.worker.stages import unchecked_decoder
from table.port import INSERT, TableSpec
from table.schema import SchemaError, parse_ddl, table_schema
from tests.debezium_events import POSTGRESQL
from tests.decoding import batch
from tests.registry_server import ERROR, Registry

DDL = "id STRING NOT NULL, n BIGINT"
EVENT = json.dumps(
    {
        "title": "Event",
        "type": "object",
        "properties": {"id": {"type": "string"}, "n": {"type": "integer"}, "note": {"type": "string"}},
    }
)
LOOSE = json.dumps({"title": "Loose", "type": "object"})
TEXT = json.dumps({"title": "Text", "type": "string"})


@pytest.fixture
def spec(registry: Registry, tmp_path: Path) -> RecordSpec:
    settings = RegistrySettings(url=registry.url, timeout_ms=1_000, cache_folder=str(tmp_path / "schemas"))
    return RecordSpec(format="json_schema", key_format="json_schema", registry=settings)


def serialized(
    registry: Registry, schema: str, row: Any, *, field: str = MessageField.VALUE, **conf: Any
) -> tuple[bytes, list[tuple[str, bytes]]]:
    """By confluent-kafka's own: the value, or key, and the headers that it wants."""
    headers: list[tuple[str, bytes]] = []
    context = SerializationContext("events", field, headers)
    written = JSONSerializer(schema, SchemaRegistryClient({"url": registry.url}), conf=conf)(row, context)
    assert isinstance(written, bytes)
    return written, headers


def read(spec: RecordSpec, *values: bytes | None, headers: Sequence[bytes] | None = None) -> Decoded:
    return JsonSchemaFormat(spec).values(parse_ddl(DDL)).decode(batch(values, headers=headers))


def asked(registry: Registry) -> list[str]:
    return [one for one in registry.asked if one.startswith("GET /schemas/")]


def test_what_confluents_serializer_writes_is_read_and_each_id_asked_for_once(
    registry: Registry, spec: RecordSpec
) -> None:
    first, _ = serialized(registry, EVENT, {"id": "a", "n": 5, "note": "ä"})
    second, _ = serialized(registry, LOOSE, {"id": "b"})
    before = len(asked(registry))
    found = read(spec, first, second, first)
    assert found.table.to_pylist() == [{"id": "a", "n": 5}, {"id": "b", "n": None}, {"id": "a", "n": 5}]
    assert found.kept is None and not found.rejects
    assert len(asked(registry)) == before + 2


def test_an_id_in_a_header_counts_and_the_value_is_json_alone(registry: Registry, spec: RecordSpec) -> None:
    value, headers = serialized(
        registry, EVENT, {"id": "a", "n": 5}, **{"schema.id.serializer": header_schema_id_serializer}
    )
    plain, _ = serialized(registry, EVENT, {"id": "b", "n": 6})
    assert value.startswith(b"{")
    packed = [pack(headers), pack([("__value_schema_id", b"x")]), b""]
    found = read(spec, value, value, plain, headers=packed)
    assert found.table.column("id").to_pylist() == ["a", "b"]
    (reject,) = found.rejects
    assert (reject.index, reject.offset) == (1, 1_003) and "the header that names the schema" in reject.reason


def test_a_value_is_held_against_the_columns_and_not_against_its_schema(
    registry: Registry, spec: RecordSpec
) -> None:
    value, _ = serialized(registry, EVENT, {"id": "a", "n": 5})
    frame = value[:5]
    found = read(spec, frame + b'{"id":"a","note":7}', frame + b'{"id":7}', frame + b" {} ", frame)
    assert found.table.to_pylist() == [{"id": "a", "n": None}]
    assert found.rejects.by_place() == {
        1: "field id: not a STRING but a number",
        2: "required field id is missing",
        3: "empty value",
    }


def test_an_id_that_there_is_not_or_of_another_kind_is_a_reject_of_each_record(
    registry: Registry, spec: RecordSpec
) -> None:
    value, _ = serialized(registry, EVENT, {"id": "a", "n": 5})
    other = registry.known.register("other", {"schema": '"string"'})
    body = value[5:]
    of_other, of_none = (b"\0" + number.to_bytes(4, "big") + body for number in (other, 77))
    found = read(spec, of_none, value, of_other, body, of_none, None)
    assert found.table.column("id").to_pylist() == ["a"]
    assert found.rejects.by_place() == {
        0: "schema 77 cannot be read by: the registry does not know it",
        2: f"schema {other} cannot be read by: it is one of AVRO, not of JSON Schema",
        3: "the value does not begin with a schema's id (a byte 0 or 1)",
        4: "schema 77 cannot be read by: the registry does not know it",
        5: "null value",
    }


def test_while_the_registry_is_away_an_id_that_was_never_seen_is_an_outage_and_no_reject(
    registry: Registry, spec: RecordSpec
) -> None:
    value, _ = serialized(registry, EVENT, {"id": "a", "n": 5})
    registry.does = ERROR
    with pytest.raises(SchemasUnavailable, match="answers with an error"):
        read(spec, value)


def test_what_a_schema_refers_to_is_not_asked_for(registry: Registry, spec: RecordSpec) -> None:
    to = {"name": "else.json", "subject": "there-is-none", "version": 3}
    number = registry.known.register("e", {"schema": LOOSE, "schemaType": "JSON", "references": [to]})
    value = b"\0" + number.to_bytes(4, "big") + b'{"id":"a"}'
    assert not read(spec, value).rejects


def test_another_schema_of_an_id_than_before_changes_nothing(registry: Registry, spec: RecordSpec) -> None:
    value, _ = serialized(registry, EVENT, {"id": "a", "n": 5})
    assert not read(spec, value).rejects
    registry.known.texts[0] = {"schema": LOOSE, "schemaType": "JSON", "references": []}
    assert read(spec, value).table.to_pylist() == [{"id": "a", "n": 5}]


def test_keys_are_objects_or_one_columns_value_behind_an_id(registry: Registry, spec: RecordSpec) -> None:
    whole, _ = serialized(registry, LOOSE, {"id": "a"}, field=MessageField.KEY)
    value, _ = serialized(registry, TEXT, "b", field=MessageField.KEY)
    keys = JsonSchemaFormat(spec).keys([parse_ddl(DDL).field("id")])
    records = batch([None] * 5, keys={0: whole, 1: value, 2: b'"c"', 3: None, 4: b"\0\0\0\0\x4d" + b'"c"'})
    tombstones, rejects = keys.read(records, np.arange(5))
    assert tombstones.columns.to_pylist() == [{"id": "a"}, {"id": "b"}]
    assert (tombstones.places.tolist(), tombstones.offsets.tolist()) == ([0, 1], [1_000, 1_003])
    about = "the Kafka key of a record without a value"
    assert rejects.by_place() == {
        2: f"{about}: the value does not begin with a schema's id (a byte 0 or 1)",
        3: "a record without a value and without a key deletes no row",
        4: f"{about}: schema 77 cannot be read by: the registry does not know it",
    }


def test_debeziums_events_are_read_from_it_as_from_json(registry: Registry, spec: RecordSpec) -> None:
    def event(op: str, **sides: Any) -> bytes:
        said = {"before": None, "after": None, **sides, "source": POSTGRESQL, "op": op, "ts_ms": 1}
        return serialized(registry, LOOSE, said)[0]

    schema = parse_ddl("id STRING NOT NULL, at DATE")
    asked = Asked(schema=schema, upserts=True, key_columns=[schema.field("id")])
    form = JsonSchemaFormat(spec)
    key, _ = serialized(registry, LOOSE, {"id": "a"}, field=MessageField.KEY)
    records = batch(
        [event("c", after={"id": "a", "at": 3}), event("d", before={"id": "a"}), None, b"x"], keys={2: key}
    )
    decoded = ChangeEvents().decoder(asked, form, form).decode(records)
    assert decoded.table.column("id").to_pylist() == ["a", "a"]
    assert str(decoded.table.column("at")[0]) == "1970-01-04"
    assert decoded.deleted is not None and decoded.deleted.tolist() == [False, True]
    assert decoded.tombstones is not None and decoded.tombstones.columns.to_pylist() == [{"id": "a"}]
    assert list(decoded.rejects.by_place()) == [3]


def test_without_a_registry_it_is_refused_before_a_run() -> None:
    with pytest.raises(SchemaError, match=r"registry.url is missing"):
        JsonSchemaFormat(RecordSpec(format="json_schema")).values(parse_ddl(DDL))
    with pytest.raises(SchemaError, match=r"has no record.framing"):
        JsonSchemaFormat(RecordSpec(format="json_schema", framing="none")).values(parse_ddl(DDL))


def test_a_value_without_a_field_of_any_column_is_a_reject(spec: RecordSpec, registry: Registry) -> None:
    layout = TableSpec(path="", name="t", mode=INSERT, ddl="n BIGINT, m BIGINT")
    reads = unchecked_decoder(layout, table_schema(layout.ddl, kafka_columns=False), spec)
    values = [serialized(registry, EVENT, row)[0] for row in ({"id": "a"}, {"id": "b", "n": 1})]
    found = reads.decode(batch(values))
    assert found.table.to_pylist() == [{"n": 1, "m": None}]
    assert found.rejects.by_place()[0].endswith("it has id")
