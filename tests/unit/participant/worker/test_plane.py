"""What a worker's data plane says while it writes: how far its files are, for whoever waits for them."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from control_topic.messages import EventTimes, SourcePartition
from participant import events as ev
from participant.records.errors import BatchTooLarge, SchemasUnavailable
from participant.records.port import Decoded, RecordSpec
from participant.records.raw import RawBatch, Values
from participant.source.fetched import Fetched
from participant.source.witnesses import last_before
from participant.worker.buffers import Meters
from participant.worker.holds import LONGEST_S, MOST_S
from participant.worker.memory import MemoryBudget
from participant.worker.plane import Plane, PlaneCallbacks
from participant.worker.stages import stages
from participant.worker.writing import TELL_MS, Writing
from table.hudi.avro import to_avro
from table.hudi.definition import with_meta_columns
from table.port import UPSERT, TableLayout, Written
from table.schema import POSITION_COLUMN, table_schema
from table.watermark import KAFKA_TIMESTAMP

P0, P1 = SourcePartition("events", 0), SourcePartition("events", 1)
LAYOUT = TableLayout(
    kind="hudi",
    path="/nowhere",
    key_fields=("id",),
    partition_fields=(),
    kafka_columns=False,
    target_file_bytes=1 << 20,
    ddl="id STRING",
)
NOBODY = PlaneCallbacks(hold=lambda *_: None, release=lambda *_: None)
STEPS = 100
STEP_MS = 10


class Told:
    """A writer whose files are what is told of them."""

    upload_s = 0.0

    def finished(self, *, wait: bool = False) -> tuple[Any, ...]:
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
        callbacks=NOBODY,
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
    flush(plane, ev.Flush(call=1, transaction="t1"))
    flushed = posted[-1]
    assert isinstance(flushed, ev.Flushed)
    assert flushed.outcome is ev.Outcome.SUCCEEDED, flushed.reason
    assert flushed.witnesses == (last_before(batches[P0], 2),)


def test_event_times_are_told_of_what_was_written_and_those_behind_the_watermark_are_counted(
    tmp_path: Path,
) -> None:
    """Neither a record that is no row nor what is held says anything."""
    (tmp_path / ".hoodie").mkdir()
    posted: list[Any] = []
    memory = MemoryBudget(64_000_000)
    layout = replace(LAYOUT, path=str(tmp_path), ddl="id STRING, at BIGINT")
    plane = Plane(
        stages=stages(
            layout=layout, slot=0, incarnation="i", memory=memory, record=RecordSpec(event_time="at")
        ),
        queued_bytes_max=memory.queued_bytes,
        dead_letters=None,
        post=posted.append,
        now_ms=lambda: 0,
        callbacks=NOBODY,
    )

    def raw(partition: SourcePartition, start: int, *times: str) -> RawBatch:
        return RawBatch(
            partition=partition,
            offsets=np.arange(start, start + len(times), dtype=np.int64),
            timestamps_ms=np.full(len(times), 5_000, dtype=np.int64),
            values=Values.of([f'{{"id":"a","at":{at}}}'.encode() for at in times]),
        )

    plane._obey(ev.Open(transaction="t1", instant="20261126000000000", watermark_ms=300))
    for partition in (P0, P1):
        plane._obey(ev.Rewind(partition=partition, offset=0, generation=1))
    for batch in (raw(P0, 0, "100", "null"), raw(P0, 2, "900", "299", str(10**15)), raw(P0, 5, "999", '"x"')):
        start = int(batch.offsets[0])
        fetched = Fetched(partition=P0, generation=1, start=start, next=start + len(batch), raw=batch)
        plane._obey(fetched)
    plane._obey(Fetched(partition=P1, generation=1, start=0, next=1, raw=raw(P1, 0, "7")))
    plane._obey(ev.Write(transaction="t1", partition=P0, generation=1, upto=5))
    flush(plane, ev.Flush(call=1, transaction="t1"))
    flushed = posted[-1]
    assert isinstance(flushed, ev.Flushed) and flushed.outcome is ev.Outcome.SUCCEEDED
    assert flushed.event_times == (EventTimes(partition=P0, greatest_ms=900, late=2, absurd=1),)
    plane._obey(ev.Open(transaction="t2", instant="20261126000000001"))
    plane._obey(ev.Write(transaction="t2", partition=P0, generation=1, upto=6))
    flush(plane, ev.Flush(call=2, transaction="t2"))
    assert posted[-1].event_times == (EventTimes(partition=P0, greatest_ms=999),)


def flush(plane: Plane, order: ev.Flush) -> None:
    """To its answer."""
    plane._obey(order)
    plane._writing.go_on(wait=True)


def plane_of_change_events(path: Path, posted: list[Any], record: RecordSpec) -> Plane:
    (path / ".hoodie").mkdir()
    memory = MemoryBudget(64_000_000)
    layout = replace(
        LAYOUT,
        path=str(path),
        mode=UPSERT,
        ddl="id STRING NOT NULL",
        ordering_field=POSITION_COLUMN,
        source_position=True,
        body={
            "bucket_count": 1,
            "avro": with_meta_columns(
                to_avro(table_schema("id STRING NOT NULL", False, source_position=True), "t")
            ),
        },
    )
    plane = Plane(
        stages=stages(layout=layout, slot=0, incarnation="i", memory=memory, record=record),
        queued_bytes_max=memory.queued_bytes,
        dead_letters=None,
        post=posted.append,
        now_ms=lambda: 0,
        callbacks=NOBODY,
    )
    plane._obey(ev.Rewind(partition=P0, offset=0, generation=1))
    return plane


def change(op: str, place: int) -> bytes:
    """Of the row whose id is a, at this place of the source's log."""
    source = f'"source":{{"connector":"mysql","file":"binlog.000001","pos":{place},"row":0}}'
    sides = '"before":{"id":"a"},"after":null' if op == "d" else '"before":null,"after":{"id":"a"}'
    return f'{{{sides},"op":"{op}","ts_ms":1,{source}}}'.encode()


