"""A record without a value deletes the row of its key, however Debezium spells a date in it."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from participant.records.decimal_handling import PRECISE
from participant.records.envelopes.debezium.envelope import ChangeEvents
from participant.records.json.format import JsonFormat
from participant.records.port import Asked, Decoded, RecordSpec
from participant.records.raw import RawBatch, Values
from table.schema import parse_ddl
from tests.debezium_events import PLACE

DAY = date(2022, 1, 8)


def tombstones(ddl: str, *keys: Any, **asked: Any) -> Decoded:
    schema = parse_ddl(ddl)
    json_format = JsonFormat(RecordSpec())
    made = ChangeEvents().decoder(
        Asked(schema=schema, upserts=True, key_columns=list(schema), **asked), json_format, json_format
    )
    offsets = np.arange(len(keys), dtype=np.int64)
    given = {at: key if isinstance(key, bytes) else json.dumps(key).encode() for at, key in enumerate(keys)}
    return made.decode(
        RawBatch(
            partition=PLACE,
            offsets=offsets,
            timestamps_ms=offsets,
            values=Values.of([None] * len(keys)),
            keys=given,
        )
    )


def test_a_date_is_a_number_or_a_text_with_or_without_a_z() -> None:
    found = tombstones(
        "day DATE",
        {"day": 19_000},
        {"schema": {"type": "struct"}, "payload": {"day": "2022-01-08Z"}},
        {"day": "soon"},
        "2022-01-08",
        b"19000",
        {"day": 10**12},
        {"day": None},
    )
    assert found.tombstones is not None
    assert found.tombstones.columns.to_pydict() == {"day": [DAY, DAY, DAY, DAY]}
    assert found.tombstones.places.tolist() == [0, 1, 3, 4]
    reasons = found.rejects.by_place()
    assert sorted(reasons) == [2, 5, 6]
    assert reasons[2].endswith(": field day: not a DATE but a string that is no date like 2026-12-31")
    assert "not a DATE" in reasons[5]


def test_other_fields_of_the_key_are_read_as_ever() -> None:
    found = tombstones(
        "day DATE, amount DECIMAL(9,2), id BIGINT",
        {"day": 19_000, "amount": "BNI=", "id": 7},
        {"day": "2022-01-08", "amount": "BNI=", "id": 8},
        {"day": 19_000, "amount": "BNI=", "id": "x"},
        decimal_handling=PRECISE,
    )
    assert found.tombstones is not None
    assert found.tombstones.columns.to_pylist() == [
        {"day": DAY, "amount": Decimal("12.34"), "id": number} for number in (7, 8)
    ]
    assert list(found.rejects.by_place()) == [2]


@pytest.mark.parametrize("ddl", ["id BIGINT", "name STRING"])
def test_keys_without_a_date_are_read_by_the_format_alone(ddl: str) -> None:
    found = tombstones(ddl, {"id": 1, "name": "2022-01-08Z"})
    assert found.tombstones is not None
    assert pa.types.is_date32(found.tombstones.columns.schema.field(0).type) is False
