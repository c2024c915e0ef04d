"""The native decoder of Avro: what it takes it reads alone; what it does not take the plain one looks at."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest

from participant.records import native as shared
from participant.records.avro.decoder import AvroDecoder
from participant.records.avro.format import AvroFormat
from participant.records.avro.native import NativeAvro
from participant.records.avro.schemas import GivenSchemas
from participant.records.by_schema import native
from participant.records.errors import BatchTooLarge, ChangedSchema, SchemasUnavailable, UnknownSchema
from participant.records.headers import pack
from participant.records.native import native_module
from participant.records.port import RecordSpec, decoded_parts
from participant.records.raw import Values
from participant.records.registry.settings import RegistrySettings
from table.schema import SchemaError, parse_ddl
from tests.avro_types import TAKEN, bare, record, written
from tests.decoding import batch, fates
from tests.json_decoders import compiled
from tests.unit.participant.records.avro.test_datum import BAD, number

needs_module = pytest.mark.skipif(not compiled(), reason="participant.records._native is not compiled here")
TEXT = record({"id": "string", "n": ["null", "long"], "more": {"type": "map", "values": "string"}})
SCHEMA = parse_ddl("id STRING NOT NULL, n BIGINT")


class Known:
    """Schemas by id: a text, or what asking for it ends in."""

    def __init__(self, **texts: str | Exception) -> None:
        self.texts = {int(name[1:]): one for name, one in texts.items()}

    def find(self, key: Any) -> tuple[str, ...]:
        found = self.texts.get(key, UnknownSchema("the registry does not know it"))
        if isinstance(found, Exception):
            raise found
        return (found,)


def by_id(number: int, row: Any, text: str = TEXT) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + written(text, row)


def row(at: int) -> dict[str, Any]:
    return {"id": f"e{at}", "n": None if at % 3 == 0 else at - 5, "more": {"k": "ä", "l": "y" * at}}


def alone(decoder: NativeAvro, monkeypatch: pytest.MonkeyPatch) -> NativeAvro:
    """The decoder, which may not ask the plain one about records."""
    monkeypatch.setattr(decoder._plain, "decode", lambda batch: pytest.fail("left to the plain decoder"))
    return decoder


def reader(avro: Any, schema: pa.Schema) -> NativeAvro:
    return NativeAvro(schema, "none", GivenSchemas(record({"x": avro}), by_fingerprint=False))


# --- where it is there --------------------------------------------------------------------------------


@needs_module
@pytest.mark.parametrize(
    ("avro", "ddl", "value", "read"), TAKEN, ids=[f"{one[1]}-{at}" for at, one in enumerate(TAKEN)]
)
def test_whatever_goes_into_a_column_is_read_natively(
    monkeypatch: pytest.MonkeyPatch, avro: Any, ddl: str, value: Any, read: Any
) -> None:
    datum = written(record({"x": bare(avro, value)}), {"x": value})
    schema = parse_ddl(f"x {ddl}")
    found = alone(reader(avro, schema), monkeypatch).decode(batch([datum] * 3))
    found.table.validate(full=True)
    assert found.table.schema == schema
    assert found.table.column("x").to_pylist() == [read] * 3


@needs_module
@pytest.mark.parametrize(
    ("avro", "kind", "data", "why"), [one[1:] for one in BAD], ids=[one[0] for one in BAD]
)
def test_what_is_no_datum_is_refused_natively_too_and_the_plain_decoder_says_why(
    avro: Any, kind: pa.DataType, data: bytes, why: str
) -> None:
    schema = pa.schema([pa.field("x", kind)])
    decoder = reader(avro, schema)
    decoder.check(b"")
    assert decoder._learn([b""])
    values = Values.of([data, data])
    (_, refused), unknown = decoder._native.decode(values.data, values.starts)
    assert np.frombuffer(refused, dtype=np.int64).tolist() == [0, 1] and not unknown
    plain = AvroDecoder(schema, "none", GivenSchemas(record({"x": avro}), by_fingerprint=False))
    assert fates(decoder.decode(batch([data])), 1) == fates(plain.decode(batch([data])), 1)


@needs_module
@pytest.mark.parametrize("avro", [["long", "string", "null"], {"type": "array", "items": "long"}, "bytes"])
def test_what_becomes_of_no_column_is_read_as_strictly(avro: Any) -> None:
    text = record({"over": avro, "map": {"type": "map", "values": "string"}, "x": "long"})
    given = GivenSchemas(text, by_fingerprint=False)
    schema = parse_ddl("x BIGINT")
    decoder, plain = NativeAvro(schema, "none", given), AvroDecoder(schema, "none", given)
    over = {"bytes": b"abc"}.get(str(avro), [5, 6] if isinstance(avro, dict) else "text")
    whole = written(text, {"over": over, "map": {"a": "ä", "b": "z"}, "x": 7})
    values: list[bytes | None] = [whole[:end] for end in range(len(whole) + 1)]
    values += [
        whole[:at] + bytes([byte]) + whole[at + 1 :]
        for at in range(len(whole))
        for byte in (0, 1, 3, 0x61, 0x7F, 0x80, 0xFF)
    ]
    found, wanted = decoder.decode(batch(values)), plain.decode(batch(values))
    assert fates(found, len(values)) == fates(wanted, len(values))
    assert found.table.num_rows and found.rejects


@needs_module
def test_a_good_batch_of_several_schemas_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    other = record({"n": "int", "id": {"type": "enum", "name": "e", "symbols": ["A", "B"]}})
    decoder = alone(NativeAvro(SCHEMA, "confluent", Known(_1=TEXT, _2=other)), monkeypatch)
    values = [by_id(1, row(at)) if at % 2 else by_id(2, {"n": at, "id": "B"}, other) for at in range(500)]
    found = decoder.decode(batch(values))
    assert found.table.column("id").to_pylist() == [f"e{at}" if at % 2 else "B" for at in range(500)]
    assert found.kept is None and not found.rejects


@needs_module
def test_ids_in_headers_are_read_natively(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = alone(NativeAvro(SCHEMA, "confluent", Known(_1=TEXT)), monkeypatch)
    named = pack([("other", None), ("__value_schema_id", b"\0\0\0\0\1"), ("__value_schema_id", b"later")])
    null = pack([("__value_schema_id", None)])
    values = [written(TEXT, row(1)), by_id(1, row(2)), by_id(1, row(3))]
    found = decoder.decode(batch(values, headers=[named, b"", null]))
    assert found.table.column("id").to_pylist() == ["e1", "e2", "e3"]


@needs_module
def test_only_what_is_bad_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = NativeAvro(SCHEMA, "confluent", Known(_1=TEXT))
    plain, seen = decoder._plain.decode, []
    monkeypatch.setattr(
        decoder._plain, "decode", lambda batch: (seen.append(list(batch.values)), plain(batch))[1]
    )
    values: list[bytes | None] = [by_id(1, row(at)) for at in range(1_000)]
    cut, torn = by_id(1, row(3))[:-2], by_id(1, {"id": "x", "n": 1, "more": {}}).replace(b"x", b"\xff")
    values[314], values[315], values[700], values[701] = cut, torn, None, by_id(9, row(5))
    found = decoder.decode(batch(values))
    assert seen == [[cut, torn, None, by_id(9, row(5))]]
    assert [one.index for one in found.rejects] == [314, 315, 700, 701]
    assert [one.reason for one in found.rejects] == [
        "field more{}: the value ends in the middle",
        "field id: a string that is not UTF-8",
        "null value",
        "schema 9 cannot be read by: the registry does not know it",
    ]
    assert found.table.column("id").to_pylist() == [
        f"e{at}" for at in range(1_000) if at not in (314, 315, 700, 701)
    ]


@needs_module
def test_records_of_a_schema_that_only_the_plain_decoder_reads_keep_no_others_from_the_native_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    zoned = {"type": "string", "connect.name": "io.debezium.time.ZonedTimestamp"}
    at, text = parse_ddl("at TIMESTAMP"), record({"at": zoned})
    micros = record({"at": {"type": "long", "logicalType": "timestamp-micros"}})
    decoder = NativeAvro(at, "confluent", Known(_1=text, _2=micros))
    plain, seen = decoder._plain.decode, []
    monkeypatch.setattr(decoder._plain, "decode", lambda batch: (seen.append(len(batch)), plain(batch))[1])
    values = [by_id(2, {"at": 5}, record({"at": "long"})), by_id(1, {"at": "2026-11-26T00:00:00Z"}, text)]
    for _ in range(2):
        assert decoder.decode(batch(values * 3)).table.num_rows == 6
    assert seen == [3, 3]


@needs_module
def test_texts_that_are_utf_8_only_together_are_no_texts() -> None:
    """The halves of one character: all texts of a column stand one behind the other, and are looked at so."""
    decoder = NativeAvro(SCHEMA, "confluent", Known(_1=TEXT))
    halves = [by_id(1, row(2)).replace(b"e2", half) for half in (b"e\xc3", b"\xa4e")]
    found = decoder.decode(batch([by_id(1, row(1)), *halves, by_id(1, row(4))]))
    assert found.table.column("id").to_pylist() == ["e1", "e4"]
    assert [one.reason for one in found.rejects] == ["field id: a string that is not UTF-8"] * 2


@needs_module
def test_a_batch_after_a_bad_one_is_read_like_any_other() -> None:
    inner = json.loads(record({"y": {"type": "map", "values": ["null", "long"]}, "z": "string"}, "i"))
    text = record({"a": {"type": "array", "items": inner}, "b": ["null", inner.get("name")], "c": "boolean"})
    ddl = "a ARRAY<STRUCT<y: MAP<STRING, BIGINT>, z: STRING NOT NULL>>, b STRUCT<z: STRING>, c BOOLEAN"
    decoder = NativeAvro(parse_ddl(ddl), "none", GivenSchemas(text, by_fingerprint=False))
    part = {"y": {"k": 1, "l": None}, "z": "text"}
    good = written(text, {"a": [part, part], "b": part, "c": True})
    torn: list[bytes | None] = [good[:end] for end in range(1, len(good))]
    read = {"y": [("k", 1), ("l", None)], "z": "text"}
    whole = {"a": [read, read], "b": {"z": "text"}, "c": True}
    for values in (torn, [good], [*torn, good, *torn], [good, good]):
        decoded = decoder.decode(batch(values))
        decoded.table.validate(full=True)
        found = [one for one in fates(decoded, len(values)) if isinstance(one, dict)]
        assert found == [whole] * values.count(good)


@needs_module
@pytest.mark.parametrize("why", [ChangedSchema("two of one name"), SchemasUnavailable("away")])
def test_what_may_not_pass_ends_the_batch_where_it_does_by_the_plain_decoder(why: Exception) -> None:
    values = [by_id(1, row(1)), b"", by_id(8, row(2)), by_id(1, row(3))]
    decoder = NativeAvro(SCHEMA, "confluent", Known(_1=TEXT, _8=why))
    plain = AvroDecoder(SCHEMA, "confluent", Known(_1=TEXT, _8=why))
    for _ in range(2):
        if isinstance(why, SchemasUnavailable):
            with pytest.raises(SchemasUnavailable):
                decoder.decode(batch(values))
        else:
            assert decoder.decode(batch(values)).stop == plain.decode(batch(values)).stop
    assert decoder.decode(batch([by_id(1, row(1))])).table.num_rows == 1


@needs_module
def test_a_flood_of_ids_that_there_are_not_is_rejects_and_hides_no_row() -> None:
    decoder = NativeAvro(SCHEMA, "confluent", Known(_1=TEXT))
    for first in range(2, 3_000, 600):
        values = [by_id(first + at // 2, row(at)) if at % 2 else by_id(1, row(at)) for at in range(1_200)]
        found = decoder.decode(batch(values))
        assert found.table.column("id").to_pylist() == [f"e{at}" for at in range(0, 1_200, 2)]
        assert len(found.rejects) == 600


@needs_module
def test_a_flood_of_schemas_is_read_too() -> None:
    known = Known(**{f"_{at}": TEXT for at in range(2_500)})
    decoder = NativeAvro(SCHEMA, "confluent", known)
    values = [by_id(at, row(at)) for at in range(2_500)]
    for first in range(0, 2_500, 90):
        found = decoder.decode(batch(values[first : first + 90]))
        assert found.table.num_rows == len(values[first : first + 90])
    assert decoder.decode(batch(values)).table.num_rows == 2_500


@needs_module
def test_more_than_fits_into_one_buffer_is_the_plain_decoders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "BATCH_BYTES_MAX", 100)
    decoder = NativeAvro(SCHEMA, "confluent", Known(_1=TEXT))
    monkeypatch.setattr(decoder, "_native", None)
    assert decoder.decode(batch([by_id(1, row(at)) for at in range(50)])).table.num_rows == 50


@needs_module
def test_symbols_that_are_longer_than_their_bytes_count_as_more_values_and_overflow_no_column() -> None:
    """A byte each, and a million characters in the column."""
    symbols = ["A" * 1_000_000]
    text = record({"x": {"type": "enum", "name": "e", "symbols": symbols}})
    decoder = NativeAvro(parse_ddl("x STRING"), "none", GivenSchemas(text, by_fingerprint=False))
    assert decoder._learn([b""])
    with pytest.raises(BatchTooLarge):
        decoder.decode(batch([b"\0"] * 2_200))
    parts = list(decoded_parts(decoder.decode, batch([b"\0"] * 2_200)))
    assert len(parts) > 8 and sum(part.table.num_rows for part in parts) == 2_200


@needs_module
def test_an_array_of_what_takes_few_bytes_is_bounded_by_the_bytes_that_are_there() -> None:
    text = record({"x": {"type": "array", "items": ["null", "long"]}})
    decoder = NativeAvro(parse_ddl("x ARRAY<BIGINT>"), "none", GivenSchemas(text, by_fingerprint=False))
    values = [number(2**40), number(9) + b"\0" * 8, number(8) + b"\0" * 8 + b"\0"]
    found = decoder.decode(batch(values))
    assert found.table.column("x").to_pylist() == [[None] * 8] and len(found.rejects) == 2


TYPES_OF_NONE: list[tuple[Any, str]] = [
    ([], "without a type"),
    ([("long", [], [])], "a value is a record"),
    ([("record", [0, 0], [])], "described otherwise"),
    ([("record", [-1, 0], [])], "described otherwise"),
    ([("long", [5], []), ("record", [0, 0], [])], "described otherwise"),
    ([("longer", [], []), ("record", [0, 0], [])], "described otherwise"),
    ([("fixed", [2**40], []), ("record", [0, 0], [])], "described otherwise"),
    ([("decimal", [0, 30, 30], []), ("record", [0, 0], [])], "described otherwise"),
    ([("long", [], []), ("record", [0, 0], [])], "does not go into its column"),
    ([("string", [], []), ("record", [0, 7], [])], "a column that there is not"),
    ([("string", [], []), ("record", [0, 0, 0, 0], [])], "read twice"),
    ([("string", [], []), ("record", [0, -1], [])], "required, and not there"),
    ([("null", [], []), ("record", [0, -1], [])], "takes no byte"),
    ([("null", [], []), ("array", [0], []), ("record", [1, -1], [])], "takes no byte"),
    ([("string", [], []), *(("array", [at], []) for at in range(90))], "nested deeper"),
    ([("null", [], [])] * 100_001, "more than 100000 types"),
]


@needs_module
@pytest.mark.parametrize(("types", "why"), TYPES_OF_NONE, ids=[one[1] for one in TYPES_OF_NONE])
def test_types_that_are_not_described_as_they_are_to_be_are_never_read_by(types: Any, why: str) -> None:
    decoder = native_module().BySchema(SCHEMA, "avro", "none", "")
    with pytest.raises(ValueError, match=why):
        decoder.learn(b"", types)
    values = Values.of([b"\x02a"])
    (_, refused), unknown = decoder.decode(values.data, values.starts)
    assert len(refused) == 8 and not unknown


@needs_module
def test_headers_that_are_not_packed_as_they_are_to_be_are_refused_and_nothing_is_read_beyond_them() -> None:
    decoder = NativeAvro(SCHEMA, "confluent", Known(_1=TEXT))
    assert decoder._learn([b"\0\0\0\0\1"])
    packed = pack([("a", b"xyz"), ("__value_schema_id", b"\0\0\0\0\1")])
    values = Values.of([written(TEXT, row(1))] * len(packed))
    headers = Values.of([packed[: end + 1] for end in range(len(packed))])
    (columns, _), unknown = decoder._native.decode(values.data, values.starts, headers.data, headers.starts)
    assert len(pa.record_batch(columns)) == 1 and not unknown
    with pytest.raises(ValueError, match="not as many headers"):
        decoder._native.decode(values.data, values.starts, headers.data, headers.starts[1:])


# --- who reads ----------------------------------------------------------------------------------------


def spec(decoder: str = "auto", framing: str = "none") -> RecordSpec:
    registry = RegistrySettings(url="http://registry.test") if framing == "confluent" else None
    return RecordSpec(format="avro", framing=framing, schema_text=TEXT, decoder=decoder, registry=registry)


@pytest.fixture
def without_module(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, shared.NAME, None)  # so Python says that it is not there
    native_module.cache_clear()
    yield
    native_module.cache_clear()


@pytest.mark.usefixtures("without_module")
def test_without_the_module_the_plain_decoder_reads_and_it_is_said_why() -> None:
    assert isinstance(AvroFormat(spec()).values(SCHEMA), AvroDecoder)
    assert AvroFormat(spec()).reads_by(SCHEMA) == (
        "plain: Python, a record at a time (participant.records._native was not compiled when Lockstep was "
        "installed), by schemas of record.schema_file"
    )


@pytest.mark.usefixtures("without_module")
def test_who_asks_for_the_native_decoder_gets_no_other() -> None:
    with pytest.raises(SchemaError, match=r'record\.decoder = "native", but .* was not compiled'):
        AvroFormat(spec("native")).values(SCHEMA)


def test_who_asks_for_the_plain_decoder_gets_it() -> None:
    read = AvroFormat(spec("plain"))
    assert isinstance(read.values(SCHEMA), AvroDecoder)
    assert "the configuration asks for it" in read.reads_by(SCHEMA)


@needs_module
def test_where_it_is_there_the_native_decoder_reads() -> None:
    for wanted in ("auto", "native"):
        assert isinstance(AvroFormat(spec(wanted)).values(SCHEMA), NativeAvro)
        assert AvroFormat(spec(wanted)).reads_by(SCHEMA) == (
            "native, in one pass, by schemas of record.schema_file"
        )
    said = AvroFormat(spec(framing="confluent")).reads_by(SCHEMA)
    assert said == "native, in one pass, by schemas of http://registry.test"


@needs_module
def test_fastavro_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = alone(
        NativeAvro(
            parse_ddl("id STRING, n BIGINT, more MAP<STRING, STRING>"),
            "none",
            GivenSchemas(TEXT, by_fingerprint=False),
        ),
        monkeypatch,
    )
    values = [written(TEXT, row(at)) for at in range(300)]
    parsed = fastavro.parse_schema(json.loads(TEXT))
    found = decoder.decode(batch(values)).table.to_pylist()
    read = [fastavro.schemaless_reader(io.BytesIO(one), parsed) for one in values]
    assert [{**one, "more": dict(one["more"])} for one in found] == read
