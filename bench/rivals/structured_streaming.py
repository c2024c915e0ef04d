"""Spark Structured Streaming into Hudi, with bulk_insert or upsert: the job that people write today."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.figures import Commit, Measured
from bench.lakes import Lake, file_lake
from bench.processes import Sampler
from bench.rivals import hudi_commits
from bench.rivals.base import ROOT, Load, Settings, measured
from bench.rivals.maven_jars import resolve_spark_avro, resolve_spark_kafka
from bench.waiting import end, finish, tail
from bench.workloads import Workload
from lockstep.errors import Failed
from lockstep.launch.submit import environment, find_jars, find_spark_home
from table.hudi.needs import BUNDLE
from table.store.connectors import hadoop_settings, store_needs
from table.store.location import Location

WINDOW = (
    "from the job's session being up (Spark started, Hudi loaded) to the completion of the last batch's "
    "commit; making the table is inside; of upserts all records of the topic are counted, by the batches' "
    "offsets, though of a batch's changes of one row only the last is written"
)
JOB = ROOT / "bench" / "jobs" / "structured_streaming.py"
SORT_ABOVE_PARTITIONS = 100
"""With more table partitions than this, files are kept apart by a sort: else each task opens one for each."""
PROGRESS_KEPT = 100_000


def run(load: Load) -> Measured:
    """One load, `load.batch_records` a batch, until everything that was on the topic is committed."""
    task = write_task(
        load.folder,
        bootstrap_servers=load.bootstrap_servers,
        topic=load.topic,
        workload=load.workload,
        batch_records=load.batch_records,
        timeout_s=load.settings.timeout_s,
        lake=load.lake,
    )
    log = load.folder / "streaming.log"
    process = start(task, load.settings, log=log, lake=load.lake)
    try:
        with Sampler(process.pid) as sampler:
            finish("the Structured Streaming job", process, timeout_s=load.settings.timeout_s, log=log)
    finally:
        end(process)
    result = read_result(load.folder, log)
    commits = hudi_commits.commits(load.lake.table, load.lake.beside)
    if load.workload.kind == "upsert":
        commits = by_batches(commits, result["batches"])
    return measured(
        load,
        start_ms=result["began_ms"],
        commits=commits,
        sampler=sampler,
        worker_pids=[process.pid],  # the shell of spark-submit becomes the JVM that moves the records
        stages=batch_shares(result["batches"]),
    )


def write_task(
    folder: Path,
    *,
    bootstrap_servers: str,
    topic: str,
    workload: Workload,
    batch_records: int,
    timeout_s: float,
    trigger_s: float = 0.0,
    kafka_timestamp: bool = False,
    lake: Lake | None = None,
) -> Path:
    """What the job is to do. `trigger_s` 0: what is there, then end; else go on until `stop` is there.

    The checkpoint is in the folder wherever the table is, to this rival's favour.
    """
    lake = lake or file_lake(folder)
    task: dict[str, Any] = {
        "bootstrap_servers": bootstrap_servers,
        "topic": topic,
        "schema": workload.schema,
        "avro": workload.encoding.schema if workload.encoding is not None else "",
        "batch_records": batch_records,
        "trigger_s": trigger_s,
        "kafka_timestamp": kafka_timestamp,
        "options": options(workload),
        "timeout_s": timeout_s,
        "table": lake.table,
        "hadoop": hadoop(lake),
    }
    for name in ("checkpoint", "result", "stop_file"):
        task[name] = str(folder / name.removesuffix("_file"))
    path = folder / "task.json"
    path.write_text(json.dumps(task), encoding="utf-8")
    return path


def hadoop(lake: Lake) -> dict[str, str]:
    """Of the session's Hadoop, so that it reaches the lake as Lockstep's does."""
    if lake.storage is None:
        return {}
    location = Location.parse(lake.table)
    found = hadoop_settings(location, lake.storage)
    return {**found.plain, **found.secret, **{one.name: one.value for one in found.tuning}}


def by_batches(commits: Sequence[Commit], batches: Sequence[Mapping[str, Any]]) -> list[Commit]:
    """The commits with what their batches took from the topic; both oldest first. Raises `Failed`."""
    taken = [batch["records"] for batch in batches if batch["records"]]
    if len(taken) != len(commits):
        raise Failed(f"Structured Streaming made {len(commits)} commits of {len(taken)} batches.")
    return [replace(one, rows=records) for one, records in zip(commits, taken, strict=True)]


def options(workload: Workload) -> dict[str, str]:
    """Of Hudi's datasource."""
    chosen = {
        "hoodie.table.name": "events",
        "hoodie.datasource.write.recordkey.field": workload.key,
        "hoodie.datasource.write.precombine.field": workload.ordering,
        **(_upserting(workload) if workload.kind == "upsert" else _appending(workload)),
        "hoodie.metadata.index.column.stats.enable": "false",
        "hoodie.parquet.compression.codec": "zstd",
    }
    if workload.partition_by:
        chosen["hoodie.datasource.write.partitionpath.field"] = workload.partition_by
    else:
        chosen["hoodie.datasource.write.keygenerator.class"] = (
            "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
        )
    return chosen


