"""Which columns a JSON Schema would have of itself, where `record.schema` does not say.

docs/formats.md has the table of what goes where; of several columns that take a type it is the one that the
table has, and else the first there. Values are not held against their schema: what it says of them and is no
type (`minimum`, `pattern`, `required`, …) says nothing here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from participant.records.by_schema.following import NoColumn, child
from participant.records.json_schema.documents import (
    LEVELS_MAX,
    Documents,
    Part,
    Whole,
    at,
    shown,
)
from table.schema import LOCAL_MICROS, NAME, UTC_MICROS, SchemaError

NAME_CHARS_MAX = 1_000
TYPES = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})
IMPLIED = {
    "object": ("properties", "additionalProperties", "patternProperties"),
    "array": ("items", "prefixItems"),
}
"""A type that says nothing of itself -> keywords that only it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Takes:
    """What values of a type go into."""

    first: pa.DataType | None
    """Where the table has no such column; None where nobody can tell."""
    others: Collection[pa.DataType] = ()
    decimals: bool = False
    """Whether a DECIMAL that the table has is kept, whatever its digits."""

    def one(self, has: pa.DataType | None) -> pa.DataType | None:
        """That which the table has, or the first."""
        if has is not None and (has in self.others or (self.decimals and pa.types.is_decimal128(has))):
            return has
        return self.first


INT, BIGINT, FLOAT, DOUBLE, STRING = pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string()
TEXTS = (STRING, pa.date32(), UTC_MICROS, LOCAL_MICROS, pa.binary())
SHORT = Takes(first=INT, others=(BIGINT, FLOAT, DOUBLE), decimals=True)
SCALARS: dict[str, Takes] = {
    "boolean": Takes(first=pa.bool_()),
    "integer": Takes(first=BIGINT, others=(INT, DOUBLE), decimals=True),
    "number": Takes(first=DOUBLE, decimals=True),
    "string": Takes(first=STRING, others=TEXTS, decimals=True),
}
"""Type -> columns."""
FORMATS: dict[tuple[str, str | None], Takes] = {
    ("string", "date"): Takes(first=pa.date32(), others=(STRING, UTC_MICROS, LOCAL_MICROS)),
    ("string", "date-time"): Takes(first=UTC_MICROS, others=(STRING, LOCAL_MICROS)),
}
"""Type and `format` -> columns, before `SCALARS`."""
CONNECT: dict[tuple[str, str | None], Takes] = {
    ("integer", "int8"): SHORT,
    ("integer", "int16"): SHORT,
    ("integer", "int32"): Takes(first=INT, others=(BIGINT, DOUBLE), decimals=True),
    ("integer", "int64"): Takes(first=BIGINT, decimals=True),
    ("number", "float32"): Takes(first=FLOAT, others=(DOUBLE,), decimals=True),
    ("number", "float64"): Takes(first=DOUBLE, decimals=True),
    ("number", "bytes"): Takes(first=None, others=(pa.binary(),), decimals=True),
    ("string", "bytes"): Takes(first=pa.binary(), others=(STRING,)),
}
"""Type and `connect.type`, as Connect's converter has it -> columns, before `FORMATS`."""


def columns_of(texts: Sequence[str], has: pa.Schema, taken: Collection[str] = ()) -> pa.Schema:
    """The columns of values of this schema, which stands behind those that it refers to.

    `has`: the table's, of the record. `taken`: fields that make no column of their own.

    Raises `NoColumn` for a field that goes into no column, `SchemaError` for what is no schema of objects.
    """
    documents = Documents(texts)
    types = _Types(documents)
    known = {field.name: field.type for field in has}
    whole = types.chosen(documents.whole([documents.root], ""), "")
    kind = types.kind(whole, "")
    if whole.never or kind not in ("", "object"):
        raise SchemaError(f"the JSON Schema is not of objects but of {kind or 'no value at all'}")
    fields = types.fields(whole, "")
    return pa.schema(
        [
            (types.named(name, ""), types.of(parts, known.get(name), name, 1))
            for name, parts in fields.items()
            if name not in taken
        ]
    )


