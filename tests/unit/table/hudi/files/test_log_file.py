"""Log files: names, blocks there and back, damaged bytes. Hudi itself reads them in tests/integration."""

from __future__ import annotations

import io
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from table.hudi.files.base_file import parse_file_name
from table.hudi.files.log_file import (
    BLOCK_BYTES_MAX,
    DELETE_BLOCK,
    DELETE_RECORD_LIST,
    INSTANT_TIME,
    PARQUET_BLOCK,
    SCHEMA,
    Block,
    Delete,
    bucket_file_id,
    data_block,
    delete_block,
    is_log_file,
    log_file_name,
    parse_log_file_name,
    read_blocks,
)
from table.schema import UTC_MICROS

INSTANT = "20261120201248694"
AVRO = '{"type":"record","name":"r","fields":[]}'
HEADER = {INSTANT_TIME: INSTANT, SCHEMA: AVRO}
CONTENT = b"PAR1 and so on PAR1"
WIDEST = Decimal(f"{'9' * 15}.{'9' * 15}")
WRAPPER = "org.apache.hudi.avro.model."


def whole(content: bytes) -> bytes:
    head, tail = data_block(INSTANT, AVRO, len(content))
    return head + content + tail


def deletes_in(block: Block) -> list[tuple[str, str, Any]]:
    """Key, table partition and (wrapper, value) of each record."""
    version, size_bytes = struct.unpack_from(">ii", block.content)
    assert (version, size_bytes) == (3, len(block.content) - 8)
    avro = io.BytesIO(block.content[8:])
    found = fastavro.schemaless_reader(avro, DELETE_RECORD_LIST, None, return_record_name=True)
    assert not avro.read()
    assert isinstance(found, dict)
    return [
        (
            record["recordKey"],
            record["partitionPath"],
            (record["orderingVal"][0].removeprefix(WRAPPER), record["orderingVal"][1]["value"]),
        )
        for record in found["deleteRecordList"]
    ]


# --- names --------------------------------------------------------------------------------------------


def test_a_bucket_has_one_file_id_for_all_writers() -> None:
    assert bucket_file_id(0) == "00000000-0000-0000-0000-000000000000-0"
    assert bucket_file_id(255) == "00000255-0000-0000-0000-000000000000-0"
    assert bucket_file_id(10**8 - 1) == "99999999-0000-0000-0000-000000000000-0"


@pytest.mark.parametrize("bucket", [-1, 10**8])
def test_a_bucket_that_a_file_id_cannot_hold_is_refused(bucket: int) -> None:
    with pytest.raises(ValueError, match=f"bucket {bucket}"):
        bucket_file_id(bucket)


@settings(deadline=None)
@given(st.integers(0, 10**8 - 1), st.integers(0, 2**31), st.integers(0, 9), st.integers(0, 99))
def test_a_name_is_read_as_it_was_written(bucket: int, first: int, second: int, third: int) -> None:
    file_id, token = bucket_file_id(bucket), f"{first}-{second}-{third}"
    name = log_file_name(file_id, INSTANT, token)
    assert name == f".{file_id}_{INSTANT}.log.1_{token}"
    assert parse_log_file_name(name) == (file_id, token, INSTANT)
    assert is_log_file(name) and parse_file_name(name) is None


def test_a_log_file_of_sparks_is_one_too() -> None:
    name = ".00000003-2b1c-4c1f-9a57-1f0f9a3f8a11-0_20261120201248694.log.2_0-31-45"
    assert parse_log_file_name(name) == ("00000003-2b1c-4c1f-9a57-1f0f9a3f8a11-0", "0-31-45", INSTANT)


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".hoodie_partition_metadata",
        "00000003-0000-0000-0000-000000000000-0_1-0-1_20261120201248694.parquet",
        "00000003-0000-0000-0000-000000000000-0_20261120201248694.log.1_0-0-0",
        ".00000003-0000-0000-0000-000000000000-0_20261120201248694.log.1_0-0-0.cdc",
        ".00000003-0000-0000-0000-000000000000-0_20261120201248694.log.1_0-0-0.crc",
        "..00000003-0000-0000-0000-000000000000-0_20261120201248694.log.1_0-0-0.crc",
        ".00000003-0000-0000-0000-000000000000-0_20261120201248694.log.1",
        ".00000003-0000-0000-0000-000000000000-0_20261120201248694.log.1_0-0-0\n",
        ".00000003-0000-0000-0000-000000000000-0_٣.log.1_0-0-0",
    ],
)
def test_any_other_name_is_no_log_files(name: str) -> None:
    assert parse_log_file_name(name) is None and not is_log_file(name)


