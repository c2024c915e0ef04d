"""What the schemas that values of Protobuf name say of columns: which each field would have of itself.

docs/formats.md has the table of what goes where; of several columns that take a field it is the one that the
table has, and else the first there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto

from participant.records.by_schema.following import FieldCount, NoColumn, child
from participant.records.by_schema.framing import BY_ID, ID_BYTES, VALUE_HEADER, SchemaKey, spelled
from participant.records.by_schema.one_by_one import Schemas
from participant.records.headers import first
from participant.records.protobuf.columns import TIMESTAMP, wrapped
from participant.records.protobuf.files import message_of
from participant.records.protobuf.framing import FIRST, MessageKey, confluent
from participant.records.protobuf.scalars import SCALARS, UINT64_DIGITS, decimals, enum_columns
from table.schema import UTC_MICROS

UINT64 = pa.decimal128(UINT64_DIGITS, 0)


class ProtobufFollows:
    """See `participant.records.port.Follows`. `known_as`: a schema's subject and version, for people."""

    header = VALUE_HEADER
    alike_bytes = 1 + ID_BYTES + 1

    def __init__(self, schemas: Schemas, known_as: Callable[[SchemaKey], str]) -> None:
        self._schemas, self._known_as = schemas, known_as
        self._mark = self.header.encode()

    def is_alike(self, head: bytes) -> bool:
        """See `Follows`: a byte 0, an id, and a byte 0 for the first message."""
        return head[0] == BY_ID and head[-1] == 0

    def key(self, value: bytes, headers: bytes | None) -> MessageKey:
        """See `Follows`."""
        return confluent(value, first(headers, self.header, self._mark))[0]

    def columns(self, key: MessageKey, has: pa.Schema) -> pa.Schema:
        """See `Follows`."""
        schema, which = key
        return columns_of(message_of(self._schemas.find(schema), which), has)

    def spelled(self, key: MessageKey) -> str:
        """See `Follows`."""
        schema, which = key
        known = self._known_as(schema)
        name = f"{spelled(schema)} ({known})" if known else spelled(schema)
        return name if which == FIRST else f"message {'.'.join(map(str, which))} of {name}"


def columns_of(message: Descriptor, has: pa.Schema) -> pa.Schema:
    """The columns of messages of this type. `has`: the table's, of the record. Raises `NoColumn`."""
    known = {field.name: field.type for field in has}
    made = _Types()
    return pa.schema([(one.name, made.of(one, known.get(one.name), one.name, ())) for one in message.fields])


class _Types:
    """The types of fields, bounded in number."""

    def __init__(self) -> None:
        self._count = FieldCount()

    def of(self, field: Any, has: pa.DataType | None, path: str, inside: tuple[str, ...]) -> pa.DataType:
        """`inside`: the messages that it is in, from the outermost."""
        self._count.add(path, field.name)
        if field.type == FieldDescriptor.TYPE_GROUP:
            raise NoColumn(f"field {path}: a group goes into no column")
        if not field.is_repeated:
            return self._one(field, has, path, inside)
        if field.message_type is None or not field.message_type.GetOptions().map_entry:
            return pa.list_(self._one(field, child(has), f"{path}[]", inside))
        key, value = (field.message_type.fields_by_name.get(one) for one in ("key", "value"))
        if key is None or value is None or key.type != FieldDescriptor.TYPE_STRING:
            raise NoColumn(f"field {path}: a map whose keys are no strings goes into no column")
        return pa.map_(pa.string(), self._one(value, child(has), f"{path}{{}}", inside))

    def _one(self, field: Any, has: pa.DataType | None, path: str, inside: tuple[str, ...]) -> pa.DataType:
        message = field.message_type
        if message is None:
            return _scalar(field, has)
        if message.full_name == TIMESTAMP and not (has is not None and pa.types.is_struct(has)):
            return UTC_MICROS
        alone = wrapped(field)
        if alone is not None and not (has is not None and pa.types.is_struct(has)):
            return _scalar(alone, has)
        if message.full_name in inside:
            raise NoColumn(
                f"field {path}: message {message.full_name} holds itself, and so goes into no column"
            )
        if not message.fields:
            raise NoColumn(f"field {path}: message {message.full_name} has no field, and goes into no column")
        deeper = (*inside, message.full_name)
        return pa.struct(
            [
                (one.name, self.of(one, child(has, one.name), f"{path}.{one.name}", deeper))
                for one in message.fields
            ]
        )


def _scalar(field: Any, has: pa.DataType | None) -> pa.DataType:
    if field.enum_type is not None:
        return has if has in enum_columns(field.enum_type) else pa.string()
    if field.type in (FieldDescriptorProto.TYPE_UINT64, FieldDescriptorProto.TYPE_FIXED64):
        wide = has is not None and pa.types.is_decimal128(has) and decimals(field, has) is not None
        return has if wide else UINT64
    takers = SCALARS[field.type]
    return has if has in takers else next(iter(takers))
