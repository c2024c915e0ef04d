"""The classes by which S3 is read and written: Hadoop's connector, of whose open files only so many keep a
connection, and, in the driver's JVM, which does not ask what it knows.

Hudi 1.2.0 never closes what it reads parquet log blocks with. In a JVM that compacts for weeks the pool of
connections would run dry. Ours are jvm/SparingS3AFileSystem.java and jvm/KnowingS3AFileSystem.java. Hadoop
finds them by name; executors in JVMs of their own are given the former in a jar.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from table.hudi.driver.compiled import HAVE_PACKAGES, class_jar, java_class

PACKAGE = "org.apache.hadoop.fs.s3a"
SPARING = f"{PACKAGE}.SparingS3AFileSystem"
NAME = f"{PACKAGE}.KnowingS3AFileSystem"
"""Of the driver's."""
EXECUTORS = ("Connections", "SparingS3AFileSystem")
CLASSES = (*EXECUTORS, "Content", "HeldFolders", "Markers", "KnowingS3AFileSystem")
"""Each after those that it uses."""
BESIDE = f"{PACKAGE}.S3AFileSystem"
SETTING = "fs.s3a.impl"
MISFIT = "the connector for tables on S3 does not fit this Hadoop"


def connector(jvm: Any, gateway: Any) -> str:
    """The driver's name, by which Hadoop finds it from now on. Raises `Refused` where it does not fit."""
    for one in CLASSES:
        java_class(
            jvm,
            gateway,
            name=f"{PACKAGE}.{one}",
            source=f"{one}.java",
            beside=BESIDE,
            misfit=MISFIT,
            advice=HAVE_PACKAGES,
        )
    return NAME


def connect_apart(spark: SparkSession, bucket: str, conf: Any) -> None:
    """Where executors are in JVMs of their own: they have theirs, the driver its own. Raises `Refused`.

    Hadoop has one connector for a bucket in each JVM, and `conf` goes from here to executors: the driver's is
    made before that says which is theirs.
    """
    jvm: Any = spark._jvm
    own = jvm.org.apache.hadoop.conf.Configuration(conf)
    own.set(SETTING, connector(jvm, spark.sparkContext._gateway))
    jvm.org.apache.hadoop.fs.FileSystem.get(jvm.java.net.URI(f"s3a://{bucket}/"), own)
    if conf.get(SETTING) != SPARING:
        spark.sparkContext._jsc.addJar(str(_jar(jvm)))
        conf.set(SETTING, SPARING)


@cache
def _jar(jvm: Any) -> Path:
    folder = tempfile.mkdtemp(prefix="lockstep-jars-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    made = Path(folder) / "lockstep-s3.jar"
    sources = [f"{one}.java" for one in EXECUTORS]
    made.write_bytes(class_jar(jvm, sources=sources, beside=BESIDE, misfit=MISFIT, advice=HAVE_PACKAGES))
    return made


def known_by_lock(jvm: Any, *, taken: Any, held: Any, here: bool) -> None:
    """What was read of properties is good until `taken`, a reference of Java's, holds another object.

    What was listed of a metadata table is good as long as `held`, a map of Java's, has the same object for
    the address of its table. `here`: executors are in this JVM; others' write its files, not its timeline.
    """
    driver = jvm.org.apache.hadoop.fs.s3a.KnowingS3AFileSystem
    driver.readAnewAfter(taken)
    driver.heldBy(held, here)
