"""Which changes of columns by id the commits of Lockstep do not carry on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from table.errors import Refused
from table.hudi.reader.schema_history import FOLDER, changed_of, check_history, renamed_or_dropped
from table.store.location import store_at


def field(number: int, name: str, kind: Any = "string") -> dict[str, Any]:
    return {"id": number, "name": name, "optional": True, "type": kind, "doc": ""}


def history(*versions: list[dict[str, Any]]) -> bytes:
    schemas = [{"version_id": 10 + n, "type": "record", "fields": one} for n, one in enumerate(versions)]
    return json.dumps({"schemas": schemas[::-1]}).encode()


POINT = {"type": "record", "fields": [field(3, "x"), field(4, "y")]}
MOVED = {"type": "record", "fields": [field(3, "x"), field(4, "z")]}
LIST = {"type": "array", "element_id": 5, "element": {"type": "record", "fields": [field(6, "a")]}}
OTHER_LIST = {"type": "array", "element_id": 5, "element": {"type": "record", "fields": [field(6, "b")]}}


@pytest.mark.parametrize(
    ("versions", "change"),
    [
        ([[field(0, "a")]], ""),
        ([[field(0, "a")], [field(0, "a"), field(1, "b")]], ""),
        ([[field(0, "a"), field(1, "b")], [field(1, "b"), field(0, "a")]], ""),
        ([[field(0, "a", "int")], [field(0, "a", "long")]], ""),
        ([[field(0, "a")], [field(0, "b")]], "column a was renamed to b"),
        ([[field(0, "a"), field(1, "b")], [field(0, "a")]], "column b was dropped"),
        (
            [[field(0, "a"), field(1, "b")], [field(0, "a")], [field(0, "a"), field(2, "b")]],
            "column b was dropped",
        ),
        ([[field(0, "p", POINT)], [field(0, "p", MOVED)]], "column p.y was renamed to p.z"),
        (
            [[field(0, "l", LIST)], [field(0, "l", OTHER_LIST)]],
            "column l.element.a was renamed to l.element.b",
        ),
    ],
)
def test_what_is_renamed_or_dropped_by_its_id_is_found(versions: Any, change: str) -> None:
    assert changed_of(history(*versions)) == change


@pytest.mark.parametrize("raw", [b"{}", b"no json", b'{"schemas": [{}]}', b"[" * 100_000])
def test_a_history_that_cannot_be_read_is_refused(raw: bytes) -> None:
    with pytest.raises(Refused, match="cannot be read"):
        changed_of(raw)


def test_the_newest_file_of_the_folder_counts_and_a_table_without_one_is_well(tmp_path: Path) -> None:
    store = store_at(f"file://{tmp_path}")
    check_history(store)
    (tmp_path / FOLDER).mkdir(parents=True)
    check_history(store)
    renamed = history([field(0, "a")], [field(0, "b")])
    for name, raw in (("2", renamed), ("1", history([field(0, "a")]))):
        (tmp_path / FOLDER / f"{name}.schemacommit").write_bytes(raw)
    assert renamed_or_dropped(store) == "column a was renamed to b"
    with pytest.raises(Refused, match="column a was renamed to b with Hudi's schema-on-read"):
        check_history(store)
    (tmp_path / FOLDER / "3.schemacommit").write_bytes(b"")
    assert renamed_or_dropped(store) == "column a was renamed to b"
