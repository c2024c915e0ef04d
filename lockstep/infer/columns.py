"""From what values have in them, the columns that they would go into. Pure.

Of whole numbers a `BIGINT` is made, though the sample may fit an `INT`: the next record may not. Nothing is
`NOT NULL`, and none with digits behind the point a `DECIMAL`, since a sample proves nothing: a note says
which could be one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from lockstep.infer.shapes import ARRAY, NUMBERS, OBJECT, TEXTS, Shape, is_map, together
from participant.records.sources import parse, spelled
from table.schema import DECIMAL_PRECISION_MAX, KAFKA_PREFIX, NAME, POSITION_COLUMN, SchemaError, parse_ddl

COLUMNS_MAX = 2_000
SHORT_DIGITS_MAX = 14
"""Of numbers that grow by four digits before they are too long for the shorter DECIMAL."""


@dataclass(slots=True)
class Proposal:
    """What is to be written below `[record]`."""

    columns: dict[str, str] = field(default_factory=dict)
    """Name -> type, in the order in which fields were first seen."""
    sources: dict[str, str] = field(default_factory=dict)
    """`record.columns`: of columns that cannot have their field's name."""
    notes: list[str] = field(default_factory=list)
    """What is to be decided by somebody who knows more; a sentence each, without a point."""

    @property
    def ddl(self) -> str:
        return ",\n".join(f"{quoted(name)} {kind}" for name, kind in self.columns.items())


def proposed(shape: Shape) -> Proposal:
    """The columns for objects of this shape."""
    found = Proposal()
    taken: set[str] = set()
    for name, inner in shape.fields.items():
        if not _can_be_read(name):
            found.notes.append(
                f"a field {name!r} is not read under that name, but by record.rest: it is left out"
            )
            continue
        kind = _type(inner, name, found.notes)
        if not kind:
            continue
        if len(found.columns) >= COLUMNS_MAX:
            found.notes.append(f"more than {COLUMNS_MAX:,} fields: the others are left out")
            break
        column = _free(name, taken)
        taken.add(column.lower())
        found.columns[column] = kind
        if column != name:
            found.sources[column] = "value." + spelled(name)
            found.notes.append(f"{name!r} can be no column's name: it becomes {column}, by record.columns")
    if shape.unnamed:
        found.notes.append(f"{shape.unnamed:,} fields were not looked at: there are too many of them")
    if shape.room.beyond:
        found.notes.append(
            f"{shape.room.beyond:,} fields within others were not looked at: there are too many names in all"
        )
    if shape.twice:
        found.notes.append(f"{shape.twice:,} fields were there twice in one record, which is then a reject")
    return found


def _type(shape: Shape, path: str, notes: list[str]) -> str:
    """Of a column for what was seen; empty where there can be none yet."""
    family = shape.family
    if not family:
        notes.append(f"{path}: only null was seen, so it is left out")
        return ""
    if shape.strange:
        others = sorted(kind for kind in shape.kinds if kind not in _kinds(family))
        notes.append(f"{path}: mostly {family}, but {shape.strange:,} are {', '.join(others)}: rejects")
    if family == OBJECT:
        return _of_objects(shape, path, notes)
    if family == ARRAY:
        inner = _type(shape.items, f"{path}[]", notes) if shape.items is not None else ""
        if not inner:
            notes.append(f"{path}: only empty arrays were seen, so it is taken for one of texts")
        return f"ARRAY<{inner or 'STRING'}>"
    if family in ("number", "text") and (decimal := _decimal(shape)):
        notes.append(f"{path}: {decimal}")
    if family == "number" and shape.not_finite:
        return "DOUBLE"
    if family == "number":
        return next((kind for kind in ("DOUBLE", "DECIMAL") if kind in shape.kinds), "BIGINT").replace(
            "DECIMAL", "DECIMAL(38,0)"
        )
    if family == "text":
        return next(kind for kind in ("STRING", "TIMESTAMP", "TIMESTAMP_NTZ", "DATE") if kind in shape.kinds)
    return family


def _decimal(shape: Shape) -> str:
    """What a DECIMAL would do for it; empty where that is no question.

    Of whole numbers it is none, and texts that look like some may be anybody's names.
    """
    before, behind = shape.before_point, shape.behind_point
    is_plain = not shape.strange and shape.decimals == sum(shape.kinds.values())
    if not is_plain or not behind or before + behind > DECIMAL_PRECISION_MAX:
        return ""
    kind = f"DECIMAL({18 if before + behind <= SHORT_DIGITS_MAX else 38},{behind})"
    said = f"at most {before:,} digits before the point and {behind:,} behind it"
    if shape.family == "text":
        return f"texts of numbers, {said}: {kind} reads them, and rejects what is none or has more behind it"
    return f"{said}: {kind} keeps each digit, as money wants it, and rejects what has more behind it"


def _kinds(family: str) -> tuple[str, ...]:
    return {"number": NUMBERS, "text": TEXTS}.get(family, (family,))


def _of_objects(shape: Shape, path: str, notes: list[str]) -> str:
    if not shape.fields:
        notes.append(f"{path}: only empty objects were seen, so it is taken for a map of texts")
        return "MAP<STRING, STRING>"
    if is_map(shape):
        inner = _type(together(shape.fields.values()), f"{path}{{}}", notes)
        return f"MAP<STRING, {inner or 'STRING'}>"
    inside, taken = [], set[str]()
    for name, inner_shape in shape.fields.items():
        if not NAME.fullmatch(name) or name.lower() in taken:
            notes.append(f"{path}: {name!r} can be no field of a STRUCT, so it is left out")
            continue
        kind = _type(inner_shape, f"{path}.{name}", notes)
        if kind:
            taken.add(name.lower())
            inside.append(f"{quoted(name)}: {kind}")
    if not inside:
        notes.append(f"{path}: nothing in it can be a field of a STRUCT, so it is left out")
    return f"STRUCT<{', '.join(inside)}>" if inside else ""


# --- names -----------------------------------------------------------------------------------------------


def _free(name: str, taken: set[str]) -> str:
    """A column's name for a field: its own where that can be one."""
    bare = name
    if not _may_be(name):
        bare = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")
        bare = bare if _may_be(bare) else f"field_{bare}".rstrip("_")
    return next(one for one in _numbered(bare) if one.lower() not in taken)


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}_{number}" for number in range(2, COLUMNS_MAX + 2))


@lru_cache(maxsize=10_000)
def _may_be(name: str) -> bool:
    """Whether a column may be named so."""
    try:
        return parse_ddl(f"`{name}` INT").names == [name] if NAME.fullmatch(name) else False
    except SchemaError:
        return False


@lru_cache(maxsize=10_000)
def quoted(name: str) -> str:
    """A name as DDL has it: in backticks where it is a word of SQL's."""
    try:
        return name if parse_ddl(f"{name} INT, s STRUCT<{name}: INT>").names[0] == name else f"`{name}`"
    except SchemaError:
        return f"`{name}`"


def _can_be_read(name: str) -> bool:
    """Whether a column can come from such a field."""
    try:
        parse(f"value.{spelled(name)}")
    except ValueError:
        return False
    return not name.startswith((KAFKA_PREFIX, POSITION_COLUMN))
