"""Ages of proofs, and the marks of stale figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.git_tree import Tree
from tools import staleness
from tools.staleness import Age, changed_mark, commit_mark, row_mark, without_marks

THEN = Tree({"native/a.rs": "100644 1", "table/b.py": "100644 2", "tests/fuzz/c.py": "100644 3"})
NOW = Tree({**THEN.files, "table/b.py": "100644 4"})
OLD = {"commit": "0a0a", "at": "2026-11-20 10:00 UTC"}


@pytest.fixture(autouse=True)
def trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staleness, "current_tree", lambda: NOW)
    monkeypatch.setattr(staleness, "tree_at", lambda commit: THEN if commit.startswith("0a0a") else None)


def proof(*covers: str, **more: Any) -> dict[str, Any]:
    return {"name": "some", **OLD, "covers": list(covers), "code": THEN.digest(covers), "figures": {}, **more}


def with_rows(*rows: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return proof("table", figures={"each": list(rows)}, **more)


CURRENT_ROW = {"commit": "1b1b", "at": "2026-11-21 10:00 UTC", "code": NOW.digest(["table"])}
STALE_ROW = {"commit": "0a0a", "at": "2026-11-20 10:00 UTC", "code": THEN.digest(["table"])}
LATER_ROW = {"commit": "0c0c", "at": "2026-11-20 11:00 UTC", "code": "0123456789abcdef"}


def test_a_proof_is_stale_if_a_covered_file_differs() -> None:
    assert staleness.age_of(proof("table")) is Age.STALE
    assert staleness.age_of(proof("native")) is Age.CURRENT
    assert staleness.age_of(proof("native", "table/b.py")) is Age.STALE


def test_the_age_needs_no_history() -> None:
    gone = {"commit": "gone"}
    assert staleness.age_of(proof("table", **gone)) is Age.STALE
    assert staleness.age_of(proof("native", **gone)) is Age.CURRENT


def test_a_proof_that_was_recorded_with_uncommitted_changes_is_stale() -> None:
    assert staleness.age_of(proof("native", commit="0a0a+", code="")) is Age.STALE


def test_a_proof_without_a_cover_has_that_of_the_registry_and_the_digest_of_its_commit() -> None:
    before = {"name": "fuzz-native", **OLD, "code": "of all code", "figures": {}}
    assert staleness.age_of(before) is Age.CURRENT
    assert staleness.age_of({**before, "name": "bench-narrow"}) is Age.STALE
    assert staleness.age_of({**before, "commit": "0a0a+"}) is Age.STALE
    assert staleness.age_of({**before, "commit": "gone"}) is Age.UNKNOWN


def test_a_proof_is_stale_if_one_of_its_rows_is() -> None:
    assert staleness.age_of(with_rows(CURRENT_ROW, CURRENT_ROW)) is Age.CURRENT
    assert staleness.age_of(with_rows(CURRENT_ROW, STALE_ROW)) is Age.STALE


def test_a_row_may_have_a_cover_of_its_own() -> None:
    row = {**OLD, "covers": ["native"], "code": THEN.digest(["native"])}
    assert staleness.age_of(with_rows(row)) is Age.CURRENT


def test_a_row_without_a_digest_has_that_of_its_commit() -> None:
    assert staleness.age_of(with_rows(OLD)) is Age.STALE
    assert staleness.age_of({**with_rows(OLD), "covers": ["native"]}) is Age.CURRENT


def test_rows_without_a_commit_are_of_the_run_that_wrote_the_evidence() -> None:
    assert len(staleness.origins(with_rows({"rival": "lockstep"}, {"rival": "plain"}))) == 1


def test_changed_files_are_those_of_the_cover() -> None:
    (origin,) = staleness.origins(proof("table", "native"))
    assert staleness.changed_files(origin) == {"table/b.py"}
    (origin,) = staleness.origins(proof("table", commit="gone"))
    assert staleness.changed_files(origin) is None


def test_a_stale_figure_is_marked_with_its_commit_and_a_current_one_is_not() -> None:
    assert commit_mark(proof("table")) == " (at `0a0a`; code changed since)"
    assert changed_mark(proof("table")) == " (code changed since)"
    assert commit_mark(proof("native")) == changed_mark(proof("native")) == commit_mark(None) == ""


def test_of_many_stale_rows_the_mark_names_the_oldest() -> None:
    kept = with_rows(CURRENT_ROW, LATER_ROW, STALE_ROW)
    assert commit_mark(kept) == changed_mark(kept) == " (at `0a0a` and later; code changed since)"
    assert commit_mark(with_rows(CURRENT_ROW, STALE_ROW)) == " (at `0a0a`; code changed since)"


def test_each_row_has_its_own_mark() -> None:
    kept = with_rows(CURRENT_ROW, STALE_ROW)
    assert row_mark(STALE_ROW, kept) == "; code changed since"
    assert row_mark(CURRENT_ROW, kept) == row_mark(STALE_ROW, None) == ""


def test_marks_do_not_count_where_documents_are_compared() -> None:
    for mark in (
        commit_mark(proof("table")),
        changed_mark(proof("table")),
        row_mark(STALE_ROW, with_rows(STALE_ROW)),
        commit_mark(with_rows(STALE_ROW, LATER_ROW)),
    ):
        assert mark and without_marks(f"| found (0a0a{mark}) |{mark}\n") == "| found (0a0a) |\n"
    assert without_marks("the code changed since then") == "the code changed since then"


def test_all_evidence_of_the_repository_has_a_cover_and_an_age() -> None:
    found = staleness.read_proofs()
    assert {"simulation", "scenarios", "bench-narrow"} <= found.keys()
    for name, kept in found.items():
        assert kept["name"] == name
        assert staleness.age_of(kept) in Age
