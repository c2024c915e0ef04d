"""Values and keys of Protobuf as rows: written by confluent-kafka's own serializer, through a real server."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from participant.records.by_schema import one_by_one
from participant.records.errors import ChangedSchema, SchemasUnavailable, UnknownSchema
from participant.records.headers import pack
from participant.records.port import Decoded, Decoder, RecordSpec
from participant.records.protobuf.decoder import ProtobufDecoder, ProtobufKeys
from participant.records.protobuf.files import told
from participant.records.protobuf.format import ProtobufFormat
from participant.records.registry.settings import RegistrySettings
from table.schema import SchemaError, parse_ddl
from tests.decoding import batch
from tests.json_decoders import compiled as module_compiled
from tests.proto_files import Classes, compiled, encoded
from tests.registry_server import ERROR, Registry

PLACES = 'syntax = "proto3"; package geo; message Place { double x = 1; double y = 2; }'
EVENTS = """
syntax = "proto3"; package shop.v1;
import "geo/place.proto"; import "google/protobuf/timestamp.proto";
message Event { string id = 1; optional int64 n = 2; geo.Place at = 3; google.protobuf.Timestamp ts = 4; }
message Other { string id = 1; message Deep { string id = 1; } }
message Bad { int32 id = 1; }
"""
DDL = "id STRING NOT NULL, n BIGINT, at STRUCT<x: DOUBLE>"
FILES = compiled({"geo/place.proto": PLACES, "shop.proto": EVENTS})
EVENT, OTHER, BAD = "shop.v1.Event", "shop.v1.Other", "shop.v1.Bad"


@cache
def classes() -> Classes:
    return Classes(FILES)


@pytest.fixture
def spec(registry: Registry, tmp_path: Path) -> RecordSpec:
    settings = RegistrySettings(url=registry.url, timeout_ms=1_000, cache_folder=str(tmp_path / "schemas"))
    return RecordSpec(format="protobuf", key_format="protobuf", registry=settings)


def serialized(
    registry: Registry, name: str, row: Mapping[str, Any], *, field: str = MessageField.VALUE, **conf: Any
) -> tuple[bytes, list[tuple[str, bytes]]]:
    """By confluent-kafka's own: the value, or key, and the headers that it wants."""
    of = classes()[name]
    headers: list[tuple[str, bytes]] = []
    context = SerializationContext("events", field, headers)
    written = ProtobufSerializer(of, SchemaRegistryClient({"url": registry.url}), conf)(of(**row), context)
    assert isinstance(written, bytes)
    return written, headers


def decoded(decoder: Decoder, *values: bytes | None) -> Decoded:
    return decoder.decode(batch(values))


def reasons(found: Decoded) -> list[str]:
    return [one.reason for one in found.rejects]


# --- Confluent's framing ----------------------------------------------------------------------------


def test_what_confluents_serializer_writes_is_read_by_what_the_registry_was_told(
    registry: Registry, spec: RecordSpec
) -> None:
    row = {"id": "a", "n": 5, "at": {"x": 1.5, "y": 2.5}}
    event, _ = serialized(registry, EVENT, row)
    other, _ = serialized(registry, OTHER, {"id": "b"})
    deep, _ = serialized(registry, "shop.v1.Other.Deep", {"id": "c"})
    assert (event[5:6], other[5:7], deep[5:8]) == (b"\0", b"\x02\x02", b"\x04\x02\x00")
    found = decoded(ProtobufFormat(spec).values(parse_ddl(DDL)), event, other, deep, event)
    assert found.table.to_pylist() == [
        {"id": "a", "n": 5, "at": {"x": 1.5}},
        {"id": "b", "n": None, "at": None},
        {"id": "c", "n": None, "at": None},
        {"id": "a", "n": 5, "at": {"x": 1.5}},
    ]
    assert not found.rejects
    asked = [one for one in registry.asked if one.startswith("GET") and "format=" in one]
    assert len(asked) == 2 and all("format=serialized" in one for one in asked), (
        "it and what it imports, once"
    )


def test_a_schema_that_was_registered_as_text_is_told_serialized(
    registry: Registry, spec: RecordSpec
) -> None:
    registry.known.register("place", {"schema": PLACES, "schemaType": "PROTOBUF"})
    to = {"name": "geo/place.proto", "subject": "place", "version": 1}
    number = registry.known.register(
        "events-value", {"schema": EVENTS, "schemaType": "PROTOBUF", "references": [to]}
    )
    message = classes()[EVENT](id="a", at={"x": 1}).SerializeToString()
    value = b"\0" + number.to_bytes(4, "big") + b"\0" + message
    found = decoded(ProtobufFormat(spec).values(parse_ddl(DDL)), value)
    assert found.table.to_pylist() == [{"id": "a", "n": None, "at": {"x": 1.0}}]


