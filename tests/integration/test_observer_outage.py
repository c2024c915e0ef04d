"""An observer whose broker goes away, and whose control topic is deleted: it says so and goes on."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from control_topic.clocks import wall_ms
from control_topic.kafka import ControlTopic, ControlWriter
from control_topic.messages import (
    AckCommit,
    Body,
    CoordinatorClaim,
    EndCommit,
    RunAnnounce,
    SourcePartition,
    StartCommit,
)
from control_topic.trust import KEY_BYTES
from lockstep.brokers.local import Broker
from lockstep.config import Config, from_mapping
from lockstep.watch import observer as module
from lockstep.watch.observer import Observer
from tests.broker_fixture import create_topic, delete_topic
from tests.harness import await_that

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

CONTROL = "lockstep-control-events"
PLACE = SourcePartition("events", 0)


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """It is killed."""
    with Broker(tmp_path_factory.mktemp("broker"), heap_mb=512) as running:
        create_topic(running.bootstrap_servers, "events")
        yield running


@pytest.fixture
def config(own_broker: Broker, tmp_path: Path) -> Config:
    return from_mapping(
        {
            "pipeline": {"id": "events"},
            "source": {"bootstrap_servers": own_broker.bootstrap_servers, "topics": ["events"]},
            "record": {"schema": "event_id STRING"},
            "table": {"path": f"file://{tmp_path}/table", "name": "events"},
        }
    )


class Run:
    """Says on the control topic what a run would."""

    def __init__(self, config: Config) -> None:
        self.name = secrets.token_hex(8)
        self._key = secrets.token_bytes(KEY_BYTES)
        self._config = config
        self._offset = 0
        self._writers = {
            sender: self._writer(sender) for sender in ("driver", "coordinator@worker-0", "worker-0")
        }

    def _writer(self, sender: str) -> ControlWriter:
        return ControlWriter(
            {"bootstrap.servers": self._config.source.bootstrap_servers},
            CONTROL,
            pipeline="events",
            run=self.name,
            sender=sender,
            incarnation=secrets.token_hex(16),
            clock_ms=wall_ms,
            key=self._key,
        )

    def say(self, body: Body, sender: str = "coordinator@worker-0", *, epoch: int = 1) -> None:
        """Again until the broker has it, as a run does."""
        writer = self._writers[sender]

        def is_written() -> bool:
            failures = writer.failures
            writer.send(body, epoch=epoch)
            return writer.flush(60) and writer.failures == failures

        await_that(f"{type(body).__name__} on the control topic", is_written)

    def begin(self) -> None:
        self.say(RunAnnounce(started_at_ms=wall_ms()), "driver", epoch=0)
        self.say(CoordinatorClaim())

    def commit(self) -> str:
        transaction, before = secrets.token_hex(16), {PLACE: self._offset}
        self._offset += 1
        self.say(StartCommit(transaction=transaction, instant="1", committed=before, writers={PLACE: "w"}))
        self.say(EndCommit(transaction=transaction, reason="interval"))
        self.say(AckCommit(transaction=transaction, instant="1", committed={PLACE: self._offset}))
        return transaction

    def close(self) -> None:
        for writer in self._writers.values():
            writer.close()


@contextmanager
def observing(observer: Observer) -> Iterator[Observer]:
    observer.start()
    try:
        yield observer
    finally:
        observer.stop()


def await_transactions(observer: Observer, *wanted: str) -> dict[str, Any]:
    def probe() -> dict[str, Any] | None:
        document = observer.page().document
        ids = [one["id"] for one in document["transactions"]]
        return document if ids == list(wanted) else None

    return await_that("transactions on the page", probe)


def test_what_goes_on_is_followed_over_an_outage_and_over_a_topic_that_is_made_again(
    config: Config, own_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("ASK_S", 3.0), ("TOPIC_ASK_S", 3.0), ("LOOK_EVERY_S", 0.5), ("LOOK_SHARE", 0)):
        monkeypatch.setattr(module, name, value)
    kafka = {"bootstrap.servers": own_broker.bootstrap_servers}
    with observing(Observer(config, kafka, ask_live=lambda: None)) as observer:
        missing = f"The control topic {CONTROL} does not exist: no run has been here yet."
        await_that("a topic that is missing", lambda: missing in observer.page().document["problems"])
        ControlTopic(kafka, CONTROL).ensure(timeout_s=60)
        with closing(Run(config)) as run:
            run.begin()
            first = run.commit()
            made = await_transactions(observer, first)
            assert (made["totals"]["commits"], made["run"], made["mode"]) == (1, run.name, "RUN")
            await_that("no problem", lambda: observer.page().document["problems"] == [])

            own_broker.kill()
            await_that("two problems", lambda: len(observer.page().document["problems"]) >= 2)
            assert [one["id"] for one in observer.page().document["transactions"]] == [first]
            own_broker.start()
            second = run.commit()
            await_transactions(observer, first, second)
            await_that("no problem", lambda: observer.page().document["problems"] == [])

            delete_topic(own_broker.bootstrap_servers, CONTROL)
            create_topic(own_broker.bootstrap_servers, CONTROL)
            third = run.commit()
            made = await_transactions(observer, first, second, third)
            assert made["totals"]["commits"] == 3
            counted = (
                'lockstep_transactions_total{outcome="committed",pipeline="events",reason="interval"} 3.0'
            )
            assert counted in observer.metrics(openmetrics=False).decode()
