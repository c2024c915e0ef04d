"""Is it exact? Asked of three who do not share code: Spark SQL, the `hudi` reader, and `lockstep verify`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hudi import HudiReadOptions, HudiTableBuilder

from lockstep.config import Config
from lockstep.errors import Failed
from lockstep.submit import Submission, compose, environment, find_jars, find_spark_home

SPARK_TIMEOUT_S = 300
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


def count_with_spark(config: Config, config_path: Path, folder: Path) -> tuple[Counts, dict[str, int]]:
    """Count with Spark SQL in a session of its own; also what else SQL says of the table.

    `folder`: where the log and the result go. Raises `Failed`.
    """
    result, log = folder / "spark-count.json", folder / "spark-count.log"
    spark_home = find_spark_home()
    submission = Submission(
        config_path=config_path,
        job=SPARK_JOB,
        jars=find_jars({}),
        log_level="WARN",
        arguments=[str(result)],
    )
    command = compose(config, submission, spark_home=spark_home)
    status = _run(command, log, SPARK_TIMEOUT_S, env=environment(os.environ, spark_home=spark_home))
    if status != 0 or not result.exists():
        raise Failed(f"Spark could not count the table, spark-submit ended with {status}: see {log}")
    found: dict[str, int] = json.loads(result.read_text(encoding="utf-8"))
    counts = Counts(reader="Spark SQL", rows=found["rows"], offsets=found["offsets"], events=found["events"])
    return counts, found


def count_with_hudi(table_path: str) -> Counts:
    """Count with the `hudi` package: Rust and Arrow, no JVM, no Lockstep."""
    batches = (
        HudiTableBuilder.from_base_uri(table_path).build().read(HudiReadOptions(projection=list(COLUMNS)))
    )
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
        status = _run(command, log, VERIFY_TIMEOUT_S, env=dict(os.environ), out=out)
    text = verdict.read_text(encoding="utf-8")
    if not text.strip():
        raise Failed(f"lockstep verify ended with {status} and without a verdict: see {log}")
    answer: dict[str, Any] = json.loads(text)
    return answer


def _run(command: Sequence[str], log: Path, timeout_s: float, *, env: dict[str, str], out: Any = None) -> int:
    with log.open("wb") as said:
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out or said,
                stderr=said,
                timeout=timeout_s,
                check=False,
                env=env,
            )
        except subprocess.TimeoutExpired as error:
            raise Failed(f"{command[0]} did not end within {timeout_s:.0f} s: see {log}") from error
    return done.returncode
