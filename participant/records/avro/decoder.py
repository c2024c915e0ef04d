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
from table.schema import record_schema


@dataclass(frozen=True, slots=True)
class Readable:
    """A schema by which values are read, and how."""

    node: Node
    read: Read


class DatumReader(Reader[SchemaKey, Readable]):
    """See `Reader`. `reader`: how a datum of a schema becomes columns."""

    def __init__(self, framing: str, schemas: Schemas, header: str, reader: Callable[[Node], Read]) -> None:
        super().__init__(header)
        self._split, self._schemas, self._reader = SPLITS[framing], schemas, reader

    def read(self, value: bytes | None, headers: bytes | None) -> dict[str, Any]:
        """See `Reader`."""
        if not value:
            raise Misread("null value" if value is None else "empty value")
        key, at = self._split(value, self.named(headers))
        read = self.known(key).read
        try:
            found, end = read(value, at)
        except IndexError:
            raise Misread(CUT) from None
        if end != len(value):
            raise Misread("more bytes follow the value's end")
        self.size_bytes = len(value)
        row: dict[str, Any] = found
        return row

    def made(self, key: SchemaKey) -> Readable:
        """See `Reader`."""
        node = parse(self._schemas.find(key))
        return Readable(node, self._reader(node))

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

        def reader(node: Node) -> Read:
            read = row_reader(node, fields)
            if alone:
                check_shared([name for name, _ in node.fields], fields)
            return read

        super().__init__(schema, DatumReader(framing, schemas, header, reader))


class AvroKeys(RowKeys[SchemaKey, Readable]):
    """See `RowKeys`. A key is a record with these fields, or, where one is enough, that field's value."""

    def __init__(self, fields: Sequence[pa.Field], framing: str, schemas: Schemas) -> None:
        wanted = [field.with_nullable(False) for field in fields]
        super().__init__(
            wanted, DatumReader(framing, schemas, KEY_HEADER, lambda node: _key_reader(node, wanted))
        )


def _key_reader(node: Node, fields: Sequence[pa.Field]) -> Read:
    if node.kind == "record" or len(fields) > 1:
        return row_reader(node, fields)
    (field,) = fields
    read = value_reader(node, field)

    def row(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        value, at = read(data, at)
        if value is None:
            raise Misread("null")
        return {field.name: value}, at

    return row
