"""A Spark session of its own that knows nothing of Lockstep: what foreign writers and readers use."""

from __future__ import annotations

from pyspark.sql import SparkSession

from table.hudi.needs import BUNDLE


def session(*, threads: int = 2) -> SparkSession:
    """A local Spark with Hudi and its SQL."""
    spark = (
        SparkSession.builder.master(f"local[{threads}]")
        .config("spark.jars.packages", BUNDLE)
        .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
        .config("spark.kryo.registrator", "org.apache.spark.HoodieSparkKryoRegistrar")
        .config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.hudi.catalog.HoodieCatalog")
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark
