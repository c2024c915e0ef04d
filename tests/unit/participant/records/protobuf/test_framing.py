"""What stands before a message, against confluent-kafka's own reading and writing of it."""

from __future__ import annotations

import io
import uuid

import pytest
from confluent_kafka.schema_registry.serde import SchemaId
from hypothesis import given
from hypothesis import strategies as st

from participant.records.by_schema.misread import Misread
from participant.records.protobuf.framing import DEPTH_MAX, confluent

GUID = "89791762-2336-4186-9674-299b90a802e2"
PLACES = st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=DEPTH_MAX)


@given(st.integers(0, 2**32 - 1), PLACES, st.binary(max_size=3))
def test_an_id_and_a_place_are_read_as_confluents_serializer_writes_them(
    number: int, place: list[int], message: bytes
) -> None:
    value = SchemaId("PROTOBUF", number, None, place).id_to_bytes() + message
    key, at = confluent(value, None)
    assert key == (number, tuple(place)) and value[at:] == message


@given(PLACES)
def test_in_a_header_a_guid_and_a_place_are_all_there_is(place: list[int]) -> None:
    header = SchemaId("PROTOBUF", None, GUID, place).guid_to_bytes()
    assert confluent(b"\x05", header) == ((GUID, tuple(place)), 0)
    with pytest.raises(Misread, match="is longer than a schema's id and the place of a message"):
        confluent(b"", header + b"\0")


def test_a_byte_0_is_the_first_message() -> None:
    assert confluent(b"\0\0\0\0\x07\0x", None) == ((7, (0,)), 6)
    assert confluent(b"\0\0\0\0\x07\x02\0x", None) == ((7, (0,)), 7), "spelled out, too"


@given(st.binary(max_size=12))
def test_what_is_read_is_what_confluents_deserializer_reads(data: bytes) -> None:
    try:
        (schema, place), at = confluent(data, None)
    except Misread as misread:
        assert str(misread)
        return
    theirs = SchemaId("PROTOBUF")
    rest = theirs.from_bytes(io.BytesIO(data)).read()
    assert schema == (theirs.id if theirs.guid is None else str(theirs.guid))
    assert list(place) == theirs.message_indexes and rest == data[at:]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "does not begin with a schema's id"),
        (b"\x02\0\0\0\x07\0", "does not begin with a schema's id"),
        (b"\0\0\0", "ends within its schema's id"),
        (b"\0\0\0\0\x07", "ends within the place of its message"),
        (b"\0\0\0\0\x07\x04\x02", "ends within the place of its message"),
        (b"\0\0\0\0\x07\x01", "has not 1 to 64 numbers"),
        (b"\0\0\0\0\x07\x82\x01" + bytes(70), "has not 1 to 64 numbers"),
        (b"\0\0\0\0\x07\x02\x01", "has a number below zero"),
        (b"\0\0\0\0\x07\x02" + b"\xff" * 9, "has a number of more than 32 bits"),
        (b"\x01" + uuid.UUID(GUID).bytes, "ends within the place of its message"),
    ],
)
def test_what_is_none_is_refused_in_words(data: bytes, why: str) -> None:
    with pytest.raises(Misread) as caught:
        confluent(data, None)
    assert why in str(caught.value)
