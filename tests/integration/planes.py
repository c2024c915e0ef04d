"""A worker's data plane that tests give orders to, and batches for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from control_topic.messages import SourcePartition
from participant.records.port import RecordSpec
from participant.records.raw import RawBatch, Values
from participant.source.dead_letters import DeadLetters
from participant.source.fetched import Fetched
from participant.worker.memory import MemoryBudget
from participant.worker.plane import Plane, PlaneCallbacks
from participant.worker.stages import stages
from table.port import TableLayout

MEMORY_BYTES = 64_000_000
PARTITION = SourcePartition("events", 0)
NOBODY = PlaneCallbacks(hold=lambda *_: None, release=lambda *_: None)
"""Of a plane whose source is a test."""


def plane_of(
    path: Path,
    posted: list[Any],
    *,
    dead_letters: DeadLetters | None = None,
    record: RecordSpec | None = None,
    callbacks: PlaneCallbacks = NOBODY,
) -> Plane:
    """It writes records with an `id` into the table at this path, and tells `posted` what it does."""
    layout = TableLayout(
        kind="hudi",
        path=str(path),
        key_fields=("id",),
        partition_fields=(),
        kafka_columns=False,
        target_file_bytes=1 << 20,
        ddl="id STRING",
    )
    memory = MemoryBudget(MEMORY_BYTES)
    return Plane(
        stages=stages(layout=layout, slot=0, incarnation="i", memory=memory, record=record),
        queued_bytes_max=memory.queued_bytes,
        dead_letters=dead_letters,
        post=posted.append,
        now_ms=lambda: 0,
        callbacks=callbacks,
    )


def consumed(
    start: int, values: Sequence[bytes], *, generation: int = 1, partition: SourcePartition = PARTITION
) -> Fetched:
    """These values, from this offset of the source partition on."""
    following = start + len(values)
    offsets = np.arange(start, following, dtype=np.int64)
    raw = RawBatch(
        partition=partition, offsets=offsets, timestamps_ms=offsets, values=Values.of(list(values))
    )
    return Fetched(partition=partition, generation=generation, start=start, next=following, raw=raw)
