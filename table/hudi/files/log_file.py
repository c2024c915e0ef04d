"""Hudi log files: names, data and delete blocks. Table versions 8 and 9, merge-on-read.

The format is what release 1.2.0 reads and writes, taken from its classes, which differ from the published
specification in places: `FSUtils` and `BucketIdentifier` (names and file ids), `HoodieLogFormatWriter`,
`HoodieLogFileReader` and `HoodieLogBlock` (blocks), `HoodieDeleteBlock` and `HoodieAvroWrapperUtils`
(deletes). A log file is a row of blocks. All numbers are big-endian; L counts what follows it, R what goes
before it, from the magic on, so R is always L + 6:

    #HUDI# | int64 L | int32 1 | int32 type | header | int64 size | content | footer | int64 R

Header and footer are maps: int32 entries, then for each int32 key, int32 size, text.
"""

from __future__ import annotations

import io
import re
import struct
import zlib
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any, NamedTuple

import fastavro
import pyarrow as pa

from table.hudi.files.base_file import FILE_ID_PREFIX
from table.schema import UTC_MICROS

BUCKETS_MAX = 10**8
"""A file id has eight digits for its bucket."""
BLOCK_BYTES_MAX = 2**31 - 1
"""Hudi reads a block's length as a Java int."""

DELETE_BLOCK, PARQUET_BLOCK = 1, 5
BLOCK_TYPES = range(7)
INSTANT_TIME, SCHEMA = 0, 2
HEADER_KEYS = range(9)

_MAGIC = b"#HUDI#"
_FORMAT_VERSION = 1
_BUCKET = re.compile(r"\.?\d{8}-0000-0000-0000-000000000000-0_")
_MARK = str(int(FILE_ID_PREFIX, 16))
_DELETES_VERSION = 3
_NAME = re.compile(
    r"\.(?P<file_id>[0-9a-f-]+-\d+)_(?P<instant>\d+)\.log\.(?P<version>\d+)_(?P<token>\d+-\d+-\d+)", re.ASCII
)

Ordering = int | float | str | Decimal | date | datetime


class Delete(NamedTuple):
    """A row to delete. `ordering` None: it goes whatever its ordering value is."""

    key: str
    table_partition: str
    ordering: Ordering | None = None


class Block(NamedTuple):
    """`kind` is one of `BLOCK_TYPES`; `header` has `INSTANT_TIME`, `SCHEMA` and what other writers add."""

    kind: int
    header: dict[int, str]
    content: bytes


# --- names --------------------------------------------------------------------------------------------


def bucket_file_id(bucket: int) -> str:
    """The file id of a bucket, the same for all writers: they meet in one file group per table partition.

    Hudi's own name for it where writers do not wait for each other. Raises `ValueError`.
    """
    if not 0 <= bucket < BUCKETS_MAX:
        raise ValueError(f"bucket {bucket}: there are buckets 0 to {BUCKETS_MAX - 1}")
    return f"{bucket:08d}-0000-0000-0000-000000000000-0"


def log_file_name(file_id: str, instant: str, write_token: str, version: int = 1) -> str:
    """`write_token` is three numbers, `n-n-n`: it keeps apart the files of two writers in one instant.

    `version`: of several files of one writer in one instant, readers take the lower one for the earlier.
    """
    return f".{file_id}_{instant}.log.{version}_{write_token}"


def parse_log_file_name(name: str) -> tuple[str, str, str] | None:
    """(file id, write token, instant) of a log file's name, None where it is not one.

    Any version will do: Spark's writers count versions up. Change-data files (`.cdc`) are not log files here.
    """
    match = _NAME.fullmatch(name)
    return (match["file_id"], match["token"], match["instant"]) if match else None


def log_file_version(name: str) -> int:
    """Which of one writer's files of a group and an instant it is, from 1 on. Raises `ValueError`."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError(f"{name} is no log file's name")
    return int(match["version"])


def is_log_file(name: str) -> bool:
    """Whether it is the name of a log file, anybody's."""
    return parse_log_file_name(name) is not None


def write_token(writer_number: int, incarnation: str) -> str:
    """A worker's write token: its number, our mark, and which of its lives it is."""
    return f"{writer_number}-{_MARK}-{zlib.crc32(incarnation.encode()) & 0x7FFFFFFF}"


def is_our_log_file(name: str) -> bool:
    """Whether a log file's name says that Lockstep wrote it: file groups are shared with other writers."""
    parsed = parse_log_file_name(name)
    return parsed is not None and parsed[1].split("-")[1] == _MARK


def is_in_bucket(name: str) -> bool:
    """Whether a file belongs to a bucket's file group, whose file id all writers share."""
    return _BUCKET.match(name) is not None


# --- blocks -------------------------------------------------------------------------------------------


