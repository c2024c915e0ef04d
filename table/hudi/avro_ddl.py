"""How an Avro type that Hudi keeps reads in the words of Spark DDL, for people. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from table.hudi.avro import AVRO_TYPES
from table.schema import DDL_NAMES

RECORD, DECIMAL = "record", "decimal"
INSIDE: Mapping[str, tuple[str, str]] = {"array": ("items", "[]"), "map": ("values", "{}")}
"""Where an array's and a map's elements are, and how a path names them."""


def show(kind: Any) -> str:
    """An Avro type as DDL, its own null aside; what DDL has no word for as JSON."""
    kind = without_null(kind)
    shape = shape_of(kind)
    if shape == RECORD:
        inner = ", ".join(f"{field['name']}: {in_full(field['type'])}" for field in kind["fields"])
        return f"STRUCT<{inner}>"
    if shape == DECIMAL:
        return "DECIMAL({},{})".format(*digits_of(kind))
    if shape == "array":
        return f"ARRAY<{show(kind['items'])}>"
    return f"MAP<STRING,{show(kind['values'])}>" if shape == "map" else _SCALARS.get(shape, shape)


def in_full(kind: Any) -> str:
    """The same, and whether it may be null."""
    return show(kind) + ("" if is_nullable(kind) else " NOT NULL")


def shape_of(kind: Any) -> str:
    """`record`, `array`, `map`, `decimal`; of others one spelling of the type, logical type included."""
    if not isinstance(kind, Mapping):
        return kind if isinstance(kind, str) else json.dumps(kind)
    logical = kind.get("logicalType")
    if logical == DECIMAL:
        return DECIMAL
    base = shape_of(kind["type"])
    return f"{base} {logical}" if logical else base


_SCALARS = {shape_of(avro): DDL_NAMES[arrow] for arrow, avro in AVRO_TYPES.items()}


def has_words(kind: Any) -> bool:
    """Return whether Spark DDL has a word for the type, and for each within it."""
    kind = without_null(kind)
    shape = shape_of(kind)
    if shape == RECORD:
        return all(has_words(field["type"]) for field in kind["fields"])
    if shape in INSIDE:
        return has_words(kind[INSIDE[shape][0]])
    return shape == DECIMAL or shape in _SCALARS


def digits_of(kind: Mapping[str, Any]) -> tuple[int, int]:
    """Precision and scale of a decimal."""
    return int(kind["precision"]), int(kind.get("scale", 0))


def is_nullable(kind: Any) -> bool:
    """Whether a value may be missing."""
    return isinstance(kind, list) and "null" in kind


def without_null(kind: Any) -> Any:
    """A type without its null."""
    if not isinstance(kind, list):
        return kind
    branches = [branch for branch in kind if branch != "null"]
    return branches[0] if len(branches) == 1 else branches
