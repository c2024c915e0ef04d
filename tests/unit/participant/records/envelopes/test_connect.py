"""In an upsert table a null payload in Kafka Connect's envelope deletes the row of the record's key."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from participant.records.port import NULL_ROW, Decoded, RecordSpec
from participant.records.raw import RawBatch, Values
from participant.worker.stages import unchecked_decoder
from table.port import INSERT, UPSERT, TableSpec
from table.schema import table_schema
from tests.decoding import batch
from tests.json_decoders import NATIVE, PLAIN, skip_unless_there

DDL = "id BIGINT NOT NULL, name STRING, gone BOOLEAN"
SCHEMA = {"type": "struct", "optional": True, "fields": []}
NULL = {"schema": SCHEMA, "payload": None}


def envelope(payload: object) -> bytes:
    return json.dumps({"schema": SCHEMA, "payload": payload}).encode()


def keyed(records: Sequence[tuple[object, bytes | None]]) -> RawBatch:
    """Records with their keys, as a worker reads them; of those without a value the key is there twice."""
    keys = [key if isinstance(key, bytes) else json.dumps(key).encode() for key, _ in records]
    found = batch([value for _, value in records])
    gone = {place: keys[place] for place, (_, value) in enumerate(records) if value is None}
    return replace(found, record_keys=Values.of(keys), keys=gone)


def decode(kind: str, records: RawBatch, *, mode: str = UPSERT, **record: Any) -> Decoded:
    skip_unless_there(kind)
    spec = TableSpec(path="", name="t", mode=mode, ddl=DDL, key_fields=("id",))
    schema = table_schema(DDL, kafka_columns=False)
    said = RecordSpec(decoder=kind, envelope="connect", **record)
    return unchecked_decoder(spec, schema, said).decode(records)


@pytest.mark.parametrize("kind", [NATIVE, PLAIN])
@pytest.mark.parametrize("record", [{}, {"on_no_field": NULL_ROW}, {"delete_field": "gone"}], ids=str)
def test_a_null_payload_is_a_tombstone(kind: str, record: dict[str, Any]) -> None:
    records = keyed(
        [
            ({"id": 1}, envelope({"id": 1, "name": "a"})),
            ({"schema": SCHEMA, "payload": {"id": 2}}, json.dumps(NULL, indent=1).encode()),
            ({"id": 3}, None),
            (b"", envelope(None)),
            ({"id": 5}, envelope({"id": 5})),
        ]
    )
    found = decode(kind, records, **record)
    assert found.table.column("id").to_pylist() == [1, 5]
    assert found.tombstones is not None
    assert found.tombstones.columns.to_pylist() == [{"id": 2}, {"id": 3}]
    assert found.tombstones.places.tolist() == [1, 2]
    assert list(found.rejects.by_place()) == [3]


@pytest.mark.parametrize("kind", [NATIVE, PLAIN])
def test_what_only_looks_like_one_is_a_reject(kind: str) -> None:
    values = [
        b'{"schema":{},"payload":null',
        b'{"payload":null}',
        b'{"schema":1,"payload":null,"x":1}',
        b"null",
        b'{"schema":{},"payload":{"id":1,"name":"a"},"payload":null}',
        b'{"schema":{"x":1,"x":1},"payload":null}',
        b'{"schema":NaN,"payload":null}',
        b'{"schema":1e999,"payload":null}',
        b'{"schema":"\\ud800","payload":null}',
        b'\xef\xbb\xbf{"schema":{},"payload":null}',
    ]
    found = decode(kind, keyed([({"id": 1}, value) for value in values]))
    assert list(found.rejects.by_place()) == list(range(len(values)))
    assert found.tombstones is None or not len(found.tombstones.places)


@pytest.mark.parametrize("kind", [NATIVE, PLAIN])
def test_an_insert_table_deletes_nothing(kind: str) -> None:
    found = decode(kind, keyed([({"id": 1}, envelope(None))]), mode=INSERT)
    assert list(found.rejects.by_place()) == [0] and found.tombstones is None


@pytest.mark.parametrize("kind", [NATIVE, PLAIN])
def test_a_payload_may_have_maps_beside_other_fields(kind: str) -> None:
    skip_unless_there(kind)
    ddl = "id BIGINT, tags MAP<STRING,BIGINT>"
    spec = TableSpec(path="", name="t", mode=INSERT, ddl=ddl)
    reads = unchecked_decoder(
        spec, table_schema(ddl, kafka_columns=False), RecordSpec(decoder=kind, envelope="connect")
    )
    found = reads.decode(keyed([({}, envelope({"id": 1, "tags": {"a": 2}})), ({}, envelope({"id": "x"}))]))
    assert found.table.to_pylist() == [{"id": 1, "tags": [("a", 2)]}]
    assert list(found.rejects.by_place()) == [1]


def test_a_worker_reads_the_keys_of_all_records() -> None:
    assert RecordSpec(envelope="connect").wants_whole