def data_block(instant: str, schema: str, content_bytes: int) -> tuple[bytes, bytes]:
    """What goes before and after a parquet file of `content_bytes` bytes to make it a data block.

    `schema` is the Avro schema (JSON) with the meta columns. Raises `ValueError` for a block too large.
    """
    return _around(PARQUET_BLOCK, instant, schema, content_bytes)


def delete_block(
    instant: str, schema: str, deletes: Iterable[Delete], ordering_type: pa.DataType | None = None
) -> bytes:
    """A whole block of deletes. `ordering_type` is the ordering column's type, None where there is none.

    Hudi's writer puts the schema into its delete blocks, too. To Hudi, an INT 0 and the DATE 1970-01-01 are
    no ordering value: such a delete always wins, also Hudi's own. Raises `ValueError` for a type or a value
    that cannot be written, and for a block too large.
    """
    ordering = _wrapper(ordering_type)
    records = [
        {
            "recordKey": delete.key,
            "partitionPath": delete.table_partition,
            "orderingVal": _NO_ORDERING if delete.ordering is None else ordering(delete.ordering),
        }
        for delete in deletes
    ]
    avro = io.BytesIO()
    fastavro.schemaless_writer(avro, DELETE_RECORD_LIST, {"deleteRecordList": records})
    size_bytes = len(avro.getbuffer())
    content = struct.pack(">ii", _DELETES_VERSION, size_bytes)
    head, tail = _around(DELETE_BLOCK, instant, schema, len(content) + size_bytes)
    return b"".join((head, content, avro.getbuffer(), tail))


def _around(kind: int, instant: str, schema: str, content_bytes: int) -> tuple[bytes, bytes]:
    body = struct.pack(">ii", _FORMAT_VERSION, kind)
    body += _map({INSTANT_TIME: instant, SCHEMA: schema}) + struct.pack(">q", content_bytes)
    footer = _map({})
    length = len(body) + content_bytes + len(footer) + 8
    if length > BLOCK_BYTES_MAX:
        raise ValueError(f"a log block of {length} bytes: Hudi reads at most {BLOCK_BYTES_MAX}")
    head = _MAGIC + struct.pack(">q", length) + body
    return head, footer + struct.pack(">q", length + len(_MAGIC))


def _map(entries: dict[int, str]) -> bytes:
    parts = [struct.pack(">i", len(entries))]
    for key, text in entries.items():
        value = text.encode()
        parts += [struct.pack(">ii", key, len(value)), value]
    return b"".join(parts)


# --- ordering values of deletes -----------------------------------------------------------------------

_NAMESPACE = "org.apache.hudi.avro.model"
_TEXT = ["null", "string"]
_VALUES: dict[str, Any] = {
    "BooleanWrapper": "boolean",
    "IntWrapper": "int",
    "LongWrapper": "long",
    "FloatWrapper": "float",
    "DoubleWrapper": "double",
    "BytesWrapper": "bytes",
    "StringWrapper": "string",
    "DateWrapper": "int",
    "DecimalWrapper": {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15},
    "TimeMicrosWrapper": "long",
    "TimestampMicrosWrapper": "long",
}
"""In the order of Hudi's union; the one left out is its last, for several ordering columns."""

DELETE_RECORD_LIST = fastavro.parse_schema(
    {
        "type": "record",
        "name": f"{_NAMESPACE}.HoodieDeleteRecordList",
        "fields": [
            {
                "name": "deleteRecordList",
                "type": {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": "HoodieDeleteRecord",
                        "fields": [
                            {"name": "recordKey", "type": _TEXT},
                            {"name": "partitionPath", "type": _TEXT},
                            {
                                "name": "orderingVal",
                                "type": [
                                    "null",
                                    *(
                                        {
                                            "type": "record",
                                            "name": name,
                                            "fields": [{"name": "value", "type": kind}],
                                        }
                                        for name, kind in _VALUES.items()
                                    ),
                                ],
                            },
                        ],
                    },
                },
            }
        ],
    }
)
"""The Avro schema of a delete block's content, which follows two int32: version 3 and the size."""

