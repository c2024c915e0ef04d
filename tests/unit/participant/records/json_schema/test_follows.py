"""Columns that grow with the JSON Schemas that records name: of a real server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from participant.records.by_schema.following import FollowingDecoder
from participant.records.changes import EVOLVE, HALT, IGNORE
from participant.records.errors import SchemasUnavailable
from participant.records.headers import pack
from participant.records.json_schema.documents import alike, name_and_text, spelled
from participant.records.json_schema.follows import JsonFollows
from participant.records.port import Decoder, RecordSpec
from participant.records.registry.settings import RegistrySettings
from participant.worker.stages import decoder
from table.port import UPSERT, TableSpec
from table.schema import SchemaError, parse_ddl, table_schema
from table.widening import ddl_of
from tests.decoding import batch
from tests.registry_server import ERROR, Registry

TEXT = {"type": "string"}
SUBJECT = "events-value"


def schema_of(**properties: Any) -> str:
    return json.dumps({"title": "Event", "type": "object", "properties": properties})


NARROW = schema_of(id=TEXT, n={"type": "integer", "connect.type": "int32"})
WIDE = schema_of(
    id=TEXT,
    n={"type": "integer", "connect.type": "int64"},
    at={"oneOf": [{"type": "null"}, {"type": "number"}]},
)


def register(registry: Registry, text: str, references: Any = None) -> int:
    asked = {"schema": text, "schemaType": "JSON", "references": references or []}
    return registry.known.register(SUBJECT, asked)


def value(number: int, **row: Any) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + json.dumps(row).encode()


Made = Callable[..., Decoder]


@pytest.fixture
def made(registry: Registry, tmp_path: Path) -> Made:
    def make(ddl: str = "id STRING, n INT", changes: str = EVOLVE, **more: Any) -> Decoder:
        settings = RegistrySettings(
            url=registry.url, timeout_ms=1_000, cache_folder=str(tmp_path / "schemas")
        )
        table = {"mode": "insert", "key_fields": ("id",), **more.pop("table", {})}
        spec = RecordSpec(
            format="json_schema",
            key_format="json_schema",
            registry=settings,
            on_schema_change=changes,
            **more,
        )
        return decoder(TableSpec(path="/t", name="t", ddl=ddl, **table), table_schema(ddl, True), spec)

    return make


def plain(table: pa.Table) -> str:
    return ddl_of(table.schema).replace("`", "")


@pytest.mark.parametrize("by", ["auto", "plain"])
def test_two_schemas_in_one_batch_widen_the_columns_before_any_row_is_decoded(
    registry: Registry, made: Made, by: str
) -> None:
    old, new = register(registry, NARROW), register(registry, WIDE)
    reads = made(decoder=by)
    first = value(old, id="a", n=1, unknown=7)
    assert plain(reads.decode(batch([first])).table) == "id STRING, n INT"
    both = reads.decode(batch([first, value(new, id="b", n=2**40, at=0.5), value(old, id="c", n=3)]))
    assert plain(both.table) == "id STRING, n BIGINT, at DOUBLE"
    assert both.table.to_pylist() == [
        {"id": "a", "n": 1, "at": None},
        {"id": "b", "n": 2**40, "at": 0.5},
        {"id": "c", "n": 3, "at": None},
    ]
    assert not both.rejects
    assert getattr(reads, "news", "") == f"schema {new} ({SUBJECT} version 2)"


def test_what_confluents_serializer_writes_is_followed_by_ids_before_values_and_in_headers(
    registry: Registry, made: Made
) -> None:
    def written(text: str, row: Any, **conf: Any) -> tuple[bytes, bytes]:
        headers: list[tuple[str, bytes]] = []
        context = SerializationContext("events", MessageField.VALUE, headers)
        client = SchemaRegistryClient({"url": registry.url})
        done = JSONSerializer(text, client, conf=conf)(row, context)
        assert isinstance(done, bytes)
        return done, pack(headers) if headers else b""

    in_header = {"schema.id.serializer": header_schema_id_serializer}
    rows = [
        written(NARROW, {"id": "a", "n": 1}),
        written(WIDE, {"id": "b", "n": 2, "at": None}),
        written(schema_of(id=TEXT, more={"type": "boolean"}), {"id": "c", "more": True}, **in_header),
    ]
    decoded = made().decode(batch([one for one, _ in rows], headers=[named for _, named in rows]))
    assert decoded.table.to_pylist() == [
        {"id": "a", "n": 1, "at": None, "more": None},
        {"id": "b", "n": 2, "at": None, "more": None},
        {"id": "c", "n": None, "at": None, "more": True},
    ]


def test_a_schema_is_asked_for_once_however_often_the_columns_grow(registry: Registry, made: Made) -> None:
    numbers = [
        register(registry, schema_of(id=TEXT, **{f"c{n}": TEXT for n in range(count)})) for count in range(5)
    ]
    rows = [value(number, id="a", **{f"c{n}": "x" for n in range(5)}) for number in numbers]
    decoded = made("id STRING").decode(batch(rows))
    assert decoded.table.column_names == ["id", "c0", "c1", "c2", "c3"]
    asked = [one for one in registry.asked if one.split("?")[0].rsplit("/", 1)[-1].isdigit()]
    assert sorted(asked) == sorted(set(asked)) and len(asked) == 5


def test_what_is_ignored_is_read_over(registry: Registry, made: Made) -> None:
    reads = made("id STRING, n BIGINT", IGNORE)
    assert not isinstance(reads, FollowingDecoder)
    decoded = reads.decode(batch([value(register(registry, WIDE), id="b", n=1, at=0.5)]))
    assert decoded.table.to_pylist() == [{"id": "b", "n": 1}]


def test_a_run_that_halts_at_changes_names_field_subject_and_version(registry: Registry, made: Made) -> None:
    old, new = register(registry, NARROW), register(registry, WIDE)
    reads = made(changes=HALT)
    rows = [value(old, id="a", n=1), value(new, id="b", n=1)]
    assert reads.decode(batch(rows[:1])).stop is None
    stop = reads.decode(batch(rows)).stop
    assert stop is not None and stop[0] == 1
    assert stop[1].startswith(
        f"schema {new} ({SUBJECT} version 2) has what the table has not, n BIGINT, at DOUBLE, and"
    )


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"n": TEXT}, "field n is INT and would be STRING"),
        ({"u": {"type": ["string", "integer"]}}, "field u: integer, string goes into no column"),
        ({"_kafka_x": TEXT}, "_kafka_"),
        ({"N": TEXT}, "field N is there as n"),
        ({"trace-id": TEXT}, "field 'trace-id' goes into no column"),
        ({"x": {"$ref": "#"}}, "field x: what $ref '#' leads to holds itself"),
    ],
)
def test_what_no_column_holds_stops_at_that_record_and_says_what_to_do(
    registry: Registry, made: Made, properties: Any, why: str
) -> None:
    number = register(registry, schema_of(id=TEXT, **properties))
    stop = made().decode(batch([value(number, id="a")])).stop
    assert stop is not None and stop[0] == 0
    assert stop[1].startswith(f"schema {number} ({SUBJECT} version 1): ") and why in stop[1]
    assert 'record.on_schema_change = "ignore"' in stop[1]


def test_what_is_no_schema_of_objects_or_not_known_is_a_reject_and_no_row_without_its_fields(
    registry: Registry, made: Made
) -> None:
    texts = ['{"type":"string"}', "[" * 5_000, "7", schema_of(id=TEXT, n={"type": "integer"})]
    text, broken, other, well = (register(registry, one) for one in texts)
    missing = register(registry, schema_of(id=TEXT), [{"name": "a", "subject": "none", "version": 1}])
    avro = registry.known.register(SUBJECT, {"schema": '"string"'})
    numbers = [text, broken, other, missing, avro, 77, well]
    rows = [*(value(number, id="a", n=1) for number in numbers), b"x" * 9, b"", None]
    decoded = made().decode(batch(rows))
    assert decoded.stop is None
    assert decoded.table.to_pylist() == [{"id": "a", "n": 1}]
    reasons = decoded.rejects.by_place()
    assert list(reasons) == [0, 1, 2, 3, 4, 5, 7, 8, 9]
    assert reasons[0] == f"schema {text} cannot be read by: the JSON Schema is not of objects but of string"
    assert "it is no JSON that can be read" in reasons[1]
    assert "it is no JSON Schema, but other JSON" in reasons[2]
    assert "the registry does not know it" in reasons[3]
    assert "it is one of AVRO, not of JSON Schema" in reasons[4]


def test_values_are_not_held_against_their_schema_and_what_it_does_not_name_is_read_over(
    registry: Registry, made: Made
) -> None:
    number = register(registry, '{"type":"object"}')
    decoded = made().decode(batch([value(number, id="a", n=1, other=1), value(number, id=7)]))
    assert decoded.stop is None and decoded.table.to_pylist() == [{"id": "a", "n": 1}]
    assert decoded.rejects.by_place() == {1: "field id: not a STRING but a number"}


def test_fields_of_a_schema_that_another_refers_to_become_columns(registry: Registry, made: Made) -> None:
    address = json.dumps({"type": "object", "properties": {"city": TEXT}})
    registry.known.register("address", {"schema": address, "schemaType": "JSON"})
    reference = {"name": "http://x/address.json", "subject": "address", "version": 1}
    text = schema_of(id=TEXT, at={"oneOf": [{"type": "null"}, {"$ref": "http://x/address.json"}]})
    number = register(registry, text, [reference])
    decoded = made("id STRING").decode(batch([value(number, id="a", at={"city": "Bern"})]))
    assert decoded.table.to_pylist() == [{"id": "a", "at": {"city": "Bern"}}]
    again = made("id STRING").decode(batch([value(number, id="a", at=None)]))
    assert again.stop is None and again.table.to_pylist() == [{"id": "a", "at": None}]


def test_a_registry_that_is_away_is_an_outage_but_for_what_is_kept_and_another_schema_stops(
    registry: Registry, made: Made
) -> None:
    number = register(registry, WIDE)
    row = value(number, id="b", n=1, at=0.5)
    assert not made(changes=IGNORE).decode(batch([row])).rejects, "kept, but not all that it refers to"
    registry.does = ERROR
    with pytest.raises(SchemasUnavailable):
        made().decode(batch([row]))
    registry.does = "well"
    wanted = [{"id": "b", "n": 1, "at": 0.5}]
    assert made().decode(batch([row])).table.to_pylist() == wanted
    registry.does = ERROR
    assert made().decode(batch([row])).table.to_pylist() == wanted
    registry.does = "well"
    registry.known.texts[0] = {"schema": NARROW, "schemaType": "JSON", "references": []}
    stop = made().decode(batch([row])).stop
    assert stop is not None and "the schema registry has another schema 1" in stop[1]
    assert made(changes=IGNORE).decode(batch([row])).stop is None


def test_columns_from_elsewhere_and_what_is_left_over_stay_as_they_are(
    registry: Registry, made: Made
) -> None:
    """Fields that record.columns names need not go into a column of their own."""
    text = schema_of(
        **{
            "id": TEXT,
            "trace-id": TEXT,
            "any": True,
            "extra": {"type": "integer"},
            "more": {"type": "integer"},
        }
    )
    number = register(registry, text)
    reads = made(
        "id STRING, trace STRING, what STRING, extra STRING",
        columns=(("trace", "value.trace-id"), ("what", "value.any")),
        rest="extra",
    )
    row = {"id": "a", "trace-id": "t", "any": "x", "extra": 7, "more": 8, "other": 9}
    decoded = reads.decode(batch([value(number, **row)]))
    assert decoded.stop is None, decoded.stop
    assert decoded.table.to_pylist() == [
        {"id": "a", "trace": "t", "what": "x", "extra": '{"extra":7,"other":9}', "more": 8}
    ]


def test_numbers_that_connect_means_as_times_become_some_by_columns_from_elsewhere(
    registry: Registry, made: Made
) -> None:
    at = {"type": "integer", "connect.type": "int64", "title": "org.apache.kafka.connect.data.Timestamp"}
    number = register(registry, schema_of(id=TEXT, at=at, then=at))
    reads = made("id STRING, at TIMESTAMP", columns=(("at", "value.at as MILLIS"),))
    decoded = reads.decode(batch([value(number, id="a", at=1, then=2)]))
    assert plain(decoded.table) == "id STRING, at TIMESTAMP, then BIGINT"
    assert str(decoded.table.column("at")[0]) == "1970-01-01 00:00:00.001000+00:00"


def test_of_an_upsert_table_records_without_a_value_are_deletes_as_before(
    registry: Registry, made: Made
) -> None:
    reads = made(table={"mode": UPSERT})
    key = value(register(registry, '{"type":"object"}'), id="a")
    row = value(register(registry, WIDE), id="b", n=1, at=0.5)
    decoded = reads.decode(batch([None, row, None], keys={0: key, 2: None}))
    assert decoded.table.to_pylist() == [{"id": "b", "n": 1, "at": 0.5}]
    assert decoded.tombstones is not None and decoded.tombstones.columns.to_pylist() == [{"id": "a"}]
    assert list(decoded.rejects.by_place()) == [2]


def test_a_first_map_beside_no_other_column_is_refused_in_words(registry: Registry, made: Made) -> None:
    with pytest.raises(SchemaError, match="only MAP columns"):
        made("m MAP<STRING,STRING>", table={"key_fields": ()})


def test_schemas_that_are_referred_to_are_told_with_their_names() -> None:
    assert spelled("{}", "") == "{}"
    assert name_and_text(spelled("{}", "a")) == ("a", "{}")
    assert alike(spelled('{"a": 1, "b": 2}', "n"), spelled('{"b":2,"a":1}', "n"))
    assert not alike(spelled("{}", "n"), spelled("{}", "m"))
    assert alike('{"a": 1}', '{"a":1}') and not alike("{}", "x") and not alike("[]", "[]")


def test_what_begins_alike_names_one_schema() -> None:
    follows = JsonFollows(Nothing(), lambda _key: "")
    assert follows.is_alike(b"\0\0\0\0\1") and not follows.is_alike(b"\1\0\0\0\1")
    assert follows.key(b"\0\0\0\0\7{}", None) == 7
    assert follows.spelled(7) == "schema 7"
    assert follows.columns(7, parse_ddl("id STRING")) == parse_ddl("id STRING")


class Nothing:
    """A registry in which every schema is of one field."""

    def find(self, _key: object) -> tuple[str, ...]:
        return (schema_of(id=TEXT),)