class _Types:
    """The types of fields."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    def of(self, parts: Sequence[Part], has: pa.DataType | None, path: str, level: int) -> pa.DataType:
        """Of what all of these parts hold of. `has`: the table's. Raises `NoColumn`."""
        if level > LEVELS_MAX:
            raise NoColumn(f"{at(path)}it is more than {LEVELS_MAX} levels deep")
        whole = self.chosen(self._documents.whole(parts, path), path)
        kind = self.kind(whole, path)
        match kind:
            case "":
                raise NoColumn(f"{at(path)}no type goes into no column")
            case "array":
                return self._array(whole, has, path, level)
            case "object":
                return self._object(whole, has, path, level)
        found = (
            CONNECT.get((kind, whole.first("connect.type")))
            or FORMATS.get((kind, whole.first("format")))
            or SCALARS[kind]
        ).one(has)
        if found is None:
            raise NoColumn(
                f"{at(path)}a Decimal of Connect's is a number or base64, and no schema says which: give it "
                "a column in record.schema, DECIMAL(p,s) for numbers, BINARY for base64"
            )
        return found

    def kind(self, whole: Whole, path: str) -> str:
        """The one type besides null; empty where nothing says one. Raises `NoColumn` for several."""
        found: set[str] | None = None
        for part in whole.parts:
            said = self._said(part, path)
            if said is not None:
                found = said if found is None else _both(found, said)
        if found is None:
            found = {kind for kind, words in IMPLIED.items() if _has(whole, words)}
            found = found or self._of_values(whole, path)
            if not found:
                return ""
        real = found - {"null"}
        if real == {"integer", "number"}:
            return "number"
        if len(real) != 1:
            names = ", ".join(sorted(real)) or "null alone"
            raise NoColumn(f"{at(path)}{names} goes into no column: that has one type")
        return real.pop()

    def _said(self, part: Part, path: str) -> set[str] | None:
        said = part.node.get("type")
        if said is None:
            return None
        self._documents.look(path, len(said) if isinstance(said, list) else 1)
        found = {one if isinstance(one, str) else "" for one in (said if isinstance(said, list) else [said])}
        if not found <= TYPES:
            raise NoColumn(f"{at(path)}its type is none that JSON Schema has")
        return found

    def _of_values(self, whole: Whole, path: str) -> set[str]:
        """The types of those that `enum` or `const` list."""
        listed = next((one for part in whole.parts if (one := part.value("enum", list))), None)
        if listed is None:
            listed = next(([part.node["const"]] for part in whole.parts if "const" in part.node), [])
        self._documents.look(path, len(listed))
        return {_type_of(one) for one in listed}

    def chosen(self, whole: Whole, path: str, level: int = 0) -> Whole:
        """The same, where a choice of several is no choice of types: all of them are of one, or only narrow
        what is said beside them. Raises `NoColumn`."""
        if not whole.choices:
            return whole
        done = Whole(parts=whole.parts, never=whole.never)
        if self.kind(done, path):
            return done
        if level > LEVELS_MAX:
            raise NoColumn(f"{at(path)}more than {LEVELS_MAX} choices one within another")
        for choices in whole.choices:
            made = [self.chosen(self._documents.whole([one], path), path, level + 1) for one in choices]
            kinds = {self.kind(one, path) for one in made}
            if kinds == {"integer", "number"}:
                made = [one for one in made if self.kind(one, path) == "number"]
                kinds = {"number"}
            if len(kinds) != 1 or kinds & {"array", "object"}:
                names = ", ".join(sorted(kind or "no type" for kind in kinds)) or "null alone"
                raise NoColumn(
                    f"{at(path)}a choice of {len(made)} ({names}) goes into no column: that has one type"
                )
            if len({(one.first("connect.type"), one.first("format")) for one in made}) > 1:
                raise NoColumn(f"{at(path)}a choice of several formats goes into no column: that has one")
            done.parts = [*done.parts, *made[0].parts]
        return done

    def _array(self, whole: Whole, has: pa.DataType | None, path: str, level: int) -> pa.DataType:
        if _has(whole, ("prefixItems",)) or any(
            part.value("items", list) is not None for part in whole.parts
        ):
            raise NoColumn(f"{at(path)}an array with a type for each place goes into no column")
        items = [part.of(part.node["items"]) for part in whole.parts if "items" in part.node]
        if not items:
            raise NoColumn(f"{at(path)}an array that does not say of what goes into no column")
        return pa.list_(self.of(items, child(has), f"{path}[]", level + 1))

    def _object(self, whole: Whole, has: pa.DataType | None, path: str, level: int) -> pa.DataType:
        fields = self.fields(whole, path)
        others = [part.of(part.node["additionalProperties"]) for part in whole.parts
                  if part.value("additionalProperties", dict) is not None]  # fmt: skip
        if not fields and others and not _has(whole, ("patternProperties",)):
            return pa.map_(pa.string(), self.of(others, child(has), f"{path}{{}}", level + 1))
        if not fields:
            if has is not None and (pa.types.is_map(has) or pa.types.is_struct(has)):
                return has
            raise NoColumn(f"{at(path)}an object that names no field goes into no column")
        if has is not None and pa.types.is_map(has):
            inner = [
                self.of(parts, has.item_type, f"{path}.{name}", level + 1) for name, parts in fields.items()
            ]
            if all(one == has.item_type for one in inner):
                return has
        return pa.struct(
            [
                (self.named(name, path), self.of(parts, child(has, name), f"{path}.{name}", level + 1))
                for name, parts in fields.items()
            ]
        )

    def fields(self, whole: Whole, path: str) -> dict[str, list[Part]]:
        """Those that an object's schema names, in the order that Connect gives them, or the text."""
        found: dict[str, list[Part]] = {}
        for part in whole.parts:
            properties = part.value("properties", dict) or {}
            self._documents.look(path, len(properties))
            for name, node in properties.items():
                found.setdefault(name, []).append(part.of(node))
        fields = {name: parts for name, parts in found.items() if all(one.node is not False for one in parts)}
        for name in self._aside(whole, path):
            if name not in found:
                raise NoColumn(
                    f"{at(f'{path}.{name}' if path else name)}it is named for some values only, by a choice "
                    "or a condition, and so goes into no column"
                )
        places = {name: _index(parts, len(fields)) for name, parts in fields.items()}
        return dict(sorted(fields.items(), key=lambda one: places[one[0]]))

    def _aside(self, whole: Whole, path: str) -> set[str]:
        """Fields that are named for some values only."""
        asked = [one for part in whole.parts for one in _conditional(part)]
        found: set[str] = set()
        while asked:
            for one in self._documents.whole([asked.pop()], path).parts:
                properties = one.value("properties", dict) or {}
                self._documents.look(path, 1 + len(properties))
                found.update(properties)
                asked += _conditional(one)
        return found

    def named(self, name: str, path: str) -> str:
        """The name, where a column or a field of a STRUCT can have it. Raises `NoColumn`."""
        if len(name) > NAME_CHARS_MAX or not NAME.fullmatch(name):
            raise NoColumn(
                f"field {shown(f'{path}.{name}' if path else name)} goes into no column: a name is made of "
                "ASCII letters, digits and _, and begins with no digit"
            )
        return name


