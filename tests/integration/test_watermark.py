"""How far a table is complete, by event time, on real runs: idle source partitions, a reset, absurd times."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import count

import pytest
from confluent_kafka import Producer

from lockstep.hooks.complete import MARKER
from lockstep.hooks.stretches import MINUTE_MS, Stretch, completed
from table.errors import TableError
from table.kinds import HUDI, table_kind
from table.watermark import Watermark
from tests.debezium_events import POSTGRESQL, event
from tests.harness import Pipeline, await_that

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

LATENESS_MS = 1_000
STARTED_S = 240
"""A machine that does much else takes minutes to start Spark."""
YEAR_9999_MS = 253_370_764_800_000


class Events:
    """Events of a topic whose `user_id` is when they happened."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._numbers = count()
        self._sent = 0

    def await_all_committed(self) -> None:
        await_that(f"commit of all {self._sent}", lambda: self._pipeline.committed() == self._sent)

    def happened(self, partition: int, *times_ms: int | None) -> None:
        self._sent += len(times_ms)
        self._pipeline.produce_raw(
            [
                json.dumps({"event_id": f"e-{next(self._numbers)}", "user_id": at, "day": "d"}).encode()
                for at in times_ms
            ],
            partition=partition,
        )


def watermark(pipeline: Pipeline) -> Watermark | None:
    """The newest commit's; None before there is one."""
    try:
        state = table_kind(HUDI).reader(pipeline.place.plain, pipeline.place.settings).newest(pipeline.id)
    except TableError:
        return None
    return state.watermark if state is not None else None


def at_ms(pipeline: Pipeline) -> int | None:
    found = watermark(pipeline)
    return found.at_ms if found is not None else None


def complete_through(pipeline: Pipeline, time_ms: int, *, timeout: str = "5s") -> tuple[int, str]:
    """`lockstep wait`: its exit code, and what it said."""
    spelled = datetime.fromtimestamp(time_ms / 1_000, UTC).isoformat(timespec="milliseconds")
    done = pipeline.command("wait", "--complete-through", spelled, "--timeout", timeout)
    return done.returncode, done.stdout + done.stderr


def test_a_table_is_complete_by_event_time_through_an_idle_source_partition_a_restart_and_a_reset(
    make_pipeline: Callable[[int], Pipeline],
) -> None:
    pipeline = make_pipeline(3)
    pipeline.settings |= {
        "record.event_time": "user_id",
        "record.lateness": f"{LATENESS_MS}ms",
        "record.idle_after": "4s",
        "hooks.complete_every": "1m",
        "hooks.complete_folder": f"file://{pipeline.folder}/complete",
    }
    folder = pipeline.folder / "complete"
    events, began_ms = Events(pipeline), int(time.time() * 1_000) - 7_200_000
    for partition, greatest in enumerate((9_000, 8_000, 5_000)):
        events.happened(partition, began_ms, began_ms + greatest, None)
    run = pipeline.start()
    await_that("watermark", lambda: at_ms(pipeline) is not None, deadline_s=STARTED_S)
    assert at_ms(pipeline) == began_ms + 5_000 - LATENESS_MS

    # An absurd time carries nothing away, and who brings nothing leaves it after a while.
    steps = count(20_000, 1_000)

    def goes_on() -> Watermark | None:
        step = next(steps)
        events.happened(0, began_ms + step, YEAR_9999_MS)
        events.happened(1, began_ms + step)
        found = watermark(pipeline)
        if found is None or (found.at_ms or 0) <= began_ms + 10_000:
            return None
        return found if [p.number for p, mark in sorted(found.marks.items()) if mark.idle] == [2] else None

    found = await_that("watermark past the idle one's", goes_on, every_s=0.5)
    assert found.at_ms is not None and found.at_ms < began_ms + next(steps)
    code, said = complete_through(pipeline, began_ms + 10_000)
    assert code == 0 and "The table has it: instant" in said
    status = json.loads(pipeline.command("status", "--output", "json").stdout)
    assert status["watermark"]["of"] == "user_id" and status["watermark"]["at_ms"] >= found.at_ms

    # For each minute that is complete there is a file, and none for one that is not.
    for partition in (0, 1):
        events.happened(partition, began_ms + 200_000)
    minutes = completed(found.at_ms, began_ms + 200_000 - LATENESS_MS, MINUTE_MS)
    marked = [folder / minute.name / MARKER for minute in minutes]
    await_that("file of each minute", lambda: all(marker.exists() for marker in marked))
    assert json.loads(marked[-1].read_bytes())["through_ms"] == minutes[-1].through_ms
    assert not (folder / Stretch(minutes[-1].through_ms, minutes[-1].through_ms + MINUTE_MS).name).exists()
    events.await_all_committed()
    assert run.stop() == 0

    # It wakes: its records are late. Nobody needs a driver to be told how far the table is.
    before_ms = at_ms(pipeline)
    assert before_ms is not None
    code, said = complete_through(pipeline, before_ms + 3_600_000, timeout="15s")
    assert code == 1 and "the table is complete through" in said and "it waits for" in said
    events.happened(2, began_ms + 6_000)
    assert pipeline.run_to_end().process.returncode == 0
    found = watermark(pipeline)
    assert found is not None and (found.at_ms, found.late) == (before_ms, 1)

    # What is read once more is late, too, and takes nothing back.
    pipeline.change_offsets("--set", f"{pipeline.topic}:0=0", reason="to read it again")
    moved = watermark(pipeline)
    assert moved is not None and moved.at_ms == before_ms and not any(m.idle for m in moved.marks.values())
    patient = ("--set", "record.idle_after=10m")  # so that it is waited for, however long that takes
    assert pipeline.run_to_end(*patient).process.returncode == 0
    found = watermark(pipeline)
    assert found is not None and found.at_ms == before_ms and found.late >= 2 and found.absurd >= 1
    assert complete_through(pipeline, before_ms)[0] == 0
    text = pipeline.command("status").stdout
    assert "complete" in text and f"waits for {pipeline.topic}:2" in text


