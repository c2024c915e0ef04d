"""Decimals in change events of JSON: the schema or the setting tells how they are encoded, never a value."""

from __future__ import annotations

import base64
import json
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from participant.records.envelopes.debezium import bytes_decimals, decimals
from participant.records.envelopes.debezium.decoder import DebeziumDecoder
from participant.records.port import Decoded, RecordSpec
from participant.records.raw import RawBatch
from participant.worker.stages import decoder
from table.port import UPSERT, TableSpec
from table.schema import POSITION_COLUMN, parse_ddl, table_schema
from tests.debezium_events import PLACE, POSTGRESQL, batch_of, event
from tests.json_decoders import compiled

AMBIGUOUS = ["1234", "0000", "9999", "1e10", "+123", "1E+1"]
"""Base64 that is spelled as a number."""


@pytest.fixture(params=["plain", "native"])
def reads(request: pytest.FixtureRequest) -> str:
    if request.param == "native" and not compiled():
        pytest.skip("participant.records._native is not compiled here")
    return str(request.param)


def sent(unscaled: int) -> str:
    """An unscaled number as Connect's converter writes it."""
    size = max(1, (unscaled.bit_length() + 8) // 8)
    return base64.b64encode(unscaled.to_bytes(size, "big", signed=True)).decode()


def meant(text: str, scale: int) -> Decimal:
    return Decimal(int.from_bytes(base64.b64decode(text), "big", signed=True)).scaleb(-scale)


def connect(scale: int | str) -> dict[str, Any]:
    name = "org.apache.kafka.connect.data.Decimal"
    return {"type": "bytes", "name": name, "version": 1, "parameters": {"scale": str(scale)}}


def with_schema(after: dict[str, Any], *, spaced: bool = False, **types: Any) -> bytes:
    """A change event with its schema, of these types of columns."""
    row = [{**kind, "field": name, "optional": True} for name, kind in types.items()]
    sides = [
        {"type": "struct", "fields": row, "optional": True, "field": side} for side in ("before", "after")
    ]
    schema = {"type": "struct", "fields": [*sides, {"type": "string", "field": "op"}], "name": "s.Envelope"}
    payload = {"before": None, "after": after, "source": POSTGRESQL, "op": "c", "ts_ms": 1}
    separators = None if spaced else (",", ":")
    return json.dumps({"schema": schema, "payload": payload}, separators=separators).encode()


def decoded(ddl: str, *values: bytes | None, handling: str, reads: str = "auto", **keys: bytes) -> Decoded:
    spec = TableSpec(
        path="/t",
        name="t",
        mode=UPSERT,
        ddl=ddl,
        key_fields=("id",),
        ordering_field=POSITION_COLUMN,
        source_position=True,
    )
    record = RecordSpec(envelope="debezium", decoder=reads, decimal_handling=handling)
    batch = batch_of(values)
    batch = RawBatch(
        partition=PLACE,
        offsets=batch.offsets,
        timestamps_ms=batch.timestamps_ms,
        values=batch.values,
        keys={int(place[1:]): key for place, key in keys.items()},
    )
    return decoder(spec, table_schema(ddl, kafka_columns=False), record).decode(batch)


def numbers(found: Decoded) -> list[Any]:
    assert not found.rejects, found.rejects[0].reason
    found.table.validate(full=True)
    values: list[Any] = found.table.column("n").to_pylist()
    return values


def refused(found: Decoded, why: str) -> bool:
    """Whether there is one record, refused for this reason."""
    return [reject.reason[: len(why)] for reject in found.rejects] == [why]


DDL = "id BIGINT, n DECIMAL(12,2)"


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_the_schema_in_the_event_decides_whatever_is_configured(text: str, reads: str) -> None:
    for handling in ("schema", "precise", "string", "double"):
        precise = with_schema({"id": 1, "n": text}, n=connect(2))
        assert numbers(decoded(DDL, precise, handling=handling, reads=reads)) == [meant(text, 2)]
    number = with_schema({"id": 1, "n": "1234"}, n={"type": "string"})
    assert numbers(decoded(DDL, number, handling="precise", reads=reads)) == [Decimal("1234.00")]


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_without_a_schema_the_setting_decides(text: str, reads: str) -> None:
    bare = event("c", after={"id": 1, "n": text})
    assert numbers(decoded(DDL, bare, handling="precise", reads=reads)) == [meant(text, 2)]
    assert refused(
        decoded(DDL, bare, handling="double", reads=reads), "field after.n: not a DECIMAL(12,2) but a "
    )
    assert refused(decoded(DDL, bare, handling="schema", reads=reads), "field schema is missing")


def test_digits_in_a_string_are_a_number_where_the_setting_says_so(reads: str) -> None:
    rows = [event("c", after={"id": 1, "n": value}) for value in ("1234", "-0.5", 7, 1.25, None)]
    assert numbers(decoded(DDL, *rows, handling="string", reads=reads)) == [
        *(Decimal("1234.00"), Decimal("-0.50"), Decimal("7.00"), Decimal("1.25"), None)
    ]


@pytest.mark.parametrize("handling", ["precise", "double"])
def test_a_number_is_a_number_however_texts_are_encoded(handling: str, reads: str) -> None:
    rows = [event("u", after={"id": 1, "n": value}) for value in (12.5, 7, None)]
    assert numbers(decoded(DDL, *rows, handling=handling, reads=reads)) == [
        Decimal("12.50"),
        Decimal(7),
        None,
    ]
    numeric = with_schema({"id": 1, "n": 12.5}, n=connect(2))
    assert numbers(decoded(DDL, numeric, handling=handling, reads=reads)) == [Decimal("12.50")]


def test_numbers_and_base64_may_be_in_one_batch_and_not_in_one_event(reads: str) -> None:
    ddl = "id BIGINT, n DECIMAL(12,2), m DECIMAL(12,2)"
    rows = [
        (1.5, 2),
        (sent(150), sent(-1)),
        (1.5, "1234"),
        ("1234", 2),
        (sent(1), None),
        (None, 2),
        ("123", None),
    ]
    values = [event("c", after={"id": place, "n": n, "m": m}) for place, (n, m) in enumerate(rows)]
    for _ in range(2):
        found = decoded(ddl, *values, *values, handling="precise", reads=reads)
        assert found.table.column("id").to_pylist() == [0, 1, 4, 5] * 2
        assert (
            found.table.column("n").to_pylist() == [Decimal("1.5"), Decimal("1.5"), Decimal("0.01"), None] * 2
        )
        assert {why.partition(" but ")[0] for why in found.rejects.by_place().values()} <= {
            "field after.n: not a DECIMAL(12,2)",
            "field after.m: not a DECIMAL(12,2)",
        }
        assert sorted(found.rejects.by_place()) == [2, 3, 6, 9, 10, 13]


def test_each_event_is_read_by_its_own_schema_and_rows_keep_their_order(reads: str) -> None:
    values = [
        with_schema({"id": 0, "n": "1234"}, n=connect(2)),
        with_schema({"id": 1, "n": "1234"}, n={"type": "string"}),
        event("c", after={"id": 2, "n": "1234"}),
        b"no json",
        with_schema({"id": 4, "n": "1234"}, spaced=True, n=connect(0)),
        with_schema({"id": 5, "n": 1234}, n={"type": "double"}),
        with_schema({"id": 6, "n": "1234"}, n={"type": "double"}),
        with_schema({"id": 7, "n": "1234"}, n=connect(1)),
        with_schema({"id": 8, "n": "AQ=="}, n={"type": "bytes"}),
        with_schema({"id": 9, "n": "AQ=="}, n=connect("x")),
        with_schema({"id": 10, "n": "AQ=="}, n=connect(-2)),
        with_schema({"id": 11, "n": "AQ=="}, n=connect(3)),
        with_schema({"id": 12, "n": "Cg=="}, n=connect(3)),
    ]
    found = decoded(DDL, *values, handling="string", reads=reads)
    assert dict(
        zip(found.table.column("id").to_pylist(), found.table.column("n").to_pylist(), strict=True)
    ) == {
        **{0: meant("1234", 2), 1: Decimal(1234), 2: Decimal(1234), 4: meant("1234", 0), 5: Decimal(1234)},
        **{7: meant("1234", 1), 10: Decimal(100), 12: Decimal("0.01")},
    }
    assert found.kept is not None
    assert found.kept.tolist() == [0, 1, 2, 4, 5, 7, 10, 12]
    assert sorted(found.rejects.by_place()) == [3, 6, 8, 9, 11]


def test_decimals_inside_other_types_are_read_by_the_schema_as_well(reads: str) -> None:
    ddl = "id BIGINT, a ARRAY<DECIMAL(12,2)>, s STRUCT<x: STRUCT<n: DECIMAL(12,2) NOT NULL, t: STRING>>"
    inner = {"type": "struct", "field": "x", "fields": [{**connect(2), "field": "n"}]}
    types = {
        "a": {"type": "array", "items": connect(2)},
        "s": {"type": "struct", "fields": [inner]},
    }
    after = [
        {"id": 1, "a": ["1234", None, sent(5)], "s": {"x": {"n": "9999", "t": "y"}}},
        {"id": 2, "a": [], "s": {"x": None}},
        {"id": 3, "a": None, "s": None},
        {"id": 4, "a": [sent(10**13)], "s": None},
    ]
    for values, handling in (
        ([with_schema(one, **types) for one in after], "schema"),
        ([event("c", after=one) for one in after], "precise"),
    ):
        found = decoded(ddl, *values, handling=handling, reads=reads)
        assert found.table.column("a").to_pylist() == [[meant("1234", 2), None, Decimal("0.05")], [], None]
        assert found.table.column("s").to_pylist() == [
            {"x": {"n": meant("9999", 2), "t": "y"}},
            {"x": None},
            None,
        ]
        (reject,) = found.rejects
        assert reject.reason.startswith("field after.a[]: not a DECIMAL(12,2) but ")


def test_a_decimal_in_a_map_is_read_by_the_schema_as_well() -> None:
    ddl = "id BIGINT, m MAP<STRING, DECIMAL(12,2)>"
    value = with_schema({"id": 1, "m": {"k": "1234"}}, m={"type": "map", "values": connect(2)})
    found = decoded(ddl, value, event("c", after={"id": 2, "m": {"k": "1234"}}), handling="double")
    assert found.table.column("m").to_pylist() == [[("k", meant("1234", 2))]]
    assert list(found.rejects.by_place()) == [1]


def test_dates_and_decimals_are_each_read_as_their_source_writes_them(reads: str) -> None:
    ddl = "id BIGINT, d DATE, n DECIMAL(12,2), t TIMESTAMP_NTZ"
    rows = [
        (20_000, sent(1)),
        ("2026-01-02Z", sent(2)),
        (3, 0.03),
        ("2026-01-02", 0.04),
        (5, "x"),
        ("x", sent(1)),
    ]
    values = [event("c", after={"id": i, "d": d, "n": n, "t": None}) for i, (d, n) in enumerate(rows)]
    found = decoded(ddl, *values, handling="precise", reads=reads)
    assert found.table.column("n").to_pylist() == [Decimal(n).scaleb(-2) for n in (1, 2, 3, 4)]
    reasons = found.rejects.by_place()
    assert reasons[4].startswith("field after.n: not a DECIMAL(12,2) but ")
    assert reasons[5].startswith("field after.d: not a DATE but ")


def test_the_key_of_a_tombstone_is_read_as_the_rows_are() -> None:
    ddl = "id DECIMAL(12,2) NOT NULL, n INT"
    row = event("c", after={"id": "1234", "n": 1})
    keys = {"k1": b'{"id": "1234"}', "k2": b'"1234"', "k3": b'{"id": "!"}', "k4": b'{"id": "AQIDBAUGBwg="}'}
    found = decoded(ddl, row, None, None, None, None, handling="precise", **keys)
    assert found.tombstones is not None
    assert found.tombstones.places.tolist() == [1, 2]
    assert found.tombstones.columns.column("id").to_pylist() == [meant("1234", 2)] * 2
    assert sorted(found.rejects.by_place()) == [3, 4]


def test_a_schema_is_read_once_and_memory_of_schemas_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    schemas = decimals.EventSchemas((("n",),))
    value = with_schema({"n": "1234"}, n=connect(2))
    assert schemas.encodings(value) == (("precise", 2),)
    monkeypatch.setattr(decimals, "_schema", lambda _: pytest.fail("parsed again"))
    assert schemas.encodings(value) == (("precise", 2),)
    monkeypatch.undo()
    monkeypatch.setattr(decimals, "HEADS_MAX", 3)
    for scale in range(10):
        assert schemas.encodings(with_schema({"n": "1234"}, n=connect(scale))) == (("precise", scale),)
    assert len(schemas._heads) <= 3


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (b'{"payload": {"after": {}}, "schema": %s}', (("precise", 2),)),
        (b'{"x": "payload", "schema": %s, "payload": {}}', (("precise", 2),)),
        (b'{"schema": null, "payload": {"x": %s}}', None),
        (b'{"after": {"payload": 1}, "op": "c", "x": %s}', None),
        (b'{"schema": %s, "payload": ', (("precise", 2),)),
        (b"\xff", None),
    ],
)
def test_a_schema_is_found_wherever_it_stands(value: bytes, found: Any) -> None:
    schema = json.dumps({"fields": [{"field": "after", "fields": [{**connect(2), "field": "n"}]}]}).encode()
    seen = decimals.EventSchemas((("n",),)).encodings(value.replace(b"%s", schema))
    assert seen == found


