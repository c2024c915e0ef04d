"""Which field of a message goes into which column, and how its values are read: nothing is rounded or cut.

Protobuf's own parser reads the bytes, by a schema made for that: of the fields that are columns alone, so
that what nobody wants costs little; numbers of 32 bits as those of 64, booleans and enums as numbers,
strings as bytes, because that parser cuts a number that is too long, takes any for true, and does not look
at each string. On the wire they are spelled alike.

docs/formats.md has the table of what goes where. Source: Protobuf's "Encoding", "Field Presence",
"Well-Known Types".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from participant.records.by_schema.misread import Misread
from participant.records.protobuf import messages
from participant.records.protobuf.messages import Message, Parser, Take
from participant.records.protobuf.scalars import SCALARS, WIRE, Convert, decimals, enum_columns
from table.schema import MICROS, UTC_MICROS, SchemaError, ddl_name

REPEATED, OPTIONAL = FieldDescriptorProto.LABEL_REPEATED, FieldDescriptorProto.LABEL_OPTIONAL
BYTES = FieldDescriptorProto.TYPE_BYTES
TIMESTAMP = "google.protobuf.Timestamp"
WRAPPERS = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
NANOS_MAX, MICROS_IN_S, NANOS_IN_MICRO = 999_999_999, 1_000_000, 1_000
BEYOND = "a time outside the years 1 to 9999"


class RowReader:
    """Reads messages of a type as dictionaries with all of these columns, by name. Not for several threads.

    Raises `SchemaError`, naming the field, where such a message can be no row.
    """

    def __init__(self, message: Descriptor, fields: Sequence[pa.Field]) -> None:
        self.message = message
        made = _Schema()
        self._top = made.struct(message, fields, "")
        self._parser = made.linked()

    def read(self, data: bytes) -> dict[str, Any]:
        """Raises `Misread`."""
        self._parser.count.begin(len(data))
        self._parser.count.spend(self._top.values)
        row: dict[str, Any] = self._top.read(data)
        return row

    @property
    def values(self) -> int:
        """How many the record that was read last has."""
        return self._parser.count.values


class _Schema:
    """The schema that messages are parsed by."""

    def __init__(self) -> None:
        self._parser = Parser()
        self._file = FileDescriptorProto(name="columns.proto", syntax="proto2")

    def linked(self) -> Parser:
        """What parses messages of it. To be called once, in the end."""
        pool = DescriptorPool()
        try:
            pool.Add(self._file)
        except TypeError as error:
            raise SchemaError(f"the Protobuf schema is none: {str(error)[:300]}") from None
        for one in self._file.message_type:
            self._parser.classes[one.name] = GetMessageClass(pool.FindMessageTypeByName(one.name))
        return self._parser

    def _message(self) -> DescriptorProto:
        one: DescriptorProto = self._file.message_type.add()
        one.name = f"M{len(self._file.message_type)}"
        return one

    def struct(self, message: Descriptor, fields: Sequence[pa.Field], path: str) -> Message:
        """Of the message's fields those that are columns."""
        made = self._message()
        takes: list[tuple[str, Take, bool]] = []
        values = 1
        for column in fields:
            field = message.fields_by_name.get(column.name)
            if field is None and not column.nullable:
                raise SchemaError(
                    f"message {message.full_name} has no field {path}{column.name}, which is required"
                )
            if field is not None:
                take, inside = self._column(made, field, column.type, f"{path}{column.name}")
                takes.append((column.name, take, not column.nullable))
                values += inside
        _add_rivals(made, message, path)
        absent = [column.name for column in fields if column.name not in message.fields_by_name]
        read = messages.row(self._parser, made.name, takes, absent, _numbers(made))
        return Message(name=made.name, read=read, values=values)

    def _column(self, owner: DescriptorProto, field: Any, kind: pa.DataType, path: str) -> tuple[Take, int]:
        """What takes the field's value, and how many values that is, at least."""
        added = owner.field.add(name=f"f{field.number}", number=field.number, label=OPTIONAL, type=BYTES)
        if field.type == FieldDescriptor.TYPE_GROUP:
            raise SchemaError(f"field {path}: a group is not read")
        if field.is_repeated:
            added.label = REPEATED
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                return self._map(added.name, field, kind, path), 1
            return self._array(added, field, kind, path), 1
        if field.message_type is None:
            added.type = WIRE[field.type]
            take = messages.scalar(added.name, self._scalar(field, kind, path), presence=field.has_presence)
            values = 1
        else:
            take, values = self._one_message(added, field, kind, path)
        if field.is_required:
            take = messages.required(added.name, take, repeated=added.label == REPEATED)
        return take, values

    def _one_message(self, added: Any, field: Any, kind: pa.DataType, path: str) -> tuple[Take, int]:
        inner = self._inner(field, kind, path)
        rivals = frozenset(one.number for one in _rivals(field)) - {field.number}
        if rivals:
            return messages.member(self._parser, added.name, field.number, rivals, inner), inner.values
        added.label = REPEATED
        return messages.one_message(self._parser, added.name, inner), inner.values

    def _inner(self, field: Any, kind: pa.DataType, path: str) -> Message:
        message = field.message_type
        if pa.types.is_struct(kind):
            return self.struct(message, list(kind), f"{path}.")
        if message.full_name == TIMESTAMP and kind == UTC_MICROS:
            parts = [pa.field("seconds", pa.int64(), False), pa.field("nanos", pa.int32(), False)]
            whole = self.struct(message, parts, f"{path}.")
            return Message(name=whole.name, read=lambda data: _micros(whole.read(data)), values=1)
        inside = wrapped(field)
        if inside is not None:
            made = self._message()
            take, _ = self._column(made, inside, kind, path)
            read = messages.only(self._parser, made.name, take, _numbers(made))
            return Message(name=made.name, read=read, values=1)
        raise SchemaError(f"field {path}: {_words(field)} is not read as {ddl_name(kind)}{_instead(field)}")

    def _array(self, added: Any, field: Any, kind: pa.DataType, path: str) -> Take:
        if not pa.types.is_list(kind):
            raise SchemaError(
                f"field {path}: {_words(field)} that is repeated is not read as {ddl_name(kind)}; it is as "
                "ARRAY<…>"
            )
        if field.message_type is None:
            added.type = WIRE[field.type]
            convert = self._scalar(field, kind.value_type, f"{path}[]")
            return messages.scalars(self._parser, added.name, convert)
        inner = self._inner(field, kind.value_type, f"{path}[]")
        return messages.messages(self._parser, added.name, inner)

    def _scalar(self, field: Any, kind: pa.DataType, path: str) -> Convert:
        convert = _scalar(field, kind, path)
        if field.enum_type is None or not pa.types.is_string(kind):
            return convert
        count = self._parser.count

        def named(number: int) -> str:
            name: str = convert(number)
            count.spend_name(name)
            return name

        return named

    def _map(self, name: str, field: Any, kind: pa.DataType, path: str) -> Take:
        """What is not there of an entry is empty, or 0, as Protobuf has it."""
        of_key, of_value = (field.message_type.fields_by_name.get(one) for one in ("key", "value"))
        if of_key is None or of_value is None or of_value.is_repeated or of_value.type not in WIRE:
            raise SchemaError(f"field {path}: a map without a key and a value is none")
        if of_key.type != FieldDescriptor.TYPE_STRING:
            raise SchemaError(f"field {path}: a map is read whose keys are strings, not {_plain(of_key)}")
        if not pa.types.is_map(kind):
            raise SchemaError(f"field {path}: a map is not read as {ddl_name(kind)}; it is as MAP<STRING,…>")
        made, values = self._message(), 2
        made.field.add(name="f1", number=1, label=OPTIONAL, type=BYTES)
        added = made.field.add(name="f2", number=2, label=OPTIONAL, type=WIRE[of_value.type])
        key = messages.scalar("f1", SCALARS[of_key.type][pa.string()], presence=False)
        if of_value.message_type is None:
            convert = self._scalar(of_value, kind.item_type, f"{path}{{}}")
            value = messages.scalar("f2", convert, presence=False)
        else:
            added.label = REPEATED
            inner = self._inner(of_value, kind.item_type, f"{path}{{}}")
            value, values = messages.one_message(self._parser, "f2", inner, absent=b""), inner.values + 1
        read = messages.entry(self._parser, made.name, key, value, _numbers(made))
        entry = Message(name=made.name, read=read, values=values)
        return messages.pairs(messages.messages(self._parser, name, entry))


