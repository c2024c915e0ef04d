"""Avro values to Arrow columns, a record at a time, each row tied to its offset.

What is accepted and what is not: docs/formats.md. Python objects are held of `GROUP_BYTES` of values at once,
since they take some forty times what the bytes do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from participant.records.avro.columns import row_reader, value_reader
from participant.records.avro.datum import Misread, Read
from participant.records.avro.framing import KEY_HEADER, SPLITS, VALUE_HEADER, SchemaKey, spelled
from participant.records.avro.schema import Node, parse
from participant.records.avro.schemas import Schemas
from participant.records.errors import ChangedSchema, SchemasUnavailable, UnknownSchema
from participant.records.headers import unpack
from participant.records.json.columns import fit, nullable_type
from participant.records.port import Decoded
from participant.records.raw import RawBatch, Values
from participant.records.rejects import Reasons, Rejects
from table.rows import Tombstones
from table.schema import SchemaError, record_schema

GROUP_BYTES = 1 << 20
READERS_MAX = 1_000
"""Schemas that are known at once; then all are looked up anew."""
ABOUT_KEY = "the Kafka key of a record without a value"


class DatumReader:
    """Reads one value after another, each by the schema that it names. Not for several threads."""

    def __init__(self, framing: str, schemas: Schemas, header: str, reader: Callable[[Node], Read]) -> None:
        self._split, self._schemas, self._reader = SPLITS[framing], schemas, reader
        self._header = header
        self._mark = header.encode()
        self._readers: dict[SchemaKey, Read | str] = {}

    def read(self, value: bytes | None, headers: bytes | None) -> Any:
        """Raises `Misread` for what is no such value, `ChangedSchema`, `SchemasUnavailable`."""
        if not value:
            raise Misread("null value" if value is None else "empty value")
        key, at = self._split(value, self._named(headers))
        read = self._readers.get(key)
        if read is None:
            read = self.learn(key)
        if isinstance(read, str):
            raise Misread(read)
        try:
            found, end = read(value, at)
        except IndexError:
            raise Misread("the value ends in the middle") from None
        if end != len(value):
            raise Misread("more bytes follow the value's end")
        return found

    def learn(self, key: SchemaKey) -> Read | str:
        """How values of this schema are read, or why they are not."""
        try:
            read: Read | str = self._reader(parse(self._schemas.find(key)))
        except (UnknownSchema, SchemaError) as why:
            read = f"{spelled(key)} cannot be read by: {why}" if key != b"" else str(why)
        if len(self._readers) >= READERS_MAX:
            self._readers.clear()
        self._readers[key] = read
        return read

    def check(self, key: SchemaKey) -> None:
        """Raises `SchemaError` where values of this schema cannot be read."""
        read = self.learn(key)
        if isinstance(read, str):
            raise SchemaError(read)

    def naming(self, batch: RawBatch) -> Values | None:
        """The batch's headers, where any of them may name a schema."""
        headers = batch.headers
        return headers if headers is not None and self._mark in headers.data else None

    def _named(self, headers: bytes | None) -> bytes | None:
        """The first header that names the schema."""
        if not headers or self._mark not in headers:
            return None
        return next((value for name, value in unpack(headers) if name == self._header), None)


class AvroDecoder:
    """Decodes for one schema of a table (Kafka columns in it are left to others). Not for several threads."""

    def __init__(self, schema: pa.Schema, framing: str, schemas: Schemas) -> None:
        self._schema = record_schema(schema)
        self._reader = DatumReader(
            framing, schemas, VALUE_HEADER, lambda node: row_reader(node, list(self._schema))
        )

    def check(self, key: SchemaKey) -> None:
        """Raises `SchemaError` where values of this schema are no rows."""
        self._reader.check(key)

    def decode(self, batch: RawBatch) -> Decoded:
        """All records of the batch, as rows or as rejects. Raises `SchemasUnavailable`."""
        reasons = Reasons()
        headers = self._reader.naming(batch)
        kept: list[int] = []
        rows: list[dict[str, Any]] = []
        tables = [self._schema.empty_table()]
        size_bytes = 0
        for place, value in enumerate(batch.values):
            try:
                row = self._reader.read(value, headers[place] if headers is not None else None)
            except Misread as misread:
                reasons.add(place, str(misread))
                continue
            except ChangedSchema as why:
                return Decoded(table=self._schema.empty_table(), stop=(place, str(why)))
            kept.append(place)
            rows.append(row)
            size_bytes += len(value or b"")
            if size_bytes >= GROUP_BYTES:
                tables.append(self._table(rows))
                rows, size_bytes = [], 0
        tables.append(self._table(rows))
        rejects = reasons.rejects(batch.offsets)
        return Decoded(
            table=pa.concat_tables(tables),
            kept=np.array(kept, dtype=np.int64) if rejects else None,
            rejects=rejects,
        )

    def _table(self, rows: Sequence[dict[str, Any]]) -> pa.Table:
        return table_of(rows, self._schema)


def table_of(rows: Sequence[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """Rows of checked values as a table. A field that their record does not have is null."""
    columns = [
        fit(pa.array([row.get(field.name) for row in rows], nullable_type(field.type)), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


class AvroKeys:
    """Reads the Kafka keys of records without a value as the columns that key a row. Not for several threads.

    A key is a record with these fields, or, where one is enough, that field's value.
    """

    def __init__(self, fields: Sequence[pa.Field], framing: str, schemas: Schemas) -> None:
        self._fields = [field.with_nullable(False) for field in fields]
        self._reader = DatumReader(framing, schemas, KEY_HEADER, self._how)

    def check(self, key: SchemaKey) -> None:
        """Raises `SchemaError` where keys of this schema say of no row which it is."""
        self._reader.check(key)

    def _how(self, node: Node) -> Read:
        if node.kind == "record" or len(self._fields) > 1:
            return row_reader(node, self._fields)
        (field,) = self._fields
        read = value_reader(node, field)

        def row(data: bytes, at: int) -> tuple[dict[str, Any], int]:
            value, at = read(data, at)
            if value is None:
                raise Misread("null")
            return {field.name: value}, at

        return row

    def read(self, batch: RawBatch, places: npt.NDArray[np.int64]) -> tuple[Tombstones, Rejects]:
        """What the keys of the records at these places, which ascend, say; those that say it in no way."""
        reasons: dict[int, str] = {}
        headers = self._reader.naming(batch)
        found: list[int] = []
        rows: list[dict[str, Any]] = []
        for place in places.tolist():
            key = batch.keys.get(place)
            if not key:
                reasons[place] = "a record without a value and without a key deletes no row"
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
        columns = table_of(rows, pa.schema(self._fields))
        tombstones = Tombstones(columns=columns, places=kept, offsets=batch.offsets[kept])
        return tombstones, Rejects.of(reasons, batch.offsets)
