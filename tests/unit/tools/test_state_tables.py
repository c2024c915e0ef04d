"""docs/protocol.md shows the state tables that the cores run."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("state_tables", ROOT / "tools" / "state_tables.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_state_tables_in_the_protocols_document_are_those_of_the_cores(generator: ModuleType) -> None:
    document = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    assert generator.updated(document) == document, "run `make docs`"


def test_a_document_without_a_place_for_a_table_is_refused(generator: ModuleType) -> None:
    with pytest.raises(ValueError, match="no place"):
        generator.updated("# nothing")


def test_every_state_and_every_event_is_in_the_tables(generator: ModuleType) -> None:
    for table in generator.MACHINES.values():
        shown = generator.markdown(table)
        for state, row in table.items():
            assert f"| {state.name} |" in shown
            for step in row.values():
                assert not step.method or f"`{step.method}`" in shown


def test_every_step_that_the_tables_allow_is_in_the_diagrams(generator: ModuleType) -> None:
    for table in generator.MACHINES.values():
        shown = generator.diagram(table)
        for state, row in table.items():
            for to in {to for step in row.values() for to in step.to}:
                drawn = f"    {state.name} --> {to.name}: " in shown
                assert drawn != (to.name in generator.ENDS)
                assert drawn or f"{to.name} is final." in shown
