"""Whole pipelines on the real parts: broker, spark-submit, Hudi. The verdict is always the table's."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from hudi import HudiReadOptions, HudiTableBuilder
from pyspark.sql import SparkSession

from lockstep.brokers.local import Broker
from lockstep.errors import EXIT_INTERRUPTED
from tests.harness import DEADLINE_S, Pipeline, await_that, event
from tests.transactions import end_transaction

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]


@pytest.mark.smoke("inserts")
def test_a_clean_run_commits_everything_and_a_second_one_goes_on_where_it_stopped(pipeline: Pipeline) -> None:
    pipeline.produce(20_000)
    assert pipeline.run_to_end().process.returncode == 0
    pipeline.assert_exact(20_000)

    pipeline.produce(5_000)
    assert pipeline.run_to_end().process.returncode == 0
    pipeline.assert_exact(25_000)


def test_killed_workers_and_a_killed_driver_lose_and_double_nothing(pipeline: Pipeline) -> None:
    pipeline.produce(5_000)
    run = pipeline.start()
    run.await_commits(1)

    pipeline.produce(5_000)
    run.kill_worker(coordinator=False)
    pipeline.produce(5_000)
    run.await_rows(pipeline.produced)

    pipeline.produce(5_000)
    run.kill_worker(coordinator=True)
    pipeline.produce(5_000)
    run.await_rows(pipeline.produced)

    pipeline.produce(5_000)
    run.kill()
    pipeline.produce(5_000)
    assert pipeline.run_to_end().process.returncode == 0
    pipeline.assert_exact(pipeline.produced)


def test_a_worker_that_was_frozen_for_longer_than_its_session_does_no_harm(pipeline: Pipeline) -> None:
    pipeline.produce(5_000)
    run = pipeline.start()
    run.await_commits(1)
    frozen = run.kill_worker(coordinator=False, with_signal=signal.SIGSTOP)
    pipeline.produce(5_000)
    run.await_rows(pipeline.produced)  # after the group, or the supervisor, gave up on it
    if Path(f"/proc/{frozen}").exists():
        signal_or_gone(frozen, signal.SIGCONT)
    pipeline.produce(5_000)
    run.await_rows(pipeline.produced)
    assert run.stop() == 0
    pipeline.assert_exact(pipeline.produced)


def signal_or_gone(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def test_a_second_signal_leaves_at_once_and_the_next_run_loses_nothing(pipeline: Pipeline) -> None:
    pipeline.produce(2_000)
    run = pipeline.start()
    run.await_commits(1)
    pipeline.produce(2_000)
    os.kill(run.process.pid, signal.SIGINT)
    await_that("answer to the first signal", lambda: "SIGINT: the open transaction" in run.text())
    os.kill(run.process.pid, signal.SIGINT)
    assert run.wait(20) in (0, EXIT_INTERRUPTED)  # 0 where the last commit was quicker than the signal
    assert "Traceback" not in run.text() and "Py4JException" not in run.text()
    assert pipeline.run_to_end().process.returncode == 0
    pipeline.assert_exact(4_000)


def test_of_two_drivers_the_newer_one_goes_on_and_the_older_says_it_is_superseded(pipeline: Pipeline) -> None:
    pipeline.produce(5_000)
    older = pipeline.start()
    older.await_commits(1)
    newer = pipeline.start()
    assert older.wait(DEADLINE_S) == 5
    assert "superseded" in older.text()
    pipeline.produce(5_000)
    newer.await_commits(1)
    assert newer.stop() == 0
    assert pipeline.run_to_end().process.returncode == 0
    pipeline.assert_exact(10_000)


def test_aborted_records_and_their_gaps_are_covered_by_ranges_without_rows(pipeline: Pipeline) -> None:
    producer = Producer({**pipeline.kafka, "transactional.id": pipeline.topic})
    producer.init_transactions()
    kept = 0
    for round_number in range(6):
        producer.begin_transaction()
        for number in range(400):
            producer.produce(pipeline.topic, event(round_number * 400 + number), partition=number % 4)
        assert producer.flush(30) == 0  # on the broker, so that there is something to abort
        commit = not round_number % 2  # not the last one: aborted records are the tail of the log
        end_transaction(producer, pipeline.topic, pipeline.kafka, commit=commit)
        kept += 400 * commit
    assert pipeline.run_to_end().process.returncode == 0
    pipeline.assert_exact(kept)
    rows = json.loads(pipeline.command("offsets", "--output", "json").stdout)
    assert [row["lag"] for row in rows] == [0, 0, 0, 0]


def test_a_poison_record_halts_after_everything_before_it_and_skipping_it_loses_nothing_else(
    pipeline: Pipeline,
) -> None:
    pipeline.produce(1_000, to=[0])
    pipeline.produce_raw([b'{"user_id": 7}', b"not json at all"], partition=0)
    pipeline.produce(500, to=[0])
    halted = pipeline.start()
    assert halted.wait(DEADLINE_S) == 3
    assert f"{pipeline.topic}:0 at offset 1000" in halted.text()
    assert "Traceback" not in halted.text()
    pipeline.assert_exact(1_000)

    pipeline.change_offsets("--set", f"{pipeline.topic}:0=1002", reason="two bad records")
    assert pipeline.run_to_end().process.returncode == 0
    rows = json.loads(pipeline.command("offsets", "--output", "json").stdout)
    assert sum(row["lag"] for row in rows) == 0
    assert pipeline.verify()["rows"] == 1_500


def test_rejected_records_are_in_the_dead_letter_topic_and_the_rest_in_the_table(
    pipeline: Pipeline, broker: Broker
) -> None:
    from tests.broker_fixture import create_topic

    dead_letters = f"{pipeline.topic}.dlq"
    create_topic(broker.bootstrap_servers, dead_letters)
    pipeline.settings["record.on_error"] = "dead_letter"
    pipeline.produce(500)
    bad = [None, b"", b"[1]", b'{"event_id":"x"}{"event_id":"y"}', b'{"user_id":1}', b'{"event_id":7}']
    pipeline.produce_raw(bad, partition=2)
    pipeline.produce(500)
    assert pipeline.run_to_end().process.returncode == 0
    pipeline.assert_exact(1_000)

    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "reader",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([dead_letters])
    found = []

    def all_there() -> bool:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            found.append(message)
        return len(found) == len(bad)

    await_that("dead letter for every bad record", all_there)
    consumer.close()
    by_offset = {int(dict(m.headers())["lockstep.offset"]): m for m in found}
    first = min(by_offset)
    assert [by_offset[first + i].value() for i in range(len(bad))] == bad
    assert all(dict(m.headers())["lockstep.topic"] == pipeline.topic.encode() for m in found)
    assert all(dict(m.headers())["lockstep.reason"] for m in found)


def test_readers_see_the_row_count_change_only_by_whole_transactions(
    pipeline: Pipeline, spark: SparkSession
) -> None:
    def with_spark() -> dict[str, int]:
        table = spark.read.format("hudi").load(str(pipeline.table))
        return {row[0]: row[1] for row in table.groupBy("_hoodie_commit_time").count().collect()}

    def with_hudi_rs() -> dict[str, int]:
        table = HudiTableBuilder.from_base_uri(str(pipeline.table)).build()
        counts: dict[str, int] = {}
        for batch in table.read(HudiReadOptions(projection=["_hoodie_commit_time"])):
            for value in batch.column(0).value_counts():
                instant = value["values"].as_py()
                counts[instant] = counts.get(instant, 0) + value["counts"].as_py()
        return counts

    pipeline.produce(2_000)
    run = pipeline.start()
    run.await_commits(1)
    seen: dict[str, int] = {}
    while pipeline.produced < 20_000:
        pipeline.produce(2_000)
        for rows_by_instant in (with_hudi_rs, with_spark):
            for instant, count in rows_by_instant().items():
                assert seen.setdefault(instant, count) == count, f"instant {instant} was seen half"
    run.await_rows(pipeline.produced)
    assert run.stop() == 0
    assert sum(with_hudi_rs().values()) == sum(with_spark().values()) == 20_000
    pipeline.assert_exact(20_000)


def test_a_commit_that_lands_although_its_call_fails_is_found_and_not_repeated(pipeline: Pipeline) -> None:
    """Hudi calls the commit callback after the instant is complete; one that cannot be made throws."""
    pipeline.settings["table.hudi.hoodie.write.commit.callback.on"] = "true"
    pipeline.settings["table.hudi.hoodie.write.commit.callback.class"] = "no.such.Callback"
    pipeline.produce(2_000)
    run = pipeline.run_to_end()
    assert run.process.returncode == 0
    assert "no.such.Callback" in run.text()  # the call did fail
    pipeline.assert_exact(2_000)
