"""Of Hadoop's connector to S3 only so many open files keep a connection: in a JVM, on a real server."""

from __future__ import annotations

import os
import random
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from lockstep.stores.local import ACCESS_KEY, SECRET_KEY, S3Server, secret_of
from table.errors import Refused
from table.hudi.driver.connector import NAME, SETTING, connector, known_by_lock
from table.hudi.driver.reach import PROFILE, reach
from table.store.location import Location, store_at
from table.store.objects.settings import Profile
from table.store.port import Store
from tests.harness import await_that
from tests.integration.test_s3_table import Place
from tests.integration.test_s3_upserts import S3Upserts
from tests.integration.test_upserts import history, record
from tests.s3_proxy import S3Proxy

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("s3")]

HADOOPS_OWN = "org.apache.hadoop.fs.s3a.S3AFileSystem"
HOME = "user.home"
READING_MAX, POOL = 4, 8
FILES = 20
FILE_BYTES = 300_000
"""More than arrives with the first byte, so that a connection is held for the rest."""
READS = 400
TRANSACTIONS = 6
READINGS = int(os.environ.get("S3A_READINGS", "8"))
"""Of the whole table by its log blocks. S3A_READINGS=1000 takes ten minutes or so."""
HUDI_READING_MAX = 12
OTHERS_MAX = 20
"""Connections that wait in the pool, and those by which something is written."""


def content(number: int) -> bytes:
    return random.Random(number).randbytes(FILE_BYTES)


class Bucket:
    """Of its own, for Hadoop keeps one connector for each, with so many files below a folder."""

    def __init__(self, spark: SparkSession, s3: S3Server, implementation: str) -> None:
        bucket = f"connector-{uuid.uuid4().hex[:12]}"
        s3.make_bucket(bucket)
        self.path = f"s3a://{bucket}/lake"
        self.store: Store = store_at(self.path, settings=s3.settings)
        self.jvm: Any = spark._jvm
        self.conf = self.jvm.org.apache.hadoop.conf.Configuration(
            reach(spark, Location.parse(self.path), s3.settings)
        )
        self.conf.set(SETTING, implementation)
        own = f"fs.s3a.bucket.{bucket}."
        for name, value in {
            "lockstep.reading.max": READING_MAX,
            "connection.maximum": POOL,
            "threads.max": 2,
            "connection.establish.timeout": 1_000,
            "attempts.maximum": 1,
            "retry.limit": 1,
        }.items():
            self.conf.set(own + name, str(value))
        for number in range(FILES):
            self.store.put(f"{number}", content(number))
        self.connector = self.jvm.org.apache.hadoop.fs.Path(self.path).getFileSystem(self.conf)

    def open(self, number: int) -> Any:
        return self.connector.open(self.jvm.org.apache.hadoop.fs.Path(f"{self.path}/{number}"), 4_096)

    def read(self, file: Any, at: int, length: int) -> bytes:
        """From there on, by seeking."""
        file.seek(at)
        return bytes(self.jvm.org.apache.commons.io.IOUtils.toByteArray(file, length))


@pytest.fixture
def bucket(spark: SparkSession, s3: S3Server) -> Iterator[Callable[[str], Bucket]]:
    with ExitStack() as opened:

        def make(implementation: str) -> Bucket:
            connector(spark._jvm, spark.sparkContext._gateway)
            made = Bucket(spark, s3, implementation)
            opened.callback(made.connector.close)
            return made

        yield make


def test_of_hadoops_own_a_file_that_nobody_closes_keeps_a_connection(bucket: Callable[[str], Bucket]) -> None:
    """What ours is for; where this fails, ours is no longer needed."""
    there = bucket(HADOOPS_OWN)
    with pytest.raises(Py4JJavaError, match="Timeout waiting for connection from pool"):
        for number in range(FILES):
            there.open(number).read()


def test_files_that_nobody_closes_keep_no_other_from_being_read_and_can_be_read_on(
    bucket: Callable[[str], Bucket],
) -> None:
    there = bucket(NAME)
    opened = [there.open(number) for number in range(FILES)]
    for number, file in enumerate(opened):
        assert file.read() == content(number)[0]
        assert there.connector.reading() <= READING_MAX
    for number, file in enumerate(opened):
        assert file.getPos() == 1
        assert there.read(file, 1, FILE_BYTES - 1) == content(number)[1:]


