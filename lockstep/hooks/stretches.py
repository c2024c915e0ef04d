"""Stretches of event time that a commit has completed, such as days. Pure.

A commit's watermark and the one before it say which: so each commit tells the same of them, whenever and by
whomever it is asked, and a stretch is completed by one commit and by no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import overload

DAY_MS = 86_400_000
MINUTE_MS = 60_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, order=True)
class Stretch:
    """`[from_ms, through_ms)`, milliseconds since 1970."""

    from_ms: int
    through_ms: int

    @property
    def name(self) -> str:
        """When it begins, in UTC, fit for a file's name anywhere: `2026-11-19`, or `2026-11-19T0130Z`."""
        try:
            begins = EPOCH + timedelta(milliseconds=self.from_ms)
        except OverflowError:
            return f"{self.from_ms}ms"
        whole_days = self.from_ms % DAY_MS == 0 and self.through_ms % DAY_MS == 0
        day = f"{begins.year:04}-{begins.month:02}-{begins.day:02}"
        return day if whole_days else f"{day}T{begins.hour:02}{begins.minute:02}Z"


@dataclass(frozen=True, slots=True)
class Stretches(Sequence[Stretch]):
    """Consecutive stretches of equal length, computed on access: a watermark may pass millions at once."""

    ends: range
    """Ends of the stretches, milliseconds since 1970."""

    def __len__(self) -> int:
        return len(self.ends)

    @overload
    def __getitem__(self, at: int) -> Stretch: ...
    @overload
    def __getitem__(self, at: slice) -> Stretches: ...
    def __getitem__(self, at: int | slice) -> Stretch | Stretches:
        if isinstance(at, slice):
            return Stretches(self.ends[at])
        end = self.ends[at]
        return Stretch(end - self.ends.step, end)


NONE = Stretches(range(0))


def completed(before_ms: int | None, at_ms: int | None, every_ms: int) -> Stretches:
    """Return all stretches whose end the watermark has reached, coming from `before_ms`, in order.

    They are aligned in UTC, each `every_ms` long, whole minutes. Of a table's first watermark there are none:
    nobody knows where its first stretch began. `every_ms` 0: none.
    """
    if not every_ms or before_ms is None or at_ms is None or at_ms <= before_ms:
        return NONE
    first = (before_ms // every_ms + 1) * every_ms
    return Stretches(range(first, at_ms + 1, every_ms))
