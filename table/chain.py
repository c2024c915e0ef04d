"""Which of a pipeline's commits is the newest: what they say decides, never when they were made. Pure.

Requested and completion times come from clocks, of several machines and in zones that fold, so that a commit
may seem older than the one it followed. What commits say cannot: under the table lock a commit is completed
only where it follows the newest one, so that each stands further on than all before it, or, where nothing
moved, at the same place.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from table.state import TableState

Place = tuple[int, int]

DATA, ADMISSION = "data", "admission"
"""Kinds of commits that begin where the commit before them ended."""

FOLD = timedelta(hours=2)
"""More than comes twice where summer time ends."""
_SECONDS = "%Y%m%d%H%M%S"


def place(state: TableState) -> Place:
    """Where a commit stands in its pipeline's chain: what follows it has no lesser one.

    Its epoch, and within it how far the offsets have come. An epoch ends where an operator moves them back; a
    source partition that is new adds one, so that its offset 0 counts.
    """
    return state.epoch, sum(offset + 1 for offset in state.offsets.values())


def follows(newest: TableState | None, state: TableState) -> bool:
    """Whether `state` can be the commit after `newest`, which is None before genesis."""
    return newest is None or place(state) >= place(newest)


def newest_of(states: Iterable[TableState]) -> TableState | None:
    """The newest of one pipeline's commits, whatever their order; None where there is none.

    Of several at one place, whose offsets are the same, the one that was requested last.
    """
    return max(states, key=lambda state: (place(state), state.instant), default=None)


def continues(state: TableState, later: TableState) -> bool:
    """Whether no commit is missing between these two, as far as the later one shows.

    An operator's commit may move offsets anywhere, and shows nothing.
    """
    if later.kind not in (DATA, ADMISSION):
        return True
    before, after = state.offsets, later.offsets
    read = {one.partition: one for one in later.ranges}
    return all(
        read[one].start == before.get(one, 0) if one in read else before[one] == after.get(one, before[one])
        for one in {*read, *before}
    )


def does_not_follow(newest: TableState, state: TableState) -> str:
    """Why `state` cannot be committed after `newest`."""
    return (
        f"transaction {state.transaction} of epoch {state.epoch} does not go on from where instant "
        f"{newest.instant} of epoch {newest.epoch} stands"
    )


def earliest_after(instant: str, *, in_local_time: bool) -> str:
    """No commit that follows the one of this instant was requested before this time; in Hudi's spelling.

    Requested times grow along the chain, except on a timeline in local time: an older Lockstep did not wait
    while an hour came for the second time. Empty, which is before all times, where the instant is no date.
    """
    if not in_local_time:
        return instant
    try:
        earliest = datetime.strptime(instant[:14], _SECONDS) - FOLD
    except (ValueError, OverflowError):
        return ""
    return f"{earliest.year:04}{earliest:%m%d%H%M%S}{instant[14:]}"
