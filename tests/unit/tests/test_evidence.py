"""Evidence says which code it covers, and continues from figures of the same code only."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import evidence
from tests.covers import COVERS, DEFAULT, cover_of
from tests.git_tree import Tree, working_tree
from tests.seeded import BUGS
from tests.seeded.__main__ import cover_of_bug

CODE = {"native/a.rs": "100644 1", "tests/fuzz/b.py": "100644 2", "table/c.py": "100644 3"}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Files of the working tree; the committed ones are `CODE`."""
    files = dict(CODE)
    monkeypatch.setattr(evidence, "RECORDED", tmp_path)
    monkeypatch.setenv("RECORD", "1")
    monkeypatch.setattr(evidence, "working_tree", lambda _root: Tree(files))
    monkeypatch.setattr(evidence, "committed_tree", lambda _root: Tree(CODE))
    monkeypatch.setattr(evidence, "git", lambda *_arguments, root: "1f2e\n")
    return files


def write(name: str, **more: Any) -> dict[str, Any]:
    path = evidence.write(name, command="make it", passed=True, figures={"found": 1}, **more)
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def test_evidence_says_which_code_its_digest_is_of(tree: dict[str, str]) -> None:
    found = write("fuzz-native")
    assert found["covers"] == sorted(cover_of("fuzz-native").paths)
    assert found["code"] == Tree(CODE).digest(found["covers"])
    assert found["commit"] == "1f2e"
    assert write("fuzz-native", of=["table"])["covers"] == ["table"]


def test_changes_of_covered_code_leave_no_digest_and_others_do_not_matter(tree: dict[str, str]) -> None:
    tree["table/c.py"] = "100644 4"
    assert write("fuzz-native")["code"]
    tree["native/a.rs"] = "100644 4"
    found = write("fuzz-native")
    assert found["code"] == "" and found["commit"] == "1f2e+"


def test_a_run_continues_from_figures_of_the_same_code_only(
    tree: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write("fuzz-native")
    assert evidence.unfinished("fuzz-native") is None
    monkeypatch.setenv("RESUME", "1")
    assert evidence.unfinished("fuzz-native") == {"found": 1}
    tree["native/a.rs"] = "100644 4"
    assert evidence.unfinished("fuzz-native") is None


def test_a_row_without_an_origin_has_that_of_its_evidence(tree: dict[str, str]) -> None:
    own = {"name": "a", "commit": "0a0a", "at": "then"}
    evidence.write("some", command="", passed=True, figures={"each": [own, {"name": "b"}]})
    first, second = evidence.rows("some", "each")
    assert first == own
    assert second["commit"] == "1f2e" and second["code"] == Tree(CODE).digest(DEFAULT.paths)


def test_without_git_evidence_has_no_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "ROOT", tmp_path)
    monkeypatch.setattr(evidence, "RECORDED", tmp_path)
    monkeypatch.setenv("RECORD", "1")
    found = write("fuzz-native")
    assert (found["commit"], found["code"]) == ("unknown", "")


def test_the_cover_of_a_proof_is_that_of_its_longest_name() -> None:
    assert cover_of("bench-narrow-s3") is COVERS["bench"]
    assert cover_of("bench-decoding") is COVERS["bench-decoding"]
    assert cover_of("scenarios-azure") is COVERS["scenarios"]
    assert cover_of("unheard-of") is DEFAULT


def test_every_path_of_the_registry_is_there() -> None:
    tree = working_tree()
    for name, cover in COVERS.items():
        for path in cover.paths:
            assert tree.select([path]), f"{name}: {path}"


def test_a_proof_that_covers_loaded_modules_says_which_these_are() -> None:
    command = "import coordinator.core; from tests import evidence; print(*evidence.cover_paths('mutants'))"
    done = subprocess.run(
        [sys.executable, "-c", command], cwd=evidence.ROOT, capture_output=True, text=True, check=True
    )
    assert {"coordinator/core.py", "control_topic/messages.py"} <= set(done.stdout.split())
    assert "tests/evidence.py" not in done.stdout.split()


@pytest.mark.parametrize(
    ("name", "module"), [("scenarios", "tests.faults.__main__"), ("fuzz", "tests.fuzz.__main__")]
)
def test_a_cover_has_every_module_that_its_command_loads(name: str, module: str) -> None:
    command = (
        f"import importlib; importlib.import_module({module!r}); "
        "from tests import evidence; print(*evidence.loaded())"
    )
    done = subprocess.run(
        [sys.executable, "-c", command], cwd=evidence.ROOT, capture_output=True, text=True, check=True
    )
    tree = Tree(dict.fromkeys(done.stdout.split(), ""))
    assert set(tree.files) == set(tree.select(cover_of(name).paths))


def test_a_seeded_bug_covers_what_it_replaces_and_the_tests_that_find_it() -> None:
    for bug in BUGS.values():
        files = cover_of_bug(bug)
        assert {test.partition("::")[0] for test in bug.found_by} < set(files)
        assert all((evidence.ROOT / file).is_file() for file in files)
