"""A table's columns and what became of them, from the Avro schemas that are in its commits. Pure."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from table.census import Column, ColumnChange, SchemaCensus, SchemaChange
from table.hudi.avro_ddl import INSIDE, RECORD, in_full, is_nullable, shape_of, show, without_null
from table.schema import HUDI_PREFIX

CHANGES_MAX = 100
"""So many are remembered, the newest."""


def columns_of(schema: str) -> tuple[Column, ...]:
    """In their order, Hudi's meta columns aside. Raises whatever damaged JSON leads to."""
    return tuple(
        Column(name=one["name"], kind=show(one["type"]), nullable=is_nullable(one["type"]))
        for one in json.loads(schema)["fields"]
        if not one["name"].startswith(HUDI_PREFIX)
    )


def changes_between(before: str, after: str, never_null: Collection[str]) -> tuple[ColumnChange, ...]:
    """What is added, is another type now, or is gone; of what is inside a new column nothing is said.

    `never_null`: columns of which Spark's own writers say that they may be null, which no row is.
    """
    was, now = (dict(_flat(json.loads(one), "", never_null)) for one in (before, after))
    found = [
        *(ColumnChange(name=name, was="", now=now[name]) for name in _outermost(now, was)),
        *(
            ColumnChange(name=name, was=was[name], now=kind)
            for name, kind in now.items()
            if name in was and was[name] != kind
        ),
        *(ColumnChange(name=name, was=was[name], now="") for name in _outermost(was, now)),
    ]
    return tuple(found)


class SchemaHistory:
    """The schemas of instants, one after another. Not for several threads."""

    def __init__(self, never_null: Collection[str] = ()) -> None:
        self._never_null = frozenset(never_null)
        self._changes: deque[SchemaChange] = deque(maxlen=CHANGES_MAX)
        self._schema = ""
        self._columns: tuple[Column, ...] = ()
        self._since, self._since_ms = "", 0

    def hear(self, instant: str, completed_ms: int, schema: str) -> None:
        """Of the instant that was completed next. Raises as `columns_of` does, and knows what it knew."""
        if schema == self._schema:
            return
        columns = columns_of(schema)
        if self._since:
            changed = changes_between(self._schema, schema, self._never_null)
            if changed:
                self._changes.append(
                    SchemaChange(instant=instant, completed_ms=completed_ms, changes=changed)
                )
        else:
            self._since, self._since_ms = instant, completed_ms
        self._schema, self._columns = schema, columns

    def told(self) -> SchemaCensus:
        return SchemaCensus(
            columns=self._columns,
            changes=tuple(reversed(self._changes)),
            since=self._since,
            since_ms=self._since_ms,
        )


def _flat(record: Mapping[str, Any], parent: str, never_null: Collection[str]) -> Iterator[tuple[str, str]]:
    """(path, type) of every field at any depth; what has fields inside says only what it is."""
    for field in record["fields"]:
        name = field["name"]
        if parent or not name.startswith(HUDI_PREFIX):
            path = f"{parent}{name}"
            kind = without_null(field["type"]) if path in never_null else field["type"]
            yield from _flat_type(kind, path, is_fixed=path in never_null)


def _flat_type(kind: Any, path: str, *, is_fixed: bool = False) -> Iterator[tuple[str, str]]:
    bare = without_null(kind)
    shape = shape_of(bare)
    if shape == RECORD:
        yield path, "STRUCT" + ("" if is_fixed or is_nullable(kind) else " NOT NULL")
        yield from _flat(bare, f"{path}.", ())
        return
    inner = INSIDE.get(shape)
    if inner is not None and shape_of(without_null(bare[inner[0]])) == RECORD:
        yield path, shape.upper() + ("" if is_fixed or is_nullable(kind) else " NOT NULL")
        yield from _flat_type(bare[inner[0]], f"{path}{inner[1]}")
        return
    yield path, show(bare) if is_fixed else in_full(kind)


def _outermost(some: Mapping[str, str], others: Mapping[str, str]) -> Iterator[str]:
    """Those that the others have not, but for what is inside one of them: parents come before."""
    outer = ""
    for name in some:
        if name in others:
            continue
        if outer and name.startswith((f"{outer}.", f"{outer}[]", f"{outer}{{}}")):
            continue
        outer = name
        yield name
