"""Records that only a stranger writes: onto the control topic, and onto the source."""

from __future__ import annotations

import signal
from functools import partial

from confluent_kafka import KafkaError, Producer

from participant.records import headers
from tests.damage import Batch, batches
from tests.faults import processes
from tests.faults.acts import CALM_PER_SECOND, RECORDS, goes_on, halts_after_s, runs_well
from tests.faults.commits import wall_ms
from tests.faults.environment_kafka import control_topic
from tests.faults.environment_rejects import assert_set_aside, dead_letters
from tests.faults.environment_source_logs import fill
from tests.faults.scenario import Outcome, Scenario, put, scenario
from tests.faults.stage import Stage
from tests.harness import Run, await_that
from tests.odd_headers import produce_odd
from tests.raw_producer import produce_header, produce_zeros

UNPACKED_BYTES = 64 << 20
ODD = (
    headers.pack([("\udcff", b"v"), ("ok", b"w")]),
    headers.pack([("a\0b", b"v"), ("ok", None)]),
    headers.pack([("h", None)] * 100_001),
)
ODD_EACH = 50


def _control_topic_with_what_cannot_be_read(stage: Stage) -> None:
    topic = control_topic(stage)
    open_one = Producer(
        {**stage.pipeline.kafka, "transactional.id": topic, "transaction.timeout.ms": 900_000}
    )
    open_one.init_transactions(30)
    open_one.begin_transaction()
    open_one.produce(topic, b"x", partition=0)
    assert open_one.flush(30) == 0
    for _ in range(20):
        produce_header(stage.broker.bootstrap_servers, topic, b"x", b"\xff\xfe")
    stage.current.kill_worker(coordinator=True)
    said = produce_zeros(stage.pipeline.kafka, topic, codec="zstd", size_bytes=UNPACKED_BYTES)
    assert said is not None and said.code() == KafkaError.MSG_SIZE_TOO_LARGE, said


put(
    "Kafka",
    Scenario(
        "control_topic_with_what_cannot_be_read",
        "a stranger leaves a transaction open on the control topic, sends it headers whose names are no "
        "text, and kilobytes that unpack to 64 MB, all while the coordinator's worker is killed",
        "the broker takes no such kilobytes, nobody waits for the transaction, and commits go on by "
        "themselves",
        partial(goes_on, fault=_control_topic_with_what_cannot_be_read),
        20,
    ),
)


@scenario(
    "Source",
    fault="records on the source topic have headers whose names are no UTF-8, hold a NUL, or are more than a "
    "client reads, and must be set aside, while a worker is killed",
    expected="each is in the dead-letter topic, the others are rows; nobody dies of a header",
    limit_s=15,
    settings={"record.on_error": "dead_letter"},
)
def records_with_odd_headers(stage: Stage) -> Outcome:
    pipeline = stage.pipeline
    run = stage.start(per_second=CALM_PER_SECOND)
    for packed in ODD:
        produce_odd(pipeline.kafka, pipeline.topic, packed, count=ODD_EACH)
    run.kill_worker(coordinator=False)
    killed_ms = wall_ms()
    recovery_s = stage.recovery_s(killed_ms)
    stage.drain()
    assert run.stop() == 0, run.text()[-4_000:]
    bad = len(ODD) * ODD_EACH
    assert_set_aside(stage, rows=pipeline.produced, rejects=bad)
    sent = dead_letters(stage)
    assert sent >= bad, f"{sent} dead letters of {bad} records"  # what an abort sent back is set aside again
    return Outcome(recovery_s=recovery_s, notes={"rows": pipeline.produced, "rejects": bad, "letters": sent})


def _all_committed(stage: Stage) -> Run:
    """A run that has nothing left to do, and a last batch that is its own."""
    pipeline = stage.pipeline
    run = stage.start(per_second=CALM_PER_SECOND)
    stage.stop_load()
    fill(stage, pipeline.topic, [0], 100, first=pipeline.produced)
    pipeline.produced += 100
    await_that("commit of all", lambda: pipeline.committed() == pipeline.produced)
    return run


def _lose_end_and_grow(stage: Stage) -> Batch:
    """The batch that source partition 0 has lost."""
    pipeline = stage.pipeline
    stage.broker.kill()
    segment = min((stage.broker.folder / "logs" / f"{pipeline.topic}-0").glob("*.log"))
    gone = batches(segment)[-1]
    with segment.open("r+b") as file:
        file.truncate(gone.at)
    stage.broker.start()
    fill(stage, pipeline.topic, [0], RECORDS, first=pipeline.produced)
    return gone


@scenario(
    "Source",
    fault="the broker is killed and comes back without the last batch of a source log, which others then "
    "write at its offsets, before the workers, which are stopped meanwhile, look again",
    expected="the run halts and names source partition and offset: what has those offsets now is not "
    "skipped; set back to the cut by the operator, the pipeline reads it",
)
def log_that_lost_its_end_and_grew_again(stage: Stage) -> Outcome:
    pipeline = stage.pipeline
    run = _all_committed(stage)
    workers = processes.await_processes(run).workers
    processes.send(workers, signal.SIGSTOP)
    try:
        gone = _lose_end_and_grow(stage)
    finally:
        processes.send(workers, signal.SIGCONT)
    halted_s = halts_after_s(run, f"{pipeline.topic}:0 at offset {gone.next}: the log lost its end")
    pipeline.assert_exact(pipeline.produced)
    pipeline.change_offsets("--set", f"{pipeline.topic}:0={gone.first}", reason="cut")
    runs_well(pipeline)
    verdict = pipeline.verify()
    assert verdict["rows"] == pipeline.produced + RECORDS, verdict
    return Outcome(notes={"halted_after_s": halted_s, "rows": verdict["rows"]})


@scenario(
    "Source",
    fault="between two runs the broker comes back without the last batch of a source log, which others then "
    "write at its offsets, and more behind it",
    expected="the next run halts and names source partition, offset and the record that is another one, as "
    "does the one after it; set back to the cut by the operator, the pipeline reads what is new",
)
def log_that_lost_its_end_between_two_runs(stage: Stage) -> Outcome:
    pipeline = stage.pipeline
    run = _all_committed(stage)
    assert run.stop() == 0, run.text()[-4_000:]
    gone = _lose_end_and_grow(stage)
    said = (
        f"{pipeline.topic}:0 at offset {gone.next}: the log lost its end",
        f"at offset {gone.next - 1} is another record than was read",
    )
    halted_s = halts_after_s(stage.restart(), *said)
    halts_after_s(stage.restart(), *said)
    pipeline.assert_exact(pipeline.produced)
    pipeline.change_offsets("--set", f"{pipeline.topic}:0={gone.first}", reason="cut")
    runs_well(pipeline)
    verdict = pipeline.verify()
    assert verdict["rows"] == pipeline.produced + RECORDS, verdict
    return Outcome(notes={"halted_after_s": halted_s, "rows": verdict["rows"]})