# --- blocks -------------------------------------------------------------------------------------------


def test_a_data_block_is_laid_out_byte_by_byte() -> None:
    assert data_block("12", "{}", 7) == (
        b"#HUDI#\0\0\0\0\0\0\0\x3b"  # 40 bytes to the content, its 7, 4 of the footer, 8
        b"\0\0\0\x01\0\0\0\x05"
        b"\0\0\0\x02\0\0\0\0\0\0\0\x0212\0\0\0\x02\0\0\0\x02{}"
        b"\0\0\0\0\0\0\0\x07",
        b"\0\0\0\0\0\0\0\0\0\0\0\x41",
    )


@settings(deadline=None)
@given(st.lists(st.binary(max_size=200), max_size=5))
def test_blocks_are_read_as_they_were_written(contents: list[bytes]) -> None:
    expected = [Block(kind=PARQUET_BLOCK, header=HEADER, content=content) for content in contents]
    assert read_blocks(b"".join(map(whole, contents))) == expected


def test_a_schema_of_any_characters_comes_back() -> None:
    head, tail = data_block(INSTANT, '"ü 😀"', 0)
    assert read_blocks(head + tail)[0].header == {INSTANT_TIME: INSTANT, SCHEMA: '"ü 😀"'}


def test_a_block_longer_than_a_java_int_is_refused() -> None:
    head, tail = data_block(INSTANT, AVRO, 0)
    most = BLOCK_BYTES_MAX - (len(head) + len(tail) - 14)
    data_block(INSTANT, AVRO, most)
    with pytest.raises(ValueError, match="a log block of 2147483648 bytes"):
        data_block(INSTANT, AVRO, most + 1)


def test_a_file_that_ends_early_is_refused_wherever_it_ends() -> None:
    data = whole(CONTENT) + whole(b"")
    for end in set(range(1, len(data))) - {len(whole(CONTENT))}:
        with pytest.raises(ValueError, match=r"^position \d+: "):
            read_blocks(data[:end])


@pytest.mark.parametrize("mask", [0x80, 0xFF])
def test_a_damaged_byte_is_found_unless_it_is_in_a_value(mask: int) -> None:
    data = whole(CONTENT)
    values = [data.index(value) for value in (INSTANT.encode(), AVRO.encode(), CONTENT)]
    spans = zip(values, (INSTANT, AVRO, CONTENT), strict=True)
    spared = {at + n for at, value in spans for n in range(len(value))}
    for at in set(range(len(data))) - spared:
        damaged = bytearray(data)
        damaged[at] ^= mask
        with pytest.raises(ValueError, match=r"^position \d+: "):
            read_blocks(bytes(damaged))


@pytest.mark.parametrize(
    ("at", "value", "sentence"),
    [
        (0, b"#HUDX#", "position 0: the magic is b'#HUDX#'"),
        (6, struct.pack(">q", -1), "position 14: a block of -1 bytes"),
        (6, struct.pack(">q", 2**62), "position 14: a block of 4611686018427387904 bytes"),
        (14, struct.pack(">i", 2), "position 14: the version is 2"),
        (18, struct.pack(">i", 7), "position 18: 7 is no type"),
        (22, struct.pack(">i", 10), "position 22: the header has 10 entries"),
        (26, struct.pack(">i", 9), "position 26: key 9"),
        (26, struct.pack(">i", 2), "position 51: key 2 of the header is unknown or there twice"),
        (30, struct.pack(">i", -1), "position 34: a text of -1 bytes"),
        (34, b"\xff", "position 34: the text is not UTF-8"),
        (-8, struct.pack(">q", 1), "the reverse length is 1"),
    ],
)
def test_what_is_wrong_and_where_is_in_the_sentence(at: int, value: bytes, sentence: str) -> None:
    data = bytearray(whole(CONTENT))
    start = at % len(data)
    data[start : start + len(value)] = value
    with pytest.raises(ValueError) as refused:
        read_blocks(bytes(data))
    assert sentence in str(refused.value)


