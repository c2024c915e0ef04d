"""Columns that were renamed or dropped with Hudi's schema-on-read, which Lockstep's commits do not carry on.

With `hoodie.schema.on.read.enable` a file's columns are found by ids, and `.hoodie/.schema` has the ids of
each version. A commit without them (ours, or one of Spark's without the setting) has readers go by names
again: a renamed column is null in older files, and a name that is used again shows another column's data.
Columns that are only added are read alike by ids and by names. Source of the format: `SerDeHelper` and
`FileBasedInternalSchemaStorageManager` of Hudi 1.2.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

from table.errors import Refused
from table.store.port import Store

FOLDER = posixpath.join(".hoodie", ".schema")
SUFFIX = ".schemacommit"
FILE_BYTES_MAX = 64_000_000


def check_history(store: Store) -> None:
    """Raise `Refused` if a column of the table was renamed or dropped by its id."""
    if change := renamed_or_dropped(store):
        raise Refused(
            f"Table {store.place()}: {change} with Hudi's schema-on-read (hoodie.schema.on.read.enable). "
            "A commit of Lockstep's would have readers go by names again, and show nulls or another column's "
            "data in older rows. Rewrite the table's rows with Spark into a new table, and continue there"
        )


def renamed_or_dropped(store: Store) -> str:
    """Return a sentence about the first column that was renamed or dropped, empty if there is none."""
    names = [name for _, files in store.walk(FOLDER) for name in files if name.endswith(SUFFIX)]
    for name in sorted(names, reverse=True):  # an empty one is of a commit that did not come so far
        if raw := store.read(posixpath.join(FOLDER, name), bytes_max=FILE_BYTES_MAX + 1):
            return changed_of(raw)
    return ""


def changed_of(raw: bytes) -> str:
    """The same, of a schema commit's content. Raises `Refused` where it is none."""
    if len(raw) > FILE_BYTES_MAX:
        raise Refused(f"{FOLDER} holds a history of {len(raw):,} bytes, more than is read")
    try:
        schemas = sorted(json.loads(raw)["schemas"], key=lambda one: int(one["version_id"]))
        versions = [dict(_paths(one, "")) for one in schemas]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise Refused(f"{FOLDER} holds a history of columns that cannot be read ({error!r})") from error
    known: dict[int, str] = {}
    for paths in versions:
        for number, path in known.items():
            if number not in paths:
                return f"column {path} was dropped"
            if paths[number] != path:
                return f"column {path} was renamed to {paths[number]}"
        known.update(paths)
    return ""


def _paths(node: Any, path: str) -> Iterator[tuple[int, str]]:
    """Yield id and path of each field, of fields within, and of elements, keys and values."""
    if not isinstance(node, Mapping):
        return
    for one in node.get("fields", ()):
        here = f"{path}.{one['name']}" if path else str(one["name"])
        yield int(one["id"]), here
        yield from _paths(one["type"], here)
    for part in ("element", "key", "value"):
        if f"{part}_id" in node:
            yield int(node[f"{part}_id"]), f"{path}.{part}"
            yield from _paths(node.get(part), f"{path}.{part}")
