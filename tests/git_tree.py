"""Files of a git tree by path, and digests of those that a cover names.

A digest depends on the files' paths, modes and contents only. Without git, or without the commit, as in a
shallow clone, there is no tree: functions return None.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import subprocess
from bisect import bisect_left
from collections.abc import Iterable, Mapping
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

    def covered(self, cover: Iterable[str]) -> list[str]:
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
            lines = "".join(f"{self.files[path]} 0\t{path}\n" for path in self.covered(key))
            self._digests[key] = hashlib.sha256(lines.encode()).hexdigest()[:16] if lines else ""
        return self._digests[key]

    def changed(self, then: Tree, cover: Iterable[str]) -> set[str]:
        """Return the paths that a cover names in either tree, and whose files differ."""
        paths = tuple(cover)
        both = {*self.covered(paths), *then.covered(paths)}
        return {path for path in both if self.files.get(path) != then.files.get(path)}


def working_tree(root: Path = ROOT) -> Tree | None:
    """Return the files of the working tree, changed and new ones included, ignored ones not."""
    staged = git("ls-files", "-z", "--stage", root=root)
    if not staged:
        return None
    files = {}
    for line in filter(None, staged.split("\0")):
        mode_and_blob, _, path = line.partition("\t")
        files[path] = mode_and_blob.rpartition(" ")[0]
    touched = git("ls-files", "-z", "--modified", "--others", "--exclude-standard", root=root)
    for path in filter(None, touched.split("\0")):
        file = root / path
        if file.is_file():
            files[path] = f"{_mode(file)} {_blob(file)}"
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


def _mode(file: Path) -> str:
    return "100755" if os.access(file, os.X_OK) else "100644"


def _blob(file: Path) -> str:
    """Return the name that git gives to the contents of this file."""
    contents = file.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(contents) + contents, usedforsecurity=False).hexdigest()