def test_the_column_by_which_change_events_are_ordered_is_ours_and_none_that_they_bring(
    tmp_path: Path,
) -> None:
    """Else each worker of such a table would end, over a column that may not be named so."""
    posted: list[Any] = []
    plane = plane_of_change_events(tmp_path, posted, RecordSpec(envelope="debezium"))
    raw = RawBatch(
        partition=P0,
        offsets=np.arange(1, dtype=np.int64),
        timestamps_ms=np.zeros(1, dtype=np.int64),
        values=Values.of([change("c", 4)]),
    )
    plane._obey(ev.Open(transaction="t1", instant="20261126000000000"))
    plane._obey(Fetched(partition=P0, generation=1, start=0, next=1, raw=raw))
    plane._obey(ev.Write(transaction="t1", partition=P0, generation=1, upto=1))
    flush(plane, ev.Flush(call=1, transaction="t1"))
    assert not any(isinstance(one, ev.Blocked) for one in posted), posted
    assert posted[-1].columns == "" and posted[-1].outcome is ev.Outcome.SUCCEEDED, posted


def test_a_tombstone_behind_the_event_of_its_delete_is_no_late_record_of_its_own(tmp_path: Path) -> None:
    """It is none that is counted, and a commit with more late ones than records is refused for good."""
    posted: list[Any] = []
    record = RecordSpec(envelope="debezium", event_time=KAFKA_TIMESTAMP)
    plane = plane_of_change_events(tmp_path, posted, record)
    raw = RawBatch(
        partition=P0,
        offsets=np.arange(4, dtype=np.int64),
        timestamps_ms=np.array([5_000, 5_001, 5_002, 5_003], dtype=np.int64),
        values=Values.of([change("c", 4), change("d", 5), None, None]),
        keys={2: b'{"id":"a"}', 3: b'{"id":"b"}'},
    )
    plane._obey(ev.Open(transaction="t1", instant="20261126000000000", watermark_ms=9_000))
    plane._obey(Fetched(partition=P0, generation=1, start=0, next=4, raw=raw))
    plane._obey(ev.Write(transaction="t1", partition=P0, generation=1, upto=4))
    flush(plane, ev.Flush(call=1, transaction="t1"))
    (buffered,) = [one for one in posted if isinstance(one, ev.Buffered)]
    assert buffered.records == 3
    assert posted[-1].event_times == (EventTimes(partition=P0, greatest_ms=5_003, late=3),)


