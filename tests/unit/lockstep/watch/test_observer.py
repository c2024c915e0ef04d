"""The observer where nobody answers: it says so, ends quickly, and a page is there all the same."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from control_topic.messages import Reject, SourcePartition
from lockstep.config import Config, from_mapping
from lockstep.ui.errors import Hidden
from lockstep.watch import observer as module
from lockstep.watch.history import RunHeard
from lockstep.watch.observer import Observer
from lockstep.watch.topic_fold import Fold
from tests.harness import await_that

NOWHERE = "127.0.0.1:1"


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return from_mapping(
        {
            "pipeline": {"id": "events"},
            "source": {"bootstrap_servers": NOWHERE, "topics": ["events"]},
            "record": {"schema": "event_id STRING"},
            "table": {"path": f"file://{tmp_path}/table", "name": "events"},
        }
    )


class Driver:
    """What it answers is `answer`; an exception is raised."""

    def __init__(self) -> None:
        self.answer: dict[str, Any] | Exception | None = None

    def ask(self) -> dict[str, Any] | None:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def driver() -> Driver:
    return Driver()


@pytest.fixture
def observer(config: Config, driver: Driver, monkeypatch: pytest.MonkeyPatch) -> Iterator[Observer]:
    for name, value in (("ASK_S", 1.0), ("TOPIC_ASK_S", 1.0), ("ASK_DRIVER_EVERY_S", 0.05)):
        monkeypatch.setattr(module, name, value)
    one = Observer(config, {"bootstrap.servers": NOWHERE}, ask_live=driver.ask)
    yield one
    one.stop()


def test_a_page_is_there_before_anything_was_looked_at_and_says_so(observer: Observer) -> None:
    page = observer.page()
    assert (page.number, page.document["state"]) == (1, "unknown")
    assert observer.story("x") is None and observer.source_partitions() == []
    assert b'lockstep_state{pipeline="events",state="unknown"} 1.0' in observer.metrics(openmetrics=True)


def test_whoever_does_not_answer_is_named_once_in_the_log_and_the_rest_is_looked_at(
    observer: Observer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="lockstep.observer")
    observer.start()
    document = await_that(
        "page with what does not answer",
        lambda: (
            (made := observer.page().document)["sources"]["table_ms"]
            and sum("roker" in problem for problem in made["problems"]) >= 2
            and made
        ),
        deadline_s=60,
    )
    assert document["state"] == "unknown" and document["sources"]["broker_ms"] is None

    def logged() -> list[str]:
        return [record.message for record in caplog.records if record.name == "lockstep.observer"]

    await_that("both in the log, which follows the page", lambda: len(logged()) >= 2)
    observer.stop()
    assert len(logged()) == len(set(logged()))


def test_a_driver_whose_answer_is_a_bug_is_asked_again(observer: Observer, driver: Driver) -> None:
    driver.answer = RuntimeError("nonsense")
    observer.start()
    problem = "The driver could not be looked at: RuntimeError('nonsense')."
    await_that("problem", lambda: problem in observer.page().document["problems"])


def test_who_waits_for_a_page_is_told_of_a_newer_one_and_of_the_end(observer: Observer) -> None:
    first = observer.page()
    assert observer.wait(first.number - 1, 60) is first
    assert observer.wait(first.number, 0) is first
    waited: list[int] = []
    waiting = threading.Thread(target=lambda: waited.append(observer.wait(10**9, 3_600).number))
    waiting.start()
    observer.stop()
    waiting.join(30)
    assert not waiting.is_alive() and waited


def test_an_observer_that_was_never_started_can_be_stopped(observer: Observer) -> None:
    observer.stop()


def test_the_end_does_not_wait_for_who_holds_the_lock(
    observer: Observer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "JOIN_S", 0.1)
    stopping = threading.Thread(target=observer.stop, daemon=True)
    with observer._guard:
        stopping.start()
        stopping.join(30)
        assert not stopping.is_alive()


def test_ages_are_told_rightly_though_the_wall_clock_is_set(
    observer: Observer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with observer._guard:
        before_ms = observer._now_ms()
        observer._seen.looked_at_driver(before_ms, {"run": "r1", "mode": "RUN"})
        real = module.wall_ms
        monkeypatch.setattr(module, "wall_ms", lambda: real() + 3_600_000)
        age_ms = observer._now_ms() - (observer._seen.sources.driver_ms or 0)
    assert age_ms < 600_000 and observer._seen.live is not None


def test_a_value_is_read_where_the_configuration_lets_it_and_of_dead_letters_of_source_topics_only(
    config: Config, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is a dead letter the control topic says, where others may write: nobody reads another topic so."""
    read: list[tuple[SourcePartition, int]] = []

    def read_value(_kafka: object, _group: str, place: SourcePartition, offset: int, **_more: float) -> bytes:
        read.append((place, offset))
        return b"a\x00\xff" + b"x" * 3_000

    monkeypatch.setattr(module, "read_value", read_value)
    rejects = tuple(
        Reject(partition=SourcePartition(topic, 3), offset=41, reason="not JSON")
        for topic in ("events", "somebody-elses")
    )
    hidden = Observer(config, {"bootstrap.servers": NOWHERE}, ask_live=driver.ask)
    shows = config.ui.model_copy(update={"show_values": True})
    shown = Observer(
        config.model_copy(update={"ui": shows}), {"bootstrap.servers": NOWHERE}, ask_live=driver.ask
    )
    for one in (hidden, shown):
        heard = one._seen.history._runs[""] = RunHeard(fold=Fold(), whole=True)
        heard.heard.rejects.add(rejects, 2, 1_000)
    with pytest.raises(Hidden, match=r"ui\.show_values"):
        hidden.dead_letter("events", 3, 41)
    assert not hidden.page().document["dead_letters"]["values"]
    for topic, number, offset in (("somebody-elses", 3, 41), ("events", 2, 41), ("events", 3, 42)):
        assert shown.dead_letter(topic, number, offset) is None
    assert read == []
    assert shown.page().document["dead_letters"]["values"]
    value = shown.dead_letter("events", 3, 41)
    assert value is not None and (value["size_bytes"], value["is_cut"]) == (3_003, True)
    assert value["text"].startswith("a\\x00\\xffxxx")
    assert read == [(SourcePartition("events", 3), 41)]


