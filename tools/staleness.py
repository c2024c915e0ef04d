"""Ages of recorded proofs, and the marks that generated documents put on stale figures.

A proof is stale if the digest of its cover (`tests/covers.py`) in the working tree differs from the recorded
one: the contents decide, and not the number of commits since. A change of a comment counts.

Marks change with the code, and not with the evidence. If the tests that compare generated documents counted
them, each change of code would have to commit the documents again, and two such changes would conflict. So
those tests compare documents without their marks (`without_marks`); `make docs` refreshes the marks, and
`make check` lists the stale proofs.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tests import evidence
from tests.covers import cover_of
from tests.git_tree import Tree, tree_at, working_tree

CHANGED = "code changed since"
_MARK = re.compile(rf" \(at `[^`]*`(?: and later)?; {CHANGED}\)| \({CHANGED}\)|; {CHANGED}")


class Age(StrEnum):
    """Age of a proof compared with its code. UNKNOWN: it has no digest, and git does not have its commit."""

    CURRENT = "current"
    STALE = "stale"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Origin:
    """Commit, cover and digest of a figure. `code`: None if the digest has to be computed at the commit.

    An empty digest says that the code had changes which were not committed.
    """

    commit: str
    at: str
    paths: tuple[str, ...]
    code: str | None


@functools.cache
def current_tree() -> Tree:
    """Return the working tree, as it is when this process asks first."""
    return working_tree()


def origins(kept: Mapping[str, Any]) -> list[Origin]:
    """Return the origins of evidence: one for each row that has its own, else that of the file."""
    each = [row for row in _rows(kept) if "commit" in row]
    return [origin_of(row, kept) for row in each] or [origin_of(kept, kept)]


def origin_of(row: Mapping[str, Any], kept: Mapping[str, Any]) -> Origin:
    """Return the origin of a row of evidence, or of the evidence itself.

    Evidence of an older version has no `covers`: its cover is that of the registry, its digest is computed.
    """
    covers = row.get("covers", kept.get("covers"))
    paths = cover_of(kept.get("name", "")).paths if covers is None else tuple(covers)
    code = None if covers is None else row.get("code")
    return Origin(row.get("commit", ""), row.get("at", ""), paths, code)


def age(origin: Origin) -> Age:
    """Return the age of a figure. One that was recorded with uncommitted changes is stale."""
    code = origin.code if origin.code is not None else _digest_then(origin)
    if code is None:
        return Age.UNKNOWN
    return Age.CURRENT if code and code == current_tree().digest(origin.paths) else Age.STALE


def _digest_then(origin: Origin) -> str | None:
    then = tree_at(origin.commit)
    if then is None:
        return None
    return "" if origin.commit.endswith("+") else then.digest(origin.paths)


def age_of(kept: Mapping[str, Any]) -> Age:
    """Return the age of evidence: STALE if any of its rows is, else UNKNOWN if that of any row is."""
    found = {age(origin) for origin in origins(kept)}
    return next(one for one in (Age.STALE, Age.UNKNOWN, Age.CURRENT) if one in found)


def changed_files(origin: Origin) -> set[str] | None:
    """Return the covered files that differ from those of the origin's commit; None if git lacks it."""
    then = tree_at(origin.commit)
    return None if then is None else current_tree().differences(then, origin.paths)


# --- marks ------------------------------------------------------------------------------------------


def commit_mark(kept: Mapping[str, Any] | None) -> str:
    """Return the mark behind a figure whose commit is not shown: that of the oldest stale row."""
    if kept is None:
        return ""
    stale = [origin for origin in origins(kept) if age(origin) is Age.STALE]
    if not stale:
        return ""
    oldest = min(stale, key=lambda one: one.at)
    later = " and later" if any(one.commit != oldest.commit for one in stale) else ""
    return f" (at `{oldest.commit}`{later}; {CHANGED})"


def changed_mark(kept: Mapping[str, Any]) -> str:
    """Return the mark behind the commit of evidence; if its rows have commits of their own, theirs."""
    if any("commit" in row for row in _rows(kept)):
        return commit_mark(kept)
    return f" ({CHANGED})" if age(origin_of(kept, kept)) is Age.STALE else ""


def row_mark(row: Mapping[str, Any], kept: Mapping[str, Any] | None) -> str:
    """Return the mark behind a row's commit, which stands in brackets."""
    return f"; {CHANGED}" if kept is not None and age(origin_of(row, kept)) is Age.STALE else ""


def without_marks(document: str) -> str:
    """Return a document without its marks, as tests compare it."""
    return _MARK.sub("", document)


def _rows(kept: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for value in kept.get("figures", {}).values():
        if isinstance(value, list):
            yield from (row for row in value if isinstance(row, dict))


def read_proofs() -> dict[str, dict[str, Any]]:
    """Return all recorded evidence, by name."""
    names = sorted(path.stem for path in evidence.RECORDED.glob("*.json"))
    return {name: kept for name in names if (kept := evidence.read(name)) is not None}