def _numbers(made: DescriptorProto) -> frozenset[int]:
    return frozenset(one.number for one in made.field)


def _rivals(field: Any) -> Sequence[Any]:
    """The fields of its oneof, itself included; none where it is alone, as behind `optional`."""
    oneof = field.containing_oneof
    return list(oneof.fields) if oneof is not None and len(oneof.fields) > 1 else []


def _add_rivals(made: DescriptorProto, message: Descriptor, path: str) -> None:
    """Of a oneof that columns are of, its other fields as well: the last that is set unsets the others."""
    wanted = {one.number: one for one in made.field}
    for oneof in message.oneofs:
        rivals = _rivals(oneof.fields[0])
        if not any(one.number in wanted for one in rivals):
            continue
        index = len(made.oneof_decl)
        made.oneof_decl.add(name=f"o{index}")
        for one in rivals:
            if one.type == FieldDescriptor.TYPE_GROUP:
                raise SchemaError(f"field {path}{one.name}: a oneof with a group in it is not read")
            added = wanted.get(one.number) or made.field.add(
                name=f"f{one.number}", number=one.number, label=OPTIONAL, type=WIRE[one.type]
            )
            added.oneof_index = index


def _scalar(field: Any, kind: pa.DataType, path: str) -> Convert:
    convert = decimals(field, kind) if pa.types.is_decimal128(kind) else _takers(field).get(kind)
    if convert is None:
        raise SchemaError(f"field {path}: {_words(field)} is not read as {ddl_name(kind)}{_instead(field)}")
    return convert


