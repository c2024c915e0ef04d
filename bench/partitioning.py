"""`python -m bench.partitioning`: what functions in `table.partition_by` cost a worker, beside a plain field.

CPU of one process for records that are decoded, shaped and written to files, in turns; and of shaping alone.
All tables have the same fields. Said is the median of the rounds, also as a multiple of the plain field's.
"""

from __future__ import annotations

import statistics
import time
import uuid
from collections.abc import Mapping
from tempfile import TemporaryDirectory

import click
import numpy as np

from control_topic.messages import SourcePartition
from participant.records.json.native import row_decoder
from participant.records.raw import RawBatch, Values
from table.hudi.files.base_writer import TransactionWriter
from table.hudi.files.shaping import InsertShaper
from table.hudi.layout import HudiLayout
from table.partition_columns import columns_of
from table.schema import parse_ddl
from table.store.local import LocalStore

DDL = "event_id STRING, user_id BIGINT, amount DOUBLE, day STRING, ts TIMESTAMP"
TERMS: Mapping[str, tuple[str, str]] = {
    "day": ("day", ""),
    "day(ts)": ("ts_day", "day(ts)"),
    "day(ts, zone)": ("ts_day", 'day(ts, "Europe/Berlin")'),
    "minutes(15, ts)": ("ts_minutes", "minutes(15, ts)"),
    "day(_kafka_timestamp)": ("kafka_day", "day(_kafka_timestamp)"),
    "day(now())": ("now_day", "day(now())"),
    "bucket(3, user_id)": ("user_id_bucket", "bucket(3, user_id)"),
    "bucket(3, event_id)": ("event_id_bucket", "bucket(3, event_id)"),
}
"""Name -> (the table's partition field, how it is made)."""
BATCH = 10_000
START_MS = 1_795_651_200_000
DAYS = 3


def batches(count: int) -> list[RawBatch]:
    """Of `count` batches, in the order of their times, over `DAYS` days."""
    step_ms = DAYS * 86_400_000 // (count * BATCH)
    made = []
    for first in range(0, count * BATCH, BATCH):
        times_ms = START_MS + step_ms * np.arange(first, first + BATCH, dtype=np.int64)
        shown = np.datetime_as_string(times_ms.astype("datetime64[ms]")).tolist()
        values = [
            b'{"event_id":"e-%012d","user_id":%d,"amount":%d.25,"day":"%s","ts":"%sZ"}'
            % (first + i, (first + i) * 7_919 % 100_003, i, text[:10].encode(), text.encode())
            for i, text in enumerate(shown)
        ]
        made.append(
            RawBatch(
                partition=SourcePartition("events", 0),
                offsets=np.arange(first, first + BATCH, dtype=np.int64),
                timestamps_ms=times_ms,
                values=Values.of(values),
            )
        )
    return made


def round_of(name: str, given: list[RawBatch], folder: str) -> tuple[float, float]:
    """CPU seconds: of all, and of shaping alone."""
    field, term = TERMS[name]
    layout = HudiLayout(
        path=folder,
        key_fields=("event_id",),
        partition_fields=(field,),
        partition_terms=(term,) if term else (),
        kafka_columns=True,
        target_file_bytes=120_000_000,
        ddl=DDL,
    )
    schema = columns_of(layout)
    decoder, shaper = row_decoder(parse_ddl(DDL)), InsertShaper(layout, schema)
    store = LocalStore(f"{folder}/{uuid.uuid4().hex}")
    store.make_folder(".hoodie")
    shaping_s, began_s = 0.0, time.process_time()
    writer = TransactionWriter(
        *(store, layout, schema, "20261126000000000", 0, "0", 64_000_000, 256_000_000, uuid.uuid4)
    )
    for batch in given:
        rows = decoder.decode(batch).rows(batch)
        shaping_s -= time.process_time()
        shaped = shaper.shape(rows)
        shaping_s += time.process_time()
        writer.write(shaped)
    writer.close()
    return time.process_time() - began_s, shaping_s


@click.command(help=__doc__)
@click.option("--batches", "count", default=40, show_default=True, help="Of 10,000 records each, in a round.")
@click.option("--rounds", default=7, show_default=True)
@click.option("--only", multiple=True, type=click.Choice(list(TERMS)), help="Besides the plain field.")
def main(count: int, rounds: int, only: tuple[str, ...]) -> None:
    given, names = batches(count), ["day", *(name for name in only or TERMS if name != "day")]
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    with TemporaryDirectory() as folder:
        for number in range(rounds + 1):
            for name in names if number % 2 else reversed(names):
                figures = round_of(name, given, folder)
                took[name] += [figures] if number else []  # the first warms up
    rows = count * BATCH
    plain = [statistics.median(one[at] for one in took["day"]) for at in (0, 1)]
    for name in names:
        whole, shaping = (statistics.median(one[at] for one in took[name]) for at in (0, 1))
        print(
            f"{name:24} {1e9 * whole / rows:7.0f} ns a row, {whole / plain[0]:.3f} x; "
            f"shaping {1e9 * shaping / rows:5.0f} ns, {shaping / plain[1]:.2f} x"
        )


if __name__ == "__main__":
    main()
