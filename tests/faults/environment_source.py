"""Kafka does something to the source topic, or to the consumer group's offsets."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewPartitions, OffsetSpec

from lockstep.errors import EXIT_HALTED
from tests.broker_fixture import create_topic, delete_topic, set_config
from tests.faults.acts import (
    CALM_PER_SECOND,
    RECORDS,
    ends_with,
    halts_after_s,
    is_met_between_runs,
    proved,
    runs_well,
    stops_well,
)
from tests.faults.commits import wall_ms
from tests.faults.environment_kafka import delete_records
from tests.faults.scenario import Outcome, Scenario, put, scenario
from tests.faults.stage import Stage
from tests.harness import Run, await_that, event
from tests.transactions import end_transaction

GROUP = "Source"
COMPACTING = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.ms": "500",
    "max.compaction.lag.ms": "1000",
    "delete.retention.ms": "0",
}


def admin(stage: Stage) -> AdminClient:
    return AdminClient({"bootstrap.servers": stage.broker.bootstrap_servers})


def lost(verdict: dict[str, Any]) -> int:
    """Offsets that commits recorded as lost to retention."""
    return sum(end - start for part in verdict["partitions"] for start, end in part["lost"])


# --- retention --------------------------------------------------------------------------------------


@scenario(
    GROUP,
    fault="retention removes records that a stopped pipeline has not read",
    expected="the next run halts and names topic, source partition and the offsets; started with "
    'source.on_data_loss = "earliest" it goes on, and the commit records what was lost',
)
def retention_overtakes_a_stopped_pipeline(stage: Stage) -> Outcome:
    pipeline = stage.pipeline
    pipeline.produce(RECORDS)
    runs_well(pipeline)
    pipeline.produce(RECORDS)
    delete_records(stage, pipeline.topic, pipeline.partitions, before=RECORDS // 4 + 500)
    gone = [f"{pipeline.topic}:{n}: offsets [{RECORDS // 4}, {RECORDS // 4 + 500})" for n in range(1)]
    ends_with(stage.restart(), EXIT_HALTED, *gone, "source.on_data_loss")
    pipeline.assert_exact(RECORDS)
    pipeline.settings["source.on_data_loss"] = "earliest"
    began_ms = wall_ms()
    run = stage.restart()
    recovery_s = stage.recovery_s(began_ms)
    return _proved_but_lost(stage, run, recovery_s=recovery_s, expected=4 * 500)


@scenario(
    GROUP,
    fault="retention overtakes a running pipeline whose workers hang, with source.on_data_loss = fail",
    expected="what was read is committed, then the run halts and names topic, source partition and offsets",
)
def retention_overtakes_a_running_pipeline(stage: Stage) -> Outcome:
    run = _overtaken(stage)
    ends_with(run, EXIT_HALTED, "retention removed the offsets from", 'source.on_data_loss = "earliest"')
    verdict = stage.pipeline.verify()
    assert verdict["exact"] is True, verdict
    assert lost(verdict) == 0
    return Outcome(notes={"records": stage.pipeline.produced, "rows": verdict["rows"]})


@scenario(
    GROUP,
    fault="retention overtakes a running pipeline whose workers hang, with source.on_data_loss = earliest",
    expected="it goes on at the oldest record that is left, and the commit records what was lost",
    limit_s=20,
    settings={"source.on_data_loss": "earliest"},
)
def retention_overtakes_a_running_pipeline_that_may_go_on(stage: Stage) -> Outcome:
    run = _overtaken(stage)
    ended_ms = wall_ms()
    stage.pipeline.produce(RECORDS)
    recovery_s = stage.recovery_s(ended_ms)
    return _proved_but_lost(stage, run, recovery_s=recovery_s, expected=None)


def _overtaken(stage: Stage) -> Run:
    """Workers hang for less than their session lasts; meanwhile records come and go."""
    stage.pipeline.produce(RECORDS)
    run = stage.restart()
    run.await_rows(RECORDS)
    workers = stage.processes().workers
    with _stopped(workers):
        stage.pipeline.produce(20 * RECORDS)
        delete_records(stage, stage.pipeline.topic, stage.pipeline.partitions)
    return run


@contextmanager
def _stopped(pids: tuple[int, ...]) -> Iterator[None]:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def _proved_but_lost(stage: Stage, run: Run, *, recovery_s: float, expected: int | None) -> Outcome:
    """Every record is in the table, or in an interval that a commit records as lost."""
    stage.drain()
    stops_well(run)
    verdict = stage.pipeline.verify()
    gone = lost(verdict)
    assert verdict["exact"] is True, verdict
    assert verdict["rows"] + gone == stage.pipeline.produced, (verdict["rows"], gone)
    assert gone > 0 if expected is None else gone == expected
    return Outcome(recovery_s=recovery_s, notes={"rows": verdict["rows"], "records_lost": gone})


# --- gaps -------------------------------------------------------------------------------------------


@scenario(
    GROUP,
    fault="the source topic holds aborted transactions between and after committed ones, while the pipeline "
    "runs",
    expected="aborted records never reach the table, and their offsets are covered by ranges without rows",
)
def source_with_aborted_transactions(stage: Stage) -> Outcome:
    pipeline = stage.pipeline
    run = stage.restart()
    stage.processes()
    servers = stage.broker.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers, "transactional.id": pipeline.topic})
    producer.init_transactions(30)
    kept = 0
    for turn in range(20):
        producer.begin_transaction()
        for number in range(turn * 400, turn * 400 + 400):
            producer.produce(pipeline.topic, event(number), partition=number % pipeline.partitions)
        assert producer.flush(30) == 0
        commit = not turn % 2  # not the last one: aborted records are the tail of the log
        end_transaction(producer, pipeline.topic, pipeline.kafka, commit=commit)
        kept += 400 * commit
    pipeline.produced = kept
    return proved(stage, run, records_aborted=20 * 400 - kept)


@scenario(
    GROUP,
    fault="the source topic is compacted, before the pipeline runs and while it does",
    expected="the gaps lose nothing and stop nothing: every record that the log still gives is in the table",
)
def source_with_compaction(stage: Stage) -> Outcome:
    pipeline = stage.pipeline
    set_config(stage.broker.bootstrap_servers, pipeline.topic, COMPACTING)
    _produce_keyed(stage, 0, 8_000)
    await_that(
        "compacted log",
        lambda: (_produce_keyed(stage, 8_000, 40), _delivered(stage) < 4_000)[1],
        deadline_s=120,
    )
    run = stage.restart()
    run.await_commits(1)
    _produce_keyed(stage, 9_000, 8_000)
    stage.drain()
    stops_well(run)
    verdict = pipeline.verify()
    assert verdict["exact"] is True, verdict
    assert verdict["gaps"] > 4_000, verdict
    assert verdict["rows"] >= _delivered(stage)
    return Outcome(notes={"rows": verdict["rows"], "gaps": verdict["gaps"]})


def _produce_keyed(stage: Stage, first: int, count: int) -> None:
    """Hundreds of versions of few keys."""
    producer = Producer({"bootstrap.servers": stage.broker.bootstrap_servers})
    for number in range(first, first + count):
        producer.produce(
            stage.pipeline.topic,
            event(number),
            key=str(number % 40),
            partition=number % stage.pipeline.partitions,
        )
        producer.poll(0)
    assert producer.flush(30) == 0


def _delivered(stage: Stage) -> int:
    """How many records a reader of the whole source topic is given now."""
    consumer = Consumer(
        {
            "bootstrap.servers": stage.broker.bootstrap_servers,
            "group.id": "faults-reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    places = range(stage.pipeline.partitions)
    consumer.assign([TopicPartition(stage.pipeline.topic, number, 0) for number in places])
    records = ends = 0
    try:
        while ends < stage.pipeline.partitions:
            for message in consumer.consume(1_000, 5):
                error = message.error()
                records += error is None
                ends += error is not None and error.code() == KafkaError._PARTITION_EOF
    finally:
        consumer.close()
    return records


# --- the topic itself -------------------------------------------------------------------------------


def _delete(stage: Stage) -> None:
    delete_topic(stage.broker.bootstrap_servers, stage.pipeline.topic)


def _make_again(stage: Stage) -> None:
    _delete(stage)
    create_topic(stage.broker.bootstrap_servers, stage.pipeline.topic, partitions=stage.pipeline.partitions)


@scenario(
    GROUP,
    fault="the source topic is deleted and made again, with more records, while no run is alive",
    expected="the next run halts: the offsets are of another topic; adopted by the operator, the pipeline "
    "goes on with the new topic from its beginning",
)
def source_topic_made_again_while_stopped(stage: Stage) -> Outcome:
    pipeline = stage.pipeline
    pipeline.produce(RECORDS)
    runs_well(pipeline)
    _make_again(stage)
    pipeline.produce(2 * RECORDS)
    said = (f"Topic {pipeline.topic} was recreated", "lockstep offsets --adopt")
    ends_with(stage.restart(), EXIT_HALTED, *said)
    pipeline.assert_exact(RECORDS)
    pipeline.change_offsets("--adopt", reason="the topic was made anew")
    runs_well(pipeline)
    verdict = pipeline.verify()
    assert verdict["rows"] == 3 * RECORDS, verdict
    return Outcome(notes={"rows": verdict["rows"], "exact_afterwards": str(verdict["exact"])})


def _made_again_with_more(stage: Stage) -> None:
    _make_again(stage)
    stage.pipeline.produce(4 * RECORDS)


def _halts_for_good(stage: Stage, *, fault: Callable[[Stage], None], said: tuple[str, ...]) -> Outcome:
    """A pipeline that has read everything meets a fault: it halts, and its table stays exact."""
    stage.pipeline.produce(RECORDS)
    run = stage.restart()
    run.await_rows(RECORDS)
    fault(stage)
    halted_s = halts_after_s(run, *said)
    stage.pipeline.assert_exact(RECORDS)
    return Outcome(notes={"halted_after_s": halted_s})


put(
    GROUP,
    Scenario(
        "source_topic_deleted_while_running",
        "the source topic is deleted while the pipeline runs",
        "the run halts and says that the topic was deleted",
        partial(
            _halts_for_good,
            fault=_delete,
            said=("does not exist on the Kafka broker", "somebody has deleted it"),
        ),
    ),
    Scenario(
        "source_topic_made_again_while_running",
        "the source topic is deleted and made again, with more records, while the pipeline runs",
        "nothing of the new topic is committed: the run halts and says that the topic was recreated",
        partial(_halts_for_good, fault=_made_again_with_more, said=("recreated",)),
        in_tests=True,
    ),
)


@scenario(
    GROUP,
    fault="source partitions are added while the pipeline runs",
    expected="they are read from their beginning, and commits never pause",
    limit_s=90,
)
def source_partitions_added(stage: Stage) -> Outcome:
    pipeline = stage.pipeline
    run = stage.start(per_second=CALM_PER_SECOND)
    client = admin(stage)
    client.create_partitions([NewPartitions(pipeline.topic, 6)])[pipeline.topic].result(30)
    began_ms = wall_ms()
    stage.stop_load()
    before = sum(_ends(stage).values())
    pipeline.partitions = 6
    pipeline.produce(RECORDS, to=[4, 5])

    def all_read() -> bool:
        return pipeline.committed() == before + RECORDS

    await_that("commit of the new source partitions", all_read, deadline_s=400)
    seconds = (wall_ms() - began_ms) / 1_000
    return proved(stage, run, recovery_s=seconds)


def _ends(stage: Stage) -> dict[int, int]:
    numbers = range(stage.pipeline.partitions)
    asked = {TopicPartition(stage.pipeline.topic, n): OffsetSpec.latest() for n in numbers}
    client = admin(stage)
    answers = client.list_offsets(asked, isolation_level=IsolationLevel.READ_COMMITTED)
    return {place.partition: future.result(30).offset for place, future in answers.items()}


# --- the group --------------------------------------------------------------------------------------


def _set_offsets_elsewhere(stage: Stage) -> None:
    topic, group = stage.pipeline.topic, stage.pipeline.id
    elsewhere = [TopicPartition(topic, number, offset) for number, offset in enumerate((0, 7, 9_999, 500))]
    request = [ConsumerGroupTopicPartitions(group, elsewhere)]
    client = admin(stage)
    await_that(
        "change of the group's offsets, refused while it has a member",
        lambda: client.alter_consumer_group_offsets(request)[group].exception(30) is None,
    )


def _delete_group(stage: Stage) -> None:
    client, group = admin(stage), stage.pipeline.id
    await_that(
        "deletion of the group, refused while it has a member",
        lambda: client.delete_consumer_groups([group])[group].exception(30) is None,
    )


put(
    GROUP,
    Scenario(
        "group_offsets_set_elsewhere",
        "somebody sets the consumer group's offsets elsewhere, to the beginning and past the end, while no "
        "run is alive",
        "nothing: the table alone says where to go on",
        partial(is_met_between_runs, fault=_set_offsets_elsewhere),
    ),
    Scenario(
        "group_deleted",
        "somebody deletes the consumer group while no run is alive",
        "nothing: the table alone says where to go on",
        partial(is_met_between_runs, fault=_delete_group),
    ),
)