def test_the_records_own_timestamps_are_event_times_and_who_is_behind_holds_the_watermark(
    make_pipeline: Callable[[int], Pipeline],
) -> None:
    """A record that does not fit holds its source partition: what stands behind it is to come."""
    pipeline = make_pipeline(2)
    pipeline.settings |= {"record.event_time": "_kafka_timestamp", "record.idle_after": "1s"}
    values: Sequence[bytes] = [b'{"event_id":"a","day":"d"}'] * 3
    before_ms = int(time.time() * 1_000)
    pipeline.produce_raw(values, partition=0)
    pipeline.produce_raw(values, partition=1)
    run = pipeline.start()
    await_that("commit of all", lambda: pipeline.committed() == 6, deadline_s=STARTED_S)
    first_ms = at_ms(pipeline)
    assert first_ms is not None and before_ms <= first_ms <= time.time() * 1_000
    assert run.stop() == 0

    pipeline.produce_raw([b"no json at all", *values], partition=1)
    pipeline.produce_raw(values, partition=0)
    for _ in range(5):  # one that halts at once need not have read the other source partition
        assert pipeline.run_to_end().process.returncode == 3
        if pipeline.committed() == 9:
            break
    held = watermark(pipeline)
    assert held is not None and held.holder is not None and held.holder.number == 1
    assert held.at_ms is not None and first_ms <= held.at_ms == held.marks[held.holder].at_ms


def test_deletes_of_a_connector_that_sends_them_once_more_are_late_and_committed(
    make_pipeline: Callable[[int], Pipeline],
) -> None:
    """Each comes with a tombstone behind it, which is no record of its own."""
    pipeline = make_pipeline(1)
    pipeline.settings |= {
        "record.schema": "id STRING NOT NULL",
        "record.envelope": "debezium",
        "record.event_time": "_kafka_timestamp",
        "table.kind": "upsert",
        "table.key": '["id"]',
        "table.partition_by": "",
        "table.buckets": "1",
    }
    changes: list[bytes | None] = []
    for lsn in range(0, 6, 2):
        source = {**POSTGRESQL, "lsn": lsn}
        changes += [event("c", source=source, after={"id": "a"})]
        changes += [event("d", source={**source, "lsn": lsn + 1}, before={"id": "a"}), None]
    changes.append(event("c", source={**POSTGRESQL, "lsn": 9}, after={"id": "a"}))
    producer, began_ms = Producer(pipeline.kafka), int(time.time() * 1_000) - 60_000
    for late in (0, 6):
        for at, change in enumerate(changes):
            producer.produce(pipeline.topic, change, key=b'{"id":"a"}', partition=0, timestamp=began_ms + at)
        assert producer.flush(30) == 0
        assert pipeline.run_to_end().process.returncode == 0
        found = watermark(pipeline)
        assert found is not None and (found.at_ms, found.late) == (began_ms + 9, late)