@settings(deadline=None)
@given(st.data())
def test_whatever_the_bytes_reading_ends_with_blocks_or_with_a_value_error(data: st.DataObject) -> None:
    damaged = bytearray(whole(CONTENT) + delete_block(INSTANT, AVRO, [Delete("k", "p")]))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(damaged)))
        damaged[start : start + data.draw(st.integers(0, 8))] = data.draw(st.binary(max_size=8))
    try:
        blocks = read_blocks(bytes(damaged))
    except ValueError:
        return
    assert all(isinstance(block, Block) for block in blocks)


# --- deletes ------------------------------------------------------------------------------------------


def test_a_delete_block_holds_keys_partitions_and_the_same_header_as_data() -> None:
    deletes = [Delete("k1", "p=a"), Delete("ü,😀:", "")]
    [block] = read_blocks(delete_block(INSTANT, AVRO, deletes))
    assert (block.kind, block.header) == (DELETE_BLOCK, HEADER)
    assert deletes_in(block) == [("k1", "p=a", ("IntWrapper", 0)), ("ü,😀:", "", ("IntWrapper", 0))]


def test_a_delete_block_of_none_is_a_block() -> None:
    [block] = read_blocks(delete_block(INSTANT, AVRO, []))
    assert deletes_in(block) == []


@pytest.mark.parametrize(
    ("value", "kind", "wrapped"),
    [
        (True, pa.bool_(), ("BooleanWrapper", True)),
        (-(2**31), pa.int32(), ("IntWrapper", -(2**31))),
        (2**63 - 1, pa.int64(), ("LongWrapper", 2**63 - 1)),
        (0, pa.int64(), ("LongWrapper", 0)),
        (1.5, pa.float32(), ("FloatWrapper", 1.5)),
        (0.1, pa.float64(), ("DoubleWrapper", 0.1)),
        ("ü", pa.string(), ("StringWrapper", "ü")),
        (date(1969, 12, 31), pa.date32(), ("IntWrapper", -1)),
        (date(2026, 11, 20), pa.date32(), ("IntWrapper", 20777)),
        (datetime(2020, 1, 2, 3, 4, 5, 123456, UTC), UTC_MICROS, ("LongWrapper", 1577934245123456)),
        (datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), UTC_MICROS, ("LongWrapper", -1)),
        (datetime(9999, 12, 31, 23, 59, 59, 999999, UTC), UTC_MICROS, ("LongWrapper", 253402300799999999)),
        (Decimal("-1.50"), pa.decimal128(10, 2), ("DecimalWrapper", Decimal("-1.5"))),
        (Decimal("0E-10"), pa.decimal128(38, 10), ("DecimalWrapper", Decimal(0))),
        (WIDEST, pa.decimal128(38, 15), ("DecimalWrapper", WIDEST)),
    ],
)
def test_an_ordering_value_is_wrapped_as_its_type_says(value: Any, kind: pa.DataType, wrapped: Any) -> None:
    deletes = [Delete("k", "p", value), Delete("l", "p")]
    [block] = read_blocks(delete_block(INSTANT, AVRO, deletes, kind))
    assert deletes_in(block) == [("k", "p", wrapped), ("l", "p", ("IntWrapper", 0))]


@pytest.mark.parametrize("kind", [pa.binary(), pa.list_(pa.int32()), pa.timestamp("us"), pa.int16()])
def test_a_type_that_cannot_order_deletes_is_refused_before_any_value(kind: pa.DataType) -> None:
    with pytest.raises(ValueError, match="cannot hold an ordering value of this type"):
        delete_block(INSTANT, AVRO, [], kind)


@pytest.mark.parametrize("value", ["1E15", "-1000000000000000", "1E-16", "0.1234567890123456"])
def test_a_decimal_that_hudi_has_no_room_for_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="15 digits before the point"):
        delete_block(INSTANT, AVRO, [Delete("k", "p", Decimal(value))], pa.decimal128(38, 18))


def test_an_ordering_value_without_a_type_is_refused() -> None:
    with pytest.raises(ValueError, match="7: an ordering value, but no type for it"):
        delete_block(INSTANT, AVRO, [Delete("k", "p", 7)])
