"""Stretches of event time are told of once they are complete, each by one commit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.hooks.commits import STRETCHES_LISTED_MAX, Commit, Mark, TableTold, message
from lockstep.hooks.complete import MARKER, CompleteSink
from lockstep.hooks.history import History
from lockstep.hooks.hooks import Hooks
from lockstep.hooks.port import Ending, HowEnded, SinkError
from lockstep.hooks.stretches import DAY_MS, MINUTE_MS, Stretch, completed
from table.store.location import store_at
from table.store.port import Store
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
        assert found == completed(before_ms, at_ms, every_ms) and len(found) == len(list(found))
        told += found
    assert told == sorted(set(told))
    if len(marks) > 1:
        ends = range((marks[0] // every_ms + 1) * every_ms, marks[-1] + 1, every_ms)
        assert [one.through_ms for one in told] == list(ends)


def test_of_the_first_watermark_and_of_one_that_stays_nothing_is_complete() -> None:
    assert not completed(None, 5 * DAY_MS, DAY_MS) and not completed(0, None, DAY_MS)
    assert not completed(DAY_MS, DAY_MS, DAY_MS) and not completed(0, DAY_MS, 0)
    assert list(completed(DAY_MS - 1, DAY_MS, DAY_MS)) == [Stretch(0, DAY_MS)]


def test_a_watermark_that_advances_by_centuries_completes_all_stretches_and_holds_none_in_memory() -> None:
    found = completed(0, 1_000_000 * DAY_MS, MINUTE_MS)
    assert len(found) == 1_440_000_000
    assert found[0] == Stretch(0, MINUTE_MS) and found[-1].through_ms == 1_000_000 * DAY_MS
    assert [one.through_ms for one in found[-2:]] == [
        1_000_000 * DAY_MS - MINUTE_MS,
        1_000_000 * DAY_MS,
    ]


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


class Folder:
    """A store that fails at one marker, once."""

    def __init__(self, folder: Path, fails_at: int) -> None:
        self._store, self._fails_at = store_at(str(folder)), fails_at
        self.puts: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def put(self, path: str, content: bytes, *, durable: bool) -> None:
        self.puts.append(path)
        if len(self.puts) == self._fails_at:
            raise OSError("the store is away")
        self._store.put(path, content, durable=durable)


def many(count: int) -> Commit:
    committed = Committed()
    at_ms = DAY * DAY_MS
    committed.commit(watermark=Watermark(of="at", at_ms=at_ms + count * MINUTE_MS, before_ms=at_ms))
    (commit,) = History(committed.reader, PIPELINE).newest(Mark.of(None))
    return commit


def test_a_commit_that_completes_more_than_a_thousand_stretches_has_a_marker_for_each(
    tmp_path: Path,
) -> None:
    count = 1_495
    sink = CompleteSink(
        str(tmp_path), lambda: store_at(str(tmp_path)), pipeline=PIPELINE, stretch_ms=MINUTE_MS
    )
    sink.deliver(many(count))
    found = sorted(one.parent.name for one in tmp_path.glob(f"*/{MARKER}"))
    first_ms = DAY * DAY_MS
    assert found == [
        Stretch(end - MINUTE_MS, end).name
        for end in range(first_ms + MINUTE_MS, first_ms + count * MINUTE_MS + 1, MINUTE_MS)
    ]


def test_a_retry_continues_at_the_marker_that_failed(tmp_path: Path) -> None:
    store, commit = Folder(tmp_path, fails_at=40), many(60)
    opened = cast(Store, store)
    sink = CompleteSink(str(tmp_path), lambda: opened, pipeline=PIPELINE, stretch_ms=MINUTE_MS)
    with pytest.raises(SinkError, match="the store is away"):
        sink.deliver(commit)
    sink.deliver(commit)
    assert len(store.puts) == 61 and len(set(store.puts)) == 60
    sink.deliver(many(3))
    assert len(store.puts) == 64


def test_a_message_that_lists_only_some_stretches_says_so_and_names_all_of_them() -> None:
    told = TableTold(path="p", name="n", kind="hudi", mode="insert", stretch_ms=MINUTE_MS)
    first_ms = DAY * DAY_MS
    for count, listed in ((3, 3), (STRETCHES_LISTED_MAX, STRETCHES_LISTED_MAX), (1_495, 1_000)):
        said = json.loads(message(many(count), pipeline=PIPELINE, table=told))["watermark"]
        assert len(said["completed"]) == listed and said["completed_count"] == count
        assert said["completed_shortened"] is (listed < count)
        assert said["completed_from_ms"] == first_ms
        assert said["completed_through_ms"] == first_ms + count * MINUTE_MS
        assert said["completed"][-1]["through_ms"] == said["completed_through_ms"]
