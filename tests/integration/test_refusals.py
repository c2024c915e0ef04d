"""What a run cannot work with ends it before anything is written, with a sentence that says what to do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from lockstep.brokers.local import Broker
from lockstep.errors import EXIT_FAILED, EXIT_USAGE
from tests.broker_fixture import create_topic
from tests.harness import DEADLINE_S, Pipeline

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

NOBODY_THERE = "127.0.0.1:1"


@pytest.fixture
def pipeline(make_pipeline: Callable[[int], Pipeline]) -> Pipeline:
    return make_pipeline(2)


def refused(pipeline: Pipeline, code: int, *arguments: str) -> str:
    run = pipeline.start(*arguments)
    assert run.wait(DEADLINE_S) == code, run.text()
    text = run.text()
    assert "Traceback" not in text
    assert not (pipeline.table / ".hoodie").exists()
    return text


def test_a_missing_topic(pipeline: Pipeline) -> None:
    pipeline.settings["source.topics"] = "no-such-topic"
    assert "Source topic no-such-topic does not exist" in refused(pipeline, EXIT_FAILED)


def test_a_broker_that_does_not_answer(pipeline: Pipeline) -> None:
    pipeline.settings["source.bootstrap_servers"] = NOBODY_THERE
    text = refused(pipeline, EXIT_FAILED)
    assert f"The Kafka broker at {NOBODY_THERE} did not" in text
    assert text.count("Connection refused") < 20


def test_wrong_security_settings_and_the_password_stays_unsaid(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENTS_PASSWORD", "correct-horse")
    for name, value in {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "reader",
        "sasl.password": "${env:EVENTS_PASSWORD}",
    }.items():
        pipeline.settings[f"source.kafka.{name}"] = value
    text = refused(pipeline, EXIT_FAILED)
    assert "Check the credentials" in text
    assert "correct-horse" not in text


def test_a_control_topic_with_more_than_one_partition(pipeline: Pipeline, broker: Broker) -> None:
    create_topic(broker.bootstrap_servers, f"{pipeline.topic}-control", partitions=3)
    assert "has 3 partitions and must have exactly 1" in refused(pipeline, EXIT_FAILED)


def test_too_few_spark_slots(pipeline: Pipeline) -> None:
    text = refused(pipeline, EXIT_USAGE, "--master", "local[2]")
    assert "Spark has 2 slots" in text and "local[3]" in text


def test_a_table_path_that_is_no_folder_or_of_another_scheme(pipeline: Pipeline) -> None:
    pipeline.table.write_text("a file")
    assert "is a file" in refused(pipeline, EXIT_FAILED)
    pipeline.settings["table.path"] = "wasbs://lake@account.blob.core.windows.net/table"
    assert "wasbs:// is not supported" in refused(pipeline, EXIT_USAGE)


def test_damaged_and_foreign_control_messages_stop_nobody(pipeline: Pipeline, broker: Broker) -> None:
    pipeline.produce(2_000)
    assert pipeline.run_to_end().process.returncode == 0
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for value in (b"", b"\x00" * 100, b"\xff" * 5_000, b'{"json": true}', b"\x08\x63"):
        producer.produce(f"{pipeline.topic}-control", value, partition=0)
    assert producer.flush(30) == 0
    pipeline.produce(2_000)
    assert pipeline.run_to_end().process.returncode == 0
    pipeline.assert_exact(4_000)
    events = pipeline.command("events", "--from-beginning")
    assert events.returncode == 0
    assert events.stdout.count("ACK_COMMIT") >= 2
