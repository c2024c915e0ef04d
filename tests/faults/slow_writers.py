"""Workers that write for longer than the write timeout, and say so all the time."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing

from confluent_kafka import Producer

from control_topic.kafka import ControlReader
from control_topic.messages import AbortCommit, EndCommit, Message, WriteProgress
from tests.faults.acts import plain, warnings
from tests.faults.scenario import Outcome, scenario
from tests.faults.stage import Stage
from tests.harness import event

GROUP = "Slow writers"
RECORDS = 100_000
TABLE_PARTITIONS = 5_000
END_S = 900.0
"""For the whole run; some 20,000 files are written and made durable, one after the other."""
READ_S = 60.0
VERIFY_S = 600.0
"""It opens every file of the table."""


@scenario(
    GROUP,
    fault="100,000 records belong to 5,000 table partitions, with an interval of 2 s and a write timeout of "
    "20 s: two workers write thousands of files for one transaction",
    expected="a worker that says how far it is is waited for, so that no transaction is aborted; "
    "what follows is made smaller; the table is exact",
)
def five_thousand_table_partitions(stage: Stage) -> Outcome:
    pipeline = stage.pipeline
    pipeline.settings |= {
        "transaction.interval": "2s",
        "transaction.write_timeout": "20s",
        "table.partition_by": "note",
    }
    _produce(stage)
    run = stage.restart("--until", "latest")
    status = run.wait(END_S)
    assert status == 0, f"exit code {status}:\n{run.text()[-4_000:]}"
    messages = _said(stage)
    longest_s = max(_waits_s(messages), default=0.0)
    _assert_exact(stage)
    plain(run)
    aborted = [one.body.reason for one in messages if isinstance(one.body, AbortCommit)]
    assert not aborted, f"transactions were aborted although everybody wrote: {aborted}"
    reports = sum(isinstance(one.body, WriteProgress) for one in messages)
    assert reports, "nobody said how far it was"
    return Outcome(
        notes={
            "records": RECORDS,
            "transactions": sum(isinstance(one.body, EndCommit) for one in messages),
            "longest_write_s": round(longest_s, 1),
            "progress_reports": reports,
            "warnings": warnings(run),
        }
    )


def _produce(stage: Stage) -> None:
    pipeline = stage.pipeline
    producer = Producer({"bootstrap.servers": stage.broker.bootstrap_servers, "linger.ms": 20})
    for number in range(RECORDS):
        while True:
            try:
                value = event(number, note=f"place-{number * 7 % TABLE_PARTITIONS:04d}")
                producer.produce(pipeline.topic, value, partition=number % pipeline.partitions)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(60) == 0
    pipeline.produced = RECORDS


def _assert_exact(stage: Stage) -> None:
    done = stage.pipeline.command("verify", "--output", "json", deadline_s=VERIFY_S)
    verdict = json.loads(done.stdout)
    assert verdict["exact"] is True and verdict["rows"] == RECORDS, done.stdout[:4_000]


def _said(stage: Stage) -> list[Message]:
    """All that stands on the control topic. The run has ended."""
    kafka = {"bootstrap.servers": stage.broker.bootstrap_servers}
    messages: list[Message] = []
    topic = f"{stage.pipeline.topic}-control"
    with closing(ControlReader(kafka, topic, start="beginning", pipeline=stage.pipeline.id)) as reader:
        until = time.monotonic() + READ_S
        while not reader.caught_up:
            assert time.monotonic() < until, "the control topic could not be read to its end"
            messages += [one.content for one in reader.poll(0.2) if isinstance(one.content, Message)]
    return messages


def _waits_s(messages: list[Message]) -> Iterator[float]:
    """From each transaction's first END to the last progress that was said in it."""
    ended: dict[str, int] = {}
    for one in messages:
        if isinstance(one.body, EndCommit):
            ended.setdefault(one.transaction, one.sent_at_ms)
        elif isinstance(one.body, WriteProgress) and one.transaction in ended:
            yield (one.sent_at_ms - ended[one.transaction]) / 1_000