def test_where_hadoops_connector_is_missing_it_is_said_what_spark_is_to_resolve(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("table.hudi.driver.connector.BESIDE", "org.nowhere.FileSystem")
    with pytest.raises(
        Refused, match=r"there is no org\.nowhere\.FileSystem: have Spark resolve the packages"
    ):
        connector(spark._jvm, spark.sparkContext._gateway)


def test_what_is_closed_leaves_room(bucket: Callable[[str], Bucket]) -> None:
    there = bucket(NAME)
    opened = [there.open(number) for number in range(READING_MAX)]
    for file in opened:
        file.read()
    assert there.connector.reading() == READING_MAX
    for file in opened:
        file.close()
        file.close()
    assert there.connector.reading() == 0


def test_many_read_at_once_and_here_and_there_and_each_gets_what_stands_there(
    bucket: Callable[[str], Bucket],
) -> None:
    there = bucket(NAME)
    opened = [there.open(number) for number in range(FILES)]

    def read(seed: int) -> None:
        chosen = random.Random(seed)
        number = seed % FILES
        expected, file = content(number), opened[number]
        for _ in range(READS // FILES):
            at = chosen.randrange(FILE_BYTES - 1)
            length = min(chosen.choice((1, 100, 70_000)), FILE_BYTES - at)
            assert there.read(file, at, length) == expected[at : at + length]

    with ThreadPoolExecutor(POOL) as threads:
        for done in [threads.submit(read, seed) for seed in range(FILES)]:
            done.result()


def test_properties_are_read_once_in_a_while_and_anew_once_the_lock_was_taken_or_they_were_written(
    bucket: Callable[[str], Bucket],
) -> None:
    there = bucket(NAME)
    taken = there.jvm.java.util.concurrent.atomic.AtomicReference("nobody")
    known_by_lock(there.jvm, taken=taken, held=there.jvm.java.util.HashMap(), here=True)

    def read() -> str:
        file = there.connector.open(there.jvm.org.apache.hadoop.fs.Path(f"{there.path}/{path}"), 4_096)
        return str(there.jvm.org.apache.commons.io.IOUtils.toString(file, "UTF-8"))

    path = ".hoodie/hoodie.properties"
    there.store.put(path, b"one")
    assert read() == "one"
    there.store.put(path, b"two")
    assert read() == "one", "it is asked for each time"
    taken.set("somebody")
    assert read() == "two"
    there.store.put(path, b"three")
    await_that("properties that others have written", lambda: read() == "three", deadline_s=20)
    made = there.connector.create(there.jvm.org.apache.hadoop.fs.Path(f"{there.path}/{path}"), True)
    for content in ("somebody here", "may still be writing"):
        there.store.put(path, content.encode())
        assert read() == content
    made.write(b"four")
    made.close()
    assert read() == "four"
    there.store.put(path, b"five")
    assert read() == "four", "it is asked for each time, though nobody writes any more"


def test_who_does_not_count_how_often_the_lock_is_taken_reads_properties_each_time(
    bucket: Callable[[str], Bucket],
) -> None:
    there = bucket(NAME)
    known_by_lock(there.jvm, taken=None, held=there.jvm.java.util.HashMap(), here=True)
    path = f"{there.path}/.hoodie/hoodie.properties"
    for content in ("one", "two"):
        there.store.put(".hoodie/hoodie.properties", content.encode())
        file = there.connector.open(there.jvm.org.apache.hadoop.fs.Path(path), 4_096)
        assert str(there.jvm.org.apache.commons.io.IOUtils.toString(file, "UTF-8")) == content


def test_keys_of_a_profile_that_are_taken_back_are_those_of_its_file_soon(
    spark: SparkSession, s3: S3Server, tmp_path: Path
) -> None:
    """In another home: the variable that names the file cannot be set in a JVM that runs."""
    jvm: Any = spark._jvm
    file = tmp_path / ".aws" / "credentials"
    file.parent.mkdir()
    profile = "[lake]\naws_access_key_id = {0}\naws_secret_access_key = {1}\n"
    file.write_text(profile.format(ACCESS_KEY, SECRET_KEY))
    name = f"profile-{uuid.uuid4().hex[:12]}"
    s3.make_bucket(name)
    path = f"s3a://{name}/lake"
    system = jvm.java.lang.System
    home = system.getProperty(HOME)
    with S3Proxy(s3.port) as proxy:
        settings = replace(s3.settings, endpoint=proxy.endpoint, credentials=Profile("lake"))
        try:
            system.setProperty(HOME, str(tmp_path))
            conf = jvm.org.apache.hadoop.conf.Configuration(reach(spark, Location.parse(path), settings))
            for setting in ("attempts.maximum", "retry.limit"):
                conf.set(f"fs.s3a.bucket.{name}.{setting}", "1")
            connector = jvm.org.apache.hadoop.fs.Path(path).getFileSystem(conf)
            one = jvm.org.apache.hadoop.fs.Path(f"{path}/one")
            connector.create(one, True).close()
            proxy.refused[ACCESS_KEY] = (403, "InvalidAccessKeyId")
            file.write_text(profile.format("successor", secret_of("successor")))

            def is_read() -> bool:
                try:
                    return bool(connector.getFileStatus(one).isFile())
                except Py4JJavaError:
                    return False

            await_that("keys of the file as it is now", is_read, deadline_s=30)
            connector.close()
        finally:
            system.setProperty(HOME, home)
            system.clearProperty(PROFILE)


@pytest.mark.parametrize(
    "name",
    [
        *(".hoodie/timeline/20260101000000000.inflight", ".hoodie/.temp/20260101000000000/a/b.marker.CREATE"),
        *(".hoodie/metadata/files/.files-0000-0_20260101000000000.log.1_0-0-0", "a/part.parquet"),
        ".hoodie/.temp/20260101000000000/MARKERS.type",
    ],
)
@pytest.mark.parametrize("implementation", [HADOOPS_OWN, NAME])
def test_a_file_is_created_once_whatever_its_name(
    bucket: Callable[[str], Bucket], implementation: str, name: str
) -> None:
    there = bucket(implementation)
    path = there.jvm.org.apache.hadoop.fs.Path(f"{there.path}/{name}")
    assert not there.connector.exists(path)
    there.connector.create(path, False).close()
    assert there.connector.exists(path)
    assert not there.connector.getFileStatus(path).isDirectory()
    with pytest.raises(Py4JJavaError, match="FileAlreadyExistsException"):
        there.connector.create(path, False)
    there.connector.create(path, True).close()
    assert there.connector.delete(path, False)
    assert not there.connector.exists(path)


@pytest.mark.parametrize("implementation", [HADOOPS_OWN, NAME])
def test_folders_of_markers_are_listed_and_removed_as_any_but_nobody_looks_whether_they_are_there(
    bucket: Callable[[str], Bucket], implementation: str
) -> None:
    there = bucket(implementation)
    folder = there.jvm.org.apache.hadoop.fs.Path(f"{there.path}/.hoodie/.temp/20260101000000000")
    assert there.connector.exists(folder) is (implementation == NAME)
    there.store.put(".hoodie/.temp/20260101000000000/region=a/x.marker.CREATE", b"")
    assert there.connector.getFileStatus(folder).isDirectory()
    assert [str(one.getPath().getName()) for one in there.connector.listStatus(folder)] == ["region=a"]
    assert there.connector.delete(folder, True)
    # This server still shows the folder for a moment, to Hadoop's own as well.
    assert not [names for _, names in there.store.walk(".hoodie") if names]


def test_hudi_reads_a_table_with_many_log_blocks_again_and_again_by_few_connections(
    spark: SparkSession, s3: S3Server, tmp_path: Path
) -> None:
    with S3Proxy(s3.port) as proxy, ExitStack() as opened:
        place = Place(s3, proxy)
        place.settings = s3.settings  # connections to the server itself
        conf = spark.sparkContext._jsc.hadoopConfiguration()  # type: ignore[attr-defined]
        bucket = Location.parse(place.path).authority
        conf.set(f"fs.s3a.bucket.{bucket}.lockstep.reading.max", str(HUDI_READING_MAX))
        table = S3Upserts(spark, place, tmp_path, services=False)
        opened.callback(table.table.close)
        for number in range(TRANSACTIONS):
            changes = [record(one) for one in history(number, length=40, tombstones=False, late=False)]
            table.run(changes[:20], changes[20:])
        expected = table.rows()
        before = connections(table, s3)
        for _ in range(READINGS):
            assert table.rows() == expected
        assert connections(table, s3) <= before + HUDI_READING_MAX + OTHERS_MAX


def connections(table: S3Upserts, s3: S3Server) -> int:
    """Of the JVM with the server, those of other tests' tables among them."""
    process = psutil.Process(table.table._session.jvm_pid())
    open_now = (one for one in process.net_connections("tcp") if one.status == psutil.CONN_ESTABLISHED)
    return sum(1 for one in open_now if one.raddr and one.raddr.port == s3.port)
