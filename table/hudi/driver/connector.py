"""The class by which the driver's JVM reads and writes S3: Hadoop's connector, of whose open files only so
many keep a connection, and which does not ask what it knows.

Hudi 1.2.0 never closes what it reads parquet log blocks with. In a driver that compacts for weeks the pool of
connections would run dry. Ours is jvm/SparingS3AFileSystem.java.
"""

from __future__ import annotations

from typing import Any

from table.hudi.driver.compiled import HAVE_PACKAGES, java_class

NAME = "org.apache.hadoop.fs.s3a.SparingS3AFileSystem"
SOURCE = "SparingS3AFileSystem.java"
BESIDE = "org.apache.hadoop.fs.s3a.S3AFileSystem"
"""Its package is open to classes of its own loader only."""
SETTING = "fs.s3a.impl"


def sparing_connector(jvm: Any, gateway: Any) -> str:
    """Its name, by which Hadoop finds it from here on. Raises `Refused` where this Hadoop is another."""
    java_class(
        jvm,
        gateway,
        name=NAME,
        source=SOURCE,
        beside=BESIDE,
        misfit="the connector for tables on S3 does not fit this Hadoop",
        advice=HAVE_PACKAGES,
    )
    return NAME


def read_anew_after(jvm: Any, taken: Any) -> None:
    """What was read of properties is good until this reference of Java's holds another object."""
    jvm.org.apache.hadoop.fs.s3a.SparingS3AFileSystem.readAnewAfter(taken)
