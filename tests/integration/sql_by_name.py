"""What Spark SQL, with a metastore, says of a table that it finds by its name. Run as a process of its own: a
session has one catalog for its life.
"""

from __future__ import annotations

import json
import os
import sys

from pyspark.sql import SparkSession

from lockstep.launch.submit import find_jars
from table.hudi.needs import KRYO, SQL
from table.kinds import HUDI, table_kind


def main(uri: str, query: str) -> None:
    needs = table_kind(HUDI).needs("file:///data/lake/events")
    jars = find_jars(needs.packages, {})
    builder = SparkSession.builder.master("local[2]").appName("by-name")
    if jars:
        builder = builder.config("spark.driver.extraClassPath", os.pathsep.join(map(str, jars)))
    else:
        builder = builder.config("spark.jars.packages", ",".join(needs.packages))
        builder = builder.config("spark.jars.excludes", ",".join(needs.excluded))
    for name, value in {**KRYO, **SQL}.items():
        builder = builder.config(name, value)
    builder = builder.config("spark.sql.catalogImplementation", "hive")
    builder = builder.config("spark.hadoop.hive.metastore.uris", uri)
    builder = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2")
    spark = builder.getOrCreate()
    rows = [list(row) for row in spark.sql(query).collect()]
    sys.stdout.write("\n" + json.dumps(rows) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
