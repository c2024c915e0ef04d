"""What the driver's JVM says in its own log lines of whose they are."""

from __future__ import annotations

from pyspark.sql import SparkSession


def name_run(spark: SparkSession, pipeline: str, run: str) -> None:
    """From here on lines of `lockstep/launch/log4j2-json.properties` name them."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    for name, value in (("lockstep.pipeline", pipeline), ("lockstep.run", run)):
        jvm.java.lang.System.setProperty(name, value)