def _appending(workload: Workload) -> dict[str, str]:
    many = workload.table_partitions > SORT_ABOVE_PARTITIONS
    return {
        "hoodie.datasource.write.operation": "bulk_insert",
        "hoodie.bulkinsert.sort.mode": "PARTITION_SORT" if many else "NONE",
        "hoodie.combine.before.insert": "false",
    }


def _upserting(workload: Workload) -> dict[str, str]:
    """The table that Lockstep makes for upserts; nobody compacts it."""
    return {
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": str(workload.buckets),
        "hoodie.bucket.index.hash.field": workload.key,
        "hoodie.compact.inline": "false",
        "hoodie.datasource.compaction.async.enable": "false",
    }


def start(
    task: Path, settings: Settings, *, log: Path, job: Path = JOB, lake: Lake | None = None
) -> subprocess.Popen[bytes]:
    """The job under spark-submit, with its task as its argument; the caller ends it."""
    home = find_spark_home()
    command = [str(home / "bin" / "spark-submit"), "--master", f"local[{settings.workers}]"]
    command += ["--driver-memory", settings.streaming_memory]
    needs = store_needs((lake or file_lake(task.parent)).table)
    packages = (BUNDLE, *needs.packages)
    own, jars = find_jars(packages, {}), [*resolve_spark_kafka(), *resolve_spark_avro()]
    if not own:
        command += ["--packages", ",".join(packages)]
        command += ["--exclude-packages", ",".join(needs.excluded)] if needs.excluded else []
    else:
        jars = [*own, *jars]
    for name, value in {
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.sql.warehouse.dir": str(task.parent / "warehouse"),
        "spark.sql.streaming.numRecentProgressUpdates": str(PROGRESS_KEPT),
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.pyspark.python": sys.executable,
        "spark.driver.extraClassPath": os.pathsep.join(map(str, jars)),
    }.items():
        command += ["--conf", f"{name}={value}"]
    with log.open("wb") as output:
        return subprocess.Popen(
            [*command, str(job), str(task)],
            cwd=task.parent,
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            env=environment(os.environ, spark_home=home),
        )


def read_result(folder: Path, log: Path) -> Mapping[str, Any]:
    """What the job said when it ended. Raises `Failed`."""
    try:
        result: Mapping[str, Any] = json.loads((folder / "result").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Failed(f"The Structured Streaming job left no result: {error}.{tail(log)}") from error
    return result


def batch_shares(batches: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The part of the batches' time in each of Spark's steps; `addBatch` reads, decodes, writes, commits."""
    total: dict[str, float] = {}
    for batch in batches:
        for step, taken_ms in batch["durations_ms"].items():
            total[step] = total.get(step, 0.0) + taken_ms
    whole = total.pop("triggerExecution", 0.0)
    return {step: taken_ms / whole for step, taken_ms in total.items()} if whole else {}