def test_how_far_the_files_are_is_said_while_they_are_written_and_not_at_each_step() -> None:
    posted: list[Any] = []
    memory = MemoryBudget(64_000_000)
    clock_ms = count(1_000, STEP_MS)
    writing = Writing(
        stages=stages(layout=LAYOUT, slot=0, incarnation="i", memory=memory),
        dead_letters=None,
        exchange=None,
        post=posted.append,
        now_ms=lambda: next(clock_ms),
        meters=Meters(),
        wake=lambda: None,
    )
    writing._transaction, writing._writer = "t1", Told()  # type: ignore[assignment]
    for step in range(1, STEPS + 1):
        writing._wrote(Written(files=step // 10, size_bytes=7 * step, steps=step))
    assert all(isinstance(one, ev.Wrote) and one.transaction == "t1" for one in posted)
    assert STEPS * STEP_MS // TELL_MS - 2 <= len(posted) <= STEPS * STEP_MS // TELL_MS + 2
    steps = [one.steps for one in posted]
    assert steps == sorted(set(steps)), "each word is of a step further"
    last = posted[-1]
    assert (last.files, last.size_bytes) == (last.steps // 10, 7 * last.steps)
    assert replace(last, now_ms=0) != replace(posted[0], now_ms=0)


class Away:
    """Decodes ids as they are, but for those that it is not told how to read yet."""

    def __init__(self) -> None:
        self.unknown = {b"new"}
        self.tried = 0

    def decode(self, batch: RawBatch) -> Decoded:
        values = list(batch.values)
        if self.unknown.intersection(values):
            self.tried += 1
            raise SchemasUnavailable("the schema registry at http://r cannot be reached")
        return Decoded(table=pa.table({"id": [(value or b"").decode() for value in values]}))


class Held:
    """A plane with such a decoder, and what it asked of its source."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (path / ".hoodie").mkdir()
        self.now_s = 100.0
        monkeypatch.setattr("participant.worker.plane.time.monotonic", lambda: self.now_s)
        memory = MemoryBudget(64_000_000)
        made = stages(layout=replace(LAYOUT, path=str(path)), slot=0, incarnation="i", memory=memory)
        self.away, self.asked, self.posted = Away(), [], []  # type: ignore[var-annotated]
        self.plane = Plane(
            stages=replace(made, decoder=self.away),
            queued_bytes_max=memory.queued_bytes,
            dead_letters=None,
            post=self.posted.append,
            now_ms=lambda: 0,
            callbacks=PlaneCallbacks(
                hold=lambda *what: self.asked.append(("hold", *what)),
                release=lambda *what: self.asked.append(("release", *what)),
            ),
        )
        for partition in (P0, P1):
            self.plane._obey(ev.Rewind(partition=partition, offset=0, generation=1))

    def come(self, partition: SourcePartition, start: int, *values: bytes) -> None:
        offsets = np.arange(start, start + len(values), dtype=np.int64)
        raw = RawBatch(
            partition=partition, offsets=offsets, timestamps_ms=offsets, values=Values.of(list(values))
        )
        following = start + len(values)
        self.plane._obey(Fetched(partition=partition, generation=1, start=start, next=following, raw=raw))

    def buffered(self) -> list[tuple[SourcePartition, int, int]]:
        return [(one.partition, one.start, one.next) for one in self.posted if isinstance(one, ev.Buffered)]

    def later(self, seconds: float) -> None:
        self.now_s += seconds
        self.plane._try_held()


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Held:
    return Held(tmp_path, monkeypatch)


def test_records_whose_schema_cannot_be_asked_for_hold_up_their_own_source_partition_alone(
    held: Held,
) -> None:
    held.come(P0, 0, b"a")
    held.come(P0, 1, b"b", b"new")
    held.come(P0, 3, b"c")
    held.come(P1, 0, b"d")
    assert held.buffered() == [(P0, 0, 1), (P1, 0, 1)]
    (asked,) = held.asked
    assert asked[:3] == ("hold", P0, 1)
    assert asked[3] == (
        "events:0 waits at offset 1, and it alone: the schema registry at http://r cannot be reached"
    )
    assert held.plane.queued_bytes > 0
    for _ in range(3):
        held.later(MOST_S)
    assert held.away.tried == 4 and len(held.asked) == 1 and not held.plane.meters.records > 2
    held.away.unknown.clear()
    held.later(MOST_S)
    held.later(0)
    assert held.buffered() == [(P0, 0, 1), (P1, 0, 1), (P0, 1, 3), (P0, 3, 4)]
    assert held.asked[1:] == [("release", P0, 1)] and held.plane.queued_bytes == 0
    assert held.plane.meters.records == 5
    held.come(P0, 4, b"e")
    assert held.buffered()[-1] == (P0, 4, 5)


def test_what_is_rewound_or_dropped_meanwhile_waits_no_more(held: Held) -> None:
    for order in (ev.Rewind(partition=P0, offset=0, generation=1), ev.Drop(partition=P0)):
        held.come(P0, 0, b"new")
        held.plane._obey(order)
        held.away.unknown, before = set(), len(held.posted)
        held.later(MOST_S)
        assert len(held.posted) == before and held.plane.queued_bytes == 0
        held.away.unknown = {b"new"}


def test_an_outage_that_outlasts_all_patience_blocks_the_source_partition_with_the_reason(
    held: Held,
) -> None:
    held.come(P0, 0, b"new")
    held.come(P0, 1, b"c")
    began_s = held.now_s
    while not held.posted:
        held.later(MOST_S)
    assert held.now_s - began_s >= LONGEST_S
    (blocked,) = held.posted
    assert isinstance(blocked, ev.Blocked) and (blocked.partition, blocked.generation) == (P0, 1)
    assert blocked.reason == (
        "events:0 at offset 0: the schema registry at http://r cannot be reached, and has been asked for "
        "600 s. Everything before it is committed, and nothing is lost: start again once it answers"
    )
    held.away.unknown.clear()
    held.later(MOST_S)
    held.later(MOST_S)
    assert len(held.posted) == 1, "nothing behind it passes"
    assert held.plane.queued_bytes == 0


class Narrow:
    """Decodes two records at once."""

    def decode(self, batch: RawBatch) -> Decoded:
        if len(batch) > 2:
            raise BatchTooLarge
        return Decoded(table=pa.table({"id": [(value or b"").decode() for value in batch.values]}))


def turn(plane: Plane) -> None:
    """What the thread does with what is there now."""
    is_full = plane._buffered.total >= plane._buffered_bytes_max
    order = plane._queue.get(timeout_s=0.0, orders_only=is_full or bool(plane._parts))
    if order is not None:
        plane._obey(order)
    plane._go_on()


def test_a_batch_that_is_too_large_is_decoded_in_parts_in_its_order_and_before_what_came_later(
    held: Held,
) -> None:
    held.plane._stages = replace(held.plane._stages, decoder=Narrow())
    held.come(P0, 0, *[b"a"] * 5)
    assert held.buffered() == [], "no part is decoded before the next order"
    raw = RawBatch(
        partition=P0,
        offsets=np.array([5]),
        timestamps_ms=np.array([5]),
        values=Values.of([b"b"]),
    )
    assert held.plane.deliver(Fetched(partition=P0, generation=1, start=5, next=6, raw=raw))
    for _ in range(8):
        turn(held.plane)
    assert held.buffered() == [(P0, 0, 2), (P0, 2, 3), (P0, 3, 5), (P0, 5, 6)]
    assert held.plane.queued_bytes == 0


def test_parts_of_what_was_rewound_are_not_decoded(held: Held) -> None:
    held.plane._stages = replace(held.plane._stages, decoder=Narrow())
    held.come(P0, 0, *[b"a"] * 5)
    held.plane._obey(ev.Rewind(partition=P0, offset=0, generation=2))
    for _ in range(8):
        turn(held.plane)
    assert held.buffered() == [] and not held.plane._parts


def test_nothing_more_is_decoded_while_the_buffers_are_full_and_orders_are_obeyed(held: Held) -> None:
    """A batch that was fetched may become a hundred times its size."""
    held.come(P0, 0, b"a")
    (first,) = [one for one in held.posted if isinstance(one, ev.Buffered)]
    assert first.size_bytes == held.plane._buffered.total > 0
    held.plane._buffered_bytes_max = first.size_bytes
    raw = RawBatch(partition=P1, offsets=np.array([0]), timestamps_ms=np.array([0]), values=Values.of([b"b"]))
    assert held.plane.deliver(Fetched(partition=P1, generation=1, start=0, next=1, raw=raw))
    for _ in range(3):
        turn(held.plane)
    assert held.buffered() == [(P0, 0, 1)]
    held.plane.order(ev.Drop(partition=P0))
    turn(held.plane)
    turn(held.plane)
    assert held.buffered() == [(P0, 0, 1), (P1, 0, 1)]
    assert held.plane._buffered.total > 0


def test_a_run_that_was_held_and_is_too_large_is_read_in_parts(held: Held) -> None:
    held.come(P0, 0, b"a", b"new", b"b")
    held.plane._stages = replace(held.plane._stages, decoder=Narrow())
    held.come(P0, 3, b"c")
    for _ in range(6):
        held.later(MOST_S)
    assert held.buffered() == [(P0, 0, 1), (P0, 1, 3), (P0, 3, 4)]
    assert held.plane.queued_bytes == 0 and held.asked[-1] == ("release", P0, 1)
