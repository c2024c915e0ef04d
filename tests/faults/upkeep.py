"""Compactions, clusterings and cleans seen from outside, closely enough to hit one in the middle."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

from tests.harness import LOOK_S, await_that

PATIENCE_S = 120.0
METADATA_TIMELINE = Path(".hoodie", "metadata", ".hoodie", "timeline")
_OPEN = re.compile(r"(\d{17})\.([a-z]+)\.(requested|inflight)")
_COMPLETED = re.compile(r"(\d{17})_\d{17}\.([a-z]+)")


class Action(Enum):
    """What an instant is called while it is open, and when it is complete. The last: a transaction's."""

    COMPACTION = ("compaction", "commit")
    CLUSTERING = ("clustering", "replacecommit")
    CLEAN = ("clean", "clean")
    DELTACOMMIT = ("deltacommit", "deltacommit")


class Moment(Enum):
    """How far an instant is that is begun and not complete. `LISTED`: the metadata table has its files
    already, which Hudi writes before it completes the instant on the timeline."""

    BEGUN = "begun"
    WRITING = "writing"
    LISTED = "in the metadata table"


def pending(table: Path, action: Action) -> set[str]:
    """Instants that are planned or begun, and not complete."""
    return set(_open(table, action)) - completed(table, action)


def begun(table: Path, action: Action) -> set[str]:
    """Those of them that are being carried out, or were when their driver ended."""
    found = {instant for instant, phase in _open(table, action).items() if phase == "inflight"}
    return found - completed(table, action)


def completed(table: Path, action: Action) -> set[str]:
    """Instants that are complete and not archived. Of a table of upserts: inserts are commits, too."""
    matches = (_COMPLETED.fullmatch(name) for name in _names(table))
    return {match[1] for match in matches if match and match[2] == action.value[1]}


def base_files(table: Path, instant: str) -> list[Path]:
    """Base files of this instant, whole or not."""
    return [path for folder in _folders(table) for path in folder.glob(f"*_{instant}.parquet")]


def await_begun(table: Path, action: Action, moment: Moment = Moment.BEGUN) -> str:
    """The instant of one as soon as it is so far."""
    return await_that(
        f"{action.value[0]} that was {moment.value}",
        lambda: next((one for one in begun(table, action) if _is_at(table, one, moment)), None),
        deadline_s=PATIENCE_S,
        every_s=LOOK_S,
    )


def is_listed(table: Path, instant: str) -> bool:
    """Whether the metadata table has taken the instant's files in."""
    return any((table / METADATA_TIMELINE).glob(f"{instant}_*.deltacommit"))


def _is_at(table: Path, instant: str, moment: Moment) -> bool:
    if moment is Moment.WRITING:
        return bool(base_files(table, instant))
    return moment is Moment.BEGUN or is_listed(table, instant)


def _open(table: Path, action: Action) -> dict[str, str]:
    """Instant → the further of its phases; those of complete ones included, whose files stay."""
    found: dict[str, str] = {}
    for name in sorted(_names(table), reverse=True):  # "requested" before "inflight"
        match = _OPEN.fullmatch(name)
        if match and match[2] == action.value[0]:
            found[match[1]] = match[3]
    return found


def _names(table: Path) -> list[str]:
    try:
        return os.listdir(table / ".hoodie" / "timeline")
    except FileNotFoundError:
        return []  # not made yet


def _folders(table: Path) -> Iterator[Path]:
    with os.scandir(table) as entries:
        yield from (Path(one.path) for one in entries if one.is_dir() and one.name != ".hoodie")
