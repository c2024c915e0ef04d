"""Trees of git, and digests of the files that a cover names."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.git_tree import Tree, committed_tree, git, tree_at, working_tree

TREE = Tree(
    {
        "table/hudi/table.py": "100644 1",
        "table/port.py": "100644 2",
        "tables.py": "100644 3",
        "table.py": "100644 4",
        "tests/evidence.py": "100644 5",
        "tests/harness.py": "100644 6",
        "tests/faults/play.py": "100644 7",
    }
)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git("init", "--quiet", root=tmp_path)
    (tmp_path / "table").mkdir()
    for name in ("kept.py", "table/changed.py", "table/deleted.py"):
        (tmp_path / name).write_text(f"{name}\n", encoding="utf-8")
    (tmp_path / ".gitignore").write_text("*.so\n", encoding="utf-8")
    commit(tmp_path)
    return tmp_path


def commit(root: Path) -> str:
    git("add", "--all", root=root)
    identity = ("-c", "user.name=test", "-c", "user.email=test@localhost")
    subprocess.run(["git", *identity, "commit", "--quiet", "-m", "a"], cwd=root, check=True)
    return git("rev-parse", "HEAD", root=root).strip()


def test_a_cover_names_files_folders_and_patterns_within_one_folder() -> None:
    assert TREE.select(["table"]) == ["table/hudi/table.py", "table/port.py"]
    assert TREE.select(["table/*.py", "table.py"]) == ["table.py", "table/port.py"]
    assert TREE.select(["nowhere", "no*where"]) == []


def test_no_cover_has_the_files_that_write_evidence() -> None:
    assert TREE.select(["tests"]) == ["tests/faults/play.py", "tests/harness.py"]


def test_a_digest_depends_on_covered_files_only() -> None:
    other = Tree({**TREE.files, "table.py": "100755 4"})
    assert TREE.digest(["table"]) == other.digest(["table"])
    assert TREE.digest(["table.py"]) != other.digest(["table.py"])
    assert TREE.digest(["nowhere"]) == ""


def test_changed_files_are_those_that_differ_came_or_went() -> None:
    then = Tree({"table/port.py": "100644 1", "table/gone.py": "100644 1", "table.py": "100644 4"})
    changed = TREE.differences(then, ["table", "table.py"])
    assert changed == {"table/port.py", "table/gone.py", "table/hudi/table.py"}


def test_the_working_tree_without_changes_is_the_committed_one(repository: Path) -> None:
    tree, committed = working_tree(repository), committed_tree(repository)
    assert committed is not None
    assert tree.files == committed.files


def test_the_working_tree_has_changes_new_files_and_no_ignored_or_deleted_ones(repository: Path) -> None:
    (repository / "table" / "changed.py").write_text("other\n", encoding="utf-8")
    (repository / "table" / "new.py").write_text("new\n", encoding="utf-8")
    (repository / "table" / "_built.so").write_text("built\n", encoding="utf-8")
    (repository / "table" / "deleted.py").unlink()
    tree, committed = working_tree(repository), committed_tree(repository)
    assert committed is not None
    assert tree.differences(committed, ["table"]) == {
        f"table/{one}.py" for one in ("changed", "new", "deleted")
    }
    assert tree.digest(["kept.py"]) == committed.digest(["kept.py"])
    after = tree_at(commit(repository), repository)
    assert after is not None and after.files == tree.files


def test_the_same_contents_have_the_same_digest_in_any_commit(repository: Path) -> None:
    before = tree_at(git("rev-parse", "HEAD", root=repository).strip(), repository)
    (repository / "kept.py").write_text("other\n", encoding="utf-8")
    after = tree_at(commit(repository), repository)
    assert before is not None and after is not None
    assert before.digest(["table"]) == after.digest(["table"])


def test_a_commit_that_git_does_not_have_has_no_tree(repository: Path) -> None:
    assert tree_at("0123456789abcdef", repository) is None
    assert tree_at("", repository) is None


def test_without_git_the_working_tree_is_the_same(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / "table" / "_built.so").write_text("built\n", encoding="utf-8")
    (repository / "table" / "new.py").write_text("new\n", encoding="utf-8")
    known = working_tree(repository)
    monkeypatch.setenv("PATH", "")
    assert committed_tree(repository) is None
    assert working_tree(repository).files == known.files
