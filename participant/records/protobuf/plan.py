"""How the native decoder is told of a type of messages: its types, those that others hold before them.

A type is a name, numbers and texts (`made` in native/src/protobuf/plan.rs):

    ("message", [values, then of each field: number, type, column, mode, oneof, unset], [])
        values: how many one has, at least; types by their places; column -1: it is read over, but unsets
        others of its oneof; oneof -1: it is in none
    ("enum", numbers, names), ("wrapped", [number, type], [])
    ("timestamp", [], []), and the names of scalars

Which field goes into which column is decided before, by `participant.records.protobuf.columns`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto

from participant.records.by_schema.native import Type
from participant.records.protobuf.columns import TIMESTAMP, wrapped
from table.schema import UTC_MICROS

NONE = -1
SINGLE, REPEATED, MAP = range(3)
DEFAULT, NULL, REFUSED = range(3)


def plan_of(message: Descriptor, fields: Sequence[pa.Field]) -> list[Type]:
    """Of messages that `RowReader` takes, into these columns.

    Raises `ValueError` where only the plain decoder reads them: wrappers that are not as everybody has them.
    """
    plan = _Plan()
    plan.message(message, fields)
    return plan.types


class _Plan:
    def __init__(self) -> None:
        self.types: list[Type] = []

    def message(self, message: Descriptor, fields: Sequence[pa.Field]) -> tuple[int, int]:
        """The place of a message that becomes these columns, and how many values it has, at least."""
        told: dict[int, tuple[int, ...]] = {}
        several = [list(one.fields) for one in message.oneofs if len(one.fields) > 1]
        oneofs = {one.number: at for at, members in enumerate(several) for one in members}
        values = 1
        for column, wanted in enumerate(fields):
            field = message.fields_by_name.get(wanted.name)
            if field is None:
                continue
            mode, (place, inside) = self._field(field, wanted.type)
            values += inside if mode == SINGLE else 1
            told[field.number] = (place, column, mode, oneofs.get(field.number, NONE), _unset(field))
        for at, members in enumerate(several):
            unread = [one for one in members if one.number not in told]
            for one in unread if len(unread) < len(members) else ():
                place = self._add("bytes" if one.message_type is not None else _name(one))
                told[one.number] = (place, NONE, SINGLE, at, NULL)
        numbers = [number for at in sorted(told) for number in (at, *told[at])]
        return self._add("message", [values, *numbers]), values

    def _add(self, name: str, numbers: Sequence[int] = (), texts: Sequence[str] = ()) -> int:
        self.types.append((name, list(numbers), list(texts)))
        return len(self.types) - 1

    def _field(self, field: Any, kind: pa.DataType) -> tuple[int, tuple[int, int]]:
        if not field.is_repeated:
            return SINGLE, self._of(field, kind)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            return MAP, self._of(field.message_type.fields_by_name["value"], kind.item_type)
        return REPEATED, self._of(field, kind.value_type)

    def _of(self, field: Any, kind: pa.DataType) -> tuple[int, int]:
        """Of one value: its type's place, and how many values that is, at least."""
        message = field.message_type
        if message is None:
            return self._scalar(field, kind), 1
        if pa.types.is_struct(kind):
            return self.message(message, list(kind))
        if message.full_name == TIMESTAMP and kind == UTC_MICROS:
            return self._add("timestamp"), 1
        inside = wrapped(field)
        if inside is None or inside.has_presence:
            raise ValueError(f"{message.full_name} into {kind}")
        return self._add("wrapped", [inside.number, self._scalar(inside, kind)]), 1

    def _scalar(self, field: Any, kind: pa.DataType) -> int:
        if field.enum_type is None or not pa.types.is_string(kind):
            return self._add(_name(field))
        names: dict[int, str] = {}
        for one in field.enum_type.values:
            names.setdefault(one.number, one.name)  # the first of several
        return self._add("enum", sorted(names), [names[number] for number in sorted(names)])


def _name(field: Any) -> str:
    """Of a scalar; an enum is its number."""
    if field.enum_type is not None:
        return "int32"
    return FieldDescriptorProto.Type.Name(field.type)[5:].lower()


def _unset(field: Any) -> int:
    if field.is_required:
        return REFUSED
    return NULL if field.has_presence else DEFAULT
