"""Records that are no rows: a flood of them, more than are allowed, too large ones, and no topic for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

import numpy as np
import psutil
from confluent_kafka import Consumer, Producer, TopicPartition

from lockstep.errors import EXIT_FAILED, EXIT_HALTED
from tests.broker_fixture import create_topic, delete_topic, set_config, set_produce_quota
from tests.faults.acts import ends_with, hold, plain, runs_well, stops_well
from tests.faults.scenario import Outcome, Scenario, put, scenario
from tests.faults.stage import START_S, Stage
from tests.harness import Run, await_that

GROUP = "Source"
SET_ASIDE = {"record.on_error": "dead_letter"}
NO_TOPIC_MADE = {**SET_ASIDE, "record.dead_letter_partitions": "0"}
BAD = b"nope"
FLOOD = 2_500_000
GOOD = 2_000
MEMORY_BYTES = 512_000_000
ABOVE_CAP_BYTES = 350_000_000
"""What a worker's process may take beside the records that it holds: Python, Arrow, librdkafka's queue."""
LARGE_BYTES = 1_500_000
FLOOD_S = 300.0
SLOW, SLOW_BYTES, SLOW_BYTES_PER_S = 800, 50_000, 1_000_000
"""Rejects that do not compress, and take longer than a dead-letter topic may be silent."""
CLIENT = "rdkafka"
"""Clients that say no name of their own."""
WRITE_TIMEOUT_S = 20
SILENT_S = 90.0
REFUSED_MAX_S = 60.0
"""Spark is started by then, and no worker. It takes 6 s on a machine that has nothing else to do."""


def flood(stage: Stage, count: int, *, codec: str = "none") -> None:
    """So many bad records of four bytes, over all source partitions."""
    producer = Producer(
        {
            "bootstrap.servers": stage.broker.bootstrap_servers,
            "linger.ms": 50,
            "queue.buffering.max.messages": 1_000_000,
            "compression.codec": codec,
        }
    )
    for number in range(count):
        while True:
            try:
                producer.produce(stage.pipeline.topic, BAD, partition=number % stage.pipeline.partitions)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(60) == 0


def noisy(stage: Stage, count: int, size_bytes: int) -> None:
    """So many bad records of so much noise, over all source partitions."""
    noise = np.random.default_rng(7)
    producer = Producer({"bootstrap.servers": stage.broker.bootstrap_servers})
    for number in range(count):
        producer.produce(
            stage.pipeline.topic, noise.bytes(size_bytes), partition=number % stage.pipeline.partitions
        )
    assert producer.flush(60) == 0


def dead_letters(stage: Stage) -> int:
    """How many there are; 0 where there is no topic."""
    consumer = Consumer({"bootstrap.servers": stage.broker.bootstrap_servers, "group.id": "count"})
    try:
        topic = f"{stage.pipeline.topic}.dlq"
        parts = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        return sum(
            consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=30)[1] for number in parts
        )
    finally:
        consumer.close()


def set_message_bytes(stage: Stage, topic: str, size_bytes: int) -> None:
    set_config(stage.broker.bootstrap_servers, topic, {"max.message.bytes": str(size_bytes)})


def assert_set_aside(stage: Stage, *, rows: int, rejects: int) -> None:
    """Every record is a row or a reject, by what the table's commits say."""
    verdict = stage.pipeline.verify()
    assert verdict["exact"] is not False and verdict["missing"] == 0, verdict
    assert (verdict["rows"], verdict["rejected"]) == (rows, rejects), verdict


@contextmanager
def watched(run: Run) -> Iterator[dict[int, int]]:
    """The highest resident memory of each worker that the run has, by pid."""
    peaks: dict[int, int] = {}
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.2):
            for worker in (run.status() or {"workers": []})["workers"]:
                with suppress(psutil.Error):
                    pid = int(worker["pid"])
                    peaks[pid] = max(peaks.get(pid, 0), psutil.Process(pid).memory_info().rss)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        ended.set()
        thread.join(10)


