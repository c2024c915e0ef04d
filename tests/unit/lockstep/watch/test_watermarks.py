"""Which watermark is shown: the newest commit's, whoever knows of it."""

from __future__ import annotations

from control_topic.messages import SourcePartition
from lockstep.watch.watermarks import newest_watermark
from table.service.progress import watermark_json
from table.state import TableState
from table.watermark import Mark, Watermark

P0, P1 = SourcePartition("events", 0), SourcePartition("events", 1)
MARKS = {P0: Mark(90), P1: Mark(70, 600, True)}
STATE = TableState(
    pipeline="p",
    run="r",
    epoch=1,
    transaction="t",
    offsets={P0: 1},
    watermark=Watermark(of="at", at_ms=90, marks=MARKS),
    instant="20260101120000000",
)
ITS = {"of": "at", "at_ms": 90, "held_by": "events:0", "source_partitions": 2, "idle": 1}


def test_the_tables_counts_where_the_driver_knows_of_an_older_commit_only() -> None:
    assert newest_watermark(STATE, None) == ITS
    newer = {"newest": {"instant": "20260101120000001"}, "watermark": {**ITS, "at_ms": 95}}
    assert newest_watermark(STATE, newer) == newest_watermark(None, newer) == {**ITS, "at_ms": 95}
    assert newest_watermark(STATE, {**newer, "newest": {"instant": "20260101115959999"}}) == ITS


def test_where_nobody_has_one_there_is_none() -> None:
    assert newest_watermark(None, None) is None
    assert newest_watermark(None, {"run": "r9"}) is None
    assert watermark_json(Watermark(of="at"))["held_by"] is None
