"""Checkers that meet a value they do not know: it is not zero, and it is not the smallest value."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace

import pytest

from control_topic.messages import Range, SourcePartition
from table.memory.timeline import MemoryInstant
from table.state import TableState
from table.watermark import Mark, MarkRule, Watermark
from tests.simulation.checkers import Checker
from tests.simulation.checkers.base import Violation
from tests.simulation.checkers.s5_forward import OffsetsGoForward
from tests.simulation.checkers.w1_complete import WatermarksAreNotPassed
from tests.simulation.checkers.w3_marks import MarksAreOfTheRows
from tests.simulation.source_log import EVENT_SPREAD_MS, SourceLog, event_time_ms
from tests.simulation.worker import Worker

PARTITION = SourcePartition("events", 0)
RULE = MarkRule(of="at", lateness_ms=EVENT_SPREAD_MS, idle_after_ms=3_000)
INSTANT = MemoryInstant(time="1")


@dataclass
class CheckerWorld:
    """A log of ten records, and the clock that a checker reads."""

    log: SourceLog
    mark_rule: MarkRule = RULE
    scheduler: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(now_ms=0))


def world_of(checker: Checker) -> CheckerWorld:
    world = CheckerWorld(SourceLog(Random(1), {"events": 1}))
    world.log.records[PARTITION] = list(range(10))
    world.log.original[PARTITION] = list(range(10))
    world.log.ends[PARTITION] = 10
    checker.world = world  # type: ignore[assignment]
    return world


def state(following: int, mark: Mark, *, records: int = 1) -> TableState:
    return TableState(
        pipeline="p",
        run="run-1",
        epoch=1,
        transaction="t",
        offsets={PARTITION: following},
        ranges=(Range(partition=PARTITION, start=0, next=following, records=records),),
        watermark=Watermark(of="at", marks={PARTITION: mark}),
    )


def mark_at(offset: int) -> int:
    at_ms = event_time_ms(PARTITION, offset)
    assert at_ms is not None
    return at_ms - RULE.lateness_ms


def test_marks_of_the_first_records_are_negative() -> None:
    assert mark_at(0) < mark_at(1) < 0


@pytest.mark.parametrize("at_ms", [None, mark_at(0), mark_at(1)])
def test_where_compaction_may_have_taken_every_row_a_mark_is_unknown_or_of_one_of_them(
    at_ms: int | None,
) -> None:
    checker = MarksAreOfTheRows()
    world_of(checker).log.compacted[PARTITION] = {0, 1}
    checker.committed(INSTANT, state(2, Mark(at_ms)))


@pytest.mark.parametrize("at_ms", [mark_at(0) - 1, mark_at(1) + 1])
def test_where_compaction_may_have_taken_every_row_a_mark_of_no_row_is_a_violation(at_ms: int) -> None:
    checker = MarksAreOfTheRows()
    world_of(checker).log.compacted[PARTITION] = {0, 1}
    with pytest.raises(Violation, match="its rows None to"):
        checker.committed(INSTANT, state(2, Mark(at_ms)))


@pytest.mark.parametrize("at_ms", [None, mark_at(0), mark_at(1) + 1])
def test_rows_that_are_there_give_a_negative_mark_and_no_other(at_ms: int | None) -> None:
    checker = MarksAreOfTheRows()
    world_of(checker)
    checker.committed(INSTANT, state(2, Mark(mark_at(1))))
    with pytest.raises(Violation, match="its rows"):
        checker.committed(INSTANT, state(2, Mark(at_ms)))


@pytest.mark.parametrize(("quiet_ms", "may_be_idle"), [(2_999, False), (3_000, True)])
def test_a_source_partition_without_records_is_quiet_since_its_first_mark(
    quiet_ms: int, may_be_idle: bool
) -> None:
    checker = WatermarksAreNotPassed()
    world = world_of(checker)
    world.log.looked[PARTITION] = 0
    world.scheduler.now_ms = 50_000
    checker.committed(INSTANT, state(0, Mark(), records=0))
    world.scheduler.now_ms += quiet_ms
    idle = state(0, Mark(idle=True), records=0)
    if may_be_idle:
        checker.committed(INSTANT, idle)
    else:
        with pytest.raises(Violation, match="is said to be idle"):
            checker.committed(INSTANT, idle)


def test_an_offset_of_zero_that_a_commit_leaves_out_is_a_violation() -> None:
    checker = OffsetsGoForward()
    world_of(checker)
    checker.committed(INSTANT, state(0, Mark(), records=0))
    without = TableState(pipeline="p", run="run-1", epoch=1, transaction="t", offsets={})
    with pytest.raises(Violation, match="goes back from 0 to None"):
        checker.committed(INSTANT, without)


def test_a_table_without_offsets_is_proved_by_the_tables_offset_and_not_by_the_groups() -> None:
    """As `Worker._prove` in production does: the group's offset counts only while the table is unknown."""
    proved: list[int] = []
    for committed, offset in (({}, 0), (None, 7), ({PARTITION: 5}, 5)):
        group = SimpleNamespace(
            offsets={PARTITION: 7}, commit=lambda _worker, _partition, at: proved.append(at) or True
        )
        worker = SimpleNamespace(
            _committed=lambda known=committed: known,
            first=PARTITION,
            plane=SimpleNamespace(positions={PARTITION: None}),
            world=SimpleNamespace(
                group=group,
                chance=SimpleNamespace(upto=lambda most: most),
                scheduler=SimpleNamespace(at=lambda *_args: None),
            ),
        )
        Worker.prove(worker, lambda _ok: None)  # type: ignore[arg-type]
        assert proved.pop() == offset
