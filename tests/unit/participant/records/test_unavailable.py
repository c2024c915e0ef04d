"""Debezium's placeholder for a value that an event lacks never becomes a value."""

from __future__ import annotations

import base64
import json
import struct
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

from participant.records.placeholder import UNAVAILABLE
from participant.records.port import Decoded, RecordSpec
from participant.records.raw import RawBatch
from participant.records.registry.settings import RegistrySettings
from participant.records.unavailable import UnavailableValues
from participant.worker.stages import decoder
from table.port import INSERT, UPSERT, TableSpec
from table.schema import POSITION_COLUMN, table_schema
from tests import debezium_avro
from tests.debezium_events import PLACE, batch_of, event
from tests.json_decoders import compiled
from tests.registry_server import Registry

MARK = UNAVAILABLE.encode()
MARK64 = base64.b64encode(MARK).decode()
NUMBERS = list(MARK)


@pytest.fixture(params=["plain", "native"])
def reads(request: pytest.FixtureRequest) -> str:
    if request.param == "native" and not compiled():
        pytest.skip("participant.records._native is not compiled here")
    return str(request.param)


def decoded(ddl: str, *values: bytes | None, mode: str = UPSERT, **record: Any) -> Decoded:
    spec = TableSpec(
        path="/t",
        name="t",
        mode=mode,
        ddl=ddl,
        key_fields=("id",),
        ordering_field=POSITION_COLUMN if record.get("envelope") else "",
        source_position=bool(record.get("envelope")),
    )
    reads = decoder(spec, table_schema(ddl, kafka_columns=False), RecordSpec(**record))
    batch = batch_of(values)
    keys = {place: json.dumps({"id": str(place)}).encode() for place, one in enumerate(values) if one is None}
    batch = RawBatch(
        partition=PLACE,
        offsets=batch.offsets,
        timestamps_ms=batch.timestamps_ms,
        values=batch.values,
        keys=keys,
    )
    return reads.decode(batch)


def reasons(found: Decoded) -> dict[int, str]:
    return found.rejects.by_place()


