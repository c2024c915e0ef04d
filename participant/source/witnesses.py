"""Which record was the last one that was read before an offset, and whether the log still has it there.

A log that loses its end and grows again has other records at the offsets of those that were read. Whoever has
them in memory is told by the broker (the leader's epoch); whoever begins to read has nothing but an offset,
and would skip what is new before it. So a commit keeps of each source partition what tells the last record
from another, and reading begins with a look at it.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from threading import Lock

import numpy as np

from control_topic.messages import Offsets, SourcePartition, Witness, WriteStatus
from participant.records.raw import RawBatch

REMEMBERED = 3
"""Of one source partition: what an abort sends back begins behind an older one."""
FINGERPRINT_BYTES = 8


def fingerprint(batch: RawBatch, index: int) -> int:
    """64 bits of a record's time and value: BLAKE2b (RFC 7693). A null value is another than an empty one."""
    value = batch.values[index]
    hashed = blake2b(digest_size=FINGERPRINT_BYTES)
    hashed.update(struct.pack("<q?", int(batch.timestamps_ms[index]), value is None))
    hashed.update(value or b"")
    return int.from_bytes(hashed.digest(), "big")


def last_before(batch: RawBatch, offset: int) -> Witness | None:
    """Of the batch's records before an offset the last; None where there is none."""
    index = int(np.searchsorted(batch.offsets, offset)) - 1
    if index < 0:
        return None
    return Witness(
        partition=batch.partition, offset=int(batch.offsets[index]), fingerprint=fingerprint(batch, index)
    )


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a log before the place from which it is read."""

    witness: Witness
    nothing_until: int
    """No record stood between the witness and this offset: it was the last before it."""


class Remembered:
    """What this worker knows of: as the driver said, as START said, and what it read itself. Thread-safe.

    To know too little costs a look that is not taken, never a wrong one.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._told: dict[SourcePartition, Known] = {}
        self._recent: dict[SourcePartition, deque[Known]] = {}

    def table_has(self, witnesses: Iterable[Witness], committed: Offsets) -> None:
        """All of the table's, as the driver told them last: of its offsets."""
        told = {one.witness.partition: one for one in _each(witnesses, committed)}
        with self._lock:
            self._told = told

    def note(self, witnesses: Iterable[Witness], before: Offsets) -> None:
        """Some more, each the last before an offset that may be committed one day."""
        with self._lock:
            for one in _each(witnesses, before):
                self._add(one)

    def wrote(self, status: WriteStatus) -> None:
        """What this worker read itself. A range without a record leaves the last one where it was."""
        named = {witness.partition: witness for witness in status.witnesses}
        with self._lock:
            for r in status.ranges:
                last = named.get(r.partition)
                lost = [x.start for x in status.lost if x.partition == r.partition]
                if last is not None:
                    behind = [start for start in lost if start > last.offset]
                    self._add(Known(last, min([r.next, *behind])))
                elif not r.records and not lost:
                    known = self._before(r.partition, r.start)
                    if known is not None and known.nothing_until >= r.start:
                        self._add(Known(known.witness, r.next))

    def _add(self, one: Known) -> None:
        recent = self._recent.setdefault(one.witness.partition, deque(maxlen=REMEMBERED))
        while recent and recent[-1].witness.offset >= one.witness.offset:
            recent.pop()  # it was aborted, and is read again
        recent.append(one)

    def before(self, partition: SourcePartition, offset: int) -> Known | None:
        """The last one that is known of what stands before an offset that is committed.

        The table's where it was read up to there, or as far behind the same record: what was read here may
        never have been committed.
        """
        with self._lock:
            return self._before(partition, offset)

    def _before(self, partition: SourcePartition, offset: int) -> Known | None:
        told = self._told.get(partition)
        recent = [one for one in self._recent.get(partition, ()) if one.witness.offset < offset]
        if told is None or told.witness.offset >= offset:
            return recent[-1] if recent else None
        if recent and told.nothing_until < offset and _reach(told) < _reach(recent[-1]):
            return recent[-1]
        return told


def _reach(known: Known) -> tuple[int, int]:
    return known.witness.offset, known.nothing_until


def _each(witnesses: Iterable[Witness], before: Offsets) -> Iterable[Known]:
    for witness in witnesses:
        yield Known(witness, before.get(witness.partition, witness.offset))
