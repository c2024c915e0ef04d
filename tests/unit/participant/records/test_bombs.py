"""Small inputs that become much: what decoding takes stays within a worker's memory, for every format."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pyarrow as pa
import pytest

from participant.records.avro.decoder import AvroDecoder
from participant.records.avro.natural import columns_of as avro_columns
from participant.records.avro.schema import parse
from participant.records.avro.schemas import GivenSchemas
from participant.records.by_schema.following import NoColumn
from participant.records.errors import BatchTooLarge
from participant.records.json.decoder import JsonDecoder
from participant.records.json_schema.natural import columns_of as json_columns
from participant.records.native import native_module
from participant.records.protobuf.files import message_of
from participant.records.protobuf.follows import columns_of as protobuf_columns
from participant.records.value_limits import BATCH_VALUES_MAX, VALUES_MAX, places
from participant.worker.memory import MemoryBudget
from table.schema import SchemaError, parse_ddl
from tests.bombs import BOMBS, FIELDS, NAME, decoder_of, play
from tests.decoding import batch
from tests.json_decoders import NATIVE, PLAIN, skip_unless_there
from tests.proto_files import compiled, encoded

MEMORY = MemoryBudget(512_000_000)
IN_WORK_BYTES = MEMORY.per_worker_bytes // 2
"""For decoding: what is buffered, fetched and held beside it takes the other half."""
HEAVY = ("decimal", "packed")
"""Bombs of many values that are there: a record may have one for each of its bytes."""
RECORDS = {NATIVE: 60, PLAIN: 5}


@pytest.mark.parametrize("decoder", [NATIVE, PLAIN])
@pytest.mark.parametrize("name", [name for name in BOMBS if not any(word in name for word in HEAVY)])
def test_a_record_that_becomes_more_than_a_million_values_is_rejected(name: str, decoder: str) -> None:
    skip_unless_there(decoder)
    played = play(name, decoder, 20_000, 1)
    assert (played.error, played.rows, played.rejects) == ("", 0, 1), played
    (reason,) = played.reasons
    assert "more than 1,000,000 values" in reason
    assert played.grown_bytes < IN_WORK_BYTES, played


@pytest.mark.parametrize("decoder", [NATIVE, PLAIN])
@pytest.mark.parametrize("name", [name for name in BOMBS if "long" not in name])
def test_many_records_of_less_than_a_million_values_are_decoded_in_parts(name: str, decoder: str) -> None:
    skip_unless_there(decoder)
    played = play(name, decoder, 2_400, RECORDS[decoder])
    assert (played.error, played.rows, played.rejects) == ("", RECORDS[decoder], 0), played
    assert played.grown_bytes < IN_WORK_BYTES, played


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("avro, records of a byte in an array", 3_000),
        ("avro, long symbols of an enum", 400),
        ("protobuf, messages of no byte", 3_000),
        ("protobuf, packed numbers", 3_000),
        ("protobuf, long names of an enum", 1_000),
    ],
)
def test_a_plain_decoder_counts_items_and_names(name: str, count: int) -> None:
    """In this process, with few enough to do no harm where they are not counted."""
    decoded = decoder_of(name, PLAIN).decode(batch(BOMBS[name]().values(count)))
    if name == "protobuf, packed numbers":
        assert decoded.table.num_rows == 1, "a value for each byte"
    else:
        assert [one.index for one in decoded.rejects] == [0]


def test_the_native_and_the_plain_decoders_have_the_same_limits() -> None:
    skip_unless_there(NATIVE)
    assert (native_module().VALUES_MAX, native_module().BATCH_VALUES_MAX) == (VALUES_MAX, BATCH_VALUES_MAX)


def test_the_places_of_a_struct_are_those_of_its_fields_and_of_a_list_one() -> None:
    kinds = parse_ddl("a STRUCT<b: INT, c: STRUCT<d: INT, e: INT>>, f ARRAY<STRUCT<g: INT, h: INT>>, i INT")
    assert list(map(places, kinds.types)) == [3, 1, 1]


@pytest.mark.parametrize("decoder", [NATIVE, PLAIN])
@pytest.mark.parametrize("name", [name for name in BOMBS if any(word in name for word in HEAVY)])
def test_a_long_record_may_have_a_value_for_each_of_its_bytes(name: str, decoder: str) -> None:
    skip_unless_there(decoder)
    played = play(name, decoder, 3_000, 1)
    assert (played.error, played.rows, played.rejects) == ("", 1, 0), played
    assert played.grown_bytes < IN_WORK_BYTES, played


def test_a_batch_of_one_record_is_never_too_large_and_each_half_of_another_ends_there() -> None:
    value = b'{"i":[' + b",".join([b"{}"] * 9_000) + b"]}"
    decoder = JsonDecoder(parse_ddl("i ARRAY<STRUCT<" + ", ".join(f"c{n}: INT" for n in range(100)) + ">>"))
    raw = batch([value] * 6)
    with pytest.raises(BatchTooLarge):
        decoder.decode(raw)
    first, second = raw.halves
    assert [*first.offsets, *second.offsets] == list(raw.offsets)
    assert decoder.decode(first).table.num_rows == decoder.decode(second).table.num_rows == 3


def test_what_is_too_large_is_a_reject_among_rows_by_its_own_offset() -> None:
    fields = ", ".join(f"c{n}: INT" for n in range(100))
    large = b'{"i":[' + b",".join([b"{}"] * 11_000) + b"]}"
    decoder = JsonDecoder(parse_ddl(f"i ARRAY<STRUCT<{fields}>>"))
    raw = batch([b'{"i":[{"c1":1}]}', large, b'{"i":[]}', b"broken"])
    decoded = decoder.decode(raw)
    assert decoded.kept is not None and decoded.kept.tolist() == [0, 2]
    assert [one.offset for one in decoded.rejects] == [raw.offsets[1], raw.offsets[3]]
    assert "more than 1,000,000 values" in decoded.rejects[0].reason


# --- schemas --------------------------------------------------------------------------------------


def doubled(levels: int) -> str:
    """An Avro schema whose records each hold the one before twice."""
    inner: dict[str, object] = {"type": "record", "name": "R0", "fields": [{"name": "a", "type": "int"}]}
    for n in range(1, levels):
        fields = [{"name": "a", "type": inner}, {"name": "b", "type": f"R{n - 1}"}]
        inner = {"type": "record", "name": f"R{n}", "fields": fields}
    return json.dumps({"type": "record", "name": "T", "fields": [{"name": "x", "type": inner}]})


def doubled_messages(levels: int) -> str:
    messages = "".join(f"message R{n} {{ R{n - 1} a = 1; R{n - 1} b = 2; }} " for n in range(1, levels))
    return f'syntax = "proto3"; message T {{ R{levels - 1} x = 1; }} message R0 {{ int32 a = 1; }} {messages}'


def doubled_objects(levels: int) -> str:
    inner: dict[str, object] = {"type": "object", "properties": {"a": {"type": "integer"}}}
    named = {"R0": inner}
    for n in range(1, levels):
        both = {"$ref": f"#/$defs/R{n - 1}"}
        named[f"R{n}"] = {"type": "object", "properties": {"a": both, "b": both}}
    top = {"type": "object", "properties": {"x": {"$ref": f"#/$defs/R{levels - 1}"}}}
    return json.dumps({**top, "$defs": named})


def of_avro(levels: int) -> None:
    avro_columns(parse([doubled(levels)]), pa.schema([]))


def of_protobuf(levels: int) -> None:
    files = compiled({"t.proto": doubled_messages(levels)})
    protobuf_columns(message_of((encoded(files.file[0]),), (0,)), pa.schema([]))


def of_json_schema(levels: int) -> None:
    json_columns((doubled_objects(levels),), pa.schema([]))


@pytest.mark.parametrize("look", [of_avro, of_protobuf, of_json_schema])
def test_a_schema_of_a_few_kilobytes_whose_types_double_goes_into_no_column(
    look: Callable[[int], None],
) -> None:
    began = time.process_time()
    with pytest.raises(NoColumn, match=r"more than 20,000"):
        look(26)
    assert time.process_time() - began < 30
    look(4)


def test_names_that_are_long_and_used_often_go_into_no_column() -> None:
    inner = {"type": "record", "name": "I", "fields": [{"name": NAME, "type": "int"}]}
    fields = [{"name": "a", "type": inner}, *({"name": f"a{n}", "type": "I"} for n in range(FIELDS))]
    text = json.dumps({"type": "record", "name": "T", "fields": fields})
    with pytest.raises(NoColumn, match="names of more than"):
        avro_columns(parse([text]), pa.schema([]))


def test_types_that_are_nested_by_name_are_as_deep_as_those_that_are_nested_in_the_text() -> None:
    """Whoever reads them calls itself for each level."""
    first = {"type": "record", "name": "R0", "fields": [{"name": "a", "type": "int"}]}
    fields: list[dict[str, object]] = [{"name": "f0", "type": first}]
    for n in range(1, 5_000):
        inner = {"type": "record", "name": f"R{n}", "fields": [{"name": "a", "type": f"R{n - 1}"}]}
        fields.append({"name": f"f{n}", "type": inner})
    text = json.dumps({"type": "record", "name": "T", "fields": fields})
    with pytest.raises(SchemaError, match="nested more than 64 deep"):
        parse([text])


def test_fields_that_take_no_byte_and_are_no_columns_are_not_read() -> None:
    """A thousand of them in each of a million items would take hours."""
    nulls = [{"name": f"n{n}", "type": "null"} for n in range(5_000)]
    item = {"type": "record", "name": "I", "fields": [{"name": "b", "type": "boolean"}, *nulls]}
    fields = [{"name": "id", "type": "string"}, {"name": "x", "type": {"type": "array", "items": item}}]
    text = json.dumps({"type": "record", "name": "T", "fields": fields})
    decoder = AvroDecoder(parse_ddl("id STRING"), "none", GivenSchemas(text, by_fingerprint=False))
    value = b"\x02a" + b"\xc0\x9a\x0c" + b"\0" * 100_000 + b"\0"
    began = time.process_time()
    assert decoder.decode(batch([value])).table.to_pylist() == [{"id": "a"}]
    assert time.process_time() - began < 15, "500 million nulls were read"
