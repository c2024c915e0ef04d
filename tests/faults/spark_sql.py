"""A Spark session of its own that knows nothing of Lockstep: what foreign writers and readers use."""

from __future__ import annotations

from pyspark.sql import SparkSession

from lockstep.launch.jars import classified
from lockstep.stores.local import ACCESS_KEY, SECRET_KEY
from table.hudi.needs import BUNDLE
from table.port import SparkNeeds
from table.store.objects.hadoop import S3_NEEDS

NOTHING = SparkNeeds()
CONNECTIONS_MAX = "20000"
"""Hudi leaves two connections open with each log block that it reads; without a free one it reads no more."""


def session(*, threads: int = 2, s3: str = "", needs: SparkNeeds = NOTHING) -> SparkSession:
    """A local Spark with Hudi and its SQL. `s3`: the endpoint of a server of ours that it is to reach.
    `needs`: what it takes to reach another store.
    """
    packages = (BUNDLE, *(S3_NEEDS if s3 else needs).packages)
    spark = (
        SparkSession.builder.master(f"local[{threads}]")
        .config("spark.jars.packages", ",".join(packages))
        .config("spark.jars.excludes", ",".join((S3_NEEDS if s3 else needs).excluded))
        .config("spark.jars", ",".join(map(str, classified(needs.classified))))
        .config(map=_reach(s3) if s3 else {})
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


def _reach(s3: str) -> dict[str, bool | float | int | str | None]:
    """Of whatever bucket: who does this knows nothing of Lockstep, and its keys are everybody's."""
    return {
        "spark.hadoop.fs.s3a.endpoint": s3,
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.connection.maximum": CONNECTIONS_MAX,
        "spark.hadoop.fs.s3a.access.key": ACCESS_KEY,
        "spark.hadoop.fs.s3a.secret.key": SECRET_KEY,
    }
