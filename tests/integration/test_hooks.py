"""Whoever is told of commits: a real broker, a real HTTP server, real runs, and what becomes of both."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

import lockstep.hooks.topic
from lockstep.brokers.local import Broker
from lockstep.errors import EXIT_HALTED
from lockstep.hooks.commits import TableTold
from lockstep.hooks.port import SinkError
from lockstep.hooks.topic import NotificationTopic, TopicSink
from lockstep.launch.local_server import free_port
from tests.broker_fixture import delete_topic
from tests.harness import Pipeline, await_that
from tests.hook_receiver import HANG, WELL, Receiver
from tests.unit.lockstep.hooks.test_delivery import commit

pytestmark = pytest.mark.integration

SECRET = "correct-horse-battery-staple"
TABLE = TableTold(path="file:///lake/events", name="events", kind="hudi", mode="insert")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


def messages(broker: Broker, topic: str, count: int) -> list[tuple[bytes, dict[str, Any]]]:
    """The first messages of the topic, (key, document), up to so many commits: one may be told again."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": f"{topic}-reader"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[tuple[bytes, dict[str, Any]]] = []

    def read() -> bool:
        record = consumer.poll(0.1)
        if record is not None and record.error() is None:
            found.append((record.key(), json.loads(record.value())))
        return len({document["instant"] for _, document in found}) >= count

    try:
        await_that(f"commit number {count} on {topic}", read, every_s=0.001)
    finally:
        consumer.close()
    return found


def instants_of(pipeline: Pipeline) -> list[str]:
    """Of its commits, oldest first."""
    completed = [one for one in pipeline.place.timeline().completed() if one.state is not None]
    return [one.requested for one in reversed(completed)]


def in_order(told: list[str]) -> list[str]:
    """Each once, as they came for the first time."""
    return list(dict.fromkeys(told))


# --- the topic alone --------------------------------------------------------------------------------


def test_the_topic_is_made_with_one_partition_and_takes_each_commit_in_order(
    broker: Broker, make_topic: Callable[..., str]
) -> None:
    name = f"{make_topic()}-commits"
    kafka = {"bootstrap.servers": broker.bootstrap_servers}
    topic = NotificationTopic(kafka, name)
    topic.try_to_create()
    assert topic.partitions() == 0
    sink = TopicSink(kafka, name, pipeline="events", table=TABLE)
    sink.begin()
    assert topic.partitions() == 1
    for number in range(1, 4):
        sink.deliver(commit(number, ranges=2))
    sink.close()
    found = messages(broker, name, 3)
    assert [key for key, _ in found] == [b"events"] * 3
    assert [document["transaction"] for _, document in found] == ["t1", "t2", "t3"]


def test_a_topic_that_somebody_deletes_is_made_again(broker: Broker, make_topic: Callable[..., str]) -> None:
    name = make_topic()
    sink = TopicSink({"bootstrap.servers": broker.bootstrap_servers}, name, pipeline="events", table=TABLE)
    sink.begin()
    sink.deliver(commit(1))
    delete_topic(broker.bootstrap_servers, name)

    def delivered() -> bool:
        try:
            sink.deliver(commit(2))
        except SinkError:
            return False
        return True

    await_that("delivery", delivered)
    sink.close()
    assert "t2" in [document["transaction"] for _, document in messages(broker, name, 1)]


def test_a_broker_that_is_away_is_an_answer_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ASK_S", "DELIVERY_S"):
        monkeypatch.setattr(lockstep.hooks.topic, name, 2.0)
    kafka = {"bootstrap.servers": f"127.0.0.1:{free_port()}"}
    sink = TopicSink(kafka, "commits", pipeline="events", table=TABLE)
    with pytest.raises(SinkError, match="the topic commits could not be described"):
        sink.begin()
    with pytest.raises(SinkError):
        sink.deliver(commit(1))
    sink.close()


# --- whole runs -------------------------------------------------------------------------------------


