"""`python -m bench.lookups`: what a query for one value reads, by how files are made, and what that costs.

Tables of the same rows, in files whose ranges of both columns overlap altogether, as those of workers do:
as Lockstep writes them by default (`plain`), with parquet's bloom filters (`bloom`), and with rows sorted by
`user_id` over all files, as `table.sort_by` has them (`sorted`). Spark asks each for an `event_id`, which is
random, and a `user_id`. It runs in one process, with Spark in it; figures are printed, and kept nowhere.
"""

from __future__ import annotations

import math
import os
import random
import statistics
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np
from pyspark.sql import SparkSession

from control_topic.messages import Range, SourcePartition
from lockstep.launch.submit import find_jars
from participant.records.json.decoder import JsonDecoder
from participant.records.raw import RawBatch, Values
from table.hudi.needs import KRYO, SQL
from table.hudi.table import HudiTable
from table.kinds import HUDI, table_kind
from table.port import Commit, TableSpec
from table.schema import table_schema
from table.state import TableState

DDL = "event_id STRING, user_id BIGINT, amount DOUBLE, ts TIMESTAMP"
SOURCE = SourcePartition("events", 0)
TABLES: Mapping[str, dict[str, Any]] = {
    "plain": {},
    "bloom": {"lookup_fields": ("event_id", "user_id")},
    "sorted": {},
}
BATCH = 10_000
SEED = 7


def spark_here() -> SparkSession:
    """In this process, of two threads."""
    jars = find_jars(table_kind(HUDI).needs("/table").packages, {})
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "2g")
    builder = builder.config("spark.driver.extraClassPath", os.pathsep.join(map(str, jars)))
    for name, value in {
        **KRYO,
        **SQL,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",  # a plan that is made anew counts elsewhere
    }.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


def rows_of(count: int) -> list[tuple[str, int, bytes]]:
    """(event id, user id, value) of each."""
    chance = random.Random(SEED)
    made = []
    for number in range(count):
        event, user = str(uuid.UUID(int=chance.getrandbits(128))), chance.randrange(count)
        value = b'{"event_id":"%s","user_id":%d,"amount":%d.25,"ts":"2026-11-20T00:00:00Z"}'
        made.append((event, user, value % (event.encode(), user, number % 1_000)))
    return made


def batches(values: Sequence[bytes]) -> Iterator[RawBatch]:
    for first in range(0, len(values), BATCH):
        part = list(values[first : first + BATCH])
        offsets = np.arange(first, first + len(part), dtype=np.int64)
        yield RawBatch(partition=SOURCE, offsets=offsets, timestamps_ms=offsets, values=Values.of(part))


def write(
    spark: SparkSession, folder: Path, files: Sequence[Sequence[bytes]], **changes: Any
) -> dict[str, float]:
    """A table of one commit with these files; what writing a row, and the commit, took."""
    spec = TableSpec(
        path=f"file://{folder}", name="events", mode="insert", ddl=DDL, key_fields=("event_id",), **changes
    )
    table = HudiTable(spark, spec, "events")
    layout = table.open()
    instant = table.begin(run="run", transaction="t")
    decoder, written, writing_s = JsonDecoder(table_schema(DDL, True)), [], 0.0
    for slot, values in enumerate(files):
        side = table_kind(HUDI).files(
            layout=layout, slot=slot, incarnation="0", pending_bytes_max=64_000_000, held_bytes_max=64_000_000
        )
        writer = side.writer(instant, lambda _written: None)
        for batch in batches(values):
            shaped = side.shape(decoder.decode(batch).rows(batch))
            writing_s -= time.process_time()
            writer.write(shaped)
            writing_s += time.process_time()
        writing_s -= time.process_time()
        written += writer.close()
        writing_s += time.process_time()
    rows = sum(map(len, files))
    state = TableState(
        pipeline="events",
        run="run",
        epoch=1,
        transaction="t",
        offsets={SOURCE: rows},
        ranges=(Range(partition=SOURCE, start=0, next=rows, records=rows),),
    )
    began_s = time.monotonic()
    table.commit(Commit(instant=instant, expected={}, state=state, files=written), fence=lambda _newest: "")
    commit_s = time.monotonic() - began_s
    table.close()
    return {
        "writing_ns_a_row": writing_s * 1e9 / rows,
        "bytes_a_row": sum(one.size_bytes for one in written) / rows,
        "commit_s": commit_s,
    }


