"""Who reads the demo's table, wherever that is: a Spark session, and a reader that knows fewer stores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from lockstep.config import Config
from table.hudi.driver.reach import reach
from table.hudi.reader.mirror import Mirror
from table.store.location import Location, known_to_rust, store_at


def reached(spark: SparkSession, config: Config) -> str:
    """The table's address; from here on the session can read it."""
    storage = config.store_settings()
    if storage is not None:
        reach(spark, Location.parse(config.table.path), storage)
    return config.table.path


@contextmanager
def readable_by_rust(config: Config) -> Iterator[str]:
    """The table's address, or that of a copy of it in a folder, for as long as the context lasts."""
    storage = config.store_settings()
    if known_to_rust(config.table.path):
        yield config.table.path
        return
    copy = Mirror(store_at(config.table.path, settings=storage))
    with copy.held(copy.files):
        yield copy.folder