_NO_ORDERING = (f"{_NAMESPACE}.IntWrapper", {"value": 0})
"""Hudi takes the Java Integer 0 for "no ordering"; a null makes its reader throw a NullPointerException."""
_EPOCH_DAY = date(1970, 1, 1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DECIMAL_UNIT = Decimal(1).scaleb(-_VALUES["DecimalWrapper"]["scale"])
_EXACTLY = Context(prec=_VALUES["DecimalWrapper"]["precision"], traps=[Inexact, InvalidOperation])


def _same(value: Any) -> Any:
    return value


def _days(value: Any) -> Any:
    return (value - _EPOCH_DAY).days


def _micros(value: Any) -> Any:
    return (value - _EPOCH) // timedelta(microseconds=1)


def _decimal(value: Any) -> Any:
    try:
        return value.quantize(_DECIMAL_UNIT, context=_EXACTLY)
    except (Inexact, InvalidOperation) as error:
        raise ValueError(f"{value}: a delete holds 15 digits before the point and 15 after it") from error


# Hudi compares the value with the column's as Spark holds it inside: a DATE is an Integer, a TIMESTAMP a
# Long. Its wrappers for dates and timestamps are read as java.sql classes, which compare with neither.
_WRAPPERS: dict[pa.DataType, tuple[str, Callable[[Any], Any]]] = {
    pa.bool_(): ("BooleanWrapper", _same),
    pa.int32(): ("IntWrapper", _same),
    pa.int64(): ("LongWrapper", _same),
    pa.float32(): ("FloatWrapper", _same),
    pa.float64(): ("DoubleWrapper", _same),
    pa.string(): ("StringWrapper", _same),
    pa.date32(): ("IntWrapper", _days),
    UTC_MICROS: ("LongWrapper", _micros),
}


def _refuse(value: Ordering) -> Any:
    raise ValueError(f"{value!r}: an ordering value, but no type for it")


def _wrapper(ordering_type: pa.DataType | None) -> Callable[[Ordering], Any]:
    """What wraps a value of this type as the union wants it: (name of the branch, record)."""
    if ordering_type is None:
        return _refuse
    name, convert = _WRAPPERS.get(ordering_type, ("DecimalWrapper", _decimal))
    if ordering_type not in _WRAPPERS and not pa.types.is_decimal(ordering_type):
        raise ValueError(f"{ordering_type}: a delete cannot hold an ordering value of this type")
    return lambda value: (f"{_NAMESPACE}.{name}", {"value": convert(value)})


# --- reading ------------------------------------------------------------------------------------------


class _Cursor:
    """A place in bytes; every size is checked before a slice is taken."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def read(self, count: int, what: str) -> bytes:
        if not 0 <= count <= self.left:
            raise ValueError(f"position {self.at}: {what} of {count} bytes, but {self.left} are left")
        self.at += count
        return self.data[self.at - count : self.at]

    def int32(self, what: str) -> int:
        return int.from_bytes(self.read(4, what), signed=True)

    def int64(self, what: str) -> int:
        return int.from_bytes(self.read(8, what), signed=True)

    def expect(self, found: object, expected: object, what: str, at: int) -> None:
        if found != expected:
            raise ValueError(f"position {at}: {what} is {found!r} and should be {expected!r}")


def read_blocks(data: bytes) -> list[Block]:
    """The blocks of a whole log file. Raises `ValueError`, with the position, for whatever is wrong in it."""
    cursor = _Cursor(data)
    blocks = []
    while cursor.left:
        blocks.append(_read_block(cursor))
    return blocks


def _read_block(cursor: _Cursor) -> Block:
    start = cursor.at
    cursor.expect(cursor.read(len(_MAGIC), "the magic"), _MAGIC, "the magic", start)
    length = cursor.int64("the block's length")
    body = cursor.at
    if not 0 <= length <= min(cursor.left, BLOCK_BYTES_MAX):
        raise ValueError(f"position {body}: a block of {length} bytes, but {cursor.left} are left")
    cursor.expect(cursor.int32("the version"), _FORMAT_VERSION, "the version", body)
    kind = cursor.int32("the block's type")
    if kind not in BLOCK_TYPES:
        raise ValueError(f"position {cursor.at - 4}: {kind} is no type of a block")
    header = _read_map(cursor, "the header")
    content = cursor.read(cursor.int64("the content's size"), "content")
    _read_map(cursor, "the footer")
    reverse = cursor.int64("the reverse length")
    cursor.expect(cursor.at - body, length, "the size of the block's parts", body)
    cursor.expect(reverse, length + len(_MAGIC), "the reverse length", cursor.at - 8)
    return Block(kind=kind, header=header, content=content)


def _read_map(cursor: _Cursor, what: str) -> dict[int, str]:
    entries: dict[int, str] = {}
    count = cursor.int32(f"{what}'s size")
    if not 0 <= count <= len(HEADER_KEYS):
        raise ValueError(f"position {cursor.at - 4}: {what} has {count} entries")
    for _ in range(count):
        at = cursor.at
        key = cursor.int32(f"{what}'s key")
        if key not in HEADER_KEYS or key in entries:
            raise ValueError(f"position {at}: key {key} of {what} is unknown or there twice")
        text = cursor.read(cursor.int32("a text's size"), "a text")
        try:
            entries[key] = text.decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"position {at + 8 + error.start}: the text is not UTF-8") from error
    return entries