def test_a_guid_and_a_place_in_a_header_count(registry: Registry, spec: RecordSpec) -> None:
    conf = {"schema.id.serializer": header_schema_id_serializer}
    value, headers = serialized(registry, OTHER, {"id": "a"}, **conf)
    assert [name for name, _ in headers] == ["__value_schema_id"] and value[:1] == b"\x0a"
    decoder = ProtobufFormat(spec).values(parse_ddl(DDL))
    found = decoder.decode(batch([value, value], headers=[pack(headers), b""]))
    assert found.table.column("id").to_pylist() == ["a"]
    assert reasons(found) == ["the value does not begin with a schema's id (a byte 0 or 1)"]
    key, headers = serialized(registry, OTHER, {"id": "k"}, field=MessageField.KEY, **conf)
    whole = batch([None], headers=[pack(headers)], keys={0: key})
    tombstones, _ = ProtobufFormat(spec).keys([parse_ddl(DDL).field("id")]).read(whole, np.array([0]))
    assert tombstones.columns.to_pylist() == [{"id": "k"}]


def test_what_cannot_be_read_is_a_reject_of_that_record_alone(registry: Registry, spec: RecordSpec) -> None:
    good, _ = serialized(registry, EVENT, {"id": "a"})
    bad, _ = serialized(registry, BAD, {"id": 1})
    avro = registry.known.register("a", {"schema": '"string"'})
    number = int.from_bytes(good[1:5], "big")
    strange = good[:5] + b"\x02\x0e" + good[6:]
    of_avro = b"\0" + avro.to_bytes(4, "big") + b"\0"
    values = [good, bad, strange, of_avro, b"\0\0\0\0\x63\0", good[:-1], None, b"", good[:6], good]
    found = decoded(ProtobufFormat(spec).values(parse_ddl(DDL)), *values)
    assert [row["id"] for row in found.table.to_pylist()] == ["a", "", "a"]
    assert found.kept is not None and found.kept.tolist() == [0, 8, 9]
    assert reasons(found) == [
        f"message 2 of schema {number} cannot be read by: field id: an int32 is not read as STRING; it is as "
        "INT or BIGINT or DOUBLE",
        f"message 7 of schema {number} cannot be read by: the value names a message by a place where the "
        "schema has none",
        f"message 0 of schema {avro} cannot be read by: it is one of AVRO, not of Protobuf",
        "message 0 of schema 99 cannot be read by: the registry does not know it",
        "the bytes are no message of Protobuf, or end in the middle",
        "null value",
        "the value does not begin with a schema's id (a byte 0 or 1)",
    ]


