"""Which field of a message goes into which column, and how its values are read: nothing is rounded or cut.

Protobuf's own parser reads the bytes, by a schema made for that: of the fields that are columns alone, so
that what nobody wants costs little; numbers of 32 bits as those of 64, booleans and enums as numbers,
strings as bytes, because that parser cuts a number that is too long, takes any for true, and does not look
at each string. On the wire they are spelled alike. Repeated messages are read as bytes and then one at a
time, so that a million empty ones, of two bytes each, are counted before they are made.

docs/formats.md has the table of what goes where. Source: Protobuf's "Encoding", "Field Presence",
"Well-Known Types".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet

from participant.records.by_schema.misread import Misread
from participant.records.json.columns import MICROS
from participant.records.protobuf.scalars import SCALARS, WIRE, Convert, decimals, enum_columns
from table.schema import UTC_MICROS, SchemaError, ddl_name

Take: TypeAlias = Callable[[Any], Any]
"""Of a parsed message: a column's value, or None for null. Raises `Misread`."""

VALUES_MAX = 1_000_000
"""In one record, those that are null or a default in each of many messages included."""
REPEATED, OPTIONAL = FieldDescriptorProto.LABEL_REPEATED, FieldDescriptorProto.LABEL_OPTIONAL
BYTES, MESSAGE = FieldDescriptorProto.TYPE_BYTES, FieldDescriptorProto.TYPE_MESSAGE
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
        made = _Schema()
        self._top = made.struct(message, fields, "")
        self._parse, self._spent = made.linked(), made.spent
        self._name = self._top.name

    def read(self, data: bytes) -> dict[str, Any]:
        """Raises `Misread`."""
        self._spent.values = 0
        self._spent.spend(self._top.values)
        row: dict[str, Any] = self._top.value(self._parse(self._name, data))
        return row

    @property
    def values(self) -> int:
        """How many the record that was read last has."""
        return self._spent.values


class _Spent:
    """Values of one record that have been made."""

    values = 0

    def spend(self, values: int) -> None:
        self.values += values
        if self.values > VALUES_MAX:
            raise Misread(f"more than {VALUES_MAX:,} values, with those of its messages that are not set")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """A message of the schema that is made here."""

    name: str
    value: Take
    """Of such a message."""
    values: int
    """How many those are."""


class _Schema:
    """The schema that messages are parsed by."""

    def __init__(self) -> None:
        self.spent = _Spent()
        self._file = FileDescriptorProto(name="columns.proto", syntax="proto2")
        self._classes: dict[str, Any] = {}

    def linked(self) -> Callable[[str, bytes], Any]:
        """What parses a message of a name. To be called once, in the end."""
        pool = DescriptorPool()
        pool.Add(self._file)
        for one in self._file.message_type:
            self._classes[one.name] = GetMessageClass(pool.FindMessageTypeByName(one.name))
        return self._parse

    def _parse(self, name: str, data: bytes) -> Any:
        try:
            return self._classes[name].FromString(data)
        except DecodeError:
            raise Misread("the bytes are no message of Protobuf, or end in the middle") from None

    def _message(self) -> DescriptorProto:
        one: DescriptorProto = self._file.message_type.add()
        one.name = f"M{len(self._file.message_type)}"
        return one

    def struct(self, message: Descriptor, fields: Sequence[pa.Field], path: str) -> _Made:
        """Of the message's fields those that are columns."""
        made = self._message()
        takes: list[tuple[str, Take, bool]] = []
        values = 0
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
        _add_rivals(made, message)
        absent = [column.name for column in fields if column.name not in message.fields_by_name]
        return _Made(name=made.name, value=_row(takes, absent, _numbers(made)), values=values + 1)

    def _column(self, owner: DescriptorProto, field: Any, kind: pa.DataType, path: str) -> tuple[Take, int]:
        """What takes the field's value, and how many values that is, at least."""
        added = owner.field.add(name=f"f{field.number}", number=field.number, label=OPTIONAL)
        if field.type == FieldDescriptor.TYPE_GROUP:
            raise SchemaError(f"field {path}: a group is not read")
        if field.is_repeated:
            added.label = REPEATED
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                return self._map(added, field, kind, path), 1
            return self._array(added, field, kind, path), 1
        convert, values = self._single(added, field, kind, path)
        return _of_one(added.name, convert, field), values

    def _single(self, added: Any, field: Any, kind: pa.DataType, path: str) -> tuple[Convert, int]:
        """What makes a column's value of the field's: a scalar, or a message that is there."""
        if field.message_type is None:
            added.type = WIRE[field.type]
            return _scalar(field, kind, path), 1
        inner = self._inner(field, kind, path)
        added.type, added.type_name = MESSAGE, f".{inner.name}"
        return inner.value, inner.values

    def _inner(self, field: Any, kind: pa.DataType, path: str) -> _Made:
        message = field.message_type
        if pa.types.is_struct(kind):
            return self.struct(message, list(kind), f"{path}.")
        if message.full_name == TIMESTAMP and kind == UTC_MICROS:
            whole = self.struct(
                message, [pa.field("seconds", pa.int64()), pa.field("nanos", pa.int32())], path
            )
            return _Made(name=whole.name, value=lambda one: _micros(whole.value(one)), values=1)
        if message.full_name in WRAPPERS:
            made = self._message()
            inside, _ = self._column(made, message.fields_by_name["value"], kind, path)
            return _Made(name=made.name, value=_checked(inside, _numbers(made)), values=1)
        raise SchemaError(f"field {path}: {_words(field)} is not read as {ddl_name(kind)}{_instead(field)}")

    def _array(self, added: Any, field: Any, kind: pa.DataType, path: str) -> Take:
        if not pa.types.is_list(kind):
            raise SchemaError(
                f"field {path}: {_words(field)} that is repeated is not read as {ddl_name(kind)}; it is as "
                "ARRAY<…>"
            )
        if field.message_type is None:
            convert, _ = self._single(added, field, kind.value_type, f"{path}[]")
            return _of_scalars(added.name, convert)
        added.type = BYTES
        inner = self._inner(field, kind.value_type, f"{path}[]")
        return self._of_messages(added.name, inner)

    def _of_messages(self, name: str, inner: _Made) -> Take:
        spend, parse = self.spent.spend, self._parse

        def take(message: Any) -> list[Any]:
            items = []
            try:
                for data in getattr(message, name):
                    spend(inner.values)
                    items.append(inner.value(parse(inner.name, data)))
            except Misread as misread:
                raise misread.inside("[]") from None
            return items

        return take

    def _map(self, added: Any, field: Any, kind: pa.DataType, path: str) -> Take:
        key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        if key.type != FieldDescriptor.TYPE_STRING:
            raise SchemaError(f"field {path}: a map is read whose keys are strings, not {_plain(key)}")
        if not pa.types.is_map(kind):
            raise SchemaError(f"field {path}: a map is not read as {ddl_name(kind)}; it is as MAP<STRING,…>")
        added.type = BYTES
        entry = self._message()
        entry.field.add(name="f1", number=1, label=OPTIONAL, type=BYTES)
        convert, values = self._single(
            entry.field.add(name="f2", number=2, label=OPTIONAL), value, kind.item_type, f"{path}{{}}"
        )
        inner = _Made(name=entry.name, value=_entry(convert, _numbers(entry)), values=values + 1)
        pairs = self._of_messages(added.name, inner)

        def take(message: Any) -> list[tuple[str, Any]]:
            return list(dict(pairs(message)).items())  # the last of a key counts

        return take


