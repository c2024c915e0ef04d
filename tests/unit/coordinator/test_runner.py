"""The coordinator's thread: what it gives the core, whatever comes."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import pytest

from control_topic.messages import Message, ParticipantReady
from coordinator import runner
from coordinator.core import Coordinator
from coordinator.events import Action, Event, Settings, Tick
from coordinator.runner import TICK_S, Environment, Runner
from coordinator.times import ByTheClock
from tests.harness import await_that

HEARD: list[type[Event]] = []


class Listener(Coordinator):
    """It does nothing about what it hears."""

    def handle(self, event: Event) -> list[Action]:
        HEARD.append(type(event))
        return []


class Silent:
    def send(self, *_: object, **__: object) -> None: ...
    def flush(self, _timeout_s: float) -> bool:
        return True

    def close(self) -> None: ...


def test_time_goes_on_while_messages_come_more_often_than_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "Coordinator", Listener)
    HEARD.clear()
    numbers, failed, table = itertools.count(), list[str](), Any
    environment = Environment(
        sender=lambda _: Silent(),
        table=table,
        prove=lambda answer: answer(True, ""),
        topic_epoch=lambda: 0,
        failed=failed.append,
        now_ms=lambda: next(numbers),
        wall_ms=lambda: next(numbers),
        nonce=lambda: f"{next(numbers):016x}",
        by_the_clock=lambda _tuning: ByTheClock(),
    )
    settings = Settings(pipeline="p", run="r", incarnation="", interval_ms=1_000, write_timeout_ms=1_000)
    coordinator, over = Runner(settings, environment), threading.Event()
    ready = Message(
        pipeline="p",
        run="r",
        sender="worker-0",
        incarnation="w",
        sequence=1,
        epoch=0,
        sent_at_ms=0,
        body=ParticipantReady(),
    )

    def flood() -> None:
        while not over.wait(TICK_S / 10):
            coordinator.received(ready)

    coordinator.start()
    flooding = threading.Thread(target=flood, daemon=True)
    flooding.start()
    try:
        await_that("many messages", lambda: len(HEARD) > 50, deadline_s=30)
        assert HEARD.count(Tick) >= 3
    finally:
        over.set()
        flooding.join(10)
        coordinator.stop()
    assert not failed
