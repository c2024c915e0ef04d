"""`python -m bench.stages`: what a worker's thread takes for a row, stage by stage, without broker and table.

The classes are a worker's own: batches as a fetch brings them are decoded, shaped, divided by table
partition, and encoded into files. CPU of this process, and the least of the rounds: the machine may have
other things to do. `compressing` is what encoding takes less where columns are not compressed, the same rows
in turns. Reading from a broker, the protocol, and all that other processes do is beside this: `python -m
bench` has it inside.
"""

from __future__ import annotations

import gc
import time
import uuid
from collections.abc import Callable, Sequence
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import click
import numpy as np

from bench.workloads import WORKLOADS, Workload
from control_topic.messages import SourcePartition
from participant.records.json.native import row_decoder
from participant.records.raw import RawBatch, Values
from participant.source.fetcher import BATCH_BYTES, BATCH_RECORDS
from table.hudi.files import encoding
from table.hudi.files.backlog import Backlog
from table.hudi.files.base_writer import TransactionWriter
from table.hudi.files.shaping import InsertShaper
from table.hudi.layout import HudiLayout
from table.schema import table_schema
from table.store.local import LocalStore

INSTANT = "20261126000000000"
MEMORY_BYTES = 512_000_000
START_MS = 1_795_651_200_000
STAGES = ("decode", "shape", "divide", "encode")


def batches(workload: Workload, count: int) -> list[RawBatch]:
    """So many records of the first source partition, as a fetch brings them."""
    numbers = (n for n in range(count * 16 * workload.source_partitions) if workload.source_partition(n) == 0)
    values = [workload.value(number) for number, _ in zip(numbers, range(count), strict=False)]
    at_once = min(BATCH_RECORDS, BATCH_BYTES // workload.size_bytes)
    made = []
    for first in range(0, len(values), at_once):
        part = values[first : first + at_once]
        offsets = np.arange(first, first + len(part), dtype=np.int64)
        made.append(
            RawBatch(
                partition=SourcePartition("events", 0),
                offsets=offsets,
                timestamps_ms=START_MS + offsets // 200,
                values=Values.of(part),
            )
        )
    return made


class Clock:
    """CPU seconds by stage."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(STAGES, 0.0)

    def timed(self, stage: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def made(*arguments: Any) -> Any:
            began_s = time.process_time()
            try:
                return call(*arguments)
            finally:
                self.seconds[stage] += time.process_time() - began_s

        return made


def round_of(workload: Workload, given: Sequence[RawBatch], folder: str) -> tuple[dict[str, float], int]:
    """CPU seconds by stage, and the files' bytes."""
    layout = HudiLayout(
        path=folder,
        key_fields=(workload.key,),
        partition_fields=(workload.partition_by,) if workload.partition_by else (),
        kafka_columns=True,
        target_file_bytes=120_000_000,
        ddl=workload.schema,
    )
    schema = table_schema(workload.schema, True)
    store = LocalStore(f"{folder}/{uuid.uuid4().hex}")
    store.make_folder(".hoodie")
    clock, decoder, shaper = Clock(), row_decoder(schema), InsertShaper(layout, schema)
    writer = TransactionWriter(
        *(store, layout, schema, INSTANT, 0, "0", MEMORY_BYTES // 4, MEMORY_BYTES // 16, uuid.uuid4)
    )
    decode, shape = clock.timed("decode", decoder.decode), clock.timed("shape", shaper.shape)
    write, close = clock.timed("encode", writer.write), clock.timed("encode", writer.close)
    with patch.object(Backlog, "add", _divides(clock, Backlog.add)):
        for batch in given:
            write(shape(decode(batch).rows(batch)))
        size_bytes = sum(file.size_bytes for file in close())
    clock.seconds["encode"] -= clock.seconds["divide"]
    return clock.seconds, size_bytes


def _divides(clock: Clock, add: Callable[..., None]) -> Callable[..., None]:
    """A method: what it is patched over is one."""

    def made(backlog: Backlog[str], *arguments: Any) -> None:
        clock.timed("divide", add)(backlog, *arguments)

    return made


def _not_compressed(sample: Any, options: dict[str, Any]) -> dict[str, Any]:
    del sample, options
    return {"compression": "none"}


@click.command(help=__doc__)
@click.option("--workload", "names", multiple=True, default=("wide",), type=click.Choice(list(WORKLOADS)))
@click.option("--records", default=110_000, show_default=True)
@click.option("--rounds", default=7, show_default=True)
def main(names: tuple[str, ...], records: int, rounds: int) -> None:
    for name in names:
        given = batches(WORKLOADS[name], records)
        gc.freeze()  # as in a worker, whose modules are nobody's garbage
        took: list[dict[str, float]] = []
        plain: list[float] = []
        size_bytes = 0
        for number in range(rounds + 1):
            with TemporaryDirectory() as folder:
                seconds, size_bytes = round_of(WORKLOADS[name], given, folder)
                with patch.object(encoding, "_compression", _not_compressed):
                    plain += [round_of(WORKLOADS[name], given, folder)[0]["encode"]] if number else []
            took += [seconds] if number else []  # the first warms up
        rows = sum(map(len, given))
        least = {stage: 1e6 * min(one[stage] for one in took) / rows for stage in STAGES}
        compressing = least["encode"] - 1e6 * min(plain) / rows
        said = ", ".join(f"{stage} {us:.3f}" for stage, us in least.items())
        print(
            f"{name}: us of CPU a row: {said} (compressing {compressing:.3f}), "
            f"together {sum(least.values()):.3f}; {size_bytes / rows:.1f} bytes a row"
        )


if __name__ == "__main__":
    main()
