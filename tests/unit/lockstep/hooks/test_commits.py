"""The message of one commit, and the order of commits."""

from __future__ import annotations

import json
from dataclasses import replace

from control_topic.messages import Range, SourcePartition
from lockstep.hooks.commits import MESSAGE_BYTES_MAX, Commit, Mark, TableTold, commit_of, message
from table.instants import CommittedFile, Instant
from table.state import TableState
from table.watermark import Watermark

P0, P1 = SourcePartition("events", 0), SourcePartition("events", 1)
TABLE = TableTold(path="file:///data/lake/events", name="events", kind="hudi", mode="insert")
STATE = TableState(
    pipeline="events",
    run="0011223344556677",
    epoch=4,
    transaction="aa" * 16,
    offsets={P0: 10, P1: 7},
    ranges=(Range(partition=P0, start=2, next=10, records=8),),
    reject_count=1,
    instant="20260101120000000",
)
FILES = (CommittedFile(path="a", rows=5, size_bytes=100), CommittedFile(path="b", rows=3, size_bytes=50))
INSTANT = Instant(requested=STATE.instant, completed="20260101120001000", action="commit", files=FILES)


def made() -> Commit:
    return commit_of(INSTANT, STATE, completed_ms=1_767_268_801_000)


def test_a_message_says_what_was_committed() -> None:
    assert json.loads(message(made(), pipeline="events", table=TABLE)) == {
        "version": 1,
        "type": "commit",
        "pipeline": "events",
        "instant": "20260101120000000",
        "transaction": "aa" * 16,
        "kind": "data",
        "run": "0011223344556677",
        "epoch": 4,
        "table": {"path": TABLE.path, "name": "events", "format": "hudi", "mode": "insert"},
        "completed_ms": 1_767_268_801_000,
        "records": 8,
        "rows": 8,
        "rejects": 1,
        "files": 2,
        "bytes": 150,
        "watermark": None,
        "ranges_count": 1,
        "ranges": [{"topic": "events", "partition": 0, "start": 2, "next": 10, "records": 8}],
    }


def test_a_message_says_how_far_the_table_is_complete_and_which_stretches_are_so_by_this_commit() -> None:
    hour_ms = 3_600_000
    marked = replace(STATE, watermark=Watermark(of="at", at_ms=5 * hour_ms, before_ms=3 * hour_ms + 1))
    told = message(
        commit_of(INSTANT, marked, completed_ms=1),
        pipeline="events",
        table=replace(TABLE, stretch_ms=hour_ms),
    )
    assert json.loads(told)["watermark"] == {
        "event_time": "at",
        "at_ms": 5 * hour_ms,
        "completed": [
            {"from_ms": 3 * hour_ms, "through_ms": 4 * hour_ms},
            {"from_ms": 4 * hour_ms, "through_ms": 5 * hour_ms},
        ],
        "completed_count": 2,
        "completed_shortened": False,
        "completed_from_ms": 3 * hour_ms,
        "completed_through_ms": 5 * hour_ms,
    }


def test_a_message_that_would_be_too_large_comes_without_ranges() -> None:
    ranges = tuple(
        Range(partition=SourcePartition("t" * 249, number), start=0, next=1, records=1)
        for number in range(10_000)
    )
    written = message(replace(made(), ranges=ranges), pipeline="events", table=TABLE)
    document = json.loads(written)
    assert len(written) <= MESSAGE_BYTES_MAX
    assert document["ranges"] is None and document["ranges_count"] == 10_000 and document["records"] == 10_000


def test_the_order_is_that_of_the_chain_and_not_of_clocks() -> None:
    later_epoch = replace(STATE, epoch=5, instant="20250101000000000")
    later_offsets = replace(STATE, offsets={P0: 11, P1: 7}, instant="20250101000000000")
    nothing_new = replace(STATE, instant="20260101120002000")
    assert (
        Mark.of(None) < Mark.of(STATE) < Mark.of(nothing_new) < Mark.of(later_offsets) < Mark.of(later_epoch)
    )
    assert Mark.from_json(json.loads(json.dumps(Mark.of(STATE).to_json()))) == Mark.of(STATE)
