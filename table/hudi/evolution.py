"""How a table's columns may change: from its schema and the configuration's, that of the next commit. Pure.

Taken is what Hudi's readers get right in files that were written before: docs/schema.md lists it, and
tests/integration/test_evolution.py reads it back. Everything else is refused, one sentence each.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

from table.errors import Contradiction
from table.hudi.avro_ddl import (
    DECIMAL,
    INSIDE,
    RECORD,
    digits_of,
    has_words,
    in_full,
    is_nullable,
    shape_of,
    show,
    without_null,
)
from table.hudi.files.base_file import META_COLUMNS
from table.partitioners.expressions import record_fields
from table.schema import KAFKA_PREFIX
from table.widening import PROMOTIONS


class Fixed(Protocol):
    """A table, and the columns of it by which rows and files are found."""

    @property
    def path(self) -> str: ...
    @property
    def key_fields(self) -> tuple[str, ...]: ...
    @property
    def partition_fields(self) -> tuple[str, ...]: ...
    @property
    def partition_terms(self) -> tuple[str, ...]: ...
    @property
    def ordering_field(self) -> str: ...


def evolve(table_schema: str, wanted_schema: str, spec: Fixed) -> str:
    """The schema of the table's next commit: its own columns in their order, then new ones.

    Schemas are Avro (JSON). The table's is empty where it has none, and is returned word for word where the
    configuration changes nothing. Raises `Contradiction` for a change that is not taken.
    """
    if not table_schema:
        return wanted_schema
    has = json.loads(table_schema)
    merged = _Merge(spec).record(has, json.loads(wanted_schema), "")
    return table_schema if merged == has else json.dumps(merged, separators=(",", ":"))


def covers(ours: str, theirs: str, spec: Fixed) -> bool:
    """Whether `ours` has all that `theirs` has. Raises `Contradiction` where no schema has what both say.

    That key and ordering fields may be null, as Spark's frames say of every column, does not count.
    """
    never_null = {*spec.key_fields, spec.ordering_field}
    merged = json.loads(evolve(theirs, ours, spec))
    return bool(_canonical(merged, never_null) == _canonical(json.loads(ours), never_null))


WITHOUT_WORDS = (
    "Lockstep writes no column of that type. Rewrite the table's rows with Spark into a new table, with a "
    "CAST to a type of Spark's own, or write to another path"
)


class _Merge:
    """Both schemas' fields, one by one. A path names a field inside others: `orders[].price`."""

    def __init__(self, spec: Fixed) -> None:
        self._where = f"table {spec.path}"
        self._fixed = {*spec.key_fields, *spec.partition_fields, spec.ordering_field}
        self._of_one_type = self._fixed.union(record_fields(spec))

    def record(self, has: Mapping[str, Any], wanted: Mapping[str, Any], parent: str) -> dict[str, Any]:
        """`has` with all fields of both. `parent`: the path of what holds it, with its dot."""
        known, asked = _fields(has), _fields(wanted)
        for name, field in known.items():
            if name not in asked:
                raise self._missing(parent, field, asked)
        added = [field for name, field in asked.items() if name not in known]
        for field in added:
            if not is_nullable(field["type"]):
                raise self._new_not_null(parent + field["name"], field["type"])
        kept = [self._field(field, asked.get(field["name"]), parent) for field in has["fields"]]
        return {**has, "fields": [*kept, *added]}

    def _field(self, has: dict[str, Any], wanted: Mapping[str, Any] | None, parent: str) -> dict[str, Any]:
        if wanted is None:
            return has  # one of Hudi's meta columns
        kind = self._type(has["type"], wanted["type"], parent + has["name"])
        if kind == has["type"]:
            return has
        nulls_are_new = is_nullable(kind) and not is_nullable(has["type"])
        return {**has, "type": kind, **({"default": None} if nulls_are_new else {})}

    def _type(self, has: Any, wanted: Any, path: str) -> Any:
        old, new = without_null(has), without_null(wanted)
        nulls_are_new = is_nullable(wanted) and not is_nullable(has)
        differs = path in self._of_one_type and show(old) != show(new)
        if differs or (path in self._fixed and nulls_are_new):
            raise self._differs(path, has, wanted, "files and rows are found by it: write in record.schema")
        kind = self._value_type(old, new, path)
        if kind is None:
            raise self._differs(path, has, wanted, "values that are there cannot be read so: write")
        if kind == old:
            return ["null", old] if nulls_are_new else has
        return ["null", kind] if is_nullable(has) or nulls_are_new else kind

    def _value_type(self, old: Any, new: Any, path: str) -> Any | None:
        """The type, nulls aside, that readers get all values of both right with; None where there is none."""
        shape = shape_of(old)
        if shape == shape_of(new) == RECORD:
            return self.record(old, new, f"{path}.")
        if shape == shape_of(new) and shape in INSIDE:
            key, suffix = INSIDE[shape]
            return {**old, key: self._type(old[key], new[key], path + suffix)}
        if show(old) == show(new):
            return old
        return new if path.isidentifier() and _is_promotion(old, new) else None

    def _missing(self, parent: str, field: Mapping[str, Any], asked: Mapping[str, Any]) -> Contradiction:
        name = field["name"]
        spelled = next((one for one in asked if one.lower() == name.lower()), "")
        if spelled:
            return Contradiction(
                f"{self._where}: its field {parent}{name} is {parent}{spelled} in the configuration: write "
                f"{name} in record.schema"
            )
        advice = "add it to record.schema" if has_words(field["type"]) else WITHOUT_WORDS
        return Contradiction(
            f"{self._where}: it has the field {parent}{name} {in_full(field['type'])}, the configuration has "
            f"not: {advice}"
        )

    def _differs(self, path: str, has: Any, wanted: Any, advice: str) -> Contradiction:
        what = f"{advice} {in_full(has)}, or write to another path" if has_words(has) else WITHOUT_WORDS
        return Contradiction(
            f"{self._where}: field {path} is {in_full(has)}, the configuration says {in_full(wanted)}: {what}"
        )

    def _new_not_null(self, path: str, kind: Any) -> Contradiction:
        where = f"{self._where}: it has no field {path}, the configuration says {in_full(kind)}"
        if path.startswith(KAFKA_PREFIX):
            return Contradiction(f"{where}: set table.kafka_columns = false, or write to another path")
        return Contradiction(
            f"{where}, and rows that are there have no value for it: take NOT NULL out of record.schema"
        )


def _is_promotion(old: Any, new: Any) -> bool:
    if shape_of(old) == shape_of(new) == DECIMAL:
        (precision, scale), (wider, finer) = digits_of(old), digits_of(new)
        return finer >= scale and wider - finer >= precision - scale
    return (show(old), show(new)) in PROMOTIONS


def _fields(record: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {field["name"]: field for field in record["fields"] if field["name"] not in META_COLUMNS}


def _canonical(kind: Any, never_null: set[str]) -> Any:
    """What tells two types apart: not the order of fields, nor names of types. `never_null`: of the top."""
    value, shape = without_null(kind), shape_of(without_null(kind))
    if shape == RECORD:
        fields = _fields(value).items()
        inner: Any = {
            name: _canonical(without_null(field["type"]) if name in never_null else field["type"], set())
            for name, field in fields
        }
    elif shape in INSIDE:
        inner = _canonical(value[INSIDE[shape][0]], set())
    else:
        inner = show(value)
    return shape, is_nullable(kind), inner
