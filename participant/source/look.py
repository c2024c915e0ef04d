"""The look at the last record before an offset, which comes before anything is read from there. Pure.

It is taken where that record was; what the client then brings is compared with what is known of the log. A
log that ends before the record proves nothing by itself: a leader that was just elected may not say yet how
far its log goes, and one that lost its end may grow again. So the broker is asked for the offset itself, and
refuses it where the log does not reach so far; where it does not refuse it, the look is taken again. So it is
where the record's place is refused, which is mostly what retention has taken: of thousands of source
partitions nobody asks one by one where each log begins.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from participant.records.raw import RawBatch
from participant.source.witnesses import Known, fingerprint


@dataclass(frozen=True, slots=True)
class Cut:
    """The log is not the one that was read."""

    why: str


@dataclass(frozen=True, slots=True)
class TurnTo:
    """Read from this offset, of which nothing has come."""

    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Rest:
    """It is the log that was read; these are to be delivered, if any."""

    batch: RawBatch


class NotYet:
    """What comes next is looked at too."""


NOT_YET = NotYet()
Verdict: TypeAlias = Cut | TurnTo | Rest | NotYet


@dataclass(slots=True, kw_only=True)
class Look:
    """At one source partition, before it is read from `next` on."""

    known: Known
    next: int
    passed: bool = field(default=False, init=False)
    """Whether what comes is behind the record's place."""
    asks: bool = field(default=False, init=False)
    """Whether the broker was asked for `next` itself."""
    reached: bool = field(default=False, init=False)
    """Whether it had that: the log goes so far."""

    @property
    def start(self) -> int:
        """Where it begins."""
        return self.known.witness.offset

    def at(self, batch: RawBatch) -> Verdict:
        """At records, in offset order; at least one."""
        if self.asks:
            return self._again()
        witness = self.known.witness
        if not self.passed:
            self.passed = True
            if batch.offsets[0] == witness.offset:
                if fingerprint(batch, 0) != witness.fingerprint:
                    return Cut(f"at offset {witness.offset} is another record than was read")
                batch = batch.take(np.arange(1, len(batch)))
        if not len(batch):
            return NOT_YET
        first = int(batch.offsets[0])
        if first < min(self.next, self.known.nothing_until):
            return Cut(f"at offset {first} is a record, where there was none")
        between = int(np.searchsorted(batch.offsets, self.next))
        if between == len(batch):
            return TurnTo(self.next)  # much may lie between that others have read since
        return Rest(batch.take(np.arange(between, len(batch))) if between else batch)

    def at_end(self, end: int | None) -> TurnTo | None:
        """At the log's end as the client has met it, if it says that. None: it counts as any other end."""
        if self.asks:
            return self._again()
        if self.passed:
            return None
        self.passed = end is not None and end > self.start  # the record is gone, and nothing stands behind it
        self.asks = not self.passed
        return TurnTo(self.next)

    def refused(self) -> TurnTo | None:
        """The broker does not have the offset that was asked for. None: that was `next` itself."""
        if self.asks:
            return None
        self.passed = self.reached  # a log that goes on behind the record has lost its beginning
        self.asks = not self.passed
        return TurnTo(self.next)

    def _again(self) -> TurnTo:
        self.asks, self.reached = False, True
        return TurnTo(self.start)
