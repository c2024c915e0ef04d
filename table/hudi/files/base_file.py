"""Hudi base files: names, meta columns, footers, markers. Table versions 8 and 9, copy-on-write.

The format is Hudi's technical specification as release 1.2 implements it (`FSUtils`, `HoodieRecord`,
`MarkerUtils`, `HoodiePartitionMetadata`): a file belongs to a file group (its file id) and to an instant,
both in its name; the first five columns of every row are meta columns; a marker, made before the file, lets
a rollback find it.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from table.hudi.layout import META_FOLDER
from table.store.port import Store

FILE_ID_PREFIX = "10c857e9"
"""The first eight hexadecimal digits of every file id that Lockstep makes: their names tell its files."""

COMMIT_TIME = "_hoodie_commit_time"
COMMIT_SEQNO = "_hoodie_commit_seqno"
RECORD_KEY = "_hoodie_record_key"
PARTITION_PATH = "_hoodie_partition_path"
FILE_NAME = "_hoodie_file_name"
META_COLUMNS = (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY, PARTITION_PATH, FILE_NAME)

MARKER_SUFFIX = ".marker.CREATE"
MARKER_ATTEMPTS = 5
PARTITION_METADATA = ".hoodie_partition_metadata"
MIN_KEY_FOOTER = "hoodie_min_record_key"
MAX_KEY_FOOTER = "hoodie_max_record_key"
SPARK_VERSION_FOOTER = "org.apache.spark.version"
CALENDAR = "3.5.0"
"""A file without this footer may be one of Spark 2's, which had another calendar: where a date before 1582 is
in it, Spark 3 refuses to read it."""

SEQNO_DIGITS = 12
_NAME = re.compile(r"(?P<file_id>[0-9a-f-]+-\d+)_(?P<token>\d+-\d+-\d+)_(?P<instant>\d+)\.parquet")
_LOW = 4
_LOW_DIGITS = np.frombuffer(
    "".join(f"{n:0{_LOW}}" for n in range(10**_LOW)).encode(), dtype=np.uint8
).reshape(-1, _LOW)


# --- names --------------------------------------------------------------------------------------------


def new_file_id(random128: int | UUID) -> str:
    """A file id of ours: 96 of the 128 random bits under our prefix, and the `-0` that Hudi adds."""
    number = random128.int if isinstance(random128, UUID) else random128
    low = number & ((1 << 96) - 1)
    return f"{UUID(int=int(FILE_ID_PREFIX, 16) << 96 | low)}-0"


def file_name(file_id: str, write_token: str, instant: str) -> str:
    """`write_token` is three numbers, `n-n-n`: who wrote the file."""
    return f"{file_id}_{write_token}_{instant}.parquet"


def parse_file_name(name: str) -> tuple[str, str, str] | None:
    """(file id, write token, instant) of a base file's name, None where it is not one."""
    match = _NAME.fullmatch(name)
    return (match["file_id"], match["token"], match["instant"]) if match else None


def is_ours(name: str) -> bool:
    """Whether a base file's name says that Lockstep wrote it."""
    return name.startswith(f"{FILE_ID_PREFIX}-") and parse_file_name(name) is not None


# --- columns ------------------------------------------------------------------------------------------


def meta_fields() -> list[pa.Field]:
    """The five meta columns; constant ones are dictionary-encoded in memory, strings in the file."""
    constant_type = pa.dictionary(pa.int32(), pa.string())
    kinds = {COMMIT_SEQNO: pa.string(), RECORD_KEY: pa.string()}
    return [pa.field(name, kinds.get(name, constant_type)) for name in META_COLUMNS]


def meta_columns(
    *, instant: str, seqnos: pa.Array, keys: pa.ChunkedArray, partition: str, name: str
) -> list[pa.Array | pa.ChunkedArray]:
    """The meta columns of rows that go into one file, in their order."""
    zeros = pa.array(np.zeros(len(seqnos), dtype=np.int32))

    def constant(value: str) -> pa.DictionaryArray:
        return pa.DictionaryArray.from_arrays(zeros, pa.array([value]))

    return [constant(instant), seqnos, keys, constant(partition), constant(name)]


