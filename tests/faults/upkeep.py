"""Compactions, clusterings and cleans seen from outside, closely enough to hit one in the middle."""

from __future__ import annotations

import re
from enum import Enum

import pyarrow.parquet as pq

from tests.harness import await_that
from tests.place import METADATA_TIMELINE, TIMELINE, Place, below

PATIENCE_S = 120.0
COPIED = b"original.created.by"
"""In the footers of files that were copied together."""
_OPEN = re.compile(r"(\d{17})\.([a-z]+)\.(requested|inflight)")
_COMPLETED = re.compile(r"(\d{17})_\d{17}\.([a-z]+)")


class Action(Enum):
    """What an instant is called while it is open, and when it is complete. The last: a transaction's."""

    COMPACTION = ("compaction", "commit")
    CLUSTERING = ("clustering", "replacecommit")
    RETENTION = ("replacecommit", "replacecommit")
    CLEAN = ("clean", "clean")
    DELTACOMMIT = ("deltacommit", "deltacommit")


class Moment(Enum):
    """How far an instant is that is begun and not complete. `LISTED`: the metadata table has its files
    already, which Hudi writes before it completes the instant on the timeline."""

    BEGUN = "begun"
    WRITING = "writing"
    LISTED = "in the metadata table"


def pending(place: Place, action: Action) -> set[str]:
    """Instants that are planned or begun, and not complete."""
    return set(_open(place, action)) - completed(place, action)


def begun(place: Place, action: Action) -> set[str]:
    """Those of them that are being carried out, or were when their driver ended."""
    found = {instant for instant, phase in _open(place, action).items() if phase == "inflight"}
    return found - completed(place, action)


def completed(place: Place, action: Action) -> set[str]:
    """Instants that are complete and not archived. Of a table of upserts: inserts are commits, too."""
    matches = (_COMPLETED.fullmatch(name) for name in place.names(TIMELINE))
    return {match[1] for match in matches if match and match[2] == action.value[1]}


def base_files(place: Place, instant: str) -> list[str]:
    """Base files of this instant, whole or not, where they are."""
    return [f"{folder}/{name}" for folder, name in below(place) if name.endswith(f"_{instant}.parquet")]


def are_copies(place: Place, instant: str) -> bool:
    """Whether all files of a clustering were put together by copying row groups."""
    found = base_files(place, instant)
    for path in found:
        with place.store.source(path) as file:
            if COPIED not in (pq.read_metadata(file).metadata or {}):
                return False
    return bool(found)


def await_begun(place: Place, action: Action, moment: Moment = Moment.BEGUN) -> str:
    """The instant of one as soon as it is so far."""
    return await_that(
        f"{action.value[0]} that was {moment.value}",
        lambda: next((one for one in begun(place, action) if _is_at(place, one, moment)), None),
        deadline_s=PATIENCE_S,
        every_s=place.look_s,
    )


def is_listed(place: Place, instant: str) -> bool:
    """Whether the metadata table has taken the instant's files in."""
    names = place.names(METADATA_TIMELINE)
    return any(name.startswith(f"{instant}_") and name.endswith(".deltacommit") for name in names)


def _is_at(place: Place, instant: str, moment: Moment) -> bool:
    if moment is Moment.WRITING:
        return bool(base_files(place, instant))
    return moment is Moment.BEGUN or is_listed(place, instant)


def _open(place: Place, action: Action) -> dict[str, str]:
    """Instant → the further of its phases; those of complete ones included, whose files stay."""
    found: dict[str, str] = {}
    for name in sorted(place.names(TIMELINE), reverse=True):  # "requested" before "inflight"
        match = _OPEN.fullmatch(name)
        if match and match[2] == action.value[0]:
            found[match[1]] = match[3]
    return found
