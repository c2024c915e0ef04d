"""docs/formats.md says of every type which columns take it, and each line is read in a test."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests import proto_types
from tests.avro_types import TAKEN

ROOT = Path(__file__).resolve().parents[3]
UNION = "union"


def documented() -> set[tuple[str, str]]:
    """Type of Avro, and a column that takes it: of each line of the table."""
    text = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    table = text.partition("### What goes where")[2].partition("###")[0]
    rows = [row.split("|")[1:3] for row in table.splitlines() if row.startswith("| ")][1:]
    found = set()
    for types, columns in rows:
        means = types.partition(" of ")[0]  # what a logical type is made of stands behind that
        for name in re.findall(r"`([a-z-]+)", means):
            found |= {(name, column) for column in re.findall(r"`([A-Z_]+)", columns)}
    return found


def name_of(avro: Any) -> str:
    if isinstance(avro, list):
        return UNION
    return str(avro.get("logicalType", avro["type"])) if isinstance(avro, dict) else str(avro)


def test_each_line_of_the_document_is_read_and_what_is_read_is_in_it() -> None:
    read = {(name_of(avro), re.split("[(<]", ddl)[0]) for avro, ddl, _, _ in TAKEN}
    assert {one for one in read if one[0] != UNION} == documented()
    assert {name_of(avro) for avro, _, _, _ in TAKEN} >= {UNION}


NAMES = {"Colour": "enum", "Inner": "message", "Node": "message"}
ANYWHERE = "Value"
"""What takes the columns of what is in it: those are not listed once more."""


def documented_of_protobuf() -> set[tuple[str, str]]:
    """Type of Protobuf, without its package, and a column that takes it; `""` where none is named."""
    text = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    table = text.partition("### Which field goes where")[2].partition("\n\n**")[0]
    rows = [row.split("|")[1:3] for row in table.splitlines() if row.startswith("| ")][1:]
    found = set()
    for types, columns in rows:
        means = types.partition(" with ")[0]
        for name in re.findall(r"`(?:google\.protobuf\.)?([A-Za-z0-9]+)`", means):
            found |= {(name, column) for column in re.findall(r"`([A-Z_]+)", columns) or [""]}
    return found


def name_of_protobuf(declared: str) -> str:
    if declared.startswith(("repeated", "map", "oneof")):
        return re.split("[ <]", declared)[0]
    name = declared.removeprefix("optional ").split(" ")[0].removeprefix("google.protobuf.")
    return NAMES.get(name, name)


def test_each_line_on_protobuf_is_read_and_what_is_read_is_in_it() -> None:
    read = {
        (name, "" if name.endswith(ANYWHERE) or name == "oneof" else re.split("[(<]", ddl)[0])
        for name, ddl in ((name_of_protobuf(one), ddl) for one, ddl, _, _ in proto_types.TAKEN)
    }
    assert read | {("group", "")} == documented_of_protobuf()
