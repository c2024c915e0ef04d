"""Workers that write for longer than the write timeout, and say so all the time."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing

from confluent_kafka import Producer

from control_topic.kafka import ControlReader
from control_topic.messages import AbortCommit, EndCommit, Message, StartCommit, WriteProgress, WriteStatus
from tests.faults.acts import plain, warnings
from tests.faults.scenario import Outcome, scenario
from tests.faults.stage import Stage
from tests.harness import await_that, event

GROUP = "Slow writers"
RECORDS = 100_000
LATER = 20_000
"""Of them come while the first ones are being written, so that a transaction follows."""
TABLE_PARTITIONS = 5_000
SETTINGS = {"transaction.interval": "2s", "table.partition_by": "note"}
CLOCKS_S = 1.0
"""What took so much longer by the times of messages did so by its coordinator's clock, too."""
RECORDS_MIN = 1_000
"""No transaction is made smaller."""
END_S = 900.0
"""For the whole run; some 20,000 files are written and made durable, one after the other."""
BEGIN_S = 120.0
READ_S = 60.0
VERIFY_S = 600.0
"""It opens every file of the table."""


@scenario(
    GROUP,
    fault="100,000 records belong to 5,000 table partitions, with an interval of 2 s and a write timeout of "
    "20 s: two workers write thousands of files for one transaction",
    expected="a worker that says how far it is is waited for, so that no transaction is aborted; "
    "what follows one that took longer than the write timeout is made smaller; the table is exact",
    settings={**SETTINGS, "transaction.write_timeout": "20s"},
)
def five_thousand_table_partitions(stage: Stage) -> Outcome:
    _produce(stage, RECORDS)
    run = stage.restart("--until", "latest")
    status = run.wait(END_S)
    assert status == 0, f"exit code {status}:\n{run.text()[-4_000:]}"
    return _outcome(stage, write_timeout_s=20)


@scenario(
    GROUP,
    fault="records of 5,000 table partitions take much longer to write than the write timeout of 5 s, "
    "and more of them come meanwhile",
    expected="a worker that says how far it is is waited for, so that no transaction is aborted; the next "
    "transaction may hold half as much; the table is exact",
    settings={**SETTINGS, "transaction.write_timeout": "5s"},
)
def transactions_longer_than_the_write_timeout(stage: Stage) -> Outcome:
    _produce(stage, RECORDS - LATER)
    run = stage.restart()
    _await_end(stage)
    _produce(stage, LATER)
    stage.drain(deadline_s=END_S)
    status = run.stop()
    assert status == 0, f"exit code {status}:\n{run.text()[-4_000:]}"
    outcome = _outcome(stage, write_timeout_s=5)
    assert outcome.notes["slow_rounds"], f"nothing took longer than the write timeout: {outcome.notes}"
    return outcome


def _outcome(stage: Stage, *, write_timeout_s: int) -> Outcome:
    """Nothing was aborted, the table is exact, and less follows what took too long. The run has ended."""
    run, messages = stage.current, said(stage)
    _assert_exact(stage)
    plain(run)
    aborted = [one.body.reason for one in messages if isinstance(one.body, AbortCommit)]
    assert not aborted, f"transactions were aborted although everybody wrote: {aborted}"
    reports = sum(isinstance(one.body, WriteProgress) for one in messages)
    assert reports, "nobody said how far it was"
    limits = _limits_after_slow_rounds(messages, slow_s=write_timeout_s + CLOCKS_S)
    return Outcome(
        notes={
            "records": RECORDS,
            "transactions": sum(isinstance(one.body, StartCommit) for one in messages),
            "longest_write_s": round(max(_waits_s(messages), default=0.0), 1),
            "progress_reports": reports,
            "slow_rounds": ", ".join(f"{held:,} records, the next at most {most:,}" for held, most in limits),
            "warnings": warnings(run),
        }
    )


def _produce(stage: Stage, count: int) -> None:
    pipeline = stage.pipeline
    producer = Producer({"bootstrap.servers": stage.broker.bootstrap_servers, "linger.ms": 20})
    for number in range(pipeline.produced, pipeline.produced + count):
        while True:
            try:
                value = event(number, note=f"place-{number * 7 % TABLE_PARTITIONS:04d}")
                producer.produce(pipeline.topic, value, partition=number % pipeline.partitions)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(60) == 0
    pipeline.produced += count


def _assert_exact(stage: Stage) -> None:
    done = stage.pipeline.command("verify", "--output", "json", deadline_s=VERIFY_S)
    verdict = json.loads(done.stdout)
    assert verdict["exact"] is True and verdict["rows"] == RECORDS, done.stdout[:4_000]


def _reader(stage: Stage) -> closing[ControlReader]:
    kafka = {"bootstrap.servers": stage.broker.bootstrap_servers}
    topic = f"{stage.pipeline.topic}-control"
    return closing(ControlReader(kafka, topic, start="beginning", pipeline=stage.pipeline.id))


def _await_end(stage: Stage) -> None:
    """Somebody has said END: from now on the files of the first transaction are written."""
    with _reader(stage) as reader:

        def probe() -> bool:
            said = [one.content for one in reader.poll(0.2)]
            return any(isinstance(one, Message) and isinstance(one.body, EndCommit) for one in said)

        await_that("END of the first transaction", probe, deadline_s=BEGIN_S)


def said(stage: Stage) -> list[Message]:
    """All that stands on the control topic. The run has ended."""
    messages: list[Message] = []
    with _reader(stage) as reader:
        until = time.monotonic() + READ_S
        while not reader.caught_up:
            assert time.monotonic() < until, "the control topic could not be read to its end"
            messages += [one.content for one in reader.poll(0.2) if isinstance(one.content, Message)]
    return messages


def _limits_after_slow_rounds(messages: list[Message], *, slow_s: float) -> list[tuple[int, int]]:
    """Of every round that took so long: the records it held, and what the next START allows. It is less."""
    ended: dict[str, int] = {}
    took: dict[str, tuple[float, int]] = {}
    followed: list[tuple[int, int]] = []
    last = ""
    for one in messages:
        if isinstance(one.body, EndCommit):
            ended.setdefault(one.transaction, one.sent_at_ms)
        elif isinstance(one.body, WriteStatus):
            took_s = (one.sent_at_ms - ended[one.transaction]) / 1_000
            _, records = took.get(one.transaction, (0.0, 0))
            took[one.transaction] = took_s, records + sum(r.records for r in one.body.ranges)
        elif isinstance(one.body, StartCommit) and one.transaction != last:
            took_s, records = took.get(last, (0.0, 0))
            if took_s > slow_s:
                limit = one.body.records_max
                assert 0 < limit < max(records, RECORDS_MIN + 1), (
                    f"{records} records took {took_s:.1f} s, and the next transaction may hold {limit}"
                )
                followed.append((records, limit))
            last = one.transaction
    return followed


def _waits_s(messages: list[Message]) -> Iterator[float]:
    """From each transaction's first END to the last progress that was said in it."""
    ended: dict[str, int] = {}
    for one in messages:
        if isinstance(one.body, EndCommit):
            ended.setdefault(one.transaction, one.sent_at_ms)
        elif isinstance(one.body, WriteProgress) and one.transaction in ended:
            yield (one.sent_at_ms - ended[one.transaction]) / 1_000
