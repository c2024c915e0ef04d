"""A table as it is stored: its properties, its Avro files, and what is said where they cannot be read."""

from __future__ import annotations

import posixpath
import re
import struct
import zlib
from typing import Any, BinaryIO

import fastavro
import pyarrow as pa
from fastavro.schema import SchemaParseException

from table.errors import Refused, Unavailable
from table.hudi.layout import PROPERTIES
from table.instants import MissingTable
from table.store.location import store_at
from table.store.port import Store
from table.store.settings import StoreSettings

NOT_WHOLE = (
    "is empty, as whoever made the table leaves it who was killed over it: the next `lockstep run` says what "
    "to do"
)
PROPERTIES_BYTES_MAX = 4 * 1024 * 1024
INSTANT_BYTES_MAX = 256 * 1024 * 1024
UNREADABLE = (
    *(OSError, ValueError, ArithmeticError, LookupError, TypeError, AttributeError, EOFError, RecursionError),
    *(pa.ArrowException, struct.error, zlib.error, SchemaParseException),
)
"""What Avro, parquet and JSON readers raise for bytes that are damaged."""


def table_properties(base_path: str, storage: StoreSettings | None = None) -> dict[str, str]:
    """`hoodie.properties` of the table. Raises `MissingTable`, `Unavailable`."""
    return properties_of(store_at(base_path, settings=storage))


def properties_of(store: Store) -> dict[str, str]:
    """The same, of the table that a store is."""
    for name in PROPERTIES:
        try:
            raw = store.read(posixpath.join(".hoodie", name), bytes_max=PROPERTIES_BYTES_MAX)
            properties = parse_properties(raw.decode("utf-8"))
            if not properties:
                raise Unavailable(f"{store.place(posixpath.join('.hoodie', name))} {NOT_WHOLE}")
            return properties
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as error:
            raise unavailable(store, posixpath.join(".hoodie", name), error) from error
    raise MissingTable(
        f"There is no Hudi table at {store.place()}: `lockstep run` creates it; check table.path if it should"
        " exist."
    )


def parse_properties(text: str) -> dict[str, str]:
    """A Java properties file, as far as Hudi writes them: `key=value` lines with `\\`-escapes."""
    properties: dict[str, str] = {}
    for line in text.splitlines():
        stripped = line.strip()
        if stripped and not stripped.startswith(("#", "!")):
            key, _, value = stripped.partition("=")
            properties[_unescape(key.strip())] = _unescape(value.strip())
    return properties


def _unescape(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        return {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}.get(match[2], match[2])

    return re.sub(r"\\(?:u([0-9a-fA-F]{4})|(.))", one, text)


def read_bytes(store: Store, path: str) -> bytes:
    """The file's bytes. Raises `FileNotFoundError` as it is, everything else as `Unavailable`."""
    try:
        raw = store.read(path, bytes_max=INSTANT_BYTES_MAX + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise unavailable(store, path, error) from error
    if len(raw) > INSTANT_BYTES_MAX:
        raise Refused(
            f"{store.place(path)} is larger than {INSTANT_BYTES_MAX} bytes, which no timeline file should be."
        )
    return raw


def avro_record(file: BinaryIO) -> dict[str, Any]:
    """The one record of an Avro container file."""
    record = next(iter(fastavro.reader(file)), None)
    if not isinstance(record, dict):
        raise ValueError("it holds no record")
    return record


def unavailable(store: Store, path: str, error: Exception) -> Unavailable:
    return Unavailable(f"{store.place(path)} cannot be read: {error}. Check the storage and its permissions.")
