"""A Spark job that reads the orders with SQL as they are, and one of them as it was at several instants.

It knows nothing of Lockstep's state, nor of what there should be.

Usage: spark_orders.py -c pipeline.toml --log-level LEVEL RESULT_FOLDER ORDER_ID INSTANT…
"""

from __future__ import annotations

import json
from pathlib import Path

import click
from pyspark.sql import SparkSession

from lockstep.config import load
from lockstep.demo.reached import reached

SHUFFLE_PARTITIONS = 4

COLUMNS = """id, customer, status, CAST(amount AS STRING) AS amount, rating,
             date_format(updated_at, "yyyy-MM-dd'T'HH:mm:ss.SSSSSSX") AS updated_at"""
"""As `lockstep.demo.shop.Order` spells them."""
ROWS = f"SELECT {COLUMNS}, _source_position AS position FROM orders"
STATE = (
    "SELECT '{instant}' AS instant, " + COLUMNS + " FROM orders TIMESTAMP AS OF '{instant}' WHERE id = {id}"
)


@click.command()
@click.option("-c", "--config", "config_path", type=click.Path(path_type=Path), required=True)
@click.option("--log-level", default="WARNING")
@click.argument("result", type=click.Path(path_type=Path))
@click.argument("order", type=int)
@click.argument("instants", nargs=-1)
def main(config_path: Path, log_level: str, result: Path, order: int, instants: tuple[str, ...]) -> None:
    """Write all rows to RESULT/rows as parquet, and the one row by instant to RESULT/states.json."""
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setLogLevel(log_level)
    spark.conf.set("spark.sql.shuffle.partitions", SHUFFLE_PARTITIONS)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.sql(f"CREATE TABLE orders USING hudi LOCATION '{reached(spark, load(config_path))}'")
    spark.sql(ROWS).write.parquet((result / "rows").as_uri())
    queries = (STATE.format(instant=instant, id=order) for instant in instants)
    states = {row.instant: list(row)[1:] for row in spark.sql(" UNION ALL ".join(queries)).collect()}
    (result / "states.json").write_text(json.dumps(states), encoding="utf-8")
    spark.stop()


if __name__ == "__main__":
    main()
