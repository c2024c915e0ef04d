"""Records that only a stranger writes: onto the control topic, and onto the source."""

from __future__ import annotations

import signal

from confluent_kafka import KafkaError, Producer

from participant.source import headers
from tests.damage import batches
from tests.faults import processes
from tests.faults.acts import CALM_PER_SECOND, ends_with, proved
from tests.faults.commits import wall_ms
from tests.faults.environment_kafka import control_topic
from tests.faults.environment_rejects import dead_letters
from tests.faults.environment_source_logs import RECORDS, fill
from tests.faults.scenario import Outcome, scenario
from tests.faults.stage import Stage
from tests.harness import await_that
from tests.odd_headers import produce_odd
from tests.raw_producer import produce_header, produce_zeros

UNPACKED_BYTES = 64 << 20
ODD = (
    headers.pack([("\udcff", b"v"), ("ok", b"w")]),
    headers.pack([("a\0b", b"v"), ("ok", None)]),
    headers.pack([("h", None)] * 100_001),
)
ODD_EACH = 50


@scenario(
    "Kafka",
    fault="a stranger leaves a transaction open on the control topic, sends it headers whose names are no "
    "text, and kilobytes that unpack to 64 MB, all while the coordinator's worker is killed",
    expected="the broker takes no such kilobytes, nobody waits for the transaction, and commits go on by "
    "themselves",
    limit_s=20,
)
def control_topic_with_what_cannot_be_read(stage: Stage) -> Outcome:
    run = stage.start(per_second=CALM_PER_SECOND)
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
    run.kill_worker(coordinator=True)
    said = produce_zeros(stage.pipeline.kafka, topic, codec="zstd", size_bytes=UNPACKED_BYTES)
    assert said is not None and said.code() == KafkaError.MSG_SIZE_TOO_LARGE, said
    recovery_s = stage.recovery_s(wall_ms())
    return proved(stage, run, recovery_s=recovery_s)


@scenario(
    "Source",
    fault="records on the source topic have headers whose names are no UTF-8, hold a NUL, or are more than a "
    "client reads, and must be set aside, while a worker is killed",
    expected="each is in the dead-letter topic, the others are rows; nobody dies of a header",
    limit_s=15,
)
def records_with_odd_headers(stage: Stage) -> Outcome:
    pipeline = stage.pipeline
    pipeline.settings["record.on_error"] = "dead_letter"
    run = stage.start(per_second=CALM_PER_SECOND)
    for packed in ODD:
        produce_odd(pipeline.kafka, pipeline.topic, packed, count=ODD_EACH)
    run.kill_worker(coordinator=False)
    killed_ms = wall_ms()
    recovery_s = stage.recovery_s(killed_ms)
    stage.drain()
    assert run.stop() == 0, run.text()[-4_000:]
    bad = len(ODD) * ODD_EACH
    verdict = pipeline.verify()
    assert verdict["missing"] == 0 and verdict["exact"] is not False, verdict
    assert (verdict["rows"], verdict["rejected"]) == (pipeline.produced, bad), verdict
    sent = dead_letters(stage)
    assert sent >= bad, f"{sent} dead letters of {bad} records"  # what an abort sent back is set aside again
    return Outcome(recovery_s=recovery_s, notes={"rows": verdict["rows"], "rejects": bad, "letters": sent})


@scenario(
    "Source",
    fault="the broker is killed and comes back without the last batch of a source log, which others then "
    "write at its offsets, before the workers, which are stopped meanwhile, look again",
    expected="the run halts and names source partition and offset: what has those offsets now is not "
    "skipped; set back to the cut by the operator, the pipeline reads it",
)
def log_that_lost_its_end_and_grew_again(stage: Stage) -> Outcome:
    pipeline = stage.pipeline
    run = stage.start(per_second=CALM_PER_SECOND)
    stage.stop_load()
    fill(stage, pipeline.topic, [0], 100, first=pipeline.produced)  # a batch or more
    pipeline.produced += 100
    await_that("commit of all", lambda: pipeline.committed() == pipeline.produced)
    workers = processes.await_processes(run).workers
    processes.send(workers, signal.SIGSTOP)
    try:
        stage.broker.kill()
        segment = min((stage.broker.folder / "logs" / f"{pipeline.topic}-0").glob("*.log"))
        gone = batches(segment)[-1]
        with segment.open("r+b") as file:
            file.truncate(gone.at)
        stage.broker.start()
        fill(stage, pipeline.topic, [0], RECORDS, first=pipeline.produced)
    finally:
        processes.send(workers, signal.SIGCONT)
    began_ms = wall_ms()
    ends_with(run, 3, f"{pipeline.topic}:0 at offset {gone.next}: the log lost its end")
    halted_s = (wall_ms() - began_ms) / 1_000
    pipeline.assert_exact(pipeline.produced)
    pipeline.change_offsets("--set", f"{pipeline.topic}:0={gone.first}", reason="cut")
    assert pipeline.run_to_end().process.returncode == 0
    verdict = pipeline.verify()
    assert verdict["rows"] == pipeline.produced + RECORDS, verdict
    return Outcome(notes={"halted_after_s": round(halted_s, 1), "rows": verdict["rows"]})