def _has(whole: Whole, names: Collection[str]) -> bool:
    return any(name in part.node for part in whole.parts for name in names)


def _both(one: set[str], other: set[str]) -> set[str]:
    """Types that values have where both are said: every integer is a number."""
    wide, narrow = one | other, one & other
    if "integer" in wide and {"integer", "number"} & one and {"integer", "number"} & other:
        narrow = narrow | {"integer"}
    return narrow


def _type_of(value: Any) -> str:
    for kind, name in (
        (bool, "boolean"),
        (int, "integer"),
        (float, "number"),
        (str, "string"),
        (list, "array"),
    ):
        if isinstance(value, kind):
            return name
    return "null" if value is None else "object"


def _conditional(part: Part) -> list[Part]:
    """Schemas in a part that hold of some values only."""
    found = [part.node.get(name) for name in ("then", "else")]
    for name in ("dependentSchemas", "dependencies"):
        found += (part.value(name, dict) or {}).values()
    for name in ("oneOf", "anyOf"):
        found += part.value(name, list) or ()
    return [part.of(one) for one in found if isinstance(one, dict)]


def _index(parts: Sequence[Part], none: int) -> int:
    """Its place among the fields, as Connect's converter has it."""
    return next((one for part in parts if (one := part.value("connect.index", int)) is not None), none)
