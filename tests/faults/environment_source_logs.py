"""Source logs that are not as one wishes: they begin late, or cannot be read."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from tests.broker_fixture import create_topic
from tests.damage import Damage, damage
from tests.faults.acts import CALM_PER_SECOND, RECORDS, halts_after_s, plain, proved, runs_well
from tests.faults.commits import wall_ms
from tests.faults.scenario import Outcome, Scenario, put, scenario
from tests.faults.stage import Stage
from tests.harness import await_that, event

GROUP = "Source"
GONE = 600
"""Offsets that retention has had before the pipeline knows of the log."""


def cut(stage: Stage, topic: str, partitions: list[int], before: int) -> None:
    """As retention would: what lies before this offset goes."""
    admin = AdminClient({"bootstrap.servers": stage.broker.bootstrap_servers})
    for future in admin.delete_records([TopicPartition(topic, n, before) for n in partitions]).values():
        future.result(30)


def fill(stage: Stage, topic: str, partitions: list[int], count: int, first: int = 1_000_000) -> None:
    """`count` events in each of these source partitions."""
    producer = Producer({"bootstrap.servers": stage.broker.bootstrap_servers, "linger.ms": 5})
    for number in range(count * len(partitions)):
        producer.produce(topic, event(first + number), partition=partitions[number % len(partitions)])
    assert producer.flush(30) == 0


@scenario(
    GROUP,
    fault="a topic is added to source.topics whose log begins at 600: retention has had what lay before",
    expected="its start is resolved once and committed before anything of it is read; the others go on",
    in_tests=True,
)
def topic_added_whose_log_begins_late(stage: Stage) -> Outcome:
    pipeline = stage.pipeline
    pipeline.produce(RECORDS)
    runs_well(pipeline)
    added = f"{pipeline.topic}-added"
    create_topic(stage.broker.bootstrap_servers, added, partitions=2)
    fill(stage, added, [0, 1], RECORDS)
    cut(stage, added, [0, 1], GONE)
    pipeline.settings["source.topics"] = f"{pipeline.topic},{added}"
    pipeline.config.write_text(
        pipeline.config.read_text().replace(f'["{pipeline.topic}"]', f'["{pipeline.topic}", "{added}"]')
    )
    for _turn in range(2):  # the second one finds the start resolved
        pipeline.produce(RECORDS)
        plain(runs_well(pipeline))
        fill(stage, added, [0, 1], 0)
    verdict = pipeline.verify()
    assert verdict["exact"] is True, verdict
    assert verdict["rows"] == 3 * RECORDS + 2 * (RECORDS - GONE), verdict
    return Outcome(notes={"rows": verdict["rows"]})


@scenario(
    GROUP,
    fault="source partitions are added while the pipeline runs, and their logs begin at 600 before it is "
    "known",
    expected="they are read from where their logs begin, and commits go on",
    limit_s=90,
)
def partitions_added_whose_logs_begin_late(stage: Stage) -> Outcome:
    pipeline = stage.pipeline
    run = stage.start(per_second=CALM_PER_SECOND)
    client = AdminClient({"bootstrap.servers": stage.broker.bootstrap_servers})
    client.create_partitions([NewPartitions(pipeline.topic, 6)])[pipeline.topic].result(30)
    began_ms = wall_ms()
    await_that("leader of the new source partitions", lambda: _filled(stage), deadline_s=60)
    cut(stage, pipeline.topic, [4, 5], GONE)
    before = stage.stop_load()
    pipeline.partitions = 6

    def all_read() -> bool:
        return pipeline.committed() == before + 2 * RECORDS

    await_that("commit of the new source partitions", all_read, deadline_s=400)
    seconds = (wall_ms() - began_ms) / 1_000
    pipeline.produced = before + 2 * (RECORDS - GONE)
    return proved(stage, run, recovery_s=seconds)


def _filled(stage: Stage) -> bool:
    fill(stage, stage.pipeline.topic, [4, 5], RECORDS)
    return True


# --- what cannot be read ----------------------------------------------------------------------------


def _damaged(stage: Stage, *, how: Damage) -> Outcome:
    pipeline = stage.pipeline
    pipeline.produce(RECORDS)
    for _turn in range(3):  # a batch or more each
        fill(stage, pipeline.topic, [0], 100, first=pipeline.produced)
        pipeline.produced += 100
    gone = damage(stage.broker.folder, pipeline.topic, 0, -2, how)
    said = (f"{pipeline.topic}:0 at offset {gone.first}: ", "kafka-dump-log")
    halted_s = halts_after_s(stage.restart(), *said)
    verdict = pipeline.verify()  # of the other source partitions as much as was read by then
    assert verdict["exact"] is True, verdict
    rows = json.loads(pipeline.command("offsets", "--output", "json").stdout)
    assert [row["committed"] for row in rows if row["partition"] == 0] == [gone.first], rows

    pipeline.change_offsets("--set", f"{pipeline.topic}:0={gone.next}", reason="damaged batch")
    runs_well(pipeline)
    verdict = pipeline.verify()
    assert verdict["rows"] == pipeline.produced - (gone.next - gone.first), verdict
    return Outcome(notes={"halted_after_s": halted_s, "rows": verdict["rows"]})


# --- who else is in the group -----------------------------------------------------------------------


@contextmanager
def foreign_member(stage: Stage, assignor: str) -> Iterator[None]:
    """Somebody who takes the pipeline's group for its own."""
    consumer = Consumer(
        {
            "bootstrap.servers": stage.broker.bootstrap_servers,
            "group.id": stage.pipeline.id,
            "partition.assignment.strategy": assignor,
        }
    )
    given = threading.Event()
    ended = threading.Event()
    consumer.subscribe([stage.pipeline.topic], on_assign=lambda _consumer, _places: given.set())

    def poll() -> None:
        while not ended.is_set():
            consumer.poll(0.1)

    polls = threading.Thread(target=poll)
    polls.start()
    try:
        assert given.wait(60), "the foreign member was given nothing"
        yield
    finally:
        ended.set()
        polls.join()
        consumer.close()