class Reader:
    """A reader that is behind until it is told otherwise; `asked`: how often where the log ends."""

    def __init__(self) -> None:
        self.caught_up, self.recoveries, self.asked = True, 0, 0
        self.behind = False

    def poll(self, _timeout_s: float) -> list[Any]:
        self.caught_up = not self.behind
        return []

    def ask_for_end(self, _timeout_s: float) -> None:
        self.asked += 1
        self.caught_up = not self.behind

    def close(self) -> None: ...


def test_the_topic_was_looked_at_when_that_was_asked_up_to_which_it_was_read(
    observer: Observer, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, now_s = Reader(), [1_000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now_s[0])
    monkeypatch.setattr(module, "monotonic_ms", lambda: round(1_000 * now_s[0]))
    monkeypatch.setattr(module, "wall_ms", lambda: round(1_000 * now_s[0]))
    observer._ahead_ms = 0
    observer._reader = reader  # type: ignore[assignment]
    observer._control_topic = SimpleNamespace(describe=lambda timeout_s: SimpleNamespace(exists=True))  # type: ignore[assignment]
    observer._table_tried.set()

    def follow(after_s: float) -> int | None:
        now_s[0] += after_s
        observer._follow_topic()
        return observer._seen.sources.topic_ms

    assert follow(0) is None, "it was only just read up to its end: from here on it is asked"
    assert follow(0) == 1_000_000
    reader.behind = True
    assert [follow(6) for _ in range(10)] == [1_000_000] * 10
    assert reader.asked == 2, "else the end would go before whoever reads"
    reader.behind = False
    assert follow(4) == 1_006_000, "it was read as far as it went a minute ago, and may have grown since"
    assert follow(6) == 1_070_000


def test_where_nobody_says_how_far_the_topic_goes_it_was_not_looked_at(
    observer: Observer, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader()

    def silent(_timeout_s: float) -> None:
        raise module.ControlTopicError("Where the control topic ends the broker does not say.")

    monkeypatch.setattr(reader, "ask_for_end", silent)
    observer._seen.history.caught_up_now()
    observer._reader = reader  # type: ignore[assignment]
    observer._control_topic = SimpleNamespace(describe=lambda timeout_s: SimpleNamespace(exists=True))  # type: ignore[assignment]
    with pytest.raises(module.ControlTopicError):
        observer._ask_for_topic()
    assert observer._seen.sources.topic_ms is None
