"""Dead letters of a whole pipeline: set aside by a run, tried, sent back, rows of the next run, each once."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from control_topic.messages import REJECTS_LISTED_MAX, SourcePartition
from participant.records import headers
from participant.records.raw import RawBatch, Values
from participant.records.rejects import HeldRejects, Rejects
from participant.source.dead_letters import DeadLetters
from tests.harness import SCHEMA, Pipeline, event

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

NARROW = SCHEMA.replace("user_id BIGINT", "user_id INT")
LARGE = 2**40


def letters(pipeline: Pipeline, *options: str) -> list[Any]:
    """JSON lines of the command, the summary last."""
    done = pipeline.command("dead-letters", "--output", "json", *options)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def write_aborted_letters(pipeline: Pipeline, number: int, offsets: range) -> None:
    """Write letters as a worker does whose transaction aborts after it."""
    count = len(offsets)
    batch = RawBatch(
        partition=SourcePartition(pipeline.topic, number),
        offsets=np.array(offsets, dtype=np.int64),
        timestamps_ms=np.full(count, 1_700_000_000_000, dtype=np.int64),
        values=Values.of([event(9_000 + one) for one in offsets]),
        record_keys=Values.of([None] * count),
        headers=Values.of([headers.pack([])] * count),
    )
    reasons = dict.fromkeys(range(count), "field user_id")
    rejected = HeldRejects.of(batch, Rejects.of(reasons, batch.offsets))
    kafka = {"bootstrap.servers": pipeline.broker.bootstrap_servers}
    with closing(DeadLetters(kafka, "", bytes_max=1 << 20)) as sender:
        sender.send([rejected])


def test_letters_of_an_aborted_transaction_are_not_replayed_once_their_records_are_rows(
    pipeline: Pipeline,
) -> None:
    """Also of a commit that lists only some of its rejects, which its run's letters prove."""
    count, aborted = REJECTS_LISTED_MAX + 200, 5
    replay = ("--set", f"record.schema={SCHEMA}", "--replay", "--mended", "--limit", "10000")
    pipeline.settings |= {"record.on_error": "dead_letter", "record.schema": NARROW}
    pipeline.produce(500)
    large = [
        event(1_000 * one).replace(b'"user_id":0', b'"user_id":%d' % LARGE) for one in range(9, 9 + count)
    ]
    pipeline.produce_raw(large, partition=2)
    assert pipeline.run_to_end().process.returncode == 0
    *_, told = letters(pipeline, *replay)
    assert told["summary"]["would_be_sent"] == count
    assert not any(told["summary"]["not_rejected_by_a_commit"].values())

    write_aborted_letters(pipeline, 0, range(aborted))
    *_, told = letters(pipeline, *replay, "--execute", "--why", "user_id is wider now")
    unproved = told["summary"]["not_rejected_by_a_commit"]
    assert told["summary"]["sent"] == count
    assert unproved == {"committed_as_row": aborted, "not_committed": 0, "not_covered": 0, "undecided": 0}
    pipeline.settings["record.schema"] = SCHEMA
    assert pipeline.run_to_end().process.returncode == 0
    pipeline.assert_exact(500 + count)


def test_what_a_run_set_aside_is_a_row_of_the_next_once_the_schema_is_mended_and_it_was_sent_back(
    pipeline: Pipeline,
) -> None:
    narrow, wide = ("--set", f"record.schema={NARROW}"), ("--set", f"record.schema={SCHEMA}")
    assert NARROW != SCHEMA
    pipeline.settings |= {"record.on_error": "dead_letter", "record.schema": NARROW}
    pipeline.produce(500)
    bad = [
        event(number).replace(b'"user_id":0', b'"user_id":%d' % LARGE)
        for number in range(1_000, 4_000, 1_000)
    ]
    pipeline.produce_raw([*bad, b"no json"], partition=2)
    pipeline.produce(500)
    assert pipeline.run_to_end().process.returncode == 0
    pipeline.assert_exact(1_000)

    *shown, _ = letters(pipeline, *narrow)
    assert [one["now"]["row"] for one in shown] == [False] * 4
    *tried, _ = letters(pipeline, *narrow, "--schema", SCHEMA)
    assert [one["now"]["row"] for one in tried] == [True, True, True, False]
    *_, told = letters(pipeline, *wide, "--replay", "--mended", "--execute", "--why", "user_id is wider now")
    assert (told["summary"]["sent"], told["summary"]["left_out"]) == (3, 1)

    pipeline.settings["record.schema"] = SCHEMA
    assert pipeline.run_to_end().process.returncode == 0
    pipeline.assert_exact(1_003)
    [left, told] = letters(pipeline, *wide, "--replay")
    assert (left["offset"], told["summary"]["sent_back_before"]) == (shown[3]["offset"], 3)
