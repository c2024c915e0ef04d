"""A foreign writer: Spark SQL in a process of its own, on the table that Lockstep writes.

`SqlWriter` is the handle; the process is `python -m tests.faults.sql_writer`. Each round inserts rows of its
own; every few rounds it updates rows of Lockstep's, clusters and cleans. On a table of upserts it updates
and merges. SIGTERM ends it after its round. It prints a JSON line for every round: how many of each kind
succeeded, which round the last of them was in, and how many were refused.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from tests.faults.spark_sql import session
from tests.faults.upsert_model import Row, always_there
from tests.merge_model import Key

END_S = 180.0
CHANGING = "changing"
UPDATED, MERGED = slice(0, 6), slice(6, 12)
"""Of the pipeline's rows."""
THEIRS = tuple(("ab"[n % 2], f"sql-{n}") for n in range(6))
"""Rows that the merge makes."""
PINNED_TS = 10**15
"""Above all that the pipeline's changes have: from then on only the SQL writer changes a row."""

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
    """`kind`: well_behaved, eager, archiving, or of upserts changing; `rounds`: 0 for until `stop`."""

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

    @property
    def running(self) -> bool:
        return self._process.poll() is None

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
    ending: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: ending.append(number))
    spark = session()
    spark.sql(f"create table t using hudi location '{arguments.table}'")
    options = {
        "well_behaved": WELL_BEHAVED,
        "eager": EAGER,
        "archiving": {**WELL_BEHAVED, **ARCHIVING},
        CHANGING: {},  # what it must know is kept with the table
    }[arguments.kind]
    for name, value in options.items():
        spark.sql(f"set {name}={value}")
    done: Counter[str] = Counter()
    number = 0
    while not ending and (not arguments.rounds or number < arguments.rounds):
        number += 1
        changing = arguments.kind == CHANGING
        for kind, statement in _changes(number) if changing else _statements(number, arguments.updates):
            done[f"{kind}_tried_round"] = number
            try:
                spark.catalog.refreshTable("t")  # Spark remembers files, and some are cleaned meanwhile
                spark.sql(statement).collect()
                done[kind] += 1
                done[f"{kind}_round"] = number
                done["rows"] += 10 * (kind == "insert")
            except ConnectionError:
                raise  # its JVM has ended: nobody refuses anything any more
            except Exception as error:  # noqa: BLE001 - a conflict, which optimistic writers must expect
                done[f"{kind}_refused"] += 1
                _say(f"{kind} was refused: {_reason(error)}")
        _say(json.dumps({"round": number, **done}))
    if arguments.kind == CHANGING:
        _say(json.dumps({"round": number, **done, **_landed(spark)}))
    spark.stop()


def _reason(error: Exception) -> str:
    """The lines that name Java exceptions, without their traces."""
    lines = [line.strip() for line in str(error).splitlines()]
    named = [line for line in lines if "Exception" in line and not line.startswith("at ")]
    return " <- ".join(line[:300] for line in (named or lines)[:4])


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _statements(number: int, updates: bool) -> list[tuple[str, str]]:
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


def _changes(number: int) -> list[tuple[str, str]]:
    """An update of some of the pipeline's rows, a merge into others and into rows of its own."""
    ts = PINNED_TS + number
    names = ", ".join(f"'{name}'" for _, name in always_there()[UPDATED])
    rows = " union all ".join(
        f"select '{region}' region, '{name}' id, {-number}L amount, {ts}L ts, false deleted,"
        f" 'elsewhere' _kafka_topic, 0 _kafka_partition, {number}L _kafka_offset,"
        " timestamp'2026-01-01 00:00:00' _kafka_timestamp"
        for region, name in (*always_there()[MERGED], *THEIRS)
    )
    merge = (
        f"merge into t using ({rows}) new on t.id = new.id and t.region = new.region"
        " when matched then update set id = new.id, amount = new.amount, ts = new.ts"
        " when not matched then insert *"
    )
    return [
        ("update", f"update t set amount = {-number}L, ts = {ts}L where id in ({names})"),
        ("merge", merge),
    ]


def _landed(spark: SparkSession) -> dict[str, int]:
    """The round whose statement each row of a kind is as, -1 where they are not all as the same one.

    A statement that was refused may have landed all the same: Hudi's services come after its commit.
    """
    found = {}
    spark.catalog.refreshTable("t")
    for kind, keys in _changed_keys():
        names = ", ".join(f"'{name}'" for _, name in keys)
        rows = spark.sql(f"select amount, ts from t where id in ({names})").collect()
        rounds = {ts - PINNED_TS for amount, ts in rows if amount == PINNED_TS - ts}
        whole = len(rounds) == 1 and len(rows) == len(keys)
        found[f"{kind}_landed_round"] = rounds.pop() if whole else -1
    return found


def _changed_keys() -> tuple[tuple[str, Sequence[Key]], ...]:
    return ("update", always_there()[UPDATED]), ("merge", (*always_there()[MERGED], *THEIRS))


def changed_rows(done: dict[str, int]) -> dict[Key, Row]:
    """The rows that a `changing` writer has left. Fails where a statement has not landed that succeeded."""
    rows: dict[Key, Row] = {}
    for kind, keys in _changed_keys():
        number = done[f"{kind}_landed_round"]
        assert done[f"{kind}_round"] <= number <= done[f"{kind}_tried_round"], done
        rows |= {key: (-number, PINNED_TS + number) for key in keys}
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table")
    parser.add_argument("kind", choices=["well_behaved", "eager", "archiving", CHANGING])
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--updates", action="store_true")
    _write(parser.parse_args())


if __name__ == "__main__":
    main()
