"""When the table's services run, what is told of them, and what a failure leads to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import pytest

from table.errors import Unavailable
from table.hudi.driver.session import Session
from table.hudi.upkeep.due import RETRY_S, Done, Opener, Service, Upkeep
from tests.harness import await_that


class Sums:
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