def sequence_numbers(prefix: str, start: int, count: int) -> pa.Array:
    """`<prefix>_<n>` for n from `start`, in `SEQNO_DIGITS` digits: of one width, so made without a loop."""
    head = np.frombuffer(f"{prefix}_".encode(), dtype=np.uint8)
    width = len(head) + SEQNO_DIGITS
    text = np.empty((count, width), dtype=np.uint8)
    text[:, : len(head)] = head
    done = 0
    while done < count:  # the high digits are the same for a stretch
        high, low = divmod(start + done, len(_LOW_DIGITS))
        stretch = text[done : done + len(_LOW_DIGITS) - low]
        digits = f"{high:0{SEQNO_DIGITS - _LOW}}".encode()
        stretch[:, len(head) : -_LOW] = np.frombuffer(digits, dtype=np.uint8)
        stretch[:, -_LOW:] = _LOW_DIGITS[low : low + len(stretch)]
        done += len(stretch)
    ends = np.arange(0, (count + 1) * width, width, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(text))


# --- footers ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class KeyRange:
    """The smallest and the largest record key of a file, in Java's order of strings (UTF-16 units)."""

    low: str | None = None
    high: str | None = None

    def add(self, keys: pa.ChunkedArray) -> None:
        if not len(keys):
            return
        if pc.all(pc.string_is_ascii(keys)).as_py():
            bounds = pc.min_max(keys)
            candidates = [bounds["min"].as_py(), bounds["max"].as_py()]
        else:
            candidates = keys.to_pylist()
        candidates += [k for k in (self.low, self.high) if k is not None]
        self.low = min(candidates, key=_java_order)
        self.high = max(candidates, key=_java_order)

    def footers(self) -> dict[str, str]:
        """What Hudi's bloom index reads to skip a file, and what tells Spark the calendar of its dates."""
        keys = {MIN_KEY_FOOTER: self.low or "", MAX_KEY_FOOTER: self.high or ""}
        return {**keys, SPARK_VERSION_FOOTER: CALENDAR}


def _java_order(text: str) -> bytes:
    return text.encode("utf-16-be")


# --- markers and folders ------------------------------------------------------------------------------


def marker_path(instant: str, partition: str, name: str) -> str:
    """Where the DIRECT marker of a new file is; made before the file."""
    return posixpath.join(META_FOLDER, ".temp", instant, partition, f"{name}{MARKER_SUFFIX}")


def create_marker(store: Store, instant: str, partition: str, name: str) -> str:
    """Make the marker, where there is a table; raises `OSError`.

    The folder of an instant that is over may be taken away at this moment (table/hudi/upkeep/markers.py):
    a worker that comes so late makes it again, and the sweep finds what it leaves.
    """
    marker = marker_path(instant, partition, name)
    for attempt in range(1, MARKER_ATTEMPTS + 1):
        try:
            store.make_folder(posixpath.dirname(marker))
            is_made = store.create(marker)
        except FileNotFoundError:
            if attempt == MARKER_ATTEMPTS:
                raise
            continue
        if not is_made:
            raise FileExistsError(f"{store.place(marker)} is there already: another writer has this file")
        break
    return marker


def create_partition(store: Store, instant: str, partition: str) -> None:
    """Make the table partition's folder with its metadata file where it is missing.

    Nobody reads half of the metadata; of several writers any one's will do.
    """
    metadata = posixpath.join(partition, PARTITION_METADATA)
    if store.stat(metadata) is None:
        store.make_folder(partition)
        depth = len([name for name in partition.split("/") if name])
        text = f"#partition metadata\ncommitTime={instant}\npartitionDepth={depth}\n"
        store.put(metadata, text.encode())
