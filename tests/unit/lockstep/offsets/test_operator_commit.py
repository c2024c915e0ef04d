"""An operator's change of offsets takes the way of every commit: claimed, compared, and never guessed at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from control_topic.messages import Offsets, SourcePartition
from lockstep.errors import Failed
from lockstep.offsets.operator_commit import move_offsets
from table.errors import OutcomeUnknown
from table.memory.table import Interruption, MemoryTable
from table.memory.timeline import InstantPhase, MemoryTimeline
from table.port import Commit
from table.state import TableState

P0 = SourcePartition("events", 0)
PLANNED = TableState(
    pipeline="p",
    run="operator",
    epoch=5,
    transaction="planned",
    offsets={P0: 7},
    kind="operator",
    operator="ada",
    reason="poison at 4",
)


class Clock:
    """Moved by whoever sleeps, and by nothing else."""

    def __init__(self) -> None:
        self.ms = 1_000

    def __call__(self) -> int:
        return self.ms

    def sleep(self, seconds: float) -> None:
        self.ms += int(1_000 * seconds)


@pytest.fixture
def timeline() -> MemoryTimeline:
    """A table that a run has left at offset 4, with epoch 4."""
    timeline = MemoryTimeline()
    table = MemoryTable(timeline, "p")
    commit(table, timeline, {}, replace(PLANNED, run="run-1", epoch=4, transaction="t1", offsets={P0: 4}))
    return timeline


def commit(table: MemoryTable, timeline: MemoryTimeline, expected: Offsets, state: TableState) -> None:
    timeline.now_ms += 1_000
    instant = table.begin(run=state.run, transaction=state.transaction)
    table.commit(Commit(instant=instant, expected=expected, state=state, files=()), fence=lambda newest: "")


def moved(
    timeline: MemoryTimeline, at: Callable[[Interruption], None] = lambda step: None, expected: int = 4
) -> TableState:
    """What the table holds afterwards."""
    timeline.now_ms += 1_000
    table, clock = MemoryTable(timeline, "p", at=at), Clock()
    instant = move_offsets(table, PLANNED, {P0: expected}, clock_ms=clock, sleep=clock.sleep)
    newest = table.newest()
    assert newest is not None and newest.instant == instant
    return newest


def test_the_offsets_are_as_planned_and_the_commit_says_who_and_why(timeline: MemoryTimeline) -> None:
    newest = moved(timeline)
    assert (newest.offsets, newest.epoch, newest.kind) == ({P0: 7}, 5, "operator")
    assert (newest.operator, newest.reason) == ("ada", "poison at 4")


def test_what_a_run_left_open_is_rolled_back_first(timeline: MemoryTimeline) -> None:
    left = MemoryTable(timeline, "p").begin(run="run-1", transaction="t2")
    moved(timeline)
    assert timeline.instants[left].phase is InstantPhase.ROLLED_BACK


@pytest.mark.parametrize("epoch", [5, 6])
def test_a_table_that_somebody_has_claimed_since_is_left_alone(timeline: MemoryTimeline, epoch: int) -> None:
    state = replace(PLANNED, run="run-2", epoch=epoch, transaction="t2", offsets={P0: 5})
    commit(MemoryTable(timeline, "p"), timeline, {P0: 4}, state)
    before = len(timeline.completed)
    with pytest.raises(Failed, match=r"somebody has committed since the plan was made.*make the plan again"):
        moved(timeline)
    assert len(timeline.completed) == before


def test_offsets_that_are_not_those_of_the_plan_are_left_alone(timeline: MemoryTimeline) -> None:
    with pytest.raises(Failed, match="refused the change"):
        moved(timeline, expected=3)
    assert len(timeline.completed) == 1


@pytest.mark.parametrize("landed", [True, False])
def test_a_commit_without_an_answer_is_looked_up_and_done_once(
    timeline: MemoryTimeline, landed: bool
) -> None:
    broken = [Interruption.COMMIT_COMPLETED if landed else Interruption.COMMIT_CHECKED]

    def at(step: Interruption) -> None:
        if step in broken:
            broken.remove(step)
            raise OutcomeUnknown("the connection to the JVM broke")

    assert moved(timeline, at).offsets == {P0: 7}
    assert len(timeline.completed) == 2


def test_storage_that_never_answers_is_given_up_after_an_outages_time(timeline: MemoryTimeline) -> None:
    timeline.available = False
    clock = Clock()
    with pytest.raises(Failed, match="Nothing could be committed"):
        move_offsets(MemoryTable(timeline, "p"), PLANNED, {P0: 4}, clock_ms=clock, sleep=clock.sleep)
    assert 600_000 <= clock.ms <= 700_000
