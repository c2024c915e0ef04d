"""Avro values as columns: which type goes where, what stands before a datum, what is a reject by itself."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

from participant.records.avro.decoder import AvroKeys
from participant.records.avro.format import AvroFormat
from participant.records.avro.schema import fingerprint_of
from participant.records.by_schema import one_by_one
from participant.records.by_schema.framing import SchemaKey
from participant.records.by_schema.one_by_one import Schemas
from participant.records.envelopes.plain import ChangeDecoder
from participant.records.errors import ChangedSchema, SchemasUnavailable, UnknownSchema
from participant.records.headers import pack
from participant.records.port import Decoded, Decoder, RecordSpec
from table.schema import SchemaError, parse_ddl
from tests.avro_decoders import DECODERS
from tests.avro_types import GUID, INNER, MD5, TAKEN, bare, logical, record, written
from tests.decoding import batch
from tests.json_decoders import skip_unless_there

Make = Callable[[pa.Schema, str, Schemas], Decoder]


@pytest.fixture(params=DECODERS)
def make(request: pytest.FixtureRequest) -> Make:
    """Each decoder of Avro."""
    skip_unless_there(request.param)
    return DECODERS[request.param]


class Known:
    """Schemas by key; asked says which were asked for."""

    def __init__(self, texts: Mapping[SchemaKey, str], error: Exception | None = None) -> None:
        self._texts, self._error = texts, error
        self.asked: list[SchemaKey] = []

    def find(self, key: SchemaKey) -> tuple[str, ...]:
        self.asked.append(key)
        if key in self._texts:
            return (self._texts[key],)
        raise self._error or UnknownSchema("the registry does not know it")


def by_id(number: int, datum: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + datum


def decoded(make: Make, ddl: str, text: str, rows: Sequence[Any]) -> Decoded:
    decoder = make(parse_ddl(ddl), "confluent", Known({7: text}))
    return decoder.decode(batch([by_id(7, written(text, row)) for row in rows]))


@pytest.mark.parametrize(
    ("avro", "ddl", "row", "read"), TAKEN, ids=[f"{one[1]}-{number}" for number, one in enumerate(TAKEN)]
)
def test_a_type_is_read_into_the_columns_that_take_all_of_it(
    make: Make, avro: Any, ddl: str, row: Any, read: Any
) -> None:
    value = by_id(7, written(record({"x": bare(avro, row)}), {"x": row}))
    schema = parse_ddl(f"x {ddl}")
    found = make(schema, "confluent", Known({7: record({"x": avro})})).decode(batch([value]))
    assert not found.rejects, found.rejects[0].reason
    assert found.table.schema == schema
    found.table.validate(full=True)
    assert found.table.column("x").to_pylist() == [read]


REFUSED: list[tuple[Any, str, str]] = [
    ("long", "INT", "field x: a long is not read as INT; it is as BIGINT"),
    ("long", "DOUBLE", "field x: a long is not read as DOUBLE; it is as BIGINT"),
    ("double", "FLOAT", "not read as FLOAT; it is as DOUBLE"),
    ("int", "STRING", "an int is not read as STRING; it is as INT or BIGINT or DOUBLE"),
    ("string", "BINARY", "a string is not read as BINARY"),
    ("bytes", "STRING", "a bytes is not read as STRING"),
    ("null", "STRING", "a null is not read as STRING"),
    (["null", "long", "string"], "STRING", "a union of null, long, string is not read"),
    (["null"], "STRING", "a union of null is not read"),
    ([INNER, MD5], "BINARY", "a union of inner, md5 is not read"),
    (logical("int", "date"), "INT", "a date is not read as INT; it is as DATE"),
    (
        logical("int", "time-millis"),
        "TIMESTAMP",
        "a time-millis is not read as TIMESTAMP; it is as INT or BIGINT",
    ),
    (logical("long", "timestamp-micros"), "BIGINT", "not read as BIGINT; it is as TIMESTAMP"),
    (logical("long", "timestamp-micros"), "TIMESTAMP_NTZ", "not read as TIMESTAMP_NTZ"),
    (
        logical("long", "timestamp-nanos"),
        "TIMESTAMP",
        "a timestamp-nanos is not read as TIMESTAMP; it is as BIGINT",
    ),
    (logical("long", "local-timestamp-micros"), "TIMESTAMP", "is as TIMESTAMP_NTZ"),
    (logical("bytes", "decimal", precision=4, scale=2), "DECIMAL(4,1)", "does not fit into"),
    (logical("bytes", "decimal", precision=4, scale=2), "DECIMAL(4,3)", "does not fit into"),
    (logical("bytes", "decimal", precision=40, scale=2), "DECIMAL(38,2)", "does not fit into"),
    (logical("bytes", "decimal", precision=4, scale=2), "BINARY", "it is as DECIMAL"),
    (INNER, "STRING", "a record is not read as STRING; it is as STRUCT"),
    (INNER, "STRUCT<c: INT NOT NULL>", "record inner has no field x.c, which is required"),
    (INNER, "STRUCT<a: INT>", "field x.a: a long is not read as INT"),
    ({"type": "array", "items": "long"}, "ARRAY<INT>", "field x\\[\\]: a long is not read as INT"),
    ({"type": "map", "values": "long"}, "STRUCT<a: BIGINT>", "a map is not read as STRUCT"),
    ("long", "STRING NOT NULL, y STRING NOT NULL", "has no field y, which is required"),
]


@pytest.mark.parametrize(
    ("avro", "ddl", "why"), REFUSED, ids=[f"{one[1]}-{number}" for number, one in enumerate(REFUSED)]
)
def test_what_would_lose_something_is_a_reject_that_names_field_and_way_out(
    make: Make, avro: Any, ddl: str, why: str
) -> None:
    text = record({"x": avro, "other": "int"})
    found = make(parse_ddl(f"x {ddl}"), "confluent", Known({7: text})).decode(batch([by_id(7, b"\0\0")]))
    assert found.table.num_rows == 0
    assert re.search(f"schema 7 cannot be read by: .*{why}", found.rejects[0].reason)


DDL = "id STRING NOT NULL, n BIGINT"
OLD, NEW = record({"id": "string"}), record({"n": ["null", "long"], "more": "bytes", "id": "string"})


def test_each_record_is_read_by_the_schema_that_it_names_and_fields_go_by_name(make: Make) -> None:
    known = Known({1: OLD, 2: NEW})
    decoder = make(parse_ddl(DDL), "confluent", known)
    old, new = written(OLD, {"id": "a"}), written(NEW, {"id": "b", "n": 4, "more": b"!"})
    found = decoder.decode(batch([by_id(1, old), by_id(2, new), by_id(1, old)]))
    assert found.table.to_pylist() == [{"id": "a", "n": None}, {"id": "b", "n": 4}, {"id": "a", "n": None}]
    assert found.kept is None and known.asked == [1, 2]


HEADER = "__value_schema_id"


@pytest.mark.parametrize(
    ("headers", "before"),
    [
        ([(HEADER, b"\0\0\0\0\x07")], b""),
        ([("other", b"x"), (HEADER, b"\x01" + UUID(GUID).bytes), (HEADER, b"later")], b""),
        ([("other", None)], b"\0\0\0\0\x07"),
        ([("x", b"__value_schema_id")], b"\x01" + UUID(GUID).bytes),
        ([("__key_schema_id", b"\0\0\0\0\x09")], b"\0\0\0\0\x07"),
    ],
)
def test_an_id_or_guid_stands_in_a_header_or_before_the_value(
    make: Make, headers: list[tuple[str, bytes | None]], before: bytes
) -> None:
    decoder = make(parse_ddl(DDL), "confluent", Known({7: OLD, GUID: OLD}))
    found = decoder.decode(batch([before + written(OLD, {"id": "a"})], headers=[pack(headers)]))
    assert found.table.to_pylist() == [{"id": "a", "n": None}]


GOOD = by_id(7, written(OLD, {"id": "a"}))
BAD: list[tuple[bytes | None, bytes, str]] = [
    (None, b"", "null value"),
    (b"", b"", "empty value"),
    (b"\x02\x00\x00\x00\x07\x02a", b"", "does not begin with a schema's id"),
    (b'{"id":"a"}', b"", "does not begin with a schema's id"),
    (b"\x03\x00" + bytes(range(16)) + b"\x02a", b"", "as AWS Glue's registry has it: a byte 3"),
    (b"\x03\x05" + bytes(range(16)) + b"x", b"", "schema version 00010203-0405-0607-0809-0a0b0c0d0e0f"),
    (b"\x00\x00\x00\x00\x00\x00\x00\x00\x07\x02a", b"", "Apicurio's ids of eight bytes begin so"),
    (b"\0\0\0\0", b"", "ends within its schema's id"),
    (b"\x01\0\0\0\x07\x02a", b"", "ends within its schema's id"),
    (by_id(8, b"\x02a"), b"", "schema 8 cannot be read by: the registry does not know it"),
    (by_id(7, b""), b"", "ends in the middle"),
    (GOOD + b"\0", b"", "more bytes follow the value's end"),
    (GOOD, pack([(HEADER, b"")]), "the header that names the schema does not begin"),
    (GOOD, pack([(HEADER, b"\0\0\0\0\x07\0")]), "longer than a schema's id"),
]


def test_every_bad_record_is_a_reject_by_itself_with_its_reason(make: Make) -> None:
    decoder = make(parse_ddl(DDL), "confluent", Known({7: OLD}))
    values = [GOOD, *(value for value, _, _ in BAD), GOOD]
    found = decoder.decode(batch(values, headers=[b"", *(headers for _, headers, _ in BAD), b""]))
    assert found.table.num_rows == 2 and found.kept is not None
    assert found.kept.tolist() == [0, len(BAD) + 1]
    assert [one.offset for one in found.rejects] == [1_003 + 3 * place for place in range(len(BAD))]
    for reject, (_, _, why) in zip(found.rejects, BAD, strict=True):
        assert why in reject.reason


def test_a_schema_that_is_none_rejects_its_records_and_no_others(make: Make) -> None:
    known = Known({7: OLD, 8: '{"type":"record"}', 9: '"string"', 10: record({"id": ["null", "r"]})})
    decoder = make(parse_ddl(DDL), "confluent", known)
    found = decoder.decode(batch([by_id(8, b"x"), GOOD, by_id(9, b"x"), by_id(10, b"x")]))
    assert found.table.num_rows == 1
    reasons = [one.reason for one in found.rejects]
    assert "is none" in reasons[0] and "not a record but a string" in reasons[1] and "recursive" in reasons[2]


def test_groups_of_values_become_one_table(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_by_one, "GROUP_BYTES", 10)
    rows = [{"id": f"e{number}"} for number in range(7)]
    assert decoded(make, DDL, OLD, rows).table.column("id").to_pylist() == [row["id"] for row in rows]


def test_a_registry_that_is_away_is_no_reject(make: Make) -> None:
    decoder = make(parse_ddl(DDL), "confluent", Known({}, SchemasUnavailable("away")))
    with pytest.raises(SchemasUnavailable):
        decoder.decode(batch([GOOD]))


def test_a_schema_that_became_another_stops_before_its_first_record(make: Make) -> None:
    decoder = make(parse_ddl(DDL), "confluent", Known({7: OLD}, ChangedSchema("two of one name")))
    assert decoder.decode(batch([GOOD, by_id(8, b"x"), GOOD])).stop == (1, "two of one name")


# --- schemas that were given ------------------------------------------------------------------------


def spec(framing: str, text: str = "", key_text: str = "") -> RecordSpec:
    return RecordSpec(format="avro", framing=framing, schema_text=text, key_schema_text=key_text)


def test_a_single_object_names_its_schema_by_fingerprint_among_those_of_the_file() -> None:
    both = json.dumps([json.loads(OLD), json.loads(NEW)])
    decoder = AvroFormat(spec("single_object", both)).values(parse_ddl(DDL))
    old = b"\xc3\x01" + fingerprint_of(OLD) + written(OLD, {"id": "a"})
    new = b"\xc3\x01" + fingerprint_of(NEW) + written(NEW, {"id": "b", "n": 1, "more": b""})
    strange = b"\xc3\x01" + b"\0" * 8 + b"\x02a"
    found = decoder.decode(batch([old, new, strange, b"\xc3\x01abc", b"\x02a"]))
    assert found.table.to_pylist() == [{"id": "a", "n": None}, {"id": "b", "n": 1}]
    assert [one.reason.partition(" cannot")[0] for one in found.rejects] == [
        "the schema of fingerprint 0000000000000000",
        "the value ends within its schema's fingerprint",
        "the value does not begin with C3 01, as the single-object encoding does",
    ]


def test_without_framing_every_value_is_of_the_schema_in_the_file() -> None:
    decoder = AvroFormat(spec("none", OLD)).values(parse_ddl(DDL))
    assert decoder.decode(batch([written(OLD, {"id": "a"})])).table.column("id").to_pylist() == ["a"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (spec("none"), "record.schema_file is missing"),
        (spec("confluent"), "registry.url is missing"),
        (spec("none", record({"id": "long"})), "field id: a long is not read as STRING"),
        (spec("none", "x"), "not JSON"),
        (spec("single_object", "x"), "not JSON"),
        (spec("single_object", "[5]"), "is none"),
        (spec("single_object", json.dumps([json.loads(OLD), {"type": "fixed"}])), "is none"),
    ],
)
def test_a_schema_that_cannot_be_read_is_found_before_any_record(given: RecordSpec, why: str) -> None:
    with pytest.raises(SchemaError, match=why):
        AvroFormat(given).values(parse_ddl(DDL))


# --- keys -------------------------------------------------------------------------------------------


def test_a_key_is_a_record_or_one_fields_value() -> None:
    fields = [pa.field("id", pa.string())]
    texts = {1: record({"id": ["null", "string"]}), 2: '"string"', 3: '["null","string"]', 4: '"long"'}
    keys = AvroKeys(fields, "confluent", Known(texts))
    given = {
        0: by_id(1, b"\x02\x02a"),
        1: by_id(2, b"\x02b"),
        2: by_id(3, b"\0"),
        3: by_id(4, b"\x02"),
        4: by_id(1, b"\0"),
        5: b"\x02c",
        6: None,
    }
    header = pack([("__key_schema_id", b"\0\0\0\0\x02")])
    whole = batch([None] * 7, headers=[b""] * 5 + [header, b""], keys=given)
    tombstones, rejects = keys.read(whole, np.arange(7))
    assert tombstones.columns.column("id").to_pylist() == ["a", "b", "c"]
    assert tombstones.places.tolist() == [0, 1, 5]
    assert sorted(rejects.by_place()) == [2, 3, 4, 6]
    assert all("Kafka key" in one.reason or "without a key" in one.reason for one in rejects)


def test_a_key_of_several_fields_is_a_record_with_all_of_them() -> None:
    fields = [pa.field("id", pa.string()), pa.field("n", pa.int64())]
    with pytest.raises(SchemaError, match="has no field n, which is required"):
        AvroFormat(spec("none", key_text=OLD)).keys(fields)


def test_a_stop_is_at_its_records_place_though_records_without_a_value_stand_before_it(make: Make) -> None:
    values = make(parse_ddl(DDL), "confluent", Known({7: OLD}, ChangedSchema("two of one name")))
    keys = AvroKeys([pa.field("id", pa.string())], "confluent", Known({2: '"string"'}))
    decoder = ChangeDecoder(values, keys, "")
    whole = batch([None, GOOD, None, by_id(8, b"x")], keys={0: by_id(2, b"\x02a"), 2: by_id(2, b"\x02b")})
    assert decoder.decode(whole).stop == (3, "two of one name")
    before = decoder.decode(whole.head(3))
    assert before.stop is None and before.table.num_rows == 1 and before.tombstones is not None
    assert before.tombstones.places.tolist() == [0, 2]


def test_a_key_whose_schema_became_another_is_waited_for_and_no_reject() -> None:
    keys = AvroKeys([pa.field("id", pa.string())], "confluent", Known({}, ChangedSchema("two of one name")))
    with pytest.raises(SchemasUnavailable, match="Kafka key of a record without a value: two of one name"):
        keys.read(batch([None], keys={0: by_id(2, b"\x02a")}), np.array([0]))
