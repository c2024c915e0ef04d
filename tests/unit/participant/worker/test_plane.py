"""What a worker's data plane says while it writes: how far its files are, for whoever waits for them."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from control_topic.messages import SourcePartition
from participant import events as ev
from participant.records.raw import RawBatch, Values
from participant.source.fetched import Fetched
from participant.source.witnesses import last_before
from participant.worker.memory import MemoryBudget
from participant.worker.plane import TELL_MS, Plane
from participant.worker.stages import stages
from table.port import TableLayout, Written

P0, P1 = SourcePartition("events", 0), SourcePartition("events", 1)
LAYOUT = TableLayout(
    kind="hudi",
    path="/nowhere",
    key_fields=("id",),
    partition_field="",
    kafka_columns=False,
    target_file_bytes=1 << 20,
    ddl="id STRING",
)
STEPS = 100
STEP_MS = 10


class Told:
    """A writer whose files are what is told of them."""

    upload_s = 0.0

    def close(self) -> tuple[Any, ...]:
        return ()


def test_of_each_source_partition_that_was_written_the_last_record_is_named_be_it_a_row_or_not(
    tmp_path: Path,
) -> None:
    """Of those that are held and not written none is."""
    (tmp_path / ".hoodie").mkdir()
    posted: list[Any] = []
    memory = MemoryBudget(64_000_000)
    plane = Plane(
        stages=stages(layout=replace(LAYOUT, path=str(tmp_path)), slot=0, incarnation="i", memory=memory),
        queued_bytes_max=memory.queued_bytes,
        dead_letters=None,
        post=posted.append,
        now_ms=lambda: 0,
    )
    batches = {
        p: RawBatch(
            partition=p,
            offsets=np.arange(3, dtype=np.int64),
            timestamps_ms=np.zeros(3, dtype=np.int64),
            values=Values.of([b'{"id":"a"}', b'{"id":"b"}', b"broken"]),
        )
        for p in (P0, P1)
    }
    plane._obey(ev.Open(transaction="t1", instant="20261126000000000"))
    for partition, raw in batches.items():
        plane._obey(ev.Rewind(partition=partition, offset=0, generation=1))
        plane._obey(Fetched(partition=partition, generation=1, start=0, next=3, raw=raw))
    plane._obey(ev.Write(transaction="t1", partition=P0, generation=1, upto=2))
    plane._obey(ev.Flush(call=1, transaction="t1"))
    flushed = posted[-1]
    assert isinstance(flushed, ev.Flushed)
    assert flushed.outcome is ev.Outcome.SUCCEEDED, flushed.reason
    assert flushed.witnesses == (last_before(batches[P0], 2),)


def test_how_far_the_files_are_is_said_while_they_are_written_and_not_at_each_step() -> None:
    posted: list[Any] = []
    memory = MemoryBudget(64_000_000)
    clock_ms = count(1_000, STEP_MS)
    plane = Plane(
        stages=stages(layout=LAYOUT, slot=0, incarnation="i", memory=memory),
        queued_bytes_max=memory.queued_bytes,
        dead_letters=None,
        post=posted.append,
        now_ms=lambda: next(clock_ms),
    )
    plane._transaction, plane._writer = "t1", Told()  # type: ignore[assignment]
    for step in range(1, STEPS + 1):
        plane._wrote(Written(files=step // 10, size_bytes=7 * step, steps=step))
    assert all(isinstance(one, ev.Wrote) and one.transaction == "t1" for one in posted)
    assert STEPS * STEP_MS // TELL_MS - 2 <= len(posted) <= STEPS * STEP_MS // TELL_MS + 2
    steps = [one.steps for one in posted]
    assert steps == sorted(set(steps)), "each word is of a step further"
    last = posted[-1]
    assert (last.files, last.size_bytes) == (last.steps // 10, 7 * last.steps)
    assert replace(last, now_ms=0) != replace(posted[0], now_ms=0)
