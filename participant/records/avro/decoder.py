"""Values and keys of Avro as rows. What is accepted and what is not: docs/formats.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from participant.records.avro.columns import row_reader, value_reader
from participant.records.avro.datum import CUT, Read
from participant.records.avro.schema import Node, parse
from participant.records.by_schema.framing import KEY_HEADER, SPLITS, VALUE_HEADER, SchemaKey, spelled
from participant.records.by_schema.misread import Misread
from participant.records.by_schema.one_by_one import Reader, RowDecoder, RowKeys, Schemas, check_shared
from participant.records.by_schema.value_count import ValueCount
from table.schema import record_schema


@dataclass(frozen=True, slots=True)
class Readable:
    """A schema by which values are read, and how."""

    node: Node
    read: Read


class DatumReader(Reader[SchemaKey, Readable]):
    """See `Reader`. `reader`: how a datum of a schema becomes columns, and counts its values."""

    def __init__(
        self, framing: str, schemas: Schemas, header: str, reader: Callable[[Node, ValueCount], Read]
    ) -> None:
        super().__init__(header)
        self._split, self._schemas, self._reader = SPLITS[framing], schemas, reader
        self._count = ValueCount()

    def read(self, value: bytes | None, headers: bytes | None) -> dict[str, Any]:
        """See `Reader`."""
        if not value:
            raise Misread("null value" if value is None else "empty value")
        key, at = self._split(value, self.named(headers))
        read = self.known(key).read
        self._count.begin(len(value) - at)
        try:
            found, end = read(value, at)
        except IndexError:
            raise Misread(CUT) from None
        if end != len(value):
            raise Misread("more bytes follow the value's end")
        self.values = self._count.values
        self.size_bytes = len(value) + self.values
        row: dict[str, Any] = found
        return row

    def made(self, key: SchemaKey) -> Readable:
        """See `Reader`."""
        node = parse(self._schemas.find(key))
        return Readable(node, self._reader(node, self._count))

    def spelled(self, key: SchemaKey) -> str:
        """See `Reader`."""
        return spelled(key) if key != b"" else ""


class AvroDecoder(RowDecoder[SchemaKey, Readable]):
    """See `RowDecoder`. `alone`: whether rows have nothing but these columns, so that a schema has some."""

    def __init__(
        self,
        schema: pa.Schema,
        framing: str,
        schemas: Schemas,
        header: str = VALUE_HEADER,
        *,
        alone: bool = False,
    ) -> None:
        fields = list(record_schema(schema))

        def reader(node: Node, count: ValueCount) -> Read:
            read = row_reader(node, fields, count)
            if alone:
                check_shared([name for name, _ in node.fields], fields)
            return read

        super().__init__(schema, DatumReader(framing, schemas, header, reader))


class AvroKeys(RowKeys[SchemaKey, Readable]):
    """See `RowKeys`. A key is a record with these fields, or, where one is enough, that field's value."""

    def __init__(self, fields: Sequence[pa.Field], framing: str, schemas: Schemas) -> None:
        wanted = [field.with_nullable(False) for field in fields]
        super().__init__(
            wanted,
            DatumReader(framing, schemas, KEY_HEADER, lambda node, count: _key_reader(node, wanted, count)),
        )


def _key_reader(node: Node, fields: Sequence[pa.Field], count: ValueCount) -> Read:
    if node.kind == "record" or len(fields) > 1:
        return row_reader(node, fields, count)
    (field,) = fields
    read = value_reader(node, field, count)

    def row(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        value, at = read(data, at)
        if value is None:
            raise Misread("null")
        return {field.name: value}, at

    return row
