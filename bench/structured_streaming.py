"""The job that people write today: Spark Structured Streaming into Hudi, bulk_insert, one batch of all.

Run by bench/compare.py under spark-submit: TOPIC BOOTSTRAP TABLE. Prints one JSON line.
"""

from __future__ import annotations

import json
import sys
import time

import pyspark.sql.functions as f
from pyspark.sql import SparkSession

from bench.records import SCHEMA

OPTIONS = {
    "hoodie.table.name": "events",
    "hoodie.datasource.write.recordkey.field": "event_id",
    "hoodie.datasource.write.partitionpath.field": "day",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "bulk_insert",
    "hoodie.bulkinsert.sort.mode": "NONE",
    "hoodie.combine.before.insert": "false",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.parquet.compression.codec": "zstd",
}


def main() -> None:
    topic, bootstrap_servers, table = sys.argv[1:4]
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    began = time.monotonic()
    values = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
        .select(f.from_json(f.col("value").cast("string"), SCHEMA).alias("record"))
        .select("record.*")
    )
    query = (
        values.writeStream.format("hudi")
        .options(**OPTIONS)
        .option("checkpointLocation", f"{table}-checkpoint")
        .outputMode("append")
        .trigger(availableNow=True)
        .start(table)
    )
    query.awaitTermination()
    seconds = time.monotonic() - began
    rows = spark.read.format("hudi").load(table).count()
    sys.stdout.write(json.dumps({"rows": rows, "seconds": seconds}) + "\n")


if __name__ == "__main__":
    main()
