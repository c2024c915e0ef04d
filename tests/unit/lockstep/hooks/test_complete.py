"""Stretches of event time are told of once they are complete, each by one commit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.hooks.commits import Mark
from lockstep.hooks.complete import MARKER, CompleteSink
from lockstep.hooks.history import History
from lockstep.hooks.hooks import Hooks
from lockstep.hooks.port import Ending, HowEnded
from lockstep.hooks.stretches import DAY_MS, STRETCHES_MAX, Stretch, completed
from table.store.location import store_at
from table.watermark import Watermark
from tests.harness import await_that
from tests.unit.lockstep.hooks.memory_table import PIPELINE, Committed

HOUR_MS = 3_600_000
DAY = 20_411
"""2025-11-19."""


@given(
    st.lists(st.integers(-5 * DAY_MS, 5 * DAY_MS) | st.integers(-3 * HOUR_MS, 3 * HOUR_MS), max_size=20),
    st.sampled_from([60_000, 15 * 60_000, HOUR_MS, DAY_MS]),
)
def test_each_stretch_is_completed_by_one_commit_in_order_and_none_before_its_end(
    times: list[int], every_ms: int
) -> None:
    told: list[Stretch] = []
    marks = sorted(times)
    for before_ms, at_ms in pairwise(marks):
        found = completed(before_ms, at_ms, every_ms)
        assert all(before_ms < one.through_ms <= at_ms for one in found)
        assert found == completed(before_ms, at_ms, every_ms) and len(found) <= STRETCHES_MAX
        told += found
    assert told == sorted(set(told))
    if len(marks) > 1 and (marks[-1] - marks[0]) // every_ms < STRETCHES_MAX:
        ends = range((marks[0] // every_ms + 1) * every_ms, marks[-1] + 1, every_ms)
        assert [one.through_ms for one in told] == list(ends)


def test_of_the_first_watermark_and_of_one_that_stays_nothing_is_complete() -> None:
    assert completed(None, 5 * DAY_MS, DAY_MS) == completed(0, None, DAY_MS) == []
    assert completed(DAY_MS, DAY_MS, DAY_MS) == completed(0, DAY_MS, 0) == []
    assert completed(DAY_MS - 1, DAY_MS, DAY_MS) == [Stretch(0, DAY_MS)]


def test_of_a_watermark_that_goes_on_by_centuries_the_newest_are_told() -> None:
    found = completed(0, 10_000 * DAY_MS, HOUR_MS)
    assert len(found) == STRETCHES_MAX and found[-1].through_ms == 10_000 * DAY_MS


@pytest.mark.parametrize(
    ("stretch", "name"),
    [
        (Stretch(DAY * DAY_MS, (DAY + 1) * DAY_MS), "2025-11-19"),
        (Stretch(DAY * DAY_MS, DAY * DAY_MS + HOUR_MS), "2025-11-19T0000Z"),
        (Stretch(DAY * DAY_MS + 90 * 60_000, DAY * DAY_MS + 2 * HOUR_MS), "2025-11-19T0130Z"),
        (Stretch(2**62 // 60_000 * 60_000, 2**62), f"{2**62 // 60_000 * 60_000}ms"),
    ],
)
def test_a_stretch_has_the_name_of_its_beginning(stretch: Stretch, name: str) -> None:
    assert stretch.name == name


class World:
    """A table whose hook writes markers into a folder."""

    def __init__(self, folder: Path) -> None:
        self.table, self.markers, self.alarms = Committed(), folder / "markers", dict[str, str]()
        (folder / "notes").mkdir()
        self._notes = store_at(str(folder / "notes"))
        self._runs: list[Hooks] = []

    def sink(self) -> CompleteSink:
        place = str(self.markers)
        return CompleteSink(place, lambda: store_at(place), pipeline=PIPELINE, stretch_ms=DAY_MS)

    def start(self) -> Hooks:
        hooks = Hooks(
            [self.sink()],
            pipeline=PIPELINE,
            store=self._notes,
            open_reader=self.table.reader,
            newest=self.table.seen(),
            seen=self.table.seen,
            alarm=lambda of, text, stands: self.alarms.update({of: text}),
        )
        hooks.start()
        self._runs.append(hooks)
        return hooks

    def commit(self, before_ms: int | None, at_ms: int) -> None:
        self.table.commit(watermark=Watermark(of="at", at_ms=at_ms, before_ms=before_ms))

    def names(self) -> list[str]:
        return sorted(one.parent.name for one in self.markers.glob(f"*/{MARKER}"))

    def close(self) -> None:
        for hooks in self._runs:
            hooks.finish(Ending(how=HowEnded.SUPERSEDED, reason=""))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def test_a_file_is_there_for_each_day_once_it_is_complete_and_says_by_which_commit(world: World) -> None:
    world.start()
    world.commit(None, DAY * DAY_MS + HOUR_MS)
    world.commit(DAY * DAY_MS + HOUR_MS, DAY * DAY_MS + 2 * HOUR_MS)
    world.commit(DAY * DAY_MS + 2 * HOUR_MS, (DAY + 2) * DAY_MS)
    await_that("both days", lambda: world.names() == ["2025-11-19", "2025-11-20"])
    said = json.loads((world.markers / "2025-11-19" / MARKER).read_bytes())
    state = world.table.seen()
    assert state is not None
    assert said == {
        "version": 1,
        "pipeline": PIPELINE,
        "from_ms": DAY * DAY_MS,
        "through_ms": (DAY + 1) * DAY_MS,
        "event_time": "at",
        "instant": state.instant,
        "transaction": state.transaction,
    }


def test_what_a_run_has_not_written_the_next_one_writes_and_it_is_the_same_twice(
    world: World,
) -> None:
    world.start().finish(Ending(how=HowEnded.WELL, reason=""))
    world.commit(DAY * DAY_MS, (DAY + 1) * DAY_MS)
    world.start()
    await_that("the day", lambda: world.names() == ["2025-11-19"])
    written = (world.markers / "2025-11-19" / MARKER).read_bytes()
    (commit,) = History(world.table.reader, PIPELINE).newest(Mark.of(None))
    world.sink().deliver(commit)
    assert (world.markers / "2025-11-19" / MARKER).read_bytes() == written and len(world.names()) == 1


def test_a_folder_that_cannot_be_written_is_an_alarm_until_it_can(world: World) -> None:
    world.markers.write_text("a file in its way")
    world.start()
    world.commit(DAY * DAY_MS, (DAY + 1) * DAY_MS)
    text = await_that("alarm", lambda: world.alarms.get("hook complete"))
    assert "2025-11-19/_SUCCESS cannot be written" in text
    world.markers.unlink()
    await_that("the day", lambda: world.names() == ["2025-11-19"])
    await_that("end of the alarm", lambda: world.alarms["hook complete"] == "")
