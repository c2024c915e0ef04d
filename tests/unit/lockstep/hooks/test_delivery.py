"""What one hook does next: in order, at least once, bounded, and never more than asked for."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

import lockstep.hooks.delivery
from control_topic.messages import Range, SourcePartition
from lockstep.hooks.commits import Commit, Mark
from lockstep.hooks.delivery import (
    BACKOFF_MAX_MS,
    HELD_BYTES_MAX,
    NOTE_EVERY_MS,
    READ_AGAIN_MS,
    Begin,
    Deliver,
    Delivery,
    Done,
    End,
    Note,
    Read,
    Rest,
    Step,
)

NOTHING = Mark(0, 0, "")
COMMITS_MAX = 500
"""Fewer than in production, and as good."""


def mark(number: int) -> Mark:
    return Mark(1, number, f"{number:017}") if number else NOTHING


def commit(number: int, *, ranges: int = 0) -> Commit:
    partitions = tuple(
        Range(partition=SourcePartition("events", one), start=0, next=1, records=1) for one in range(ranges)
    )
    return Commit(
        mark=mark(number),
        run="run",
        transaction=f"t{number}",
        kind="data",
        completed_ms=number,
        rows=1,
        size_bytes=1,
        files=1,
        rejects=0,
        ranges=partitions,
    )


class World:
    """A table whose commits are numbered from 1 on, a sink, a note; a clock that rests move on."""

    def __init__(self, *, newest_only: bool = False, every_ms: int = 0, ranges: int = 0) -> None:
        self.now_ms = 0
        self.commits = 0
        self.noted = NOTHING
        self.told: list[int] = []
        self.ended = self.begun = 0
        self.why = ""
        self.unreadable = ""
        self._options = (newest_only, every_ms)
        self._ranges = ranges
        self.restart()

    def restart(self) -> None:
        newest_only, every_ms = self._options
        self.delivery = Delivery(self.noted, newest_only=newest_only, every_ms=every_ms)

    def step(self) -> Step:
        self.delivery.saw(mark(self.commits))
        step = self.delivery.next(self.now_ms)
        match step:
            case Rest(for_ms):
                assert for_ms > 0
                self.now_ms += for_ms
            case Note(at):
                self.noted = at
                self.delivery.noted(self.now_ms, at)
            case Read(after, upto, count_max, bytes_max, newest_only):
                assert after < upto == mark(self.commits)
                self._read(after, count_max, bytes_max, newest_only)
            case Begin() | Deliver() | End():
                self._tell(step)
        return step

    def _read(self, after: Mark, count_max: int, bytes_max: int, newest_only: bool) -> None:
        if self.unreadable:
            self.delivery.not_read(self.now_ms, self.unreadable)
            return
        assert count_max > 0 and bytes_max > 0
        first = self.commits if newest_only else after.offsets + 1
        found = [commit(one, ranges=self._ranges) for one in range(first, self.commits + 1)]
        self.delivery.read(self.now_ms, found[:count_max])

    def _tell(self, step: Step) -> None:
        if isinstance(step, Deliver) and self.why != "before":  # it may be taken although nobody hears so
            self.told.append(step.commit.mark.offsets)
        if self.why:
            self.delivery.failed(self.now_ms, self.why)
        elif isinstance(step, Begin):
            self.begun += 1
            self.delivery.began()
        elif isinstance(step, Deliver):
            self.delivery.delivered(self.now_ms)
        else:
            self.ended += 1
            self.delivery.ended()

    def go_on(self, for_ms: int) -> None:
        until_ms = self.now_ms + for_ms
        for _ in range(100_000):
            if self.now_ms >= until_ms or isinstance(self.step(), Done):
                return
        raise AssertionError("it does not rest")

    def stop(self, within_ms: int = 10_000) -> None:
        self.delivery.stop(self.now_ms, self.now_ms + within_ms)
        for _ in range(100_000):
            if isinstance(self.step(), Done):
                return
        raise AssertionError("it does not come to an end")


def test_commits_are_delivered_in_their_order_and_then_noted() -> None:
    world = World()
    world.commits = 3
    world.go_on(2 * NOTE_EVERY_MS)
    assert world.told == [1, 2, 3] and world.noted == mark(3) and world.begun == 1


def test_what_is_there_is_not_told_by_a_hook_that_begins_behind_it() -> None:
    world = World()
    world.commits, world.noted = 5, mark(5)
    world.restart()
    world.go_on(5_000)
    assert world.told == []
    world.commits = 6
    world.go_on(5_000)
    assert world.told == [6]


def test_places_are_noted_at_most_once_a_second() -> None:
    world, notes = World(), 0
    for _ in range(1_000):
        world.commits += 1
        notes += isinstance(world.step(), Note)
        world.now_ms += 10
    assert 2 <= notes <= 1 + world.now_ms // NOTE_EVERY_MS


def test_a_sink_that_is_away_is_asked_less_and_less_often_and_gets_all_in_order_when_it_is_back() -> None:
    world = World()
    world.go_on(100)
    world.why, world.commits = "before", 1
    asked: list[int] = []
    for _ in range(20_000):
        if isinstance(world.step(), Deliver):
            asked.append(world.now_ms)
        world.commits = 1 + world.now_ms // 10_000
    waits = [later - earlier for earlier, later in pairwise(asked)]
    assert waits == sorted(waits) and waits[-1] == BACKOFF_MAX_MS and len(asked) > 20
    trouble = world.delivery.trouble
    assert trouble is not None and trouble.failures == len(asked) and trouble.since_ms == asked[0]
    assert world.delivery.waiting == world.commits
    world.why = ""
    world.go_on(BACKOFF_MAX_MS + 1_000)
    assert world.told == list(range(1, world.commits + 1))
    assert world.delivery.trouble is None and world.delivery.waiting == 0


def test_what_waits_in_memory_is_bounded_and_the_rest_is_read_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lockstep.hooks.delivery, "COMMITS_MAX", COMMITS_MAX)
    world = World()
    world.go_on(100)
    world.why, world.commits = "before", 3 * COMMITS_MAX + 5
    world.go_on(200_000)
    assert len(world.delivery._queue) == COMMITS_MAX
    assert world.delivery.waiting == COMMITS_MAX + 1  # that, or more
    world.why = ""
    world.go_on(BACKOFF_MAX_MS + 5_000)
    assert world.told == list(range(1, world.commits + 1))


def test_so_are_its_bytes() -> None:
    world = World(ranges=2_000)
    world.go_on(100)
    world.why = "before"
    for _ in range(60):
        world.commits += 1
        world.go_on(100)
    assert world.delivery._held_bytes < HELD_BYTES_MAX + commit(1, ranges=2_000).held_bytes
    assert len(world.delivery._queue) < 40
    world.why = ""
    world.go_on(BACKOFF_MAX_MS + 5_000)
    assert world.told == list(range(1, 61))


def test_a_restart_tells_again_what_was_not_noted_and_leaves_nothing_out() -> None:
    world = World()
    world.commits = 2
    while world.noted != mark(2):
        world.step()
    world.commits = 4
    while world.told[-1] != 4:
        world.step()
    world.restart()
    world.go_on(3_000)
    assert world.told == [1, 2, 3, 4, 3, 4] and world.noted == mark(4)


@pytest.mark.parametrize("seed", range(60))
def test_whatever_fails_and_is_restarted_each_commit_is_told_and_never_after_a_later_one(seed: int) -> None:
    """In each life they come without a gap; a life begins where the note says, which lies before a gap."""
    random = Random(seed)
    world, lives = World(), [[]]  # type: ignore[var-annotated]
    for _ in range(600):
        world.commits += random.random() < 0.2
        world.why = random.choice(("", "", "", "before", "after"))
        world.unreadable = "away" if random.random() < 0.1 else ""
        world.step()
        world.now_ms += random.randrange(0, 3_000)
        lives[-1] += world.told
        world.told.clear()
        if random.random() < 0.01:
            world.restart()
            lives.append([])
    world.why = world.unreadable = ""
    world.go_on(BACKOFF_MAX_MS + READ_AGAIN_MS + 2_000)
    lives[-1] += world.told
    reached = 0
    for life in lives:
        if not life:
            continue
        assert life[0] <= reached + 1
        assert all(later - earlier in (0, 1) for earlier, later in pairwise(life))
        reached = max(reached, life[-1])
    assert reached == world.commits and world.noted == mark(world.commits)


def test_the_newest_alone_is_told_where_that_is_wanted_and_not_more_often_than_asked_for() -> None:
    world = World(newest_only=True, every_ms=60_000)
    for _ in range(1_500):
        world.commits += 1
        world.go_on(200)
    periods = world.now_ms // 60_000
    assert periods <= len(world.told) <= periods + 1 and world.told == sorted(world.told)
    world.go_on(61_000)
    assert world.told[-1] == world.commits
    assert world.noted == mark(world.commits)


def test_a_newest_one_that_was_not_taken_is_passed_over_for_a_newer_one() -> None:
    world = World(newest_only=True)
    world.go_on(10)
    world.commits, world.why = 1, "before"
    world.go_on(300)
    world.commits, world.why = 2, ""
    world.go_on(5_000)
    assert world.told == [2] and world.delivery.waiting == 0


def test_at_the_end_all_that_is_open_is_told_and_noted_and_the_end_is_said_once() -> None:
    world = World()
    world.commits = 50
    world.stop()
    assert world.told == list(range(1, 51)) and world.noted == mark(50) and world.ended == 1


def test_at_the_end_a_period_is_not_waited_for() -> None:
    world = World(newest_only=True, every_ms=3_600_000)
    world.commits = 1
    world.go_on(1_000)
    world.commits = 2
    world.stop()
    assert world.told == [1, 2] and world.now_ms < 2_000


def test_the_end_waits_no_longer_than_it_may_and_notes_what_was_told() -> None:
    world = World()
    world.commits = 3
    world.go_on(100)
    world.commits, world.why = 6, "before"
    began_ms = world.now_ms
    world.stop(within_ms=10_000)
    assert world.now_ms - began_ms <= 10_000 and world.told == [1, 2, 3] and world.noted == mark(3)
    assert world.ended == 0 and world.delivery.waiting == 3


def test_whoever_was_away_before_the_end_is_asked_once_more() -> None:
    world = World()
    world.go_on(100)
    world.commits, world.why = 1, "before"
    world.go_on(60_000)
    tries, began_ms = world.delivery.trouble, world.now_ms
    world.stop()
    after = world.delivery.trouble
    assert tries is not None and after is not None and after.failures == tries.failures + 1
    assert world.now_ms == began_ms


def test_a_timeline_that_cannot_be_read_is_said_once_commits_wait_for_it() -> None:
    world = World()
    world.unreadable = "the store is away"
    world.go_on(1_000)
    assert world.delivery.trouble is None
    world.commits = 1
    world.go_on(1_000)
    trouble = world.delivery.trouble
    assert trouble is not None and trouble.why == "the store is away"
    world.unreadable = ""
    world.go_on(READ_AGAIN_MS + 1_000)
    assert world.told == [1] and world.delivery.trouble is None


def test_a_note_that_cannot_be_written_holds_nothing_up() -> None:
    world = World()
    world.commits = 1
    while not isinstance(step := world.delivery.next(world.now_ms), Note):
        world.step()
    world.delivery.not_noted(world.now_ms)
    assert step == Note(mark(1))
    world.commits = 2
    world.go_on(1_000)
    assert world.told == [1, 2] and world.noted == NOTHING
    world.go_on(READ_AGAIN_MS)
    assert world.noted == mark(2)
    world.commits = 3
    world.go_on(1_000)
    world.delivery.stop(world.now_ms, world.now_ms + 10_000)
    for _ in range(10):  # nor the end
        step = world.delivery.next(world.now_ms)
        if isinstance(step, Note):
            world.delivery.not_noted(world.now_ms)
        elif isinstance(step, End):
            world.delivery.ended()
    assert isinstance(step, Done)


def test_what_is_said_of_a_failure_has_a_length() -> None:
    world = World()
    world.commits, world.why = 1, "x" * 10_000
    world.go_on(100)
    trouble = world.delivery.trouble
    assert trouble is not None and len(trouble.why) == 300
