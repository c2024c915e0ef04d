"""Values to Arrow columns, one by one, each by the schema that it names, each row tied to its offset.

Python objects are held of `GROUP_BYTES` of values at once: they take some forty times what the bytes do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from participant.records.by_schema.framing import SchemaKey
from participant.records.by_schema.misread import Misread
from participant.records.errors import BatchTooLarge, ChangedSchema, SchemasUnavailable, UnknownSchema
from participant.records.headers import first
from participant.records.json.columns import fit, nullable_type
from participant.records.port import Decoded
from participant.records.raw import RawBatch, Values
from participant.records.rejects import ABOUT_KEY, NO_KEY, Reasons, Rejects
from participant.records.value_limits import BATCH_VALUES_MAX
from table.rows import Tombstones
from table.schema import SchemaError, record_schema

GROUP_BYTES = 1 << 20
COLUMNS_NAMED_MAX = 5
READERS_MAX = 1_000
"""Schemas that are known at once; then all are looked up anew."""

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


class Schemas(Protocol):
    """Where schemas are had from. Not for several threads."""

    def find(self, key: SchemaKey) -> tuple[str, ...]:
        """The schema's text, last, behind those of all that it refers to.

        Raises `UnknownSchema`, `ChangedSchema`, `SchemasUnavailable`.
        """


class Reader(ABC, Generic[K, R]):
    """Reads one value after another, each by the schema that it names. Not for several threads.

    `K`: what a value names its schema by. `R`: how values of one schema are read.
    """

    size_bytes = 0
    """Of the value that was read last: what its Python objects weigh, as bytes of an ordinary value."""
    values = 0
    """Values of the record that was read last, or that could not be read."""

    def __init__(self, header: str) -> None:
        self._header = header
        self._mark = header.encode()
        self._readers: dict[K, R | str] = {}

    @abstractmethod
    def read(self, value: bytes | None, headers: bytes | None) -> dict[str, Any]:
        """Columns by name. Raises `Misread` for what is no such value; and as `Schemas` does."""

    @abstractmethod
    def made(self, key: K) -> R:
        """How values of this schema are read. Raises `UnknownSchema`, `SchemaError`, and as `read`."""

    @abstractmethod
    def spelled(self, key: K) -> str:
        """For people; empty where there is but one schema."""

    def learn(self, key: K) -> R | str:
        """How values of this schema are read, or why they are not."""
        try:
            read: R | str = self.made(key)
        except (UnknownSchema, SchemaError) as why:
            name = self.spelled(key)
            read = f"{name} cannot be read by: {why}" if name else str(why)
        if len(self._readers) >= READERS_MAX:
            self._readers.clear()
        self._readers[key] = read
        return read

    def check(self, key: K) -> None:
        """Raises `SchemaError` where values of this schema cannot be read."""
        read = self.learn(key)
        if isinstance(read, str):
            raise SchemaError(read)

    def naming(self, batch: RawBatch) -> Values | None:
        """The batch's headers, where any of them may name a schema."""
        return batch.naming(self._mark)

    def known(self, key: K) -> R:
        """As `made`, once. Raises `Misread` where values of this schema cannot be read."""
        read = self._readers.get(key)
        if read is None:
            read = self.learn(key)
        if isinstance(read, str):
            raise Misread(read)
        return read

    def named(self, headers: bytes | None) -> bytes | None:
        """The first header that names the schema."""
        return first(headers, self._header, self._mark)


class RowDecoder(Generic[K, R]):
    """Decodes for one schema of a table (Kafka columns in it are left to others). Not for several threads."""

    def __init__(self, schema: pa.Schema, reader: Reader[K, R]) -> None:
        self._schema = record_schema(schema)
        self._reader = reader

    @property
    def reader(self) -> Reader[K, R]:
        """Which knows the schemas."""
        return self._reader

    def check(self, key: K) -> None:
        """Raises `SchemaError` where values of this schema are no rows."""
        self._reader.check(key)

    def decode(self, batch: RawBatch) -> Decoded:
        """All records of the batch, as rows or as rejects. Raises `SchemasUnavailable`, `BatchTooLarge`."""
        reasons = Reasons()
        headers = self._reader.naming(batch)
        kept: list[int] = []
        rows: list[dict[str, Any]] = []
        tables = [self._schema.empty_table()]
        size_bytes = values = 0
        for place, value in enumerate(batch.values):
            try:
                rows.append(self._reader.read(value, headers[place] if headers is not None else None))
            except Misread as misread:
                reasons.add(place, str(misread))
                continue
            except ChangedSchema as why:
                return Decoded(table=self._schema.empty_table(), stop=(place, str(why)))
            values += self._reader.values
            if values > BATCH_VALUES_MAX and len(batch) > 1:
                raise BatchTooLarge
            kept.append(place)
            size_bytes += self._reader.size_bytes
            if size_bytes >= GROUP_BYTES:
                tables.append(table_of(rows, self._schema))
                rows, size_bytes = [], 0
        tables.append(table_of(rows, self._schema))
        rejects = reasons.rejects(batch.offsets)
        return Decoded(
            table=pa.concat_tables(tables),
            kept=np.array(kept, dtype=np.int64) if rejects else None,
            rejects=rejects,
        )


def check_shared(names: Collection[str], columns: Sequence[pa.Field]) -> None:
    """Raises `SchemaError` where a schema with these fields has none of the columns: its values, which are of
    another type, would be rows of nulls.
    """
    if not any(column.name in names for column in columns):
        known = ", ".join(column.name for column in columns[:COLUMNS_NAMED_MAX])
        more = ", …" if len(columns) > COLUMNS_NAMED_MAX else ""
        raise SchemaError(f"it has none of the columns ({known}{more}): it is another type's")


def table_of(rows: Sequence[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """Rows of checked values as a table. A field that their record does not have is null."""
    columns = [
        fit(pa.array([row.get(field.name) for row in rows], nullable_type(field.type)), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


class RowKeys(Generic[K, R]):
    """Reads Kafka keys of records without a value as the columns that key a row. Not for several threads."""

    def __init__(self, fields: Sequence[pa.Field], reader: Reader[K, R]) -> None:
        self._schema = pa.schema(fields)
        self._reader = reader

    def check(self, key: K) -> None:
        """Raises `SchemaError` where keys of this schema say of no row which it is."""
        self._reader.check(key)

    def read(self, batch: RawBatch, places: npt.NDArray[np.int64]) -> tuple[Tombstones, Rejects]:
        """What the keys of the records at these places, which ascend, say; those that say it in no way."""
        reasons: dict[int, str] = {}
        headers = self._reader.naming(batch)
        found: list[int] = []
        rows: list[dict[str, Any]] = []
        for place in places.tolist():
            key = batch.keys.get(place)
            if key is None:  # one of no byte is a message: of Protobuf's numbers the 0
                reasons[place] = NO_KEY
                continue
            try:
                rows.append(self._reader.read(key, headers[place] if headers is not None else None))
                found.append(place)
            except Misread as misread:
                reasons[place] = f"{ABOUT_KEY}: {misread}"
            except (
                ChangedSchema
            ) as why:  # no tombstone may pass, and a reader of keys has no other word for it
                raise SchemasUnavailable(f"{ABOUT_KEY}: {why}") from None
        kept = np.array(found, dtype=np.int64)
        columns = table_of(rows, self._schema)
        tombstones = Tombstones(columns=columns, places=kept, offsets=batch.offsets[kept])
        return tombstones, Rejects.of(reasons, batch.offsets)