def _flooded(stage: Stage, *, codec: str) -> Outcome:
    pipeline = stage.pipeline
    pipeline.produce(GOOD)
    flood(stage, FLOOD, codec=codec)
    pipeline.produce(GOOD)
    run = stage.restart("--until", "latest")
    began = time.monotonic()
    with watched(run) as peaks:
        assert run.wait(START_S + FLOOD_S) == 0, run.text()[-4_000:]
    seconds = time.monotonic() - began
    plain(run)
    assert "rolled back" not in run.text(), run.text()[-4_000:]
    assert len(peaks) == 1, f"workers: {peaks}"
    peak = max(peaks.values())
    assert peak < MEMORY_BYTES + ABOVE_CAP_BYTES, f"a worker took {peak / 1e6:,.0f} MB"
    assert dead_letters(stage) == FLOOD
    assert_set_aside(stage, rows=2 * GOOD, rejects=FLOOD)
    return Outcome(notes={"rejects": FLOOD, "worker_peak_mb": peak // 1_000_000, "seconds": round(seconds)})


FLOODED = {**SET_ASIDE, "pipeline.workers": "1", "memory.per_worker": f"{MEMORY_BYTES}B"}
put(
    GROUP,
    Scenario(
        "a_flood_of_rejects",
        "2,500,000 bad records of four bytes on the topic, to be set aside by one worker of 512 MB",
        "all are in the dead-letter topic, which the run has made, and counted in commits; the worker "
        "stays within its memory, nobody dies, no transaction is given up",
        partial(_flooded, codec="none"),
        settings=FLOODED,
    ),
    Scenario(
        "a_compressed_flood_of_rejects",
        "the same flood in a log that is compressed, to some bytes a record",
        "the same: what a worker fetches ahead is bounded by what it unpacks to",
        partial(_flooded, codec="lz4"),
        settings=FLOODED,
    ),
)


@scenario(
    GROUP,
    fault="a producer goes wrong, and more records are bad than record.max_rejects allows",
    expected="the run halts before one of them is set aside, and says how many, where, and why; with the "
    "limit raised the next run sets them aside and loses nothing",
    settings={**SET_ASIDE, "record.max_rejects": "5%"},
)
def more_rejects_than_allowed(stage: Stage) -> Outcome:
    pipeline = stage.pipeline
    pipeline.produce(GOOD)
    runs_well(pipeline)
    flood(stage, GOOD)
    said = ("more than record.max_rejects (5%) allows", f"({pipeline.topic}:", "not a JSON object")
    ends_with(stage.restart(), EXIT_HALTED, *said)
    assert dead_letters(stage) == 0
    pipeline.assert_exact(GOOD)
    del pipeline.settings["record.max_rejects"]
    runs_well(pipeline)
    assert dead_letters(stage) == GOOD
    assert_set_aside(stage, rows=GOOD, rejects=GOOD)
    return Outcome(notes={"rows": GOOD, "rejects": GOOD})


@scenario(
    GROUP,
    fault="a bad record of 1.5 MB, and a dead-letter topic that takes a tenth of that",
    expected="the run says so at its start, and halts once at the record, naming it and what to set; with "
    "the topic's limit raised the next run sets it aside whole",
    settings=SET_ASIDE,
)
def a_reject_larger_than_dead_letters_may_be(stage: Stage) -> Outcome:
    pipeline = stage.pipeline
    dead = f"{pipeline.topic}.dlq"
    set_message_bytes(stage, pipeline.topic, 2 * LARGE_BYTES)
    create_topic(stage.broker.bootstrap_servers, dead, config={"max.message.bytes": str(LARGE_BYTES // 10)})
    pipeline.produce(GOOD)
    noise = np.random.default_rng(7).bytes(LARGE_BYTES)
    producer = Producer(
        {"bootstrap.servers": stage.broker.bootstrap_servers, "message.max.bytes": 2 * LARGE_BYTES}
    )
    producer.produce(pipeline.topic, noise, partition=0)
    assert producer.flush(30) == 0
    run = stage.restart()
    said = (f"{dead} has max.message.bytes", f"{pipeline.topic}-0-{GOOD // 4} ", "is larger than")
    ends_with(run, EXIT_HALTED, *said)
    assert run.text().count("is larger than the dead-letter topic") <= 4, run.text()[-4_000:]
    assert dead_letters(stage) == 0
    set_message_bytes(stage, dead, 3 * LARGE_BYTES)
    runs_well(pipeline)
    assert dead_letters(stage) == 1
    assert_set_aside(stage, rows=GOOD, rejects=1)
    return Outcome(notes={"rows": GOOD, "bytes": LARGE_BYTES})


@scenario(
    GROUP,
    fault="the dead-letter topic is missing, and record.dead_letter_partitions = 0 says not to make it",
    expected="the run is refused at its start, with the topic's name, before a worker is started; made by "
    "hand, the next run uses it",
    settings=NO_TOPIC_MADE,
)
def no_dead_letter_topic(stage: Stage) -> Outcome:
    pipeline = stage.pipeline
    pipeline.produce(GOOD)
    flood(stage, 10)
    began = time.monotonic()
    run = stage.restart()
    ends_with(run, EXIT_FAILED, f"{pipeline.topic}.dlq does not exist", "record.dead_letter_partitions = 1")
    refused_s = time.monotonic() - began
    assert refused_s < REFUSED_MAX_S, f"refused after {refused_s:.0f} s"
    assert "worker-0" not in run.text(), run.text()[-4_000:]
    create_topic(stage.broker.bootstrap_servers, f"{pipeline.topic}.dlq")
    runs_well(pipeline)
    assert dead_letters(stage) == 10
    pipeline.assert_exact(GOOD)
    return Outcome(notes={"rows": GOOD, "refused_after_s": round(refused_s)})


@scenario(
    GROUP,
    fault="40 MB of bad records that do not compress, and a quota by which the broker takes 1 MB a second",
    expected="the worker is waited for, since it says that it gets on: all are in the dead-letter topic, "
    "each once, and nobody dies, no transaction is given up",
    settings={**SET_ASIDE, "pipeline.workers": "1"},
)
def a_slow_dead_letter_topic(stage: Stage) -> Outcome:
    pipeline, servers = stage.pipeline, stage.broker.bootstrap_servers
    pipeline.produce(GOOD)
    noisy(stage, SLOW, SLOW_BYTES)
    set_produce_quota(servers, CLIENT, SLOW_BYTES_PER_S)
    try:
        began = time.monotonic()
        run = stage.restart("--until", "latest")
        assert run.wait(START_S + FLOOD_S) == 0, run.text()[-4_000:]
        seconds = time.monotonic() - began
    finally:
        set_produce_quota(servers, CLIENT, 0)
    plain(run)
    for words in ("rolled back", "worker-0 ended"):
        assert words not in run.text(), run.text()[-4_000:]
    assert dead_letters(stage) == SLOW
    assert_set_aside(stage, rows=GOOD, rejects=SLOW)
    return Outcome(notes={"rejects": SLOW, "bytes": SLOW * SLOW_BYTES, "seconds": round(seconds)})


@scenario(
    GROUP,
    fault="somebody deletes the dead-letter topic, which the run is not to make "
    "(record.dead_letter_partitions = 0), and makes it again after 90 s; a worker may be silent for 20 s",
    expected="the log and `lockstep status` name the topic; workers are replaced, which is waited out as an "
    "outage; once the topic is there, it gets all, and commits go on by themselves",
    limit_s=60,
    settings={
        **NO_TOPIC_MADE,
        "transaction.interval": "1s",
        "transaction.write_timeout": f"{WRITE_TIMEOUT_S}s",
    },
)
def dead_letter_topic_gone_for_90_s(stage: Stage) -> Outcome:
    pipeline, servers = stage.pipeline, stage.broker.bootstrap_servers
    dead = f"{pipeline.topic}.dlq"
    create_topic(servers, dead)
    pipeline.produce(GOOD)
    run = stage.restart()
    run.await_rows(GOOD, deadline_s=START_S)
    delete_topic(servers, dead)
    flood(stage, GOOD)
    pipeline.produce(GOOD)
    said = f"the dead-letter topic {dead} "
    await_that("word of the topic", lambda: said in run.text(), deadline_s=60)
    hold(SILENT_S)
    failures = (run.status() or {})["failures"]
    assert failures["pipeline"] == 0 and failures["outage_ms"] > 0, failures
    assert any(said in reason for reason in failures["reasons"]), failures
    create_topic(servers, dead)
    ended = time.monotonic()
    run.await_rows(2 * GOOD, deadline_s=120)
    recovery_s = time.monotonic() - ended
    stops_well(run)
    assert dead_letters(stage) >= GOOD
    assert_set_aside(stage, rows=2 * GOOD, rejects=GOOD)
    replaced = sum(" ended: " in line and said in line for line in run.text().splitlines())
    return Outcome(recovery_s=recovery_s, notes={"rejects": GOOD, "workers_replaced": replaced})
