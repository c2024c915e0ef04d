"""What every format of records promises, of values and of keys."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import fastavro
import numpy as np
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from control_topic.messages import SourcePartition
from participant.records.kinds import FORMATS, format_made
from participant.records.port import Decoded, Format, RecordSpec
from participant.records.raw import RawBatch, Values
from table.schema import parse_ddl, table_schema
from tests.json_decoders import skip_unless_there
from tests.proto_files import Classes, compiled, encoded

DDL = "id STRING NOT NULL, n BIGINT, amount DOUBLE"
SCHEMA = table_schema(DDL, kafka_columns=True)
SECRET = "zyxwv"


@dataclass(frozen=True, kw_only=True)
class Sample:
    """How a format spells things."""

    value: Callable[[Mapping[str, Any]], bytes]
    """Of columns `id`, `n` and `amount`, each of them or None."""
    key: Callable[[Mapping[str, Any]], bytes]
    """Of `id` and `n`, likewise."""
    bad: Sequence[bytes]
    """Values that are no rows, and hold SECRET."""
    spec: RecordSpec = field(default_factory=RecordSpec)
    """With its settings."""


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
}


READ_BY = [replace(SAMPLES[name].spec, format=name) for name in sorted(FORMATS)]
READ_BY += [RecordSpec(format="json", decoder=one) for one in ("plain", "native")]


@pytest.fixture(params=READ_BY, ids=lambda record: f"{record.format}-{record.decoder}")
def record(request: pytest.FixtureRequest) -> RecordSpec:
    found: RecordSpec = request.param
    if found.decoder == "native":
        skip_unless_there("native")
    return found


@pytest.fixture
def sample(record: RecordSpec) -> Sample:
    return SAMPLES[record.format]


@pytest.fixture
def read(record: RecordSpec) -> Format:
    found: Format = format_made(record.format, record)
    return found


def row(number: int, **changed: Any) -> dict[str, Any]:
    return {"id": f"e{number}", "n": number, "amount": number / 4, **changed}


def batch(values: Sequence[bytes | None], keys: Mapping[int, bytes | None] | None = None) -> RawBatch:
    """With gaps, so that no index can be taken for an offset."""
    offsets = 1_000 + 3 * np.arange(len(values), dtype=np.int64)
    return RawBatch(
        partition=SourcePartition("events", 0),
        offsets=offsets,
        timestamps_ms=offsets,
        values=Values.of(values),
        keys=keys or {},
    )


def fates(decoded: Decoded, count: int) -> list[dict[str, Any] | str]:
    """Of each record its row, or why it is none."""
    kept = range(count) if decoded.kept is None else decoded.kept.tolist()
    rows = dict(zip(kept, decoded.table.to_pylist(), strict=True))
    assert list(rows) == sorted(rows)
    rejects = decoded.rejects.by_place()
    assert not rows.keys() & rejects.keys()
    return [rows[place] if place in rows else rejects[place] for place in range(count)]


def test_rows_have_the_records_columns_and_none_that_the_table_adds(read: Format, sample: Sample) -> None:
    rows = [row(0), row(1, n=None, amount=None), row(2, n=-(2**63)), row(3, id="ä\u2028")]
    decoded = read.values(SCHEMA).decode(batch([sample.value(one) for one in rows]))
    assert decoded.table.schema == parse_ddl(DDL)
    assert fates(decoded, 4) == rows
    assert len(decoded.rejects) == 0 and decoded.stop is None


def test_a_batch_without_a_record_has_no_row(read: Format) -> None:
    decoded = read.values(SCHEMA).decode(batch([]))
    assert decoded.table.schema == parse_ddl(DDL) and decoded.table.num_rows == 0


def test_every_record_is_a_row_or_a_reject_whatever_stands_beside_it(read: Format, sample: Sample) -> None:
    values = [
        *(sample.value(row(number)) for number in range(3)),
        *sample.bad,
        None,
        b"",
        sample.value(row(7, id=None)),
        sample.value(row(8)),
    ]
    decoder, whole = read.values(SCHEMA), batch(values)
    decoded = decoder.decode(whole)
    found = fates(decoded, len(values))
    assert [isinstance(one, dict) for one in found] == [True] * 3 + [False] * (len(values) - 4) + [True]
    assert [one.offset for one in decoded.rejects] == [whole.offsets[one.index] for one in decoded.rejects]
    for place, value in enumerate(values):
        (alone,) = fates(decoder.decode(batch([value])), 1)
        assert alone == found[place] or (isinstance(alone, str) and isinstance(found[place], str))


def test_a_reason_is_a_sentence_without_the_records_content(read: Format, sample: Sample) -> None:
    decoded = read.values(SCHEMA).decode(batch(sample.bad))
    reasons = [one.reason for one in decoded.rejects]
    assert len(reasons) == len(sample.bad) and all(reasons)
    assert not any(SECRET in reason for reason in reasons)


def test_a_key_says_which_row_a_record_without_a_value_deletes(read: Format, sample: Sample) -> None:
    whole = batch(
        [None, sample.value(row(1)), None, None, None],
        {0: sample.key({"id": "a", "n": 1}), 2: None, 3: sample.key({"id": None, "n": 2}), 4: sample.bad[0]},
    )
    fields = [SCHEMA.field(one) for one in ("id", "n")]
    tombstones, rejects = read.keys(fields).read(whole, np.array([0, 2, 3, 4]))
    assert tombstones.columns.to_pylist() == [{"id": "a", "n": 1}]
    assert (tombstones.places.tolist(), tombstones.offsets.tolist()) == ([0], [1_000])
    assert sorted(rejects.by_place()) == [2, 3, 4]
    assert [one.offset for one in rejects] == [whole.offsets[one.index] for one in rejects]
    assert not any(SECRET in one.reason for one in rejects)
