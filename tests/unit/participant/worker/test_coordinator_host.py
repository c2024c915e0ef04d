"""The coordinator's place in a worker: one at a time, and none in a worker that was told to leave."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from coordinator.events import Settings
from participant.worker import coordinator_host
from participant.worker.coordinator_host import CoordinatorHost
from table.service.calls import Directive, RunMode

SETTINGS = Settings(pipeline="p", run="r", incarnation="", interval_ms=1_000, write_timeout_ms=1_000)
ENVIRONMENT: Any = None


class Runner:
    """It remembers what it is told."""

    begun: list[Runner]

    def __init__(self, *_: object) -> None:
        self.modes: list[RunMode] = []
        self.stopped = False

    def start(self) -> None:
        self.begun.append(self)

    def directed(self, mode: RunMode, _reason: str, _controls: object) -> None:
        self.modes.append(mode)

    def died(self, *_: object) -> None: ...

    def stop(self) -> None:
        self.stopped = True


class Interrupted:
    """A lock that lets somebody in as soon as it is given back for the first time."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        self._lock = threading.Lock()
        self._meanwhile = [meanwhile]

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        if self._meanwhile:
            self._meanwhile.pop()()


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[Runner]:
    monkeypatch.setattr(Runner, "begun", [], raising=False)
    monkeypatch.setattr(coordinator_host, "Runner", Runner)
    return Runner.begun


def test_there_is_one_at_a_time_and_it_hears_the_driver(begun: list[Runner]) -> None:
    host = CoordinatorHost(SETTINGS, ENVIRONMENT)
    host.start()
    host.start()
    host.directed(Directive(mode=RunMode.RUN))
    assert len(begun) == 1
    assert begun[0].modes == [RunMode.RUN]
    host.stop()
    host.start()
    assert [runner.stopped for runner in begun] == [True, False]


def test_one_that_begins_knows_from_the_first_what_the_driver_has_said_last(begun: list[Runner]) -> None:
    """A run that is paused, say: its answer to the next report would come too late."""
    host = CoordinatorHost(SETTINGS, ENVIRONMENT)
    host.directed(Directive(mode=RunMode.PAUSE))
    host.start()
    assert begun[0].modes == [RunMode.PAUSE]


def test_none_begins_in_a_worker_that_was_told_to_leave(begun: list[Runner]) -> None:
    host = CoordinatorHost(SETTINGS, ENVIRONMENT)
    host.directed(Directive(mode=RunMode.STOP))
    host.directed(Directive(mode=RunMode.RUN))
    host.start()
    assert not begun


def test_one_that_begins_as_the_worker_is_told_to_leave_is_told_so_or_does_not_begin(
    begun: list[Runner], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = CoordinatorHost(SETTINGS, ENVIRONMENT)
    monkeypatch.setattr(host, "_lock", Interrupted(host.start))
    host.directed(Directive(mode=RunMode.STOP))
    assert [runner.modes for runner in begun] in ([], [[RunMode.STOP]])