FORMS = {
    "text": ("STRING", UNAVAILABLE, "field v "),
    "base64 in text": ("STRING", MARK64, "field v "),
    "base64 for URLs in text": ("STRING", MARK64.rstrip("="), "field v "),
    "hexadecimal digits in text": ("STRING", MARK.hex(), "field v "),
    "an hstore as text": (
        "STRING",
        json.dumps({UNAVAILABLE: UNAVAILABLE}, separators=(",", ":")),
        "field v ",
    ),
    "bytes": ("BINARY", MARK64, "field v "),
    "a geometry": (
        "STRUCT<wkb: BINARY, srid: INT>",
        {
            "wkb": base64.b64encode(
                bytes.fromhex("0101000020E6100000000000FC83D797C1000000FC83D797C1")
            ).decode()
        },
        "field v.wkb ",
    ),
    "a geography": (
        "STRUCT<wkb: BINARY, srid: INT>",
        {
            "wkb": base64.b64encode(
                bytes.fromhex("0101000020E61000000C21E7FDFF7F66401842CEFBFF7F5640")
            ).decode()
        },
        "field v.wkb ",
    ),
    "a point": ("STRUCT<x: DOUBLE, y: DOUBLE>", {"x": -99_999_999, "y": -99_999_999}, "field v "),
    "a point's bytes": (
        "STRUCT<wkb: BINARY>",
        {"wkb": base64.b64encode(struct.pack("<BIdd", 1, 1, -99_999_999, -99_999_999)).decode()},
        "field v.wkb ",
    ),
    "texts": ("ARRAY<STRING>", [UNAVAILABLE], "field v[] "),
    "binaries": ("ARRAY<BINARY>", [MARK64], "field v[] "),
    "whole numbers": ("ARRAY<INT>", NUMBERS, "field v "),
    "large whole numbers": ("ARRAY<BIGINT>", NUMBERS, "field v "),
    "dates": (
        "ARRAY<DATE>",
        [(date(1970, 1, 1) + timedelta(number)).isoformat() for number in NUMBERS],
        "field v ",
    ),
    "a map": ("MAP<STRING, STRING>", {UNAVAILABLE: UNAVAILABLE}, "field v "),
    "a map's value": ("MAP<STRING, STRING>", {"k": UNAVAILABLE}, "field v{} "),
    "a field of a struct": ("STRUCT<a: INT, b: STRING>", {"a": 1, "b": UNAVAILABLE}, "field v.b "),
    "deep inside": ("ARRAY<STRUCT<b: ARRAY<STRING>>>", [{"b": []}, {"b": [UNAVAILABLE]}], "field v[].b[] "),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_placeholder_is_a_reject_that_names_the_field_in_a_column_of_any_type(
    form: str, reads: str
) -> None:
    kind, value, field = FORMS[form]
    found = decoded(
        f"id BIGINT NOT NULL, v {kind}",
        event("c", after={"id": 1, "v": None}),
        event("u", after={"id": 2, "v": value}),
        event("u", after={"id": 3}),
        envelope="debezium",
        decoder=reads if "MAP" not in kind else "plain",
    )
    assert found.table.column("id").to_pylist() == [1, 3]
    assert found.kept is not None
    assert found.kept.tolist() == [0, 2]
    assert list(reasons(found)) == [1]
    assert reasons(found)[1].startswith(field)
    assert "REPLICA IDENTITY FULL" in reasons(found)[1]
    assert UNAVAILABLE not in reasons(found)[1]


def test_an_array_of_uuids_has_the_uuid_that_is_made_of_the_placeholder() -> None:
    from hashlib import md5

    digest = bytearray(md5(MARK, usedforsecurity=False).digest())
    digest[6], digest[8] = digest[6] & 0x0F | 0x30, digest[8] & 0x3F | 0x80
    found = decoded(
        "id BIGINT NOT NULL, v ARRAY<STRING>",
        event("u", after={"id": 2, "v": [str(UUID(bytes=bytes(digest)))]}),
        envelope="debezium",
    )
    assert list(reasons(found)) == [0]


@pytest.mark.parametrize(
    "value",
    [
        UNAVAILABLE[:-1],
        f"{UNAVAILABLE} ",
        f"say {UNAVAILABLE}",
        UNAVAILABLE.upper(),
        "",
        None,
        "x" * len(MARK),
    ],
)
def test_a_text_that_is_not_the_whole_placeholder_is_a_value(value: str | None) -> None:
    found = decoded("id BIGINT, v STRING", event("c", after={"id": 1, "v": value}), envelope="debezium")
    assert found.table.column("v").to_pylist() == [value]


def test_a_delete_needs_only_the_columns_that_key_its_row() -> None:
    found = decoded(
        "id STRING NOT NULL, v STRING",
        event("d", before={"id": "1", "v": UNAVAILABLE}),
        event("d", before={"id": UNAVAILABLE, "v": "x"}),
        None,
        envelope="debezium",
    )
    assert found.table.column("id").to_pylist() == ["1"]
    assert found.deleted is not None
    assert found.deleted.tolist() == [True]
    assert list(reasons(found)) == [1]
    assert found.tombstones is not None
    assert found.tombstones.places.tolist() == [2]


@pytest.mark.parametrize("mode", [INSERT, UPSERT])
def test_events_that_were_unwrapped_before_are_refused_as_well(mode: str, reads: str) -> None:
    rows = [
        json.dumps({"id": n, "v": v}).encode() for n, v in enumerate(["a", UNAVAILABLE, "b", UNAVAILABLE])
    ]
    found = decoded("id BIGINT, v STRING", *rows, mode=mode, decoder=reads)
    assert found.table.column("v").to_pylist() == ["a", "b"]
    assert list(reasons(found)) == [1, 3]


def test_a_column_from_elsewhere_in_the_event_is_refused_as_well() -> None:
    found = decoded(
        "id BIGINT, v STRING",
        b'{"id": 1, "doc": {"text": "%s"}}' % MARK,
        mode=INSERT,
        columns=(("v", "value.doc.text"),),
    )
    assert list(reasons(found)) == [0]


@pytest.mark.parametrize(
    ("spelled", "value"),
    [("nicht verfügbar", "nicht verfügbar"), ("hex:ff00", "ff00"), ("hex:ff00", "/wA=")],
)
def test_the_placeholder_may_be_configured_as_the_connectors_is(spelled: str, value: str) -> None:
    rows = [
        json.dumps({"id": n, "v": v}, ensure_ascii=ascii).encode()
        for n, v in enumerate([value, UNAVAILABLE])
        for ascii in (True, False)
    ]
    found = decoded("id BIGINT, v STRING", *rows, mode=INSERT, unavailable_value=spelled)
    assert list(reasons(found)) == [0, 1]


def test_without_a_placeholder_every_text_is_a_value() -> None:
    row = json.dumps({"id": 1, "v": UNAVAILABLE}).encode()
    found = decoded("id BIGINT, v STRING", row, mode=INSERT, unavailable_value="")
    assert found.table.column("v").to_pylist() == [UNAVAILABLE]


@pytest.mark.parametrize("wanted", ["plain", "native"])
def test_avro_is_refused_as_well(wanted: str, registry: Registry, tmp_path: Path) -> None:
    if wanted == "native" and not compiled():
        pytest.skip("participant.records._native is not compiled here")
    settings = RegistrySettings(url=registry.url, timeout_ms=1_000, cache_folder=str(tmp_path / "schemas"))
    rows = [
        debezium_avro.event(registry, op, after={"id": n, "paid": Decimal(1), "note": note})
        for n, (op, note) in enumerate([("c", "a"), ("u", UNAVAILABLE), ("u", "b")])
    ]
    record = {"format": "avro", "key_format": "avro", "envelope": "debezium", "registry": settings}
    found = decoded("id BIGINT, note STRING", *rows, **record, decoder=wanted)
    assert found.table.column("note").to_pylist() == ["a", "b"]
    assert list(reasons(found)) == [1]


def test_slices_chunks_and_nulls_leave_each_row_its_own() -> None:
    values = UnavailableValues(MARK)
    kind = pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.string()))), ("n", pa.list_(pa.int64()))])
    good: list[Any] = [None, {"m": None, "n": None}, {"m": [("k", ["a", None])], "n": [1, None]}]
    bad: list[Any] = [
        {"m": [("k", []), ("l", ["x", UNAVAILABLE])], "n": []},
        {"m": [], "n": NUMBERS},
        {"m": [(UNAVAILABLE, None)], "n": [None] * len(NUMBERS)},
    ]
    rng = np.random.default_rng(7)
    for _ in range(50):
        which = rng.integers(0, 2, 20).astype(bool)
        rows = [bad[rng.integers(3)] if one else good[rng.integers(3)] for one in which]
        begin = int(rng.integers(0, 10))
        array = pa.array(rows, kind)
        column = pa.chunked_array([array.slice(begin, 5), array.slice(begin + 5)])
        found = values.find(column, "c")
        mask = found[1].tolist() if found is not None else [False] * len(column)
        assert mask == which[begin:].tolist()
