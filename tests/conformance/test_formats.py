"""What every format of records promises, of values and of keys."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from participant.records.kinds import FORMATS, format_made
from participant.records.port import NULL_ROW, Format, RecordSpec
from participant.records.registry.settings import RegistrySettings
from table.schema import SchemaError, parse_ddl, table_schema
from tests.decoding import batch, fates
from tests.json_decoders import skip_unless_there
from tests.proto_files import Classes, compiled, encoded
from tests.registry_server import Registry

DDL = "id STRING NOT NULL, n BIGINT, amount DOUBLE"
SECRET = "zyxwv"
FRAME = b"\0\0\0\0\1"
"""Of the first schema that a registry is told."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """How a format spells things."""

    value: Callable[[Mapping[str, Any]], bytes | None]
    """Of columns `id`, `n` and `amount`, each of them or None."""
    key: Callable[[Mapping[str, Any]], bytes | None]
    """Of `id` and `n`, likewise."""
    bad: Sequence[bytes]
    """Values that are no rows, and hold SECRET."""
    spec: RecordSpec = field(default_factory=RecordSpec)
    """With its settings."""
    ddl: str = DDL
    empty_is_a_row: bool = False
    """A value of no byte."""

    @property
    def schema(self) -> pa.Schema:
        return table_schema(self.ddl, kafka_columns=True)

    def row(self, whole: Mapping[str, Any]) -> dict[str, Any]:
        """As far as it has such columns, as they are read."""
        columns = parse_ddl(self.ddl)
        return {one.name: as_bytes(whole[one.name], one.type) for one in columns}


def as_bytes(value: Any, kind: pa.DataType) -> Any:
    return value.encode() if kind == pa.binary() and value is not None else value


def whole_bytes(row: Mapping[str, Any]) -> bytes | None:
    """Of formats that are one column."""
    return None if row["id"] is None else row["id"].encode()


def json_bytes(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row).encode()


AVRO = {"id": ["null", "string"], "n": ["null", "long"], "amount": ["null", "double"]}


def avro_schema(*names: str) -> dict[str, Any]:
    return {"type": "record", "name": "r", "fields": [{"name": name, "type": AVRO[name]} for name in names]}


def avro_bytes(row: Mapping[str, Any], *names: str) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(avro_schema(*names)), dict(row))
    return out.getvalue()


PROTO = """
syntax = "proto3"; package t;
message Row { optional string id = 1; optional int64 n = 2; optional double amount = 3; }
message Key { optional string id = 1; optional int64 n = 2; }
"""


@cache
def proto() -> FileDescriptorSet:
    return compiled({"t.proto": PROTO})


@cache
def proto_classes() -> Classes:
    return Classes(proto())


def proto_bytes(row: Mapping[str, Any], name: str) -> bytes:
    written: bytes = proto_classes()[name](**row).SerializeToString()
    return written


SAMPLES: Mapping[str, Sample] = {
    "json": Sample(
        value=json_bytes,
        key=json_bytes,
        bad=(SECRET.encode(), b'{"id":"%s","n":"%s"}' % (SECRET.encode(), SECRET.encode())),
    ),
    "avro": Sample(
        value=lambda row: avro_bytes(row, "id", "n", "amount"),
        key=lambda row: avro_bytes(row, "id", "n"),
        bad=(b"\x02\x0a" + SECRET.encode(), b"\x02\x0a" + SECRET.encode() + b"\0\0" + SECRET.encode()),
        spec=RecordSpec(
            framing="none",
            schema_text=json.dumps(avro_schema("id", "n", "amount")),
            key_schema_text=json.dumps(avro_schema("id", "n")),
        ),
    ),
    "protobuf": Sample(
        value=lambda row: proto_bytes(row, "t.Row"),
        key=lambda row: proto_bytes(row, "t.Key"),
        bad=(b"\x0a\x06" + SECRET.encode(), b"\x0a\x05" + SECRET.encode() + b"\x12\x05" + SECRET.encode()),
        spec=RecordSpec(
            framing="none",
            schema_text=encoded(proto()),
            key_schema_text=encoded(proto()),
            message="t.Row",
            key_message="t.Key",
        ),
    ),
    "json_schema": Sample(
        value=lambda row: FRAME + json_bytes(row),
        key=lambda row: FRAME + json_bytes(row),
        bad=(SECRET.encode(), FRAME + SECRET.encode(), b"\0\0\0\0\2" + SECRET.encode()),
    ),
    "string": Sample(
        value=whole_bytes,
        key=whole_bytes,
        bad=(SECRET.encode() + b"\xff",),
        ddl="id STRING NOT NULL",
        empty_is_a_row=True,
    ),
    "bytes": Sample(
        value=whole_bytes, key=whole_bytes, bad=(), ddl="id BINARY NOT NULL", empty_is_a_row=True
    ),
}


READ_BY = [replace(SAMPLES[name].spec, format=name) for name in sorted(FORMATS)]
READ_BY += [
    replace(SAMPLES[name].spec, format=name, decoder=one)
    for name in ("json", "avro", "protobuf")
    for one in ("plain", "native")
]


@pytest.fixture(params=READ_BY, ids=lambda record: f"{record.format}-{record.decoder}")
def record(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RecordSpec]:
    found: RecordSpec = request.param
    if found.decoder == "native":
        skip_unless_there("native")
    if not found.wants_headers:
        yield found
        return
    with Registry() as running:
        running.known.register("events-value", {"schema": "{}", "schemaType": "JSON"})
        settings = RegistrySettings(url=running.url, cache_folder=str(tmp_path))
        yield replace(found, registry=settings)


@pytest.fixture
def sample(record: RecordSpec) -> Sample:
    return SAMPLES[record.format]


@pytest.fixture
def read(record: RecordSpec) -> Format:
    found: Format = format_made(record.format, record)
    return found


def row(number: int, **changed: Any) -> dict[str, Any]:
    return {"id": f"e{number}", "n": number, "amount": number / 4, **changed}


def test_rows_have_the_records_columns_and_none_that_the_table_adds(read: Format, sample: Sample) -> None:
    rows = [row(0), row(1, n=None, amount=None), row(2, n=-(2**63)), row(3, id="ä\u2028")]
    decoded = read.values(sample.schema).decode(batch([sample.value(one) for one in rows]))
    assert decoded.table.schema == parse_ddl(sample.ddl)
    assert fates(decoded, 4) == [sample.row(one) for one in rows]
    assert len(decoded.rejects) == 0 and decoded.stop is None


def test_a_batch_without_a_record_has_no_row(read: Format, sample: Sample) -> None:
    decoded = read.values(sample.schema).decode(batch([]))
    assert decoded.table.schema == parse_ddl(sample.ddl) and decoded.table.num_rows == 0


def test_every_record_is_a_row_or_a_reject_whatever_stands_beside_it(read: Format, sample: Sample) -> None:
    values = [
        *(sample.value(row(number)) for number in range(3)),
        *sample.bad,
        None,
        sample.value(row(7, id=None)),
        b"",
        sample.value(row(8)),
    ]
    decoder, whole = read.values(sample.schema), batch(values)
    decoded = decoder.decode(whole)
    found = fates(decoded, len(values))
    rows = [isinstance(one, dict) for one in found]
    assert rows == [True] * 3 + [False] * (len(values) - 5) + [sample.empty_is_a_row, True]
    assert [one.offset for one in decoded.rejects] == [whole.offsets[one.index] for one in decoded.rejects]
    for place, value in enumerate(values):
        (alone,) = fates(decoder.decode(batch([value])), 1)
        assert alone == found[place] or (isinstance(alone, str) and isinstance(found[place], str))


def test_a_reason_is_a_sentence_without_the_records_content(read: Format, sample: Sample) -> None:
    decoded = read.values(sample.schema).decode(batch(sample.bad))
    reasons = [one.reason for one in decoded.rejects]
    assert len(reasons) == len(sample.bad) and all(reasons)
    assert not any(SECRET in reason for reason in reasons)


def test_a_key_says_which_row_a_record_without_a_value_deletes(read: Format, sample: Sample) -> None:
    bad = sample.bad[0] if sample.bad else b""
    whole = batch(
        [None, sample.value(row(1)), None, None, None],
        {0: sample.key({"id": "a", "n": 1}), 2: None, 3: sample.key({"id": None, "n": 2}), 4: bad},
    )
    fields = [one for one in sample.schema if one.name in ("id", "n")]
    tombstones, rejects = read.keys(fields).read(whole, np.array([0, 2, 3, 4]))
    assert tombstones.columns.to_pylist() == [
        {one.name: as_bytes({"id": "a", "n": 1}[one.name], one.type) for one in fields}
    ]
    assert (tombstones.places.tolist(), tombstones.offsets.tolist()) == ([0], [1_000])
    assert sorted(rejects.by_place()) == [2, 3, 4]
    assert [one.offset for one in rejects] == [whole.offsets[one.index] for one in rejects]
    assert not any(SECRET in one.reason for one in rejects)


OTHERS = ("t.Other", PROTO + " message Other { int64 elsewhere = 1; }")


@pytest.mark.parametrize("decoder", ["plain", "native"])
@pytest.mark.parametrize("of", ["avro", "protobuf"])
def test_values_of_a_type_that_has_none_of_the_columns_are_no_rows_of_nulls(of: str, decoder: str) -> None:
    """Unless `record.on_no_field` asks for them, and something else is in a row, such as a header."""
    if decoder == "native":
        skip_unless_there("native")
    other = {"type": "record", "name": "o", "fields": [{"name": "elsewhere", "type": "long"}]}
    files = encoded(compiled({"t.proto": OTHERS[1]}))
    spec = RecordSpec(format=of, framing="none", decoder=decoder)
    spec = replace(
        spec, schema_text=json.dumps(other) if of == "avro" else files, message=OTHERS[0] * (of != "avro")
    )
    schema = table_schema("id STRING, n BIGINT", kafka_columns=True)
    with pytest.raises(SchemaError, match=r"it has none of the columns \(id, n\): it is another type's"):
        format_made(of, spec).values(schema)
    mapped = replace(spec, columns=(("id", "header.id"),))
    with pytest.raises(SchemaError, match="it has none of the columns"):
        format_made(of, mapped).values(schema)
    mapped = replace(mapped, on_no_field=NULL_ROW)
    decoded = format_made(of, mapped).values(schema).decode(batch([b"\x02" if of == "avro" else b""]))
    assert fates(decoded, 1) == [{"id": None, "n": None}]
