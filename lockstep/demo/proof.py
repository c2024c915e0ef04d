"""Is it exact? Asked of three who do not share code: Spark SQL, the `hudi` reader, and `lockstep verify`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hudi import HudiReadOptions, HudiTable
from rich.table import Table

from lockstep.config import Config
from lockstep.demo.processes import run_logged, run_spark
from lockstep.demo.report import verdict_text
from lockstep.errors import Failed
from lockstep.output import readable_count
from table.store.location import known_to_rust
from table.store.settings import rust_options

VERIFY_TIMEOUT_S = 300
SPARK_JOB = Path(__file__).with_name("spark_count.py")
OFFSETS_MAX = 2**40
"""Offsets of one source partition, far more than a demo has: two numbers fit into one."""

COLUMNS = ("_kafka_partition", "_kafka_offset", "event_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What a reader found: rows, distinct (source partition, offset), distinct event ids."""

    reader: str
    rows: int
    offsets: int
    events: int
    seconds: float = 0.0
    exact: bool = True

    def proves(self, records: int) -> bool:
        """Whether it found each of `records` events once, and nothing else."""
        return self.exact and self.rows == self.offsets == self.events == records


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What all of them found where `records` events are to be. As `lockstep.demo.report.Finding` says."""

    records: int
    counts: Sequence[Counts]
    files: int
    verdict: dict[str, Any]

    @property
    def exact(self) -> bool:
        """Whether every reader found every record once."""
        return all(counts.proves(self.records) for counts in self.counts) and bool(self.verdict["exact"])

    def heading(self) -> str:
        if self.exact:
            return f"Exact: {readable_count(self.records)} records in, every one in the table once."
        return "NOT exact: the table and the topic differ."

    def figures(self) -> Iterator[tuple[str, str]]:
        yield "files", readable_count(self.files)

    def details(self) -> Table:
        grid = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
        for name in ("asked", "rows", "distinct offsets", "distinct events", ""):
            grid.add_column(name, justify="right" if name not in ("asked", "") else "left", no_wrap=True)
        for counts in self.counts:
            grid.add_row(
                counts.reader,
                *(readable_count(n) for n in (counts.rows, counts.offsets, counts.events)),
                verdict_text(counts.proves(self.records)),
            )
        wrong = [
            f"{self.verdict[name]} {name}"
            for name in ("missing", "duplicated", "unexpected")
            if self.verdict.get(name)
        ]
        grid.add_row(
            "lockstep verify",
            readable_count(int(self.verdict.get("rows") or 0)),
            "",
            "",
            verdict_text(bool(self.verdict["exact"]), ", ".join(wrong)),
        )
        return grid

    def commands(self, folder: str) -> Sequence[str]:
        return ()

    def to_json(self) -> dict[str, Any]:
        counts = [asdict(counts) for counts in self.counts]
        return {"files": self.files, "counts": counts, "verify": self.verdict}


def count_with_spark(config: Config, config_path: Path, folder: Path) -> tuple[Counts, int]:
    """Count with Spark SQL in a session of its own; also how many files hold rows.

    `folder`: where the result goes. Raises `Failed`.
    """
    result = folder / "spark-count.json"
    run_spark(SPARK_JOB, config, config_path, [str(result)])
    found: dict[str, int] = json.loads(result.read_text(encoding="utf-8"))
    counts = Counts(reader="Spark SQL", rows=found["rows"], offsets=found["offsets"], events=found["events"])
    return counts, found["files"]


def count_with_hudi(config: Config) -> Counts:
    """Count with the `hudi` package: Rust and Arrow, no JVM, no Lockstep."""
    from lockstep.demo.reached import readable_by_rust  # brings pyspark along

    storage = config.store_settings()
    with readable_by_rust(config) as path:
        options = rust_options(storage) if storage is not None and known_to_rust(config.table.path) else None
        batches = HudiTable(path, options).read(HudiReadOptions(projection=list(COLUMNS)))
    rows = pa.Table.from_batches(batches)
    return Counts(
        reader="hudi (Rust)",
        rows=rows.num_rows,
        offsets=pc.count_distinct(places(rows)).as_py(),
        events=pc.count_distinct(rows["event_id"]).as_py(),
    )


def places(rows: pa.Table) -> pa.ChunkedArray[Any]:
    """One number for each row's source partition and offset."""
    numbers = pc.multiply(rows["_kafka_partition"].cast(pa.int64()), pa.scalar(OFFSETS_MAX))
    return pc.add(numbers, rows["_kafka_offset"].cast(pa.int64()))


def verify(config_path: Path, folder: Path) -> dict[str, Any]:
    """The verdict of `lockstep verify`, as its JSON form gives it. Raises `Failed` where it gave none."""
    verdict, log = folder / "verify.json", folder / "verify.log"
    command = [sys.executable, "-m", "lockstep.cli", "verify", "-c", str(config_path), "--output", "json"]
    with verdict.open("wb") as out:
        status = run_logged(command, log, VERIFY_TIMEOUT_S, env=dict(os.environ), out=out)
    text = verdict.read_text(encoding="utf-8")
    if not text.strip():
        raise Failed(f"lockstep verify ended with {status} and without a verdict: see {log}")
    answer: dict[str, Any] = json.loads(text)
    return answer
