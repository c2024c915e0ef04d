"""A table is counted seldom and up to a bound, and not at all where nothing has been committed since."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lockstep.config import Config, from_mapping
from lockstep.watch import counting
from lockstep.watch import observer as module
from lockstep.watch.counting import COUNT_MAX_S, FILES_MAX, FileCounts
from lockstep.watch.observer import COUNT_EVERY_S, COUNT_FIRST_S, LOOK_SHARE, Observer
from table.census import Census
from table.errors import Unavailable
from table.instants import MissingTable
from tests.harness import await_that
from tests.watched import table_census

NOWHERE = "127.0.0.1:1"


class Counter:
    """`table.census.TableCensus` of a table whose newest instant is `as_of`."""

    def __init__(self) -> None:
        self.as_of = "i1"
        self.problem: Exception | None = None
        self.asked: list[str | None] = []
        self.limits: list[int] = []
        self.listed = 0
        self.enough: Callable[[], bool] = lambda: False
        self.meanwhile: Callable[[], object] = lambda: None

    def take(self, *, unless: str | None, files_max: int, enough: Callable[[], bool]) -> Census | None:
        self.asked.append(unless)
        self.limits.append(files_max)
        self.enough = enough
        if self.problem is not None:
            raise self.problem
        if unless == self.as_of:
            return None
        self.listed += 1
        self.meanwhile()
        return table_census(as_of=self.as_of)


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> Counter:
    made = Counter()

    class Kind:
        def census(self, spec: Any) -> Counter:
            assert spec.path == "file:///data/lake/events"
            return made

    monkeypatch.setattr(counting, "table_kind", lambda _name: Kind())
    return made


@pytest.fixture
def config() -> Config:
    return from_mapping(
        {
            "pipeline": {"id": "events"},
            "source": {"bootstrap_servers": NOWHERE, "topics": ["events"]},
            "record": {"schema": "event_id STRING"},
            "table": {"path": "file:///data/lake/events", "name": "events"},
        }
    )


def test_what_was_counted_is_counted_again_only_where_something_was_committed(
    counter: Counter, config: Config
) -> None:
    counts = FileCounts(config, is_over=lambda: False)
    first = counts.look()
    assert first is not None and counts.look() is first and counter.listed == 1
    counter.as_of = "i2"
    second = counts.look()
    assert second is not None and second is not first and counter.listed == 2
    assert counter.asked == [None, "i1", "i1"] and set(counter.limits) == {FILES_MAX}


def test_a_table_that_is_missing_is_nothing_and_begins_anew_once_it_is_there(
    counter: Counter, config: Config
) -> None:
    counts = FileCounts(config, is_over=lambda: False)
    counts.look()
    counter.problem = MissingTable("there is none")
    assert counts.look() is None
    counter.problem = None
    assert counts.look() is not None and counter.asked[-1] is None


def test_a_count_that_failed_is_made_again(counter: Counter, config: Config) -> None:
    counts = FileCounts(config, is_over=lambda: False)
    counter.problem = Unavailable("away")
    with pytest.raises(Unavailable):
        counts.look()
    counter.problem = None
    assert counts.look() is not None


def test_a_count_ends_with_who_wants_it_and_after_some_time(
    counter: Counter, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()
    counts = FileCounts(config, is_over=over.is_set)
    counts.look()
    assert not counter.enough()
    real = counting.time.monotonic
    monkeypatch.setattr(counting.time, "monotonic", lambda: real() + COUNT_MAX_S)
    assert counter.enough()
    monkeypatch.undo()
    over.set()
    assert counter.enough()


def test_of_a_count_that_was_cut_short_by_the_end_nothing_is_said(counter: Counter, config: Config) -> None:
    over = threading.Event()
    counts = FileCounts(config, is_over=over.is_set)
    first = counts.look()
    counter.as_of, counter.meanwhile = "i2", over.set
    assert counts.look() is first


# --- the observer ---------------------------------------------------------------------------------------


@pytest.fixture
def observer(counter: Counter, config: Config, monkeypatch: pytest.MonkeyPatch) -> Iterator[Observer]:
    quick = {"ASK_S": 1.0, "TOPIC_ASK_S": 1.0, "COUNT_FIRST_S": 0.0, "COUNT_AGAIN_S": 0.05}
    for name, value in quick.items():
        monkeypatch.setattr(module, name, value)
    one = Observer(config, {"bootstrap.servers": NOWHERE}, ask_live=lambda: None)
    yield one
    one.stop()


def files(observer: Observer) -> Any:
    return observer.page().document["table"]["files"]


def test_a_table_is_counted_seldom() -> None:
    assert COUNT_FIRST_S >= 30 and COUNT_EVERY_S >= 300 and LOOK_SHARE >= 20


@pytest.mark.parametrize(("took_s", "rest_s"), [(0.0, COUNT_EVERY_S), (0.1, 2.0), (0.3, 6.0)])
def test_after_a_count_it_rests_for_twenty_times_as_long_and_five_minutes_at_least(
    counter: Counter, config: Config, monkeypatch: pytest.MonkeyPatch, took_s: float, rest_s: float
) -> None:
    if took_s:  # else a count would have to take a quarter of a minute
        monkeypatch.setattr(module, "COUNT_EVERY_S", 0.5)
    rests: list[float | None] = []

    class Stopping(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            if "files" in threading.current_thread().name:
                rests.append(timeout)
            return super().wait(timeout)

    monkeypatch.setattr(module, "COUNT_FIRST_S", 0.25)
    counter.meanwhile = lambda: threading.Event().wait(took_s)
    one = Observer(config, {"bootstrap.servers": NOWHERE}, ask_live=lambda: None)
    one._stopping = Stopping()
    one.start()
    try:
        await_that("rest", lambda: len(rests) > 1)
    finally:
        one.stop()
    assert rests[0] == 0.25 and (rests[1] or 0) >= rest_s


def test_the_page_and_the_metrics_have_the_count(observer: Observer) -> None:
    assert files(observer) is None and b"lockstep_table_files" not in observer.metrics(openmetrics=True)
    observer.start()
    assert await_that("count", lambda: files(observer))["files"] == 32
    assert b'lockstep_table_small_files{pipeline="events"} 31.0' in observer.metrics(openmetrics=True)


def test_a_count_holds_up_nothing_else(observer: Observer, counter: Counter) -> None:
    began, let_go = threading.Event(), threading.Event()
    counter.meanwhile = lambda: (began.set(), let_go.wait(60))
    observer.start()
    assert began.wait(60)
    number = observer.page().number
    assert observer.wait(number, 30).number > number and files(observer) is None
    let_go.set()
    await_that("count", lambda: files(observer))


def test_a_count_that_fails_is_a_problem_on_the_page_until_it_succeeds(
    observer: Observer, counter: Counter
) -> None:
    counter.problem = Unavailable("file:///data/lake/events cannot be read: it is away.")
    observer.start()
    sentence = str(counter.problem)
    await_that("problem", lambda: sentence in observer.page().document["problems"])
    counter.problem = None
    await_that("count", lambda: files(observer))
    await_that("its end", lambda: sentence not in observer.page().document["problems"])
    assert counter.listed == 1
