"""Kafka keys of records without a value, where they are JSON or plain text."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from participant.records.json.keys import JsonKeys
from tests.decoding import batch

FIELDS = [pa.field("id", pa.string())]


def read(key: bytes) -> tuple[list[dict[str, object]], list[str]]:
    found, rejects = JsonKeys(FIELDS).read(batch([None], {0: key}), np.array([0]))
    return found.columns.to_pylist(), [one.reason for one in rejects]


@pytest.mark.parametrize("key", [b"\0\0\0\0\1\2a", b"\0\0\0\0\1" + b'"a"', b"\0\0\0\0\7\0\x0a\1a", b"\0"])
def test_a_key_that_begins_as_those_of_a_schema_registry_do_is_no_plain_text(key: bytes) -> None:
    """It would delete a row that there is not, and leave the one that it means."""
    rows, (why,) = read(key)
    assert rows == []
    assert why.endswith(
        "begins with a byte 0, as keys do that name a schema: is record.key_format another one?"
    )


def test_any_other_text_is_the_key() -> None:
    assert read(b"a\tb") == ([{"id": "a\tb"}], [])
    assert read(b"7") == ([{"id": "7"}], [])


@pytest.mark.parametrize(
    "key",
    [
        b'{"schemaId": 3, "payload": {"id": "a"}}',
        b'{"payload": {"id": "a"}}',
        b'{"schema": "x", "payload": {"id": "a", "z": 1}}',
        b'{"schema": {}, "payload": {"id": "a"}}',
        b'{"schema": null, "payload": "a"}',
    ],
)
def test_what_a_key_wraps_is_read_where_the_wrapping_says_of_no_row(key: bytes) -> None:
    assert read(key) == ([{"id": "a"}], [])


@pytest.mark.parametrize(
    "key",
    [
        b'{"schemaId": 3, "payload": "a"}',
        b'{"schemaId": 3, "payload": {"id": "a"}, "payload": {"id": "b"}}',
        b'{"schemaId": 3, "payload": {"x": "a"}}',
    ],
)
def test_a_wrapping_in_which_nothing_says_of_one_row_is_refused(key: bytes) -> None:
    rows, why = read(key)
    assert (rows, len(why)) == ([], 1)


def test_a_key_with_its_field_outside_of_payload_is_read_there() -> None:
    assert read(b'{"id": "a", "payload": {"id": "b"}}') == ([{"id": "a"}], [])
