"""`python -m bench.rejects`: a flood of bad records, all of which go to the dead-letter topic.

One worker must stay within its memory, every reject must be in the dead-letter topic and counted in a commit,
and the pipeline must keep up. The rate is from the first record that the worker reads to the last commit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

import click
from confluent_kafka import Producer

from bench.load import create_topic, ends
from bench.place import prepare, sentences, typed, wide_console, working_folder
from bench.processes import Sampler
from bench.rivals import lockstep_run
from bench.rivals.base import Settings
from bench.waiting import await_that
from bench.workloads import WORKLOADS
from lockstep.brokers.local import Broker
from lockstep.config.units import parse_size_bytes
from lockstep.errors import Failed
from table.hudi.reader.timeline import Timeline
from tests import evidence

TOPIC = "events"
DEAD_LETTERS = f"{TOPIC}.dlq"
PARTITIONS = 4
INTERVAL_S = 2.0
TIMEOUT_S = 600.0
ABOVE_CAP_BYTES = 350_000_000
"""What a worker's process may take beside the records that it holds: Python, Arrow, librdkafka's queue."""
BAD = {
    "text": b"nope",
    "broken": b"{a:}",
    "mistyped": b'{"event_id":"e","user_id":"seven","amount":1.5,"day":"2026-01-01"}',
}


def flood(bootstrap_servers: str, value: bytes, records: int) -> None:
    """Produce it so many times, in turns to all source partitions."""
    create_topic(bootstrap_servers, TOPIC, partitions=PARTITIONS)
    create_topic(bootstrap_servers, DEAD_LETTERS, partitions=1)
    producer = Producer(
        {"bootstrap.servers": bootstrap_servers, "linger.ms": 50, "queue.buffering.max.messages": 1_000_000}
    )
    for number in range(records):
        while True:
            try:
                producer.produce(TOPIC, value, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush(60)
    held = sum(ends(bootstrap_servers, TOPIC, partitions=PARTITIONS))
    if held != records:
        raise Failed(f"The topic {TOPIC} holds {held:,} records where {records:,} were produced.")


def run(
    folder: Path, *, kind: str, records: int, settings: Settings, command: str
) -> tuple[Path, Sequence[str]]:
    """One run; where the figures are, and what is not as it should be. Raises `Failed`."""
    with Broker(folder / "broker") as broker:
        flood(broker.bootstrap_servers, BAD[kind], records)
        config = lockstep_run.write_config(
            folder,
            pipeline="bench-rejects",
            bootstrap_servers=broker.bootstrap_servers,
            topic=TOPIC,
            workload=WORKLOADS["narrow"],
            interval_s=INTERVAL_S,
            settings=settings,
        )
        log = folder / "lockstep.log"
        with (
            lockstep_run.running(config, settings, "--until", "latest", pipeline="bench-rejects") as (
                process,
                watch,
            ),
            Sampler(process.pid) as sampler,
        ):
            await_that(
                "first record read", lambda: watch.records, timeout_s=TIMEOUT_S, process=process, log=log
            )
            began_ms = time.time() * 1_000
            process.wait(TIMEOUT_S)
        timeline = Timeline(folder / "table")
        done = [one for one in timeline.completed() if one.state is not None and one.state.ranges]
        last_ms = max((timeline.time_ms(one.completed) for one in done), default=began_ms)
        seconds = max(0.001, (last_ms - began_ms) / 1_000)
        figures = {
            "kind": kind,
            "records": records,
            "exit_code": process.returncode,
            "counted": sum(one.state.reject_count for one in done if one.state is not None),
            "dead_letters": sum(ends(broker.bootstrap_servers, DEAD_LETTERS, partitions=1)),
            "commits": len(done),
            "workers_started": watch.incarnations,
            "seconds": round(seconds, 2),
            "rejects_per_s": round(records / seconds),
            "cpu_us_per_reject": round(1e6 * sampler.cpu_s(began_ms, last_ms) / records, 2),
            "memory_per_worker_bytes": parse_size_bytes(settings.memory_per_worker),
            "worker_peak_bytes": sampler.largest_bytes(watch.pids),
        }
    found = problems(figures)
    return evidence.write(f"bench-rejects-{kind}", command=command, passed=not found, figures=figures), found


def problems(figures: dict[str, Any]) -> Sequence[str]:
    """What is not as it should be, as sentences."""
    most = figures["memory_per_worker_bytes"] + ABOVE_CAP_BYTES
    found = []
    if figures["exit_code"]:
        found.append(f"lockstep run ended with {figures['exit_code']}")
    if figures["workers_started"] != 1:
        found.append(f"{figures['workers_started']} workers were started for 1 slot")
    for name in ("counted", "dead_letters"):
        if figures[name] != figures["records"]:
            found.append(f"{name}: {figures[name]:,} of {figures['records']:,}")
    if figures["worker_peak_bytes"] > most:
        found.append(f"a worker took {figures['worker_peak_bytes'] / 1e6:,.0f} MB of {most / 1e6:,.0f} MB")
    return found


@click.command()
@click.option("--kind", type=click.Choice(list(BAD)), default="text", show_default=True)
@click.option("--records", type=click.IntRange(min=1_000), default=2_500_000, show_default=True)
@click.option("--memory", default="512MB", show_default=True, help="memory.per_worker.")
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="One more setting of Lockstep's.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where to work. Default: a temporary one.")
def main(kind: str, records: int, memory: str, sets: tuple[str, ...], folder: Path | None) -> None:
    """A flood of bad records, one worker; figures as bench-rejects-<kind>.json."""
    prepare()
    with sentences():
        with working_folder(folder) as place:
            path, found = run(
                place,
                kind=kind,
                records=records,
                settings=Settings(
                    workers=1, memory_per_worker=memory, sets=("record.on_error=dead_letter", *sets)
                ),
                command=typed("bench.rejects"),
            )
        wide_console().print(path.read_text(encoding="utf-8"), highlight=False)
        if found:
            raise Failed(f"Not as it should be: {'; '.join(found)}. The figures are in {path}.")


if __name__ == "__main__":
    main()