@given(st.lists(st.none() | st.integers(-(2**130), 2**130), max_size=30), st.integers(-5, 45))
def test_unscaled_numbers_become_what_exact_arithmetic_says(unscaled: list[int | None], scale: int) -> None:
    kind = pa.decimal128(20, 4)
    raw = [base64.b64decode(sent(one)) if one is not None else None for one in unscaled]
    values, wrong = bytes_decimals.decimals(pa.array(raw, pa.binary()), scale, kind)
    for one, value, bad in zip(unscaled, values.to_pylist(), wrong.tolist(), strict=True):
        shifted = None if one is None else one * 10**45 * 10 ** (4 - scale if scale <= 4 else 0)
        if shifted is not None and scale > 4:
            shifted = shifted // 10 ** (scale - 4) if shifted % 10 ** (scale - 4) == 0 else 1
        fits = shifted is not None and shifted % 10**45 == 0 and abs(shifted // 10**45) < 10**20
        assert bad == (one is not None and not fits)
        assert value == (Decimal(shifted // 10**45).scaleb(-4) if fits and shifted is not None else None)


@pytest.mark.parametrize(
    "value",
    ['{"op":"c","after":{"\\u006e":"1234"},"before":{}%s}', '{"op":"c","after":{"x":Inf,"n":"1234"}%s}'],
)
def test_a_string_is_no_number_however_its_event_is_spelled(value: str, reads: str) -> None:
    raw = value.replace("%s", f',"source":{json.dumps(POSTGRESQL)}').encode()
    found = decoded("id BIGINT, n DECIMAL(12,2), x DOUBLE", raw, handling="double", reads=reads)
    assert list(found.rejects.by_place()) == [0]


def test_no_setting_reads_as_before() -> None:
    changes = DebeziumDecoder(parse_ddl(DDL)).decode(batch_of([event("c", after={"id": 1, "n": "1234"})]))
    assert changes.rows.column("n").to_pylist() == [Decimal("1234.00")]
    assert np.array_equal(changes.kept, [0])
