"""The table's timeline, in names as Hudi spells them since table version 8, and what is read of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache

from table.state import TableState, decode, encode

FOLDER = ".hoodie/timeline"
_NAME = re.compile(r"(\d{17})(?:_(\d{17}))?\.(commit|rollback|inflight)(?:\.(requested|inflight))?")
ZERO = "0" * 17


def spelled(at_ms: int) -> str:
    """A time as Hudi names an instant by it, UTC."""
    at = datetime.fromtimestamp(at_ms / 1_000, UTC)
    return f"{at:%Y%m%d%H%M%S}{at_ms % 1_000:03}"


def requested(instant: str) -> str:
    return f"{FOLDER}/{instant}.commit.requested"


def inflight(instant: str) -> str:
    return f"{FOLDER}/{instant}.inflight"


def completed(instant: str, at: str) -> str:
    return f"{FOLDER}/{instant}_{at}.commit"


def rollback(instant: str, phase: str) -> str:
    return f"{FOLDER}/{instant}.rollback.{phase}"


def rolled_back(instant: str, at: str) -> str:
    return f"{FOLDER}/{instant}_{at}.rollback"


@dataclass(slots=True)
class View:
    """One listing. By instant: the names of completed commits, of rollbacks that are complete, and of those
    that are not; `open`: commits that are not complete, and whether they are inflight.
    """

    complete: dict[str, str] = field(default_factory=dict)
    open: dict[str, bool] = field(default_factory=dict)
    rollbacks: dict[str, str] = field(default_factory=dict)
    pending_rollbacks: dict[str, str] = field(default_factory=dict)
    newest: str = ZERO

    def pending(self) -> set[str]:
        return {*self.open, *self.pending_rollbacks}


def view(names: Iterable[str]) -> View:
    """Of one folder's names. Not to be changed: whoever sees the same names is given the same."""
    return _view(tuple(names))


@lru_cache(maxsize=256)
def _view(names: tuple[str, ...]) -> View:
    found = View()
    for name in sorted(names, key=lambda one: one.endswith("requested"), reverse=True):
        match = _NAME.fullmatch(name)
        assert match is not None, name
        instant, at, kind, phase = match.groups()
        found.newest = max(found.newest, instant, at or "")
        if kind == "rollback":
            (found.rollbacks if at else found.pending_rollbacks)[instant] = name
        elif at:
            found.complete[instant] = name
        else:
            found.open[instant] = kind == "inflight" or found.open.get(instant, False)
        assert phase is None or not at
    for instant in found.complete:
        found.open.pop(instant, None)
    for instant in found.rollbacks:
        found.pending_rollbacks.pop(instant, None)
    return found


def commit_words(state: TableState, files: Iterable[str]) -> bytes:
    return json.dumps({"extra": encode(state), "files": [*files]}).encode()


@lru_cache(maxsize=4_096)
def commit_of(data: bytes, instant: str) -> tuple[TableState, tuple[str, ...]]:
    """What a completed commit says: its state, and the files that it names."""
    words: Mapping[str, object] = json.loads(data)
    extra, files = words["extra"], words["files"]
    assert isinstance(extra, dict) and isinstance(files, list)
    state = decode(extra, instant=instant)
    assert state is not None
    return state, tuple(files)


def plan_words(target: str, files: Iterable[str]) -> bytes:
    return json.dumps({"target": target, "files": [*files]}).encode()


def plan_of(data: bytes) -> tuple[str, list[str]]:
    words = json.loads(data)
    return words["target"], words["files"]
