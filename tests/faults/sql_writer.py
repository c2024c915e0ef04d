"""A foreign writer: Spark SQL in a process of its own, on the table that Lockstep writes.

`SqlWriter` is the handle; the process is `python -m tests.faults.sql_writer`. Each round inserts rows of its
own; every few rounds it updates rows of Lockstep's, clusters and cleans. SIGTERM ends it after its round.
It prints a JSON line for every round: how many of each kind succeeded, and what was refused.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from lockstep.submit import HUDI_PACKAGE

END_S = 180.0

WELL_BEHAVED = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.write.lock.filesystem.expire": "1",
    "hoodie.write.lock.client.num_retries": "1000",
    "hoodie.write.lock.client.wait_time_ms_between_retry": "100",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.embed.timeline.server": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.metadata.streaming.write.enabled": "false",
}
"""As docs/operations.md asks of every other writer: lock, concurrency control, LAZY cleaning, and a metadata
table that is written as Lockstep writes it, with the same indexes and within the lock."""

EAGER = {
    "hoodie.write.concurrency.mode": "single_writer",
    "hoodie.clean.failed.writes.policy": "EAGER",
    "hoodie.embed.timeline.server": "false",
    "hoodie.parquet.small.file.limit": "0",
}
"""Hudi's own defaults: this one believes that it is alone."""

ARCHIVING = {
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "6",
    "hoodie.clean.commits.retained": "3",
    "hoodie.clean.automatic": "true",
}


class SqlWriter:
    """`kind`: well_behaved, eager or archiving; `rounds`: 0 for until `stop`."""

    def __init__(
        self, table: Path, *, kind: str, folder: Path, rounds: int = 0, updates: bool = True
    ) -> None:
        self._log = folder / f"sql-writer-{kind}.log"
        command = [sys.executable, "-m", "tests.faults.sql_writer", str(table), kind]
        command += ["--rounds", str(rounds)] + (["--updates"] if updates else [])
        with self._log.open("w") as output:
            self._process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )

    def rounds(self) -> int:
        return len(self._lines())

    def done(self) -> dict[str, int]:
        """How often each kind of statement succeeded, and was refused; `rows`: that it inserted."""
        lines = self._lines()
        return dict(lines[-1]) if lines else {}

    def wait(self, deadline_s: float) -> dict[str, int]:
        """Until its rounds are over."""
        status = self._process.wait(deadline_s)
        assert status == 0, f"the SQL writer ended with {status}: {self._log.read_text()[-4_000:]}"
        return self.done()

    def stop(self) -> dict[str, int]:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        return self.wait(END_S)

    def kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(10)

    def text(self) -> str:
        return self._log.read_text()

    def _lines(self) -> list[dict[str, int]]:
        found = [line for line in self._log.read_text().splitlines() if line.startswith('{"round"')]
        return [json.loads(line) for line in found]


# --- the process ------------------------------------------------------------------------------------


def _write(arguments: argparse.Namespace) -> None:
    from pyspark.sql import SparkSession

    ending: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: ending.append(number))
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars.packages", HUDI_PACKAGE)
        .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
        .config("spark.kryo.registrator", "org.apache.spark.HoodieSparkKryoRegistrar")
        .config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.hudi.catalog.HoodieCatalog")
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    spark.sql(f"create table t using hudi location '{arguments.table}'")
    options = {
        "well_behaved": WELL_BEHAVED,
        "eager": EAGER,
        "archiving": {**WELL_BEHAVED, **ARCHIVING},
    }[arguments.kind]
    for name, value in options.items():
        spark.sql(f"set {name}={value}")
    done: Counter[str] = Counter()
    number = 0
    while not ending and (not arguments.rounds or number < arguments.rounds):
        number += 1
        for kind, statement in _statements(number, updates=arguments.updates):
            try:
                spark.sql(statement).collect()
                done[kind] += 1
                done["rows"] += 10 * (kind == "insert")
            except Exception as error:  # noqa: BLE001 - a conflict, which optimistic writers must expect
                done[f"{kind}_refused"] += 1
                _say(f"{kind} was refused: {_reason(error)}")
        _say(json.dumps({"round": number, **done}))
    spark.stop()


def _reason(error: Exception) -> str:
    """The lines that name Java exceptions, without their traces."""
    lines = [line.strip() for line in str(error).splitlines()]
    named = [line for line in lines if "Exception" in line and not line.startswith("at ")]
    return " <- ".join(line[:300] for line in (named or lines)[:4])


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _statements(number: int, *, updates: bool) -> list[tuple[str, str]]:
    values = ", ".join(
        f"('foreign-{number}-{row}', {row}, 1.0D, 'theirs', 'elsewhere', 0, {number * 10 + row},"
        f" timestamp'2026-01-01 00:00:00', '2026-01-0{1 + row % 3}')"
        for row in range(10)
    )
    columns = "event_id, user_id, amount, note, _kafka_topic, _kafka_partition, _kafka_offset"
    found = [("insert", f"insert into t ({columns}, _kafka_timestamp, day) values {values}")]
    if updates and number % 3 == 0:
        touched = f"update t set note = 'touched {number}' where event_id < 'e-000000040' and event_id > 'e'"
        found.append(("update", touched))
    if updates and number % 4 == 0:
        found.append(("cluster", "call run_clustering(table => 't', op => 'scheduleandexecute')"))
        found.append(
            (
                "clean",
                "call run_clean(table => 't', clean_policy => 'KEEP_LATEST_COMMITS', retain_commits => 3)",
            )
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table")
    parser.add_argument("kind", choices=["well_behaved", "eager", "archiving"])
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--updates", action="store_true")
    _write(parser.parse_args())


if __name__ == "__main__":
    main()
