"""A Spark job that counts the demo's table with SQL, and knows nothing of Lockstep's state.

Usage: spark_count.py -c pipeline.toml --log-level LEVEL RESULT_FILE
"""

from __future__ import annotations

import json
from pathlib import Path

import click
from pyspark.sql import SparkSession

from lockstep.config import load
from lockstep.demo.reached import reached

SHUFFLE_PARTITIONS = 4

COUNTS = """
SELECT count(*)                                                     AS rows,
       count(DISTINCT _kafka_topic, _kafka_partition, _kafka_offset) AS offsets,
       count(DISTINCT event_id)                                     AS events,
       count(DISTINCT _hoodie_commit_time)                          AS commits,
       count(DISTINCT _hoodie_file_name)                            AS files
FROM   events
"""


@click.command()
@click.option("-c", "--config", "config_path", type=click.Path(path_type=Path), required=True)
@click.option("--log-level", default="WARNING")
@click.argument("result", type=click.Path(path_type=Path))
def main(config_path: Path, log_level: str, result: Path) -> None:
    """Write the counts to RESULT as one JSON document."""
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setLogLevel(log_level)
    spark.conf.set("spark.sql.shuffle.partitions", SHUFFLE_PARTITIONS)
    spark.read.format("hudi").load(reached(spark, load(config_path))).createOrReplaceTempView("events")
    row = spark.sql(COUNTS).first()
    assert row is not None, "an aggregate without groups has one row"
    result.write_text(json.dumps(row.asDict()), encoding="utf-8")
    spark.stop()


if __name__ == "__main__":
    main()
