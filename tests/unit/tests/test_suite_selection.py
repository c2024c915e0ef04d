"""The files that a change consists of, as git names them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.suite import selection
from tests.suite.selection import changed_files


def git(root: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With an origin: one commit that is pushed, one that is not."""
    for name in [one for one in os.environ if one.startswith("GIT_")]:
        monkeypatch.delenv(name)
    origin, root = tmp_path / "origin", tmp_path / "root"
    git(tmp_path, "init", "-q", "-b", "main", str(origin))
    for name in ("kept", "moved", "deleted", "staged"):
        (origin / f"{name}.py").write_text(f"{name} = 1\n" * 9)
    git(origin, "add", ".")
    git(origin, "commit", "-qm", "1")
    git(tmp_path, "clone", "-q", str(origin), str(root))
    (root / "committed.py").write_text("")
    git(root, "add", ".")
    git(root, "commit", "-qm", "2")
    return root


def test_committed_staged_deleted_moved_and_new_files_are_changed(repository: Path) -> None:
    (repository / "folder").mkdir()
    git(repository, "mv", "moved.py", "folder/moved.py")
    (repository / "deleted.py").unlink()
    (repository / "staged.py").write_text("")
    git(repository, "add", "staged.py")
    (repository / 'é "new".py').write_text("")
    assert changed_files(repository) == {
        *("committed.py", "staged.py", "deleted.py", "moved.py", "folder/moved.py", 'é "new".py')
    }


def test_without_an_origin_files_that_differ_from_the_last_commit_are_changed(repository: Path) -> None:
    git(repository, "checkout", "-q", "--detach")
    git(repository, "remote", "remove", "origin")
    (repository / "kept.py").write_text("")
    assert changed_files(repository) == {"kept.py"}


def test_without_a_branch_point_it_is_unknown_what_changed(repository: Path, tmp_path: Path) -> None:
    git(repository, "checkout", "-q", "--orphan", "other")
    git(repository, "commit", "-qm", "3")
    assert changed_files(repository) is None
    (tmp_path / "none").mkdir()
    assert changed_files(tmp_path / "none") is None


def test_without_git_it_is_unknown_what_changed(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert changed_files(repository) is None


@pytest.mark.parametrize("text", [None, "", "{}", '{"figures": {"each": [1]}}'])
def test_a_record_of_the_seeded_bugs_that_cannot_be_read_is_a_usage_error(
    text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "seeded.json"
    if text is not None:
        path.write_text(text)
    monkeypatch.setattr(selection, "SEEDED", path)
    with pytest.raises(pytest.UsageError, match=r"seeded\.json"):
        selection.recorded_bugs.__wrapped__()