def test_commits_go_on_while_a_hook_hangs_and_are_told_after_the_driver_was_killed(
    pipeline: Pipeline, receiver: Receiver
) -> None:
    """In order, each once at least, and to each hook."""
    topic = f"{pipeline.topic}-commits"
    with pipeline.config.open("a") as file:
        file.write(f'''
[hooks]
topic = "{topic}"
webhook = "{receiver.url}/hidden-path"
webhook_timeout = "2s"

[hooks.webhook_headers]
Authorization = "Bearer ${{env:HOOK_TOKEN}}"
''')
    pipeline.environment["HOOK_TOKEN"] = SECRET
    receiver.does = HANG
    run = pipeline.start()
    for count in range(1, 7):
        pipeline.produce(200)
        run.await_commits(count)
    asked = await_that("second try", lambda: receiver.asked >= 2 and receiver.asked)
    assert receiver.taken == [] and asked < 20

    def alarm() -> str:
        status = run.status() or {"alarms": []}
        return next((text for text in status["alarms"] if "hook webhook" in text), "")

    text = await_that("alarm", alarm)
    assert "no answer within 2 s" in text and "hidden-path" not in text and SECRET not in text
    shown = pipeline.command("status")
    assert "hook webhook" in shown.stdout and SECRET not in shown.stdout
    run.kill()
    before = instants_of(pipeline)
    assert len(before) >= 7  # with the genesis
    receiver.does = WELL
    pipeline.produce(200)
    pipeline.run_until_told()

    instants = instants_of(pipeline)
    assert len(instants) > len(before)
    assert in_order(receiver.instants) == instants
    (first, *_) = receiver.taken
    assert first.headers["Authorization"] == f"Bearer {SECRET}"
    assert first.headers["Idempotency-Key"] == first.document["transaction"]
    found = messages(pipeline.broker, topic, len(instants))
    assert in_order([document["instant"] for _, document in found]) == instants
    told = {document["instant"]: document for _, document in found}
    assert sum(document["records"] for document in told.values()) == pipeline.produced
    assert sum(document["rows"] for document in told.values()) == pipeline.produced
    pipeline.assert_exact(pipeline.produced)
    for log in (one.text() for one in pipeline.runs):
        assert SECRET not in log and "hidden-path" not in log


def test_a_run_ends_although_a_hook_takes_nothing_and_says_what_it_did_not_take(
    pipeline: Pipeline, receiver: Receiver
) -> None:
    receiver.does = 503
    pipeline.settings["hooks.webhook"] = receiver.url
    pipeline.produce(100)
    run = pipeline.run_to_end()
    assert run.process.returncode == 0
    assert "has not taken" in run.text() and "last answer 503" in run.text()
    assert run.text().count("does not take commits") == 1
    receiver.does = WELL
    pipeline.run_until_told()
    assert in_order(receiver.instants) == instants_of(pipeline)


def test_a_run_that_is_stopped_tells_its_last_commit(pipeline: Pipeline, receiver: Receiver) -> None:
    pipeline.settings["hooks.webhook"] = receiver.url
    run = pipeline.start()
    pipeline.produce(100)
    run.await_commits(1)
    pipeline.produce(100)
    run.await_consumed(pipeline.produced)
    assert run.stop() == 0
    assert in_order(receiver.instants) == instants_of(pipeline)


def test_lineage_has_a_run_its_commits_and_how_it_ended(
    pipeline: Pipeline, receiver: Receiver, tmp_path: Path
) -> None:
    pipeline.settings["hooks.openlineage"] = receiver.url
    pipeline.settings["hooks.openlineage_api_key"] = "${env:LINEAGE_KEY}"
    pipeline.environment["LINEAGE_KEY"] = SECRET
    pipeline.produce(300)
    assert pipeline.run_to_end().process.returncode == 0
    events = [taken.document for taken in receiver.taken]
    kinds = [event["eventType"] for event in events]
    assert in_order(kinds) == ["START", "RUNNING", "COMPLETE"] and kinds[-1] == "COMPLETE"
    assert len({event["run"]["runId"] for event in events}) == 1
    running = [event["outputs"][0] for event in events if event["eventType"] == "RUNNING"]
    versions = {output["facets"]["version"]["datasetVersion"]: output for output in running}
    assert list(versions) == instants_of(pipeline)
    outputs = list(versions.values())
    assert sum(output["outputFacets"]["outputStatistics"]["rowCount"] for output in outputs) == 300
    assert outputs[0]["name"] == str(pipeline.table)
    names = [field["name"] for field in outputs[0]["facets"]["schema"]["fields"]]
    assert names[:2] == ["event_id", "user_id"] and "_kafka_offset" in names
    assert {taken.headers["Authorization"] for taken in receiver.taken} == {f"Bearer {SECRET}"}

    file = tmp_path / "lineage.json"
    pipeline.settings = {"hooks.openlineage": f"file://{file}"}
    pipeline.produce_raw([b"no JSON"], partition=0)
    assert pipeline.run_to_end().process.returncode == EXIT_HALTED
    events = [json.loads(line) for line in file.read_text().splitlines()]
    assert events[0]["eventType"] == "START" and events[-1]["eventType"] == "FAIL"
    assert pipeline.topic in events[-1]["run"]["facets"]["errorMessage"]["message"]
    assert all(SECRET not in run.text() for run in pipeline.runs)


def test_validate_tries_each_hook_and_sends_nothing(pipeline: Pipeline, receiver: Receiver) -> None:
    topic = f"{pipeline.topic}-commits"
    well = pipeline.config.read_text()
    pipeline.config.write_text(
        f'{well}\n[hooks]\ntopic = "{topic}"\nwebhook = "{receiver.url}/hidden-path"\n'
    )
    done = pipeline.command("validate", "--output", "json")
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert done.returncode == 0
    assert checks["hook topic"]["verdict"] == checks["hook webhook"]["verdict"] == "ok"
    assert "the run makes it" in checks["hook topic"]["detail"]
    assert receiver.asked == 0 and "hidden-path" not in done.stdout