def ask(spark: SparkSession, folder: Path, where: str) -> tuple[float, int, int, int]:
    """Seconds, files opened, rows read, rows found. The table is opened anew."""
    spark.catalog.clearCache()
    began_s = time.monotonic()
    found = spark.read.format("hudi").load(str(folder)).where(where).select("event_id", "amount")
    rows = len(found.collect())
    taken_s = time.monotonic() - began_s
    metrics = found._jdf.queryExecution().executedPlan().collectLeaves().head().metrics()  # type: ignore[operator]
    files, read = (int(metrics.apply(name).value()) for name in ("numFiles", "numOutputRows"))
    return taken_s, files, read, rows


def lookups(
    spark: SparkSession, folder: Path, names: Sequence[str], *, files: int, rows: int, rounds: int
) -> None:
    made = rows_of(files * rows)
    by_user = [value for _, _, value in sorted(made, key=lambda one: one[1])]
    layouts = {
        False: [[value for _, _, value in made[file::files]] for file in range(files)],
        True: [by_user[file * rows : (file + 1) * rows] for file in range(files)],
    }
    for name in names:
        costs = write(spark, folder / name, layouts["sorted" in name], **TABLES[name])
        print(f"{name:14}", *(f"{what} {value:.2f}" for what, value in costs.items()), flush=True)
    chance = random.Random(SEED)
    chosen = chance.sample(made, rounds)
    questions = {
        "event_id": [f"event_id = '{event}'" for event, _, _ in chosen],
        "absent": [f"event_id = '{uuid.UUID(int=chance.getrandbits(128))}'" for _ in chosen],
        "user_id": [f"user_id = {user}" for _, user, _ in chosen],
    }
    answers: dict[str, set[tuple[int, ...]]] = {}
    for what, wheres in questions.items():
        for name in names:
            ask(spark, folder / name, wheres[0])
            found = [ask(spark, folder / name, where) for where in wheres]
            seconds, opened, read = (statistics.median(one[at] for one in found) for at in range(3))
            answers.setdefault(what, set()).add(tuple(one[3] for one in found))
            print(
                f"{what:9} {name:14} {seconds:6.3f} s  {opened:5.0f} files  {read:9,.0f} rows read",
                flush=True,
            )
    print("all tables answer the same:", all(len(one) == 1 for one in answers.values()))


def key_filters(rows: int) -> None:
    """What Hudi's own bloom filter of record keys would take: 36 bytes each, hashed as Hudi hashes them."""
    keys = np.frombuffer(b"".join(event.encode() for event, _, _ in rows_of(rows)), dtype="<u4")
    words, factor = keys.reshape(rows, -1), np.uint32(0x5BD1E995)
    for false_positives in (1e-9, 1e-6, 1e-3):
        bits = int(rows * -math.log(false_positives) / math.log(2) ** 2)
        hashes, began_s = math.ceil(bits / rows * math.log(2)), time.process_time()
        found = np.zeros(-(-bits // 8) * 8, dtype=np.bool_)
        for first in range(0, rows, 8_192):
            mixed = [np.ascontiguousarray(word) * factor for word in words[first : first + 8_192].T]
            mixed = [(one ^ (one >> np.uint32(24))) * factor for one in mixed]
            value = np.zeros(len(mixed[0]), dtype=np.uint32)
            for _ in range(hashes):
                value = value ^ np.uint32(4 * words.shape[1])
                for one in mixed:
                    value = (value * factor) ^ one
                value = (value ^ (value >> np.uint32(13))) * factor
                value ^= value >> np.uint32(15)
                found[np.abs(np.fmod(value.view(np.int32), bits))] = True
        footer = len(np.packbits(found, bitorder="little")) * 4 / 3
        spent_ns = (time.process_time() - began_s) * 1e9 / rows
        print(f"{false_positives:g}: {spent_ns:.0f} ns a row, {footer / rows:.1f} bytes a row in the footer")


@click.command(help=__doc__)
@click.option("--files", default=100, show_default=True)
@click.option("--rows", default=10_000, show_default=True, help="Of a file.")
@click.option("--rounds", default=9, show_default=True, help="Values that are asked for.")
@click.option("--only", multiple=True, type=click.Choice(list(TABLES)), help="These tables.")
@click.option("--key-filters", "is_keys", is_flag=True, help="Instead: Hudi's own filters of record keys.")
def main(files: int, rows: int, rounds: int, only: tuple[str, ...], is_keys: bool) -> None:
    if is_keys:
        return key_filters(files * rows)
    spark = spark_here()
    with TemporaryDirectory() as folder:
        lookups(spark, Path(folder), only or list(TABLES), files=files, rows=rows, rounds=rounds)
    spark.stop()
    return None


if __name__ == "__main__":
    main()