def test_a_registry_that_is_away_or_tells_texts_is_an_outage_and_no_reject(
    registry: Registry, spec: RecordSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    value, _ = serialized(registry, EVENT, {"id": "a"})
    registry.does = ERROR
    decoder = ProtobufFormat(spec).values(parse_ddl(DDL))
    with pytest.raises(SchemasUnavailable, match="answers with an error"):
        decoded(decoder, value)
    registry.does = "well"
    monkeypatch.setattr("tests.registry_server.SERIALIZED", ("", ""))
    for one in registry.known.texts:
        one["schema"] = EVENTS
    decoder = ProtobufFormat(spec).values(parse_ddl(DDL))
    with pytest.raises(SchemasUnavailable) as caught:
        decoded(decoder, value)
    assert str(caught.value).startswith(
        f"the schema registry at {registry.url} does not give schemas of Protobuf serialized"
    )


def test_a_schema_that_is_kept_is_read_on_while_the_registry_is_away(
    registry: Registry, spec: RecordSpec
) -> None:
    value, _ = serialized(registry, EVENT, {"id": "a", "at": {"x": 2}})
    decoded(ProtobufFormat(spec).values(parse_ddl(DDL)), value)
    registry.close()
    found = decoded(ProtobufFormat(spec).values(parse_ddl(DDL)), value)
    assert found.table.to_pylist() == [{"id": "a", "n": None, "at": {"x": 2.0}}]


class Known:
    """One schema, or an error."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    def find(self, key: int | str | bytes) -> tuple[str, ...]:
        if self._error is not None and key != 7:
            raise self._error
        return tuple(
            told(encoded(file), "" if file.name == "shop.proto" else file.name) for file in FILES.file
        )


GOOD = b"\0\0\0\0\x07\0\x0a\x01a"
STRANGE = b"\0\0\0\0\x08\0"


def test_a_schema_that_changed_stops_at_the_record_that_names_it() -> None:
    decoder = ProtobufDecoder(parse_ddl(DDL), "", Known(ChangedSchema("two of one name")))
    assert decoded(decoder, GOOD, STRANGE, GOOD).stop == (1, "two of one name")
    keys = ProtobufKeys([parse_ddl(DDL).field("id")], "", Known(ChangedSchema("two of one name")))
    with pytest.raises(SchemasUnavailable, match="two of one name"):
        keys.read(batch([None], keys={0: STRANGE}), np.array([0]))


def test_groups_of_values_become_one_table_and_what_they_weigh_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[int] = []
    table_of = one_by_one.table_of
    monkeypatch.setattr(one_by_one, "GROUP_BYTES", 40)
    monkeypatch.setattr(
        one_by_one, "table_of", lambda rows, schema: made.append(len(rows)) or table_of(rows, schema)
    )
    found = decoded(ProtobufDecoder(parse_ddl(DDL), "", Known(UnknownSchema("none"))), *[GOOD] * 7)
    assert found.table.num_rows == 7 and found.kept is None
    assert made == [3, 3, 1], "of 9 bytes and 5 values each"


# --- a schema file ----------------------------------------------------------------------------------


def given(**more: str) -> RecordSpec:
    return RecordSpec(
        format="protobuf", key_format="protobuf", framing="none", schema_text=encoded(FILES), **more
    )


def test_by_a_schema_file_a_value_is_the_message_and_nothing_else() -> None:
    decoder = ProtobufFormat(given(message=EVENT)).values(parse_ddl(DDL))
    found = decoded(decoder, b"\x0a\x01a", b"", None, b"\x0a\x05a")
    assert [row["id"] for row in found.table.to_pylist()] == ["a", ""], "nothing set is a message, too"
    assert reasons(found) == ["null value", "the bytes are no message of Protobuf, or end in the middle"]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({}, 'record.message is missing; record.framing = "none" needs it of Protobuf'),
        ({"message": "shop.v1.None"}, "there is no message shop.v1.None in the Protobuf schema"),
        ({"message": BAD}, "field id: an int32 is not read as STRING"),
    ],
)
def test_a_schema_file_that_does_not_fit_is_refused_before_anything_starts(
    more: Mapping[str, str], why: str
) -> None:
    with pytest.raises(SchemaError) as caught:
        ProtobufFormat(given(**more)).values(parse_ddl(DDL))
    assert str(caught.value).startswith(why)
    with pytest.raises(SchemaError, match="key_schema_file is missing"):
        ProtobufFormat(given(**more)).keys([parse_ddl(DDL).field("id")])


def test_a_key_is_a_message_with_the_columns_that_key_a_row() -> None:
    spec = RecordSpec(framing="none", key_schema_text=encoded(FILES), key_message=EVENT)
    fields = [parse_ddl(DDL).field(name) for name in ("id", "n")]
    keys = [b"\x0a\x01a\x10\x05", b"\x0a\x01a", b"", None, b"\x0a\x05a", b"\x10\x05"]
    found, rejects = (
        ProtobufFormat(spec).keys(fields).read(batch([None] * 6, keys=dict(enumerate(keys))), np.arange(6))
    )
    assert found.columns.to_pylist() == [{"id": "a", "n": 5}, {"id": "", "n": 5}]
    about = "the Kafka key of a record without a value"
    assert rejects.by_place() == {
        1: f"{about}: field n: null, and required",
        2: f"{about}: field n: null, and required",
        3: "a record without a value and without a key deletes no row",
        4: f"{about}: the bytes are no message of Protobuf, or end in the middle",
    }


def test_a_key_of_no_byte_is_the_message_of_which_nothing_is_set(
    registry: Registry, spec: RecordSpec
) -> None:
    """So `id = 0` is written, where the schema is named in no byte of the key."""
    (field,) = parse_ddl("id INT")
    files = RecordSpec(framing="none", key_schema_text=encoded(FILES), key_message=BAD)
    (key, headers) = serialized(
        registry,
        BAD,
        {"id": 0},
        field=MessageField.KEY,
        **{"schema.id.serializer": header_schema_id_serializer},
    )
    assert key == b""
    for of, packed in ((files, [b"", b""]), (spec, [pack(headers), b""])):
        given = batch([None, None], keys={0: key, 1: None}, headers=packed)
        found, rejects = ProtobufFormat(of).keys([field]).read(given, np.arange(2))
        assert found.columns.to_pylist() == [{"id": 0}]
        assert list(rejects.by_place()) == [1]


def test_it_says_with_what_records_are_read(spec: RecordSpec, registry: Registry) -> None:
    schema = parse_ddl(DDL)
    reads = "native, in one pass" if module_compiled() else "plain: protobuf, a record at a time"
    for format, where in (
        (ProtobufFormat(spec), registry.url),
        (ProtobufFormat(given(message=EVENT)), "record.schema_file"),
    ):
        said = format.reads_by(schema)
        assert said.startswith(reads) and said.endswith(f", by schemas of {where}")


def test_without_a_registry_nothing_is_asked() -> None:
    for made in (ProtobufFormat(RecordSpec()).values, ProtobufFormat(RecordSpec()).keys):
        with pytest.raises(SchemaError, match=r"registry\.url is missing"):
            made(parse_ddl(DDL))