def _halts_beside(stage: Stage, *, assignor: str, said: tuple[str, ...]) -> Outcome:
    """With a foreign member in the group: the first of `said` in the status, then all in the log."""
    pipeline = stage.pipeline
    words = [one.format(topic=pipeline.topic) for one in said]
    pipeline.produce(RECORDS)
    with foreign_member(stage, assignor):
        run = stage.restart()
        await_that(
            f"status that says {words[0]}",
            lambda: words[0] in pipeline.command("status").stdout,
            deadline_s=120,
        )
        halted_s = halts_after_s(run, *words, "WARNING", deadline_s=300)
    runs_well(pipeline)
    pipeline.assert_exact(RECORDS)
    return Outcome(notes={"halted_after_s": halted_s})


HALTS_AT_IT = (
    "everything before it is committed, nothing behind it; the run halts and names topic, source "
    "partition and offset; set behind the damage by the operator, the pipeline goes on"
)
put(
    GROUP,
    Scenario(
        "batch_damaged_on_the_brokers_disk",
        "a batch of the source log is damaged on the broker's disk, and its checksum says so",
        HALTS_AT_IT,
        partial(_damaged, how=Damage.BITS),
        in_tests=True,
    ),
    Scenario(
        "batch_compressed_as_nobody_knows",
        "a batch of the source log is compressed as nobody knows how, and its checksum is right",
        HALTS_AT_IT,
        partial(_damaged, how=Damage.CODEC),
    ),
    Scenario(
        "group_held_by_another_assignor",
        "somebody with another assignor is in the pipeline's consumer group when it starts",
        "a warning and `lockstep status` say who keeps the workers out; after 120 s the run halts and "
        "says so; once the other one has gone the pipeline goes on",
        partial(_halts_beside, assignor="range", said=("does not take this worker in", "cooperative-sticky")),
    ),
    Scenario(
        "group_shared_with_a_stranger",
        "somebody with the workers' own assignor is in the pipeline's consumer group, and keeps its share",
        "a warning and `lockstep status` name it and what it keeps from being read; after 120 s the run "
        "halts and says so; once the other one has gone the pipeline goes on",
        partial(
            _halts_beside,
            assignor="cooperative-sticky",
            said=("which is no worker of this pipeline", "{topic}"),
        ),
    ),
)
