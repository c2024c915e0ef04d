"""What Hudi wants of the Spark that it runs in: jars, and settings."""

from __future__ import annotations

from table.port import SparkNeeds

VERSION = "1.2.0"
BUNDLE = f"org.apache.hudi:hudi-spark3.5-bundle_2.12:{VERSION}"
PACKAGES = (
    BUNDLE,
    f"org.apache.hudi:hudi-java-client:{VERSION}",
    "com.globalmentor:hadoop-bare-naked-local-fs:0.1.0",
)
"""Hudi; its client that commits without Spark jobs, a third of the time; and a local file system for Hadoop
that sets permissions by itself, where Hadoop's own starts a process for each file, sixty of them a commit.
Without the last two everything works, and a commit takes three times as long."""
NOT_ALONG = (
    "org.apache.hudi:hudi-client-common",
    "org.apache.hudi:hudi-hadoop-common",
    "org.apache.logging.log4j:log4j-1.2-api",
    "org.apache.parquet:parquet-avro",
    "com.esotericsoftware:kryo-shaded",
    "org.projectlombok:lombok",
)
"""What Maven's metadata of the Java client asks for: the bundle holds it already, or Spark does."""

KRYO = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
}
SQL = {
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
}
DATES = {
    # A compaction or clustering would fail at the first date before 1582, and at each attempt again.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}
QUIET_JOL = "-Djdk.attach.allowAttachSelf=true -Djol.skipHotspotSAAttach=true"
"""Hudi measures objects with JOL, which otherwise warns on stdout that it may not attach to its own JVM."""


def hudi_needs() -> SparkNeeds:
    """Wherever the table is."""
    return SparkNeeds(
        packages=PACKAGES,
        reading=(BUNDLE,),
        excluded=NOT_ALONG,
        conf={**KRYO, **SQL, **DATES},
        fixed=KRYO,
        java_options=QUIET_JOL,
    )
