"""What JSON values have in them: kinds of values, field by field, counted. Pure.

Nothing of a value's content is kept, but for how long the first one was.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from participant.records.json.values import (
    DATE,
    INTEGER,
    NOT_FINITE,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Mismatch,
    Number,
    Object,
    convert,
)
from table.schema import ARROW_TYPES, LOCAL_MICROS, NAME, UTC_MICROS, DataType

NAMES_MAX = 2_000
"""Fields of one object that are told apart."""
FIELDS_MAX = 20_000
"""Of objects within others that are told apart in a sample: of a hostile one they would fill the memory."""
DEPTH_MAX = 20
"""Levels that are looked into."""
MAP_NAMES_MIN = 16
"""An object of fewer fields is a STRUCT."""
MAP_SHARE_MAX = 0.3
"""So rare is a field, on an average, in objects that are a MAP."""
OBJECT, ARRAY = "object", "array"
TEXTS = ("DATE", "TIMESTAMP_NTZ", "TIMESTAMP", "STRING")
NUMBERS = ("BIGINT", "DECIMAL", "DOUBLE")
FAMILIES = {**dict.fromkeys(TEXTS, "text"), **dict.fromkeys(NUMBERS, "number")}
"""Kinds of which one column may hold several."""
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)(?:\.([0-9]+))?", re.ASCII)
"""A text `007` is a name, and so may be one of a million digits."""
_CALENDAR = (
    ("DATE", DATE, ARROW_TYPES[DataType.DATE]),
    ("TIMESTAMP_NTZ", TIMESTAMP_NTZ, LOCAL_MICROS),
    ("TIMESTAMP", TIMESTAMP, UTC_MICROS),
)


@dataclass(slots=True)
class Room:
    """Of a sample."""

    left: int = FIELDS_MAX
    """So many fields within others may still be told apart."""
    beyond: int = 0
    """So many were not."""


@dataclass(slots=True)
class Shape:
    """What was seen in one place."""

    seen: int = 0
    """Values, nulls among them."""
    nulls: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    """Of values that are not null: a type as DDL has it, OBJECT or ARRAY."""
    example: str = ""
    """What the first one was, without its content."""
    fields: dict[str, Shape] = field(default_factory=dict)
    """Of objects."""
    unnamed: int = 0
    """Fields of objects beyond `NAMES_MAX` names, or of objects that are nested too deeply."""
    twice: int = 0
    """Fields that an object had twice."""
    items: Shape | None = None
    """Of arrays."""
    decimals: int = 0
    """Numbers, and texts of numbers, that have no exponent and no needless zero before them."""
    before_point: int = 0
    """Digits of those at most."""
    behind_point: int = 0
    not_finite: int = 0
    """Texts that a DOUBLE takes: NaN and Infinity."""
    room: Room = field(default_factory=Room, repr=False, compare=False)

    @property
    def family(self) -> str:
        """The family of kinds that most values are of; empty where all are null."""
        counts: Counter[str] = Counter()
        for kind, count in self.kinds.items():
            counts[FAMILIES.get(kind, kind)] += count
        if counts["number"]:
            counts["text"] -= self.not_finite
            counts["number"] += self.not_finite
        return counts.most_common(1)[0][0] if counts else ""

    @property
    def strange(self) -> int:
        """Values of other families."""
        family = self.family
        taken = self.not_finite if family == "number" else 0
        return -taken + sum(count for kind, count in self.kinds.items() if FAMILIES.get(kind, kind) != family)

    def add(self, value: Any, depth: int = 0) -> None:
        """One value more, as `participant.records.json.values.parse_any` has it."""
        self.seen += 1
        if value is None:
            self.nulls += 1
            return
        kind, example = _kind(value)
        self.kinds[kind] += 1
        self.example = self.example or example
        if type(value) is str and value in NOT_FINITE:
            self.not_finite += 1
        if isinstance(value, str) and (found := _DECIMAL.fullmatch(value)):
            self.decimals += 1
            self.before_point = max(self.before_point, len(found[1]))
            self.behind_point = max(self.behind_point, len(found[2] or ""))
        if isinstance(value, Object):
            self._add_fields(value, depth)
        elif isinstance(value, list) and depth < DEPTH_MAX:
            self.items = self.items or Shape(room=self.room)
            for item in value:
                self.items.add(item, depth + 1)

    def _add_fields(self, value: Object, depth: int) -> None:
        names = set()
        for name, inner in value:
            self.twice += name in names
            names.add(name)
            known = self.fields.get(name)
            if depth >= DEPTH_MAX or (known is None and len(self.fields) >= NAMES_MAX):
                self.unnamed += 1
                continue
            if known is None:
                if depth and not self.room.left:
                    self.room.beyond += 1
                    continue
                self.room.left -= depth > 0
                known = self.fields[name] = Shape(room=self.room)
            known.add(inner, depth + 1)


def together(shapes: Iterable[Shape]) -> Shape:
    """What was seen in any of several places."""
    whole = Shape()
    fields: dict[str, list[Shape]] = {}
    items: list[Shape] = []
    for one in shapes:
        whole.seen += one.seen
        whole.nulls += one.nulls
        whole.kinds.update(one.kinds)
        whole.example = whole.example or one.example
        whole.unnamed += one.unnamed
        whole.twice += one.twice
        whole.decimals += one.decimals
        whole.not_finite += one.not_finite
        whole.before_point = max(whole.before_point, one.before_point)
        whole.behind_point = max(whole.behind_point, one.behind_point)
        for name, inner in one.fields.items():
            fields.setdefault(name, []).append(inner)
        if one.items is not None:
            items.append(one.items)
    whole.fields = {name: same[0] if len(same) == 1 else together(same) for name, same in fields.items()}
    if items:
        whole.items = items[0] if len(items) == 1 else together(items)
    return whole


def is_map(shape: Shape) -> bool:
    """Many names, each in few objects; or names that no STRUCT can have. All values are of one kind then."""
    fields = shape.fields
    whole = together(fields.values())
    if whole.strange or not whole.family or shape.unnamed:
        return bool(shape.unnamed) and not whole.strange
    share = sum(inner.seen for inner in fields.values()) / len(fields) / max(1, shape.kinds[OBJECT])
    odd = not all(NAME.fullmatch(name) for name in fields)
    return odd or (len(fields) >= MAP_NAMES_MIN and share <= MAP_SHARE_MAX)


def _kind(value: Any) -> tuple[str, str]:
    """What a value is, and the same for people, without its content."""
    if isinstance(value, bool):
        return "BOOLEAN", "true or false"
    if isinstance(value, Number):
        return _number(value)
    if isinstance(value, str):
        return _text(value), f"a text of length {len(value)}"
    if isinstance(value, Object):
        return OBJECT, f"an object, fields: {len(value)}"
    return ARRAY, f"an array of length {len(value)}"


def _number(value: str) -> tuple[str, str]:
    digits = sum(map(str.isdigit, value))
    if not INTEGER.fullmatch(value):
        return "DOUBLE", f"a number, not whole, digits: {digits}"
    whole = value.removeprefix("-").lstrip("0")
    said = f"a whole number, digits: {digits}"
    if len(whole) < 19 or (len(whole) == 19 and -(2**63) <= int(value) < 2**63):
        return "BIGINT", said
    return ("DECIMAL" if len(whole) <= 38 else "DOUBLE"), said


def _text(value: str) -> str:
    for name, pattern, kind in _CALENDAR:
        if pattern.fullmatch(value):
            try:
                convert(value, kind, "")
            except Mismatch:
                return "STRING"
            return name
    return "STRING"
