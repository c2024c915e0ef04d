"""The job that people write today: Spark Structured Streaming into Hudi. Run by spark-submit.

One argument: a JSON file that says what to do, as `bench/rivals/structured_streaming.py` writes it.
"""

from __future__ import annotations

import sys
from pathlib import Path

if sys.path and Path(sys.path[0]).resolve() == Path(__file__).resolve().parent:
    sys.path.pop(0)  # this folder's names must not hide others'

import json
import time
from typing import Any

import pyspark.sql.functions as f
from pyspark.sql import Column, SparkSession
from pyspark.sql.avro.functions import from_avro

POLL_S = 0.2
FRAME_BYTES = 5


def main() -> None:
    task = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    for name, value in task["hadoop"].items():
        spark.sparkContext._jsc.hadoopConfiguration().set(name, value)
    began_ms = time.time_ns() // 1_000_000
    source = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", task["bootstrap_servers"])
        .option("subscribe", task["topic"])
        .option("startingOffsets", "earliest")
    )
    if task["batch_records"]:
        source = source.option("maxOffsetsPerTrigger", task["batch_records"])
    columns = ["record.*", *(["_kafka_timestamp"] if task["kafka_timestamp"] else [])]
    values = (
        source.load().select(_record(task), f.col("timestamp").alias("_kafka_timestamp")).select(*columns)
    )
    stream = (
        values.writeStream.format("hudi")
        .options(**task["options"])
        .option("checkpointLocation", task["checkpoint"])
        .outputMode("append")
    )
    if task["trigger_s"]:
        query = stream.trigger(processingTime=f"{task['trigger_s']} seconds").start(task["table"])
        stop_file, until = Path(task["stop_file"]), time.monotonic() + task["timeout_s"]
        while query.isActive and not stop_file.exists() and time.monotonic() < until:
            time.sleep(POLL_S)
        if query.isActive:
            query.stop()
        if query.exception() is not None:
            raise SystemExit(f"the query failed: {query.exception()}")
    else:
        query = stream.trigger(availableNow=True).start(task["table"])
        query.awaitTermination(task["timeout_s"])
    batches = [
        {"records": _records(one["sources"][0]), "durations_ms": one["durationMs"]}
        for one in query.recentProgress
    ]
    Path(task["result"]).write_text(json.dumps({"began_ms": began_ms, "batches": batches}), encoding="utf-8")


def _record(task: dict[str, Any]) -> Column:
    """Of Avro without the id of its schema, which Spark's reader knows nothing of."""
    if task["avro"]:
        return from_avro(f.expr(f"substring(value, {FRAME_BYTES + 1})"), task["avro"]).alias("record")
    return f.from_json(f.col("value").cast("string"), task["schema"]).alias("record")


def _records(source: dict[str, Any]) -> int:
    """What a batch took from the topic, by its offsets: Spark counts rows again that it computes again."""
    ends, starts = source["endOffset"], source["startOffset"] or {}
    return sum(
        end - starts.get(topic, {}).get(number, 0)
        for topic, offsets in ends.items()
        for number, end in offsets.items()
    )


if __name__ == "__main__":
    main()
