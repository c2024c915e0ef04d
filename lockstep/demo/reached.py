"""A Spark session that reads the demo's table, wherever that is."""

from __future__ import annotations

from pyspark.sql import SparkSession

from lockstep.config import Config
from table.hudi.driver.reach import reach
from table.store.location import Location


def reached(spark: SparkSession, config: Config) -> str:
    """The table's address; from here on the session can read it."""
    storage = config.store_settings()
    if storage is not None:
        reach(spark, Location.parse(config.table.path), storage)
    return config.table.path
