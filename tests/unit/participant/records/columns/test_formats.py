"""Columns from anywhere of values and keys that are no plain JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from participant.records.registry.settings import RegistrySettings
from tests.avro_types import record, written
from tests.json_decoders import NATIVE, PLAIN, skip_unless_there
from tests.proto_files import Classes, compiled, encoded
from tests.registry_server import Registry
from tests.unit.participant.records.columns.made import FIRST, batch, made, reasons, rows

ADDRESS = {"type": "record", "name": "address", "fields": [{"name": "city", "type": "string"}]}
VALUE = record({"address": ["null", ADDRESS], "n": "string", "seen": "long"})
KEY = record({"id": "long", "more": "string"}, "key")
DDL = "id BIGINT, city STRING, n BIGINT, at TIMESTAMP, o BIGINT, raw BINARY"
SOURCES = {
    "id": "key.id",
    "city": "value.address.city",
    "n": "value.n as STRING",
    "at": "value.seen as MILLIS",
    "o": "offset",
    "raw": "value",
}


@pytest.mark.parametrize("decoder", [PLAIN, NATIVE])
def test_fields_of_avro_are_had_from_values_and_keys(decoder: str) -> None:
    skip_unless_there(decoder)
    reads = made(
        DDL,
        SOURCES,
        format="avro",
        key_format="avro",
        framing="none",
        schema_text=VALUE,
        key_schema_text=KEY,
        decoder=decoder,
    )
    values = [
        written(VALUE, {"address": {"city": "Bern"}, "n": "7", "seen": 1_000}),
        written(VALUE, {"address": None, "n": "x", "seen": 0}),
        written(VALUE, {"address": None, "n": "8", "seen": 0}),
        b"",
    ]
    key = written(KEY, {"id": 5, "more": "m"})
    decoded = reads.decode(batch(values, [key, key, None, key]))
    first, second = rows(decoded)
    assert (first["id"], first["city"], first["n"], first["at"].timestamp()) == (5, "Bern", 7, 1.0)
    assert (first["o"], first["raw"]) == (FIRST, values[0])
    assert (second["id"], second["city"], second["n"]) == (None, None, 8)
    assert reasons(decoded) == {1: "column n, from value.n: a STRING that is no BIGINT", 3: "empty value"}


def test_fields_of_protobuf_are_had_from_values_and_keys() -> None:
    file = """
        syntax = "proto3";
        message Key { int64 id = 1; }
        message Address { string city = 1; }
        message Value { Address address = 1; string n = 2; int64 seen = 3; }
    """
    files = compiled({"r.proto": file})
    classes, text = Classes(files), encoded(files)
    reads = made(
        DDL,
        SOURCES,
        format="protobuf",
        key_format="protobuf",
        framing="none",
        schema_text=text,
        key_schema_text=text,
        message="Value",
        key_message="Key",
    )
    value = classes["Value"](address={"city": "Bern"}, n="7", seen=1_000).SerializeToString()
    key = classes["Key"](id=5).SerializeToString()
    (row,) = rows(reads.decode(batch([value], [key])))
    assert (row["id"], row["city"], row["n"], row["raw"]) == (5, "Bern", 7, value)


@pytest.mark.parametrize("form", ["avro", "json_schema"])
def test_keys_are_read_by_the_header_that_names_a_keys_schema(
    form: str, registry: Registry, tmp_path: Path
) -> None:
    client = SchemaRegistryClient({"url": registry.url})
    headers: list[tuple[str, Any]] = []
    in_header = {"schema.id.serializer": header_schema_id_serializer}

    def sent(schema: str, row: dict[str, Any], field: str) -> bytes:
        context = SerializationContext("events", field, headers)
        if form == "avro":
            found = AvroSerializer(client, schema, conf=in_header)(row, context)
        else:
            found = JSONSerializer('{"title":"t","type":"object","properties":{}}', client, conf=in_header)(
                row, context
            )
        assert isinstance(found, bytes)
        return found

    value = sent(VALUE, {"address": {"city": "Bern"}, "n": "7", "seen": 1_000}, MessageField.VALUE)
    key = sent(KEY, {"id": 5, "more": "m"}, MessageField.KEY)
    assert sorted(name for name, _ in headers) == ["__key_schema_id", "__value_schema_id"]
    settings = RegistrySettings(url=registry.url, timeout_ms=1_000, cache_folder=str(tmp_path / "schemas"))
    more = {"rest": "left"} if form == "json_schema" else {}
    ddl = f"{DDL}, left STRING" if more else DDL
    sources = {**SOURCES, "at": "timestamp"} if more else SOURCES
    reads = made(ddl, sources, format=form, key_format=form, registry=settings, **more)
    (row,) = rows(reads.decode(batch([value], [key], [headers])))
    assert (row["id"], row["city"], row["n"], row["raw"]) == (5, "Bern", 7, value)
    if more:
        assert row["left"] == '{"seen":1000}'


def test_a_text_of_a_key_is_a_field_where_keys_are_texts() -> None:
    reads = made("k STRING, n INT", {"k": "key.k"}, key_format="string", key=["k"])
    decoded = reads.decode(batch([b'{"n":1}', None], [b"a", b"b"]))
    assert rows(decoded) == [{"k": "a", "n": 1}]
    assert decoded.tombstones is not None and decoded.tombstones.columns.to_pylist() == [{"k": "b"}]
