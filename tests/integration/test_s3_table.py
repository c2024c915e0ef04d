"""The Hudi table of the driver in S3: real Spark, real Hudi, a real server."""

from __future__ import annotations

import io
import logging
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from control_topic.messages import DataFile
from lockstep.stores.local import SECRET_KEY, S3Server
from table.errors import Refused
from table.hudi.files.base_file import create_marker, create_partition, file_name, new_file_id
from table.hudi.table import HudiTable
from table.port import TableSpec
from table.store.location import store_at
from table.store.objects.store import ObjectStore
from tests.integration.test_hudi_table import DDL, PIPELINE, Driver, accept
from tests.s3_proxy import S3Proxy

log = logging.getLogger(__name__)

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("s3")]


COMMITS = 8
SETTLED = 3
"""The first ones make the metadata table."""
BEGIN_REQUESTS_MAX = 30
COMMIT_REQUESTS_MAX = 130


class Place:
    """A table's place in a bucket of its own, for Hadoop keeps one connector for each."""

    def __init__(self, s3: S3Server, proxy: S3Proxy) -> None:
        bucket = f"tables-{uuid.uuid4().hex[:12]}"
        s3.make_bucket(bucket)
        self.path = f"s3a://{bucket}/lake/events"
        self.proxy = proxy
        self.settings = replace(s3.settings, endpoint=proxy.endpoint)
        self.direct = store_at(self.path, settings=s3.settings)


class S3Driver(Driver):
    """One driver's table in S3; its worker writes there as well."""

    def __init__(self, spark: SparkSession, place: Place, **changes: Any) -> None:
        spec = TableSpec(
            path=place.path,
            name="events",
            mode="insert",
            ddl=DDL,
            key_fields=("event_id",),
            partition_field="day",
            storage=place.settings,
        )
        self.pipeline, self.spec = PIPELINE, replace(spec, **changes)
        self.store = place.direct
        self.table = HudiTable(spark, self.spec, self.pipeline)
        self.layout = self.table.open()

    def requests(self) -> int:
        """Those of the Python side, of the table's store."""
        store = self.table._session.store
        assert isinstance(store, ObjectStore)
        return store.requests.total()

    def write(self, instant: str, rows: int, *, first: int = 0) -> DataFile:
        file_id = new_file_id(uuid.uuid4())
        name = file_name(file_id, "0-0-0", instant)
        create_partition(self.store, instant, "a")
        create_marker(self.store, instant, "a", name)
        buffer = io.BytesIO()
        pq.write_table(self.rows(instant, name, rows, first), buffer)
        data = buffer.getvalue()
        self.store.put(f"a/{name}", data)
        return DataFile(path=f"a/{name}", body=file_id, table_partition="a", rows=rows, size_bytes=len(data))


@pytest.fixture
def place(s3: S3Server) -> Iterator[Place]:
    with S3Proxy(s3.port) as proxy:
        yield Place(s3, proxy)


@pytest.fixture
def opened(spark: SparkSession, place: Place) -> Iterator[Callable[..., S3Driver]]:
    made: list[S3Driver] = []

    def make(**changes: Any) -> S3Driver:
        made.append(S3Driver(spark, place, **changes))
        return made[-1]

    yield make
    for one in made:
        one.table.close()


def test_transactions_in_s3_are_begun_committed_rolled_back_and_found(
    opened: Callable[..., S3Driver], spark: SparkSession, place: Place
) -> None:
    driver = opened()
    assert driver.layout.path == place.path
    first = driver.run("one", 10)
    driver.run("two", 5)
    newest = driver.table.newest()
    assert newest is not None and newest.transaction == "two"
    found = driver.table.find("one")
    assert found is not None and found.instant == first

    given_up = driver.begin("three")
    orphan = driver.write(given_up, 7)
    assert [one.instant for one in driver.table.unfinished()] == [given_up]
    assert driver.table.roll_back(given_up)
    assert driver.table.unfinished() == [] and place.direct.stat(orphan.path) is None
    assert not driver.table.roll_back(first), "it is complete"

    successor = opened()
    assert not successor.layout.created
    successor.run("four", 3)
    commit = driver.planned("late", given_up, 7)
    with pytest.raises(Refused):
        driver.table.commit(commit, fence=accept)
    rows = spark.read.format("hudi").load(place.path)
    assert rows.count() == 18


def test_no_key_is_among_sparks_or_hadoops_settings_or_in_the_table(
    opened: Callable[..., S3Driver], spark: SparkSession, place: Place
) -> None:
    opened().run("one", 1)
    context = spark.sparkContext
    assert SECRET_KEY not in str(context.getConf().getAll())
    entries, seen = context._jsc.hadoopConfiguration().iterator(), 0
    while entries.hasNext():
        seen += 1
        assert SECRET_KEY not in str(entries.next().getValue())
    assert seen > 100
    for folder, names in place.direct.walk():
        for name in names:
            path = f"{folder}/{name}" if folder else name
            assert SECRET_KEY.encode() not in place.direct.read(path, bytes_max=1 << 24), path


def test_a_transaction_takes_so_many_requests_however_many_there_were(
    opened: Callable[..., S3Driver], place: Place
) -> None:
    """With --log-cli-level=INFO it says how many, and how long each step took on this machine."""
    driver = opened()
    asked: list[tuple[int, int]] = []
    for number in range(COMMITS):
        took_s, counted = {}, {}
        for step, act in steps(driver, f"t{number}"):
            before, ours, began_s = place.proxy.counts.total(), driver.requests(), time.monotonic()
            act()
            took_s[step] = time.monotonic() - began_s
            counted[step] = (place.proxy.counts.total() - before, driver.requests() - ours)
        asked.append((counted["begin"][0], counted["commit"][0]))
        for step, (all_of, ours) in counted.items():
            log.info("%s %d: %.2f s, %d requests, %d of them ours", step, number, took_s[step], all_of, ours)
    later = asked[SETTLED:]
    assert max(begin for begin, _ in later) <= BEGIN_REQUESTS_MAX
    assert max(commit for _, commit in later) <= COMMIT_REQUESTS_MAX


def steps(driver: S3Driver, transaction: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The table's part of a transaction, call by call, as the table service makes them."""
    opened: list[str] = []
    yield "look", lambda: (driver.table.newest(), driver.table.unfinished())
    yield "begin", lambda: opened.append(driver.table.begin(run="run", transaction=transaction))
    file = driver.write(opened[0], 10)
    commit = driver.planned(transaction, opened[0], 10, file)
    yield "commit", lambda: driver.table.commit(commit, fence=accept)
