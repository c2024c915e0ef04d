"""Files of a git tree by path, and digests of those that a cover names.

A digest depends on the files' paths, modes and contents only. So the working tree has one without git, as
in an unpacked archive. A commit that git does not have, as in a shallow clone, has no tree.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import subprocess
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECORDING = ("tests/covers.py", "tests/evidence.py", "tests/git_tree.py")
"""Files that write evidence down, which is no part of what it proves: no cover has them."""


class Tree:
    """Files by path, each with its mode and its blob, as `100644 <blob>`."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = dict(sorted(files.items()))
        self._paths = list(self.files)
        self._digests: dict[tuple[str, ...], str] = {}

    def select(self, cover: Iterable[str]) -> list[str]:
        """Return the paths of the files that a cover names, sorted."""
        found: set[str] = set()
        for path in cover:
            if "*" in path:
                pattern = re.compile(re.escape(path).replace(r"\*", "[^/]*"))
                found.update(filter(pattern.fullmatch, self._paths))
            elif path in self.files:
                found.add(path)
            else:
                first, end = (bisect_left(self._paths, path + sign) for sign in ("/", "0"))
                found.update(self._paths[first:end])  # "0" follows "/"
        return sorted(found.difference(RECORDING))

    def digest(self, cover: Iterable[str]) -> str:
        """Return the digest of the files that a cover names; empty where it names none."""
        key = tuple(cover)
        if key not in self._digests:
            lines = "".join(f"{self.files[path]} 0\t{path}\n" for path in self.select(key))
            self._digests[key] = hashlib.sha256(lines.encode()).hexdigest()[:16] if lines else ""
        return self._digests[key]

    def differences(self, then: Tree, cover: Iterable[str]) -> set[str]:
        """Return the paths that a cover names in either tree, and whose files differ."""
        paths = tuple(cover)
        both = {*self.select(paths), *then.select(paths)}
        return {path for path in both if self.files.get(path) != then.files.get(path)}


def working_tree(root: Path = ROOT) -> Tree:
    """Return the files of the working tree, changed and new ones included, ignored ones not."""
    staged = git("ls-files", "-z", "--stage", root=root)
    if not staged:
        return Tree({path: _entry(root / path) for path in _unignored(root)})
    files = {}
    for line in filter(None, staged.split("\0")):
        mode_and_blob, _, path = line.partition("\t")
        files[path] = mode_and_blob.rpartition(" ")[0]
    touched = git("ls-files", "-z", "--modified", "--others", "--exclude-standard", root=root)
    for path in filter(None, touched.split("\0")):
        file = root / path
        if file.is_file():
            files[path] = _entry(file)
        else:
            files.pop(path, None)
    return Tree(files)


def committed_tree(root: Path = ROOT) -> Tree | None:
    """Return the files of the newest commit."""
    return tree_at(git("rev-parse", "HEAD", root=root).strip(), root)


@functools.cache
def tree_at(commit: str, root: Path = ROOT) -> Tree | None:
    """Return the files of a commit, which may have the `+` of evidence behind it."""
    listed = git("ls-tree", "-r", "-z", commit.rstrip("+"), root=root) if commit else ""
    if not listed:
        return None
    files = {}
    for line in filter(None, listed.split("\0")):
        about, _, path = line.partition("\t")
        mode, _, blob = about.split()
        files[path] = f"{mode} {blob}"
    return Tree(files)


def git(*arguments: str, root: Path = ROOT) -> str:
    """Return what git prints; empty where it fails or is not installed."""
    command = ["git", "--no-optional-locks", *arguments]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def _entry(file: Path) -> str:
    """Return mode and blob of a file, as git gives them."""
    contents = file.read_bytes()
    blob = hashlib.sha1(b"blob %d\0" % len(contents) + contents, usedforsecurity=False).hexdigest()
    return f"{'100755' if os.access(file, os.X_OK) else '100644'} {blob}"


def _unignored(root: Path) -> Iterator[str]:
    """Return the paths of all files, without those that .gitignore names."""
    ignoring = root / ".gitignore"
    lines = ignoring.read_text(encoding="utf-8").split() if ignoring.exists() else []
    patterns = [line.rstrip("/") for line in [*lines, ".git"]]

    def ignored(path: Path) -> bool:
        names = (path.name, path.relative_to(root).as_posix())
        return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)

    for folder, folders, names in os.walk(root):
        folders[:] = [one for one in folders if not ignored(Path(folder, one))]
        files = (Path(folder, name) for name in names)
        yield from (file.relative_to(root).as_posix() for file in files if not ignored(file))
