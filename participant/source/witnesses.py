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
from hashlib import blake2b
from threading import Lock

import numpy as np

from control_topic.messages import SourcePartition, Witness, Witnesses
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


class Remembered:
    """What this worker knows of: as the driver said, as START said, and what it read itself. Thread-safe.

    To know too little costs a look that is not taken, never a wrong one.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._told: Witnesses = {}
        self._recent: dict[SourcePartition, deque[Witness]] = {}

    def table_has(self, witnesses: Iterable[Witness]) -> None:
        """All of the table's, as the driver told them last."""
        told = {witness.partition: witness for witness in witnesses}
        with self._lock:
            self._told = told

    def note(self, witnesses: Iterable[Witness]) -> None:
        """Some more, which may be committed one day."""
        with self._lock:
            for witness in witnesses:
                recent = self._recent.setdefault(witness.partition, deque(maxlen=REMEMBERED))
                while recent and recent[-1].offset >= witness.offset:
                    recent.pop()  # it was aborted, and is read again
                recent.append(witness)

    def before(self, partition: SourcePartition, offset: int) -> Witness | None:
        """The last one that is known of what stands before an offset that is committed.

        Where two are known of one offset, the table's: what was read here may never have been committed.
        """
        with self._lock:
            told = self._told.get(partition)
            known = [*(() if told is None else (told,)), *self._recent.get(partition, ())]
        return max((w for w in known if w.offset < offset), key=lambda w: w.offset, default=None)