def _takers(field: Any) -> Mapping[pa.DataType, Convert]:
    return enum_columns(field.enum_type) if field.enum_type is not None else SCALARS[field.type]


def _plain(field: Any) -> str:
    """The type, as .proto files call it."""
    if field.message_type is not None:
        return str(field.message_type.full_name)
    return "enum" if field.enum_type is not None else FieldDescriptorProto.Type.Name(field.type)[5:].lower()


def wrapped(field: Any) -> Any | None:
    """The scalar in a wrapper; None where the field is none, or has but the name of one."""
    message = field.message_type
    if message is None or message.full_name not in WRAPPERS:
        return None
    inside = message.fields_by_name.get("value")
    plain = inside is not None and inside.message_type is None and not inside.is_repeated
    return inside if plain else None


def _words(field: Any) -> str:
    name = _plain(field)
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _instead(field: Any) -> str:
    """Which columns take it, for people."""
    if field.message_type is not None:
        known = {TIMESTAMP: "TIMESTAMP or "}.get(field.message_type.full_name, "")
        inside = wrapped(field)
        if inside is not None:
            return _instead(inside)
        return f"; it is as {known}STRUCT<…>"
    names = [ddl_name(kind) for kind in _takers(field)]
    return f"; it is as {' or '.join(names) or 'DECIMAL(20,0)'}"


def _micros(parts: Mapping[str, Any]) -> int:
    seconds, nanos = parts["seconds"], parts["nanos"]
    if not 0 <= nanos <= NANOS_MAX:
        raise Misread("a time whose nanoseconds are not 0 to 999,999,999")
    if nanos % NANOS_IN_MICRO:
        raise Misread("a time with nanoseconds, which a TIMESTAMP does not hold")
    micros: int = seconds * MICROS_IN_S + nanos // NANOS_IN_MICRO
    if not MICROS[0] <= micros <= MICROS[1]:
        raise Misread(BEYOND)
    return micros
