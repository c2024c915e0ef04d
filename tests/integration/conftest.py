"""One Spark with Hudi for all integration tests: its start costs seconds, and a JVM has room for one only."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from py4j.java_collections import JavaIterator
from pyspark.sql import SparkSession

from lockstep.brokers.local import Broker
from lockstep.launch.class_archive import options_to_use
from lockstep.launch.jars import Bundle, classified, resolve
from lockstep.launch.jvm import LATE_C2
from lockstep.launch.submit import find_jars
from lockstep.stores.local import S3Server
from table.hudi.driver.held import Page, page_file
from table.hudi.needs import KRYO, SQL
from table.kinds import HUDI, table_kind
from table.store.connectors import store_needs
from table.store.objects.hadoop_azure import CONNECTOR as AZURE_JAR
from tests.harness import SHORT_LIVED, Pipeline, await_that
from tests.integration.held import Held
from tests.s3_proxy import S3Proxy

ROOT = Path(__file__).resolve().parents[2]
AZURES = Bundle(
    title="Hadoop's connector for Azure", name="hadoop-azure-3.3.4", packages=(AZURE_JAR,), alone=True
)
OURS = tuple(f"{ROOT}/{room}/" for room in ("table", "lockstep"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """As `local_spark` has it."""
    session = local_spark()
    yield session
    session.stop()


def local_spark() -> SparkSession:
    """Of two threads; reads and writes Hudi tables, with SQL. Its JVM starts as a driver's."""
    needs = table_kind(HUDI).needs("s3a://lake/events")
    google = classified(store_needs("gs://lake/events").classified)
    google += resolve(AZURES)
    jars = find_jars(needs.packages, {})
    options = " ".join(filter(None, (LATE_C2, "-XX:+UseSerialGC", options_to_use(jars, {}))))
    builder = SparkSession.builder.master("local[2]").appName("lockstep-tests")
    if jars:
        builder = builder.config("spark.driver.extraClassPath", os.pathsep.join(map(str, jars + google)))
    else:
        builder = builder.config("spark.jars", ",".join(map(str, google)))
        builder = builder.config("spark.jars.packages", ",".join(needs.packages))
        builder = builder.config("spark.jars.excludes", ",".join(needs.excluded))
    for name, value in {**KRYO, **SQL}.items():
        builder = builder.config(name, value)
    session = (
        builder.config("spark.driver.extraJavaOptions", options)
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session


@pytest.fixture
def utc_files(spark: SparkSession) -> Iterator[SparkSession]:
    """A Spark in UTC that writes dates before 1582: their files say which calendar that is."""
    wanted = {"spark.sql.session.timeZone": "UTC", "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED"}
    before = {name: spark.conf.get(name) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    yield spark
    for name, value in before.items():
        spark.conf.set(name, str(value))


@pytest.fixture
def make_pipeline(
    broker: Broker, make_topic: Callable[..., str], tmp_path: Path
) -> Iterator[Callable[[int], Pipeline]]:
    """Makes a pipeline of so many source partitions, in `tmp_path`; ends what it started."""
    made: list[Pipeline] = []

    def make(partitions: int) -> Pipeline:
        topic = make_topic(partitions=partitions)
        one = Pipeline(folder=tmp_path, broker=broker, topic=topic, partitions=partitions)
        one.spark.update(SHORT_LIVED)
        made.append(one)
        return one

    yield make
    for one in made:
        one.close()


@pytest.fixture
def pipeline(make_pipeline: Callable[[int], Pipeline]) -> Pipeline:
    return make_pipeline(4)


@pytest.fixture(autouse=True)
def nobody_iterates_over_java(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Py4J's iterator takes every error for the end: the product has another way (driver/asking.py)."""
    right = JavaIterator.next
    seen: set[str] = set()

    def watched(iterator: JavaIterator) -> Any:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not (asker := frame.f_code.co_filename).startswith(OURS):
            frame = frame.f_back
        if frame is not None:
            seen.add(f"{asker}:{frame.f_lineno}")
        return right(iterator)

    monkeypatch.setattr(JavaIterator, "next", watched)
    monkeypatch.setattr(JavaIterator, "__next__", watched)
    yield
    assert not seen, "these iterate over a collection of Java's"


@pytest.fixture(autouse=True)
def no_lock_is_left() -> Iterator[None]:
    """A guardian ends this process for a table lock that the JVM still shows as held."""
    yield
    page = Page(page_file().number)
    await_that("end of the table lock", lambda: not page.held(), deadline_s=30)


@pytest.fixture
def there(spark: SparkSession, s3: S3Server) -> Iterator[Held]:
    with S3Proxy(s3.port) as proxy:
        made = Held(spark, s3, proxy)
        yield made
        made.connector.close()
        assert not proxy.unstruck()
