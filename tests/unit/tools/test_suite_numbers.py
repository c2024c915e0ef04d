"""Numbers of the suite in README, CONTRIBUTING and docs are generated, and none is typed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests import evidence
from tools import suite_numbers
from tools.places import fill_spans
from tools.staleness import without_marks

GENERATED = re.compile(
    r"<!-- ([a-z ]+): begin -->.*?<!-- \1: end -->|<!-- n:\S+ -->[^<]*<!-- /n -->", re.DOTALL
)
COUNTED = "schedules|seeded bugs|scenarios|fuzzed inputs|simulated|mutants"
TYPED = re.compile(rf"\b\d[\d,]*(?:\s+[a-z]+){{0,2}}\s+(?:{COUNTED})\b")


@pytest.mark.parametrize("path", suite_numbers.documents(), ids=lambda path: path.name)
def test_the_documents_spans_are_current(path: Path) -> None:
    document = path.read_text(encoding="utf-8")
    filled = suite_numbers.updated(document, path.name)
    assert without_marks(filled) == without_marks(document), "run `make docs`"


@pytest.mark.parametrize("path", suite_numbers.documents(), ids=lambda path: path.name)
def test_no_number_of_the_suite_is_typed(path: Path) -> None:
    typed = TYPED.findall(GENERATED.sub("", path.read_text(encoding="utf-8")))
    assert not typed, "put it into a span: tools/suite_numbers.py"


def test_a_typed_number_is_noticed() -> None:
    assert TYPED.search("fuzzing, 8,000 simulated schedules, seeded")
    assert TYPED.search("# 7,000 random schedules")
    assert not TYPED.search(GENERATED.sub("", "<!-- n:schedules -->2,000<!-- /n --> simulated schedules"))


def test_every_number_is_known_or_left_out() -> None:
    for name in suite_numbers.NUMBERS:
        said = suite_numbers.number(name)
        assert re.fullmatch(r"[1-9][\d,]*( tests)?|tests", said), name


def test_how_many_tests_a_tier_has_is_said_once_it_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded: dict[str, Any] = {"figures": {"tiers": {"test": {"tests": 5_432}}}}
    monkeypatch.setattr(evidence, "read", {"suite": recorded}.get)
    assert suite_numbers.NUMBERS["tests_in_make_test"]() == "5,432 tests"
    assert suite_numbers.NUMBERS["tests_in_all"]() == "tests"
    monkeypatch.setattr(evidence, "read", lambda _name: None)
    assert suite_numbers.NUMBERS["tests_in_make_test"]() == "tests"


def test_spans_of_a_kind_are_filled_wherever_they_are() -> None:
    document = (
        "| <!-- n:one --><!-- /n --> | <!-- n:two -->old<!-- /n -->, <!-- age:one -->kept<!-- /age --> |"
    )
    assert fill_spans(document, "n", {"one": "1", "two": "2"}.__getitem__, "X") == (
        "| <!-- n:one -->1<!-- /n --> | <!-- n:two -->2<!-- /n -->, <!-- age:one -->kept<!-- /age --> |"
    )


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("<!-- n:three -->3<!-- /n -->", "X has a span n of an unknown name: three"),
        ("<!-- n:one -->1 and no end", "X has a span n without its end"),
    ],
)
def test_a_span_that_cannot_be_filled_is_refused(document: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fill_spans(document, "n", {"one": "1"}.__getitem__, "X")


def test_a_mark_of_evidence_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match=r"README.md has a span age of an unknown name: bench-none"):
        suite_numbers.updated("<!-- age:bench-none --><!-- /age -->", "README.md")
