"""docs/fakes.md lists what the fakes assume: each line has a test, and no test is without a line."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
NAMED = re.compile(r"`(test_\w+\.py::test_\w+)`")


def listed() -> list[str]:
    document = (ROOT / "docs" / "fakes.md").read_text(encoding="utf-8")
    return NAMED.findall(document)


def defined() -> set[str]:
    found = set()
    for file in (ROOT / "tests" / "conformance").glob("test_*.py"):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found.add(f"{file.name}::{node.name}")
    return found


def test_every_assumption_has_a_test_and_every_test_an_assumption() -> None:
    assert set(listed()) == defined()


def test_every_row_of_an_assumption_names_one_test() -> None:
    lines = (ROOT / "docs" / "fakes.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.startswith("| assumed")]
    assert rows
    assert all(len(NAMED.findall(row)) == 1 for row in rows)
