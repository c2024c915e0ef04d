"""When the table's services run, what is told of them, and what a failure leads to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import pytest

from control_topic.messages import DataFile
from table.errors import Unavailable
from table.hudi.driver.session import Session
from table.hudi.upkeep.due import RETRY_S, ByCommits, Done, Opener, Service, Upkeep
from tests.harness import await_that


class Sums(ByCommits):
    """A service's work that keeps no table: what was asked of it, in order."""

    name = "sums"
    properties: Mapping[str, str] = {"a": "1"}

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.fails: list[Exception] = []
        self.left = ""
        self.nothing_due = False
        self.go_on = threading.Event()
        self.go_on.set()

    def open(self, opener: Opener) -> Session:
        self.asked.append("open")
        return opener()

    def tidy(self, session: Session) -> str:
        self.asked.append("tidy")
        self._fail()
        return self.left

    def run(self, session: Session, doing: Callable[[str], None]) -> Done | None:
        self.asked.append("run")
        self._fail()
        doing("half of it")
        assert self.go_on.wait(30)
        return None if self.nothing_due else Done(f"{len(self.asked)}", "added up")

    def _fail(self) -> None:
        if self.fails:
            raise self.fails.pop()


class Early(Sums):
    """Work that may be due before so many commits: in how many seconds, and how long it rests after it."""

    def __init__(self) -> None:
        super().__init__()
        self.wait_s: float | None = None
        self.heard: list[Sequence[DataFile]] = []
        self.rests_s = 0.0

    def committed(self, files: Sequence[DataFile], now_s: float) -> None:
        self.heard.append(files)

    def due_in_s(self, now_s: float) -> float | None:
        return self.wait_s

    def run_early(self, session: Session, doing: Callable[[str], None], now_s: float) -> Done | None:
        self.asked.append("early")
        self.wait_s = None
        self._fail()
        return None if self.nothing_due else Done(f"{len(self.asked)}", "added up early")

    def rest_s(self, took_s: float) -> float:
        return self.rests_s


class Clock:
    now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def opener(**_: Any) -> Session:
    return cast(Session, object())


@pytest.fixture
def work() -> Sums:
    return Sums()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def inline(work: Sums, clock: Clock) -> Service:
    return Service(work, opener, mode="inline", every=2, clock_s=clock)


@pytest.fixture
def beside(work: Sums) -> Iterator[Service]:
    service = Service(work, opener, mode="async", every=2)
    service.start()
    yield service
    work.go_on.set()
    service.stop(30)


def test_what_was_left_behind_is_taken_away_before_the_first_commit(inline: Service, work: Sums) -> None:
    inline.run_where_due()
    inline.run_where_due()
    assert work.asked == ["open", "tidy"]


def test_it_is_due_after_so_many_commits_and_not_before(inline: Service, work: Sums) -> None:
    inline.run_where_due()
    for commits in (1, 2, 3, 4):
        inline.committed()
        inline.run_where_due()
        assert work.asked.count("run") == commits // 2


def test_commits_that_came_while_it_could_not_run_count_once(inline: Service, work: Sums) -> None:
    inline.run_where_due()
    for _ in range(7):
        inline.committed()
    inline.run_where_due()
    inline.run_where_due()
    assert work.asked.count("run") == 1 and inline.progress().commits == 0


def test_a_failure_is_told_and_tried_again_after_a_while_from_the_beginning(
    inline: Service, work: Sums, clock: Clock
) -> None:
    inline.run_where_due()
    inline.committed()
    inline.committed()
    work.fails = [RuntimeError("a bug"), Unavailable("the disk is full")]
    inline.run_where_due()
    inline.run_where_due()  # not at once
    assert (inline.progress().failures, inline.progress().problem) == (1, "the disk is full")
    clock.now_s += RETRY_S
    inline.run_where_due()  # what it left half done is taken away first, which fails by a bug
    assert inline.progress().failures == 2 and "RuntimeError('a bug')" in inline.progress().problem
    clock.now_s += RETRY_S
    inline.run_where_due()
    inline.run_where_due()
    assert work.asked == ["open", "tidy", "run", "tidy", "tidy", "run"]
    assert (inline.progress().failures, inline.progress().problem) == (0, "")


def test_what_others_have_in_hand_is_told_once_and_looked_at_again_before_each_run(
    inline: Service, work: Sums, caplog: pytest.LogCaptureFixture
) -> None:
    work.left = "sums 7 is somebody else's"
    inline.run_where_due()
    for left in (work.left, ""):
        assert (inline.progress().failures, inline.progress().problem) == (0, "sums 7 is somebody else's")
        work.left = left
        inline.committed()
        inline.committed()
        inline.run_where_due()
    inline.committed()
    inline.committed()
    inline.run_where_due()
    assert work.asked == ["open", "tidy", "tidy", "run", "tidy", "run", "run"]
    assert (inline.progress().problem, inline.progress().done) == ("", 3)
    assert [one.message for one in caplog.records if one.levelname == "WARNING"] == [
        "sums 7 is somebody else's"
    ]