def _row(takes: Sequence[tuple[str, Take, bool]], absent: Sequence[str], numbers: frozenset[int]) -> Take:
    empty = dict.fromkeys(absent)

    def row(message: Any) -> dict[str, Any]:
        _refuse_strangers(message, numbers)
        made: dict[str, Any] = dict(empty)
        name = ""
        try:
            for name, take, required in takes:
                value = made[name] = take(message)
                if value is None and required:
                    raise Misread("null, and required")
        except Misread as misread:
            raise misread.inside(name) from None
        return made

    return row


def _checked(take: Take, numbers: frozenset[int]) -> Take:
    def checked(message: Any) -> Any:
        _refuse_strangers(message, numbers)
        return take(message)

    return checked


def _entry(convert: Convert, numbers: frozenset[int]) -> Take:
    """Key and value of a map's entry. What is not there is empty, or 0, as Protobuf has it."""
    text = SCALARS[FieldDescriptor.TYPE_STRING][pa.string()]

    def entry(message: Any) -> tuple[str, Any]:
        _refuse_strangers(message, numbers)
        return text(message.f1), convert(message.f2)

    return entry


def _of_one(name: str, convert: Convert, field: Any) -> Take:
    if field.is_required:

        def required(message: Any) -> Any:
            if not message.HasField(name):
                raise Misread("it is not there, and its schema requires it")
            return convert(getattr(message, name))

        return required
    if field.has_presence:
        return lambda message: convert(getattr(message, name)) if message.HasField(name) else None
    return lambda message: convert(getattr(message, name))


def _of_scalars(name: str, convert: Convert) -> Take:
    def take(message: Any) -> list[Any]:
        try:
            return [convert(one) for one in getattr(message, name)]
        except Misread as misread:
            raise misread.inside("[]") from None

    return take


def _numbers(made: DescriptorProto) -> frozenset[int]:
    return frozenset(one.number for one in made.field)


def _refuse_strangers(message: Any, numbers: frozenset[int]) -> None:
    """A field that its parser did not know is no column, or its wire type is another than its schema's."""
    for one in UnknownFieldSet(message):
        if one.field_number in numbers:
            raise Misread(f"field number {one.field_number} is encoded as another type than its schema says")


def _add_rivals(made: DescriptorProto, message: Descriptor) -> None:
    """Of a oneof that columns are of, its other fields as well: the last that is set unsets the others."""
    wanted = {one.number: one for one in made.field}
    for oneof in message.oneofs:
        rivals = [one for one in oneof.fields if one.type in WIRE or one.number in wanted]
        if len(oneof.fields) < 2 or not any(one.number in wanted for one in rivals):
            continue
        index = len(made.oneof_decl)
        made.oneof_decl.add(name=f"o{index}")
        for one in rivals:
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


def _words(field: Any) -> str:
    name = _plain(field)
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _instead(field: Any) -> str:
    """Which columns take it, for people."""
    if field.message_type is not None:
        known = {TIMESTAMP: "TIMESTAMP or "}.get(field.message_type.full_name, "")
        if field.message_type.full_name in WRAPPERS:
            return _instead(field.message_type.fields_by_name["value"])
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
