"""`python -m bench.handing`: what the files of a transaction cost, written by those who read or by few.

So many workers in the threads of one process, each with its own writer of files and its end of the exchange,
over real connections, to a real folder; no Kafka, no Spark and no commit. Each has records of all table
partitions. CPU is that of the process: that of all workers together.
"""

from __future__ import annotations

import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

import click
import numpy as np

from bench.place import sentences, typed, wide_console, working_folder
from bench.workloads import NARROW, narrow
from control_topic.messages import SourcePartition
from participant.exchange.exchange import Exchange
from participant.records.raw import RawBatch, Values
from participant.worker.memory import MemoryBudget
from participant.worker.stages import Stages, stages
from table.port import Shaped, TableLayout
from tests import evidence

BATCH_RECORDS = 5_000
INSTANT = "20261127000000000"


def measure(folder: Path, *, workers: int, places: int, records: int, homes: int) -> dict[str, Any]:
    """One transaction. `records`: of each worker; `homes`: 0, each writes what it has read."""
    (folder / ".hoodie").mkdir(parents=True)
    memory = MemoryBudget(512_000_000, exchanges=bool(homes))
    layout = TableLayout(
        kind="hudi",
        path=str(folder),
        key_fields=("event_id",),
        partition_fields=("day",),
        kafka_columns=True,
        target_file_bytes=120_000_000,
        ddl=NARROW,
    )
    names = [f"worker-{number}" for number in range(workers)]
    with ExitStack() as stack:
        made = {
            name: stages(layout=layout, slot=slot, incarnation=name, memory=memory)
            for slot, name in enumerate(names)
        }
        read = {name: _read(one, slot, places, records) for slot, (name, one) in enumerate(made.items())}
        exchanges = {name: _exchange(stack, name, workers, homes, memory) for name in names} if homes else {}
        takers = {name: exchange.address for name, exchange in exchanges.items()}

        def transaction(name: str) -> int:
            writer: Any = made[name].files.writer(INSTANT, lambda _: None)
            handing = made[name].files.handing
            if homes and handing is not None:
                writer = exchanges[name].writer(writer, handing, "t", takers, lambda: None)
            for shaped in read[name]:
                writer.write(shaped)
            return len(writer.close())

        began_s, cpu_s = time.monotonic(), time.process_time()
        with ThreadPoolExecutor(workers) as pool:
            files = sum(pool.map(transaction, names))
        took_s, cpu_s = time.monotonic() - began_s, time.process_time() - cpu_s
    shutil.rmtree(folder)
    rows = workers * records
    return {
        "writers_per_partition": homes,
        "files": files,
        "rows_per_file": round(rows / files, 1),
        "write_s": round(took_s, 2),
        "cpu_s": round(cpu_s, 2),
        "cpu_us_per_row": round(cpu_s / rows * 1e6, 1),
    }


def _exchange(stack: ExitStack, name: str, workers: int, homes: int, memory: MemoryBudget) -> Exchange:
    exchange = Exchange(
        incarnation=name,
        token="bench",
        host="127.0.0.1",
        writers_max=workers,
        homes=homes,
        bytes_max=memory.exchanged_bytes,
        arrived=lambda: None,
    )
    stack.callback(exchange.close)
    return exchange


def _read(made: Stages, slot: int, places: int, records: int) -> list[Shaped]:
    """What a worker has decoded and shaped."""
    found = []
    for first in range(0, records, BATCH_RECORDS):
        numbers = range(first, min(records, first + BATCH_RECORDS))
        raw = RawBatch(
            partition=SourcePartition("events", slot),
            offsets=np.arange(numbers.start, numbers.stop, dtype=np.int64),
            timestamps_ms=np.zeros(len(numbers), dtype=np.int64),
            values=Values.of([narrow(number, day=f"part-{number % places:04d}") for number in numbers]),
        )
        found.append(made.files.shape(made.decoder.decode(raw).rows(raw)))
    return found


@click.command()
@click.option("--workers", type=click.IntRange(min=2), default=10, show_default=True)
@click.option("--table-partitions", type=click.IntRange(min=1), default=5_000, show_default=True)
@click.option(
    "--records", type=click.IntRange(min=1), default=10_000, show_default=True, help="Of each worker."
)
@click.option("--folder", type=click.Path(path_type=Path), help="Where to work. Default: a temporary one.")
def main(workers: int, table_partitions: int, records: int, folder: Path | None) -> None:
    """Files of one transaction, and what they cost their writers; figures as bench-handing.json."""
    with sentences(), working_folder(folder) as place:
        each = []
        for homes in (0, 1):
            own = place / f"homes-{homes}"
            one = measure(own, workers=workers, places=table_partitions, records=records, homes=homes)
            wide_console().print(str(one), highlight=False)
            each.append(one)
        figures = {
            "workers": workers,
            "table_partitions": table_partitions,
            "records": workers * records,
            "each": each,
        }
        path = evidence.write("bench-handing", command=typed("bench.handing"), passed=True, figures=figures)
        wide_console().print(f"The figures are in {path}.", highlight=False)


if __name__ == "__main__":
    main()
