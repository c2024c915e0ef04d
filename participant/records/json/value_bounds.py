"""How many values JSON records become (`participant.records.value_limits`), before Arrow makes them.

Arrow's reader has no limit: `{}` in an array becomes a row of all of the item's fields. Each item has a
comma, or an opening bracket or brace, so that these bound the number of items; a record that may have too
many is counted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from participant.records.json.values import WHITESPACE, explain
from participant.records.raw import Values
from participant.records.value_limits import VALUES_MAX, places, too_many, values_max

UNREADABLE = "not readable: it may have too many values, and is not JSON as Python reads it"
OF_ARRAYS, OF_MAPS = b",[", b",[{"
"""Bytes of which there are as many at least as items; entries of maps have their own opening brace."""
Shape = tuple[tuple[str, Any], ...]
"""Members of an object that are objects or arrays, and 1 for any other member."""


def item_places(fields: Sequence[pa.Field]) -> int:
    """Return the most places that one item of an array or entry of a map takes; 0 where there is neither."""
    return max((_item_places(field.type) for field in fields), default=0)


def _item_places(kind: pa.DataType) -> int:
    if pa.types.is_struct(kind):
        return item_places(list(kind))
    if pa.types.is_list(kind):
        return max(places(kind.value_type), _item_places(kind.value_type))
    if pa.types.is_map(kind):
        return max(1 + places(kind.item_type), _item_places(kind.item_type))
    return 0


def bounds(values: Values, per_item: int, marks: bytes = OF_MAPS) -> npt.NDArray[np.int64] | None:
    """Return a bound of the values of each record; None where all of them together are few.

    `per_item`: as `item_places` says. `marks`: `OF_ARRAYS` where no column holds a map.
    """
    data = values.data
    if not per_item or per_item * sum(data.count(bytes((mark,))) for mark in marks) <= VALUES_MAX:
        return None
    text = np.frombuffer(data, dtype=np.uint8)
    found = np.zeros(len(text), dtype=np.bool_)
    for mark in marks:
        found |= text == mark
    return per_item * np.add.reduceat(found, values.starts[:-1], dtype=np.int64)


def too_large(values: Values, bound: npt.NDArray[np.int64], schema: pa.Schema) -> dict[int, str]:
    """Return why records are rejected before they are read, by place: they become too many values."""
    found: dict[int, str] = {}
    for place in np.flatnonzero(bound > VALUES_MAX).tolist():
        value = values[place] or b""
        limit = values_max(len(value))
        if bound[place] <= limit:
            continue
        try:
            if count_values(value, list(schema)) > limit:
                found[place] = too_many(limit)
        except (ValueError, RecursionError):
            found[place] = explain(value, schema) or UNREADABLE
    return found


def count_values(value: bytes, fields: Sequence[pa.Field]) -> int:
    """Return how many values a record becomes. Raises `ValueError` or `RecursionError`: it is not JSON."""
    return _of_members(_DECODER.decode(value.strip(WHITESPACE).decode()), fields)


def _shape(members: list[tuple[str, Any]]) -> Shape:
    return tuple((name, inner if isinstance(inner, list | tuple) else 1) for name, inner in members)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_shape,
    parse_int=lambda _: 1,
    parse_float=lambda _: 1,
    parse_constant=lambda _: 1,
)


def _of_members(members: Any, fields: Sequence[pa.Field]) -> int:
    if not isinstance(members, tuple):
        return 0
    kinds = {field.name: field.type for field in fields}
    return sum(_of_value(inner, kinds[name]) for name, inner in members if name in kinds)


def _of_value(value: Any, kind: pa.DataType) -> int:
    if pa.types.is_struct(kind):
        return _of_members(value, list(kind))
    if pa.types.is_list(kind) and isinstance(value, list):
        inner = kind.value_type
        within = sum(_of_value(one, inner) for one in value) if _item_places(inner) else 0
        return len(value) * places(inner) + within
    if pa.types.is_map(kind) and isinstance(value, tuple):
        inner = kind.item_type
        within = sum(_of_value(one, inner) for _, one in value) if _item_places(inner) else 0
        return len(value) * (1 + places(inner)) + within
    return 0