def early(clock: Clock, every: int = 2) -> tuple[Service, Early]:
    """A service that has tidied up."""
    work = Early()
    service = Service(work, opener, mode="inline", every=every, clock_s=clock)
    service.run_where_due()
    return service, work


def test_what_is_due_by_what_commits_said_is_done_before_so_many_of_them(clock: Clock) -> None:
    service, work = early(clock)
    file = DataFile(path="a/f", body="f", table_partition="a", rows=1, size_bytes=1)
    service.committed([file])
    service.run_where_due()
    assert (work.heard, work.asked) == ([[file]], ["open", "tidy"])
    work.wait_s = 0
    service.run_where_due()
    assert work.asked[2:] == ["early"] and service.progress().done == 1
    assert service.progress().last_what == "added up early"


def test_it_is_done_for_the_whole_after_so_many_commits_however_often_it_was_done_early(clock: Clock) -> None:
    service, work = early(clock)
    for _ in range(2):
        service.committed()
        work.wait_s = 0
        service.run_where_due()
    assert work.asked[2:] == ["early", "run"]
    assert service.progress().commits == 0


def test_after_work_it_rests_as_long_as_the_work_says(clock: Clock) -> None:
    service, work = early(clock)
    work.rests_s, work.wait_s = 30.0, 0
    service.run_where_due()
    work.wait_s = 0
    clock.now_s += 29.9
    service.run_where_due()
    assert work.asked.count("early") == 1
    clock.now_s += 0.2
    service.run_where_due()
    assert work.asked.count("early") == 2


def test_what_fails_early_is_tried_again_after_a_while_once_it_was_taken_away(clock: Clock) -> None:
    service, work = early(clock)
    work.fails, work.wait_s = [Unavailable("the disk is full")], 0
    service.run_where_due()
    work.wait_s = 0
    service.run_where_due()
    assert service.progress().problem == "the disk is full" and work.asked.count("early") == 1
    clock.now_s += RETRY_S
    service.run_where_due()
    service.run_where_due()
    assert work.asked[2:] == ["early", "tidy", "early"] and service.progress().problem == ""


def test_beside_the_commits_it_wakes_up_by_itself_when_something_becomes_due() -> None:
    """Nothing is committed any more."""

    class Soon(Early):
        def due_in_s(self, now_s: float) -> float | None:
            return None if "early" in self.asked else max(0.0, self.at_s - now_s)

        at_s = time.monotonic() + 0.05

    work = Soon()
    service = Service(work, opener, mode="async", every=100)
    service.start()
    try:
        await_that("the work", lambda: service.progress().done == 1)
    finally:
        service.stop(30)
    assert work.asked == ["open", "tidy", "early"]


def test_progress_tells_what_is_done_now_and_what_was_done_last(inline: Service, work: Sums) -> None:
    before = inline.progress()
    assert (before.name, before.mode, before.every, before.done) == ("sums", "inline", 2, 0)
    assert before.last_age_ms is None and before.running_ms is None
    inline.run_where_due()
    inline.committed()
    inline.committed()
    inline.run_where_due()
    after = inline.progress()
    assert (after.done, after.last_what, after.last_age_ms) == (1, "added up", 0)


def test_where_nothing_was_due_nothing_counts_as_done(inline: Service, work: Sums) -> None:
    work.nothing_due = True
    inline.run_where_due()
    inline.committed()
    inline.committed()
    inline.run_where_due()
    assert work.asked.count("run") == 1
    assert (inline.progress().done, inline.progress().commits) == (0, 0)


def test_beside_the_commits_nobody_waits_for_it(beside: Service, work: Sums) -> None:
    work.go_on.clear()
    beside.committed()
    beside.committed()
    await_that("work that goes on", lambda: beside.progress().doing == "half of it")
    for _ in range(5):
        beside.committed()
    assert beside.progress().running_ms is not None and beside.progress().commits == 7
    work.go_on.set()
    await_that("the next", lambda: beside.progress().done == 2)
    assert beside.progress().commits == 0


def test_only_inline_services_run_where_the_commits_do(work: Sums, inline: Service) -> None:
    other = Sums()
    upkeep = Upkeep([inline, Service(other, opener, mode="async", every=1)])
    upkeep.committed()
    upkeep.run_inline()
    assert (work.asked, other.asked) == (["open", "tidy"], [])
    assert [one.name for one in upkeep.progress()] == ["sums", "sums"]
    assert upkeep.properties == {"a": "1"}


def test_after_the_end_nothing_begins(inline: Service, work: Sums) -> None:
    inline.stop(0)
    inline.run_where_due()
    assert work.asked == []
