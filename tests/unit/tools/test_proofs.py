"""The list of stale proofs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.git_tree import Tree
from tools import proofs, staleness

THEN = Tree({"native/a.rs": "100644 1", "table/b.py": "100644 2", "table/c.py": "100644 3"})
NOW = Tree({"native/a.rs": "100644 1", "table/b.py": "100644 4", "table/d.py": "100644 3"})


def proof(name: str, *covers: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "command": f"make {name}",
        "commit": "0a0a",
        "at": "2026-11-20 10:00 UTC",
        "covers": list(covers),
        "code": THEN.digest(covers),
        "figures": {},
        **more,
    }


PLAYED = {"commit": "0a0a", "at": "2026-11-19 10:00 UTC", "code": THEN.digest(["table"])}
PLAYED_LATER = {"commit": "0c0c", "at": "2026-11-21 10:00 UTC", "code": NOW.digest(["table"])}
PROOFS = {
    "native": proof("native", "native"),
    "table": proof("table", "table"),
    "lost": proof("lost", "table", commit="gone"),
    "rows": proof("rows", "table", figures={"each": [PLAYED, PLAYED_LATER, PLAYED]}),
}


@pytest.fixture(autouse=True)
def trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staleness, "current_tree", lambda: NOW)
    monkeypatch.setattr(staleness, "tree_at", lambda commit: THEN if commit == "0a0a" else None)
    monkeypatch.setattr(proofs, "read_proofs", lambda: PROOFS)


def test_stale_proofs_are_listed_with_what_records_them_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert proofs.main([]) == 0
    title, *lines, empty, count = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [
        ["lost", "gone", "2026-11-20", "10:00", "unknown", "RECORD=1", "make", "lost"],
        ["rows", "0a0a", "2026-11-19", "10:00", "2", "of", "3", "3", "RECORD=1", "make", "rows"],
        ["table", "0a0a", "2026-11-20", "10:00", "3", "RECORD=1", "make", "table"],
    ]
    assert title.startswith("stale proof") and empty == ""
    assert count == "3 of 4 recorded proofs are older than their code."


def test_a_brief_list_only_names_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert proofs.main(["--brief"]) == 0
    said = capsys.readouterr().out.split()
    assert " ".join(said) == (
        "3 of 4 recorded proofs are older than their code: lost, rows, table. Details: python -m tools.proofs"
    )


def test_a_proof_that_must_be_current_fails_if_it_is_stale(capsys: pytest.CaptureFixture[str]) -> None:
    assert proofs.main(["--must", "native"]) == 0
    assert proofs.main(["--must", "native", "table"]) == 1
    said = capsys.readouterr()
    assert said.err == "table is stale: its code changed. Record it again: RECORD=1 make table\n"
    assert said.out == ""


def test_a_proof_that_must_be_current_fails_if_its_age_is_unknown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_cover = {key: value for key, value in PROOFS["lost"].items() if key != "covers"}
    monkeypatch.setattr(proofs, "read_proofs", lambda: {"lost": without_cover})
    assert proofs.main(["--must", "lost"]) == 1
    assert capsys.readouterr().err == "lost is of unknown age: git does not have its commit gone.\n"
    assert proofs.main([]) == 0
    assert capsys.readouterr().out == (
        "0 of 1 recorded proofs are older than their code.\n"
        "Of unknown age, as git does not have their commits: lost.\n"
    )


def test_a_proof_that_is_not_recorded_is_an_error_of_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        proofs.main(["--must", "nothing"])
    assert ended.value.code == 2
    assert "no proof is recorded as nothing; there are native, table, lost, rows" in capsys.readouterr().err


def test_a_brief_list_names_those_of_unknown_age(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old = {name: value for name, value in PROOFS["lost"].items() if name not in ("covers", "code")}
    monkeypatch.setattr(proofs, "read_proofs", lambda: {"native": PROOFS["native"], "lost": old})
    assert proofs.main(["--brief"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said == (
        "0 of 2 recorded proofs are older than their code. Of unknown age: lost. "
        "Details: python -m tools.proofs"
    )
