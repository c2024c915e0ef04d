"""The Hudi table of the driver in S3: real Spark, real Hudi, a real server."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import pickle
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from control_topic.messages import DataFile
from lockstep.stores.local import SECRET_KEY, S3Server
from table.errors import Refused, Unavailable
from table.hudi.driver.fence import FOLDER, VERDICT
from table.hudi.driver.holder import started_at
from table.hudi.driver.lock_client import LEASE_FILE
from table.hudi.files.base_file import create_marker, create_partition, file_name, new_file_id
from table.hudi.layout import HEARTBEATS
from table.hudi.properties import LEASE_S, READ_BUFFER_BYTES
from table.hudi.table import HudiTable
from table.kinds import HUDI, table_kind
from table.port import TableSpec
from table.state import TableState
from table.store.location import store_at
from table.store.objects.requests import Request
from table.store.objects.store import ObjectStore
from table.store.port import Store
from tests.harness import await_that
from tests.integration.test_hudi_table import (
    DDL,
    PIPELINE,
    PLAIN,
    QUICK_ARCHIVE,
    ROOT,
    WITHIN_COMMITS,
    Driver,
    accept,
)
from tests.s3_proxy import Blow, Lasting, S3Proxy

log = logging.getLogger(__name__)

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("s3")]


TIMELINE = ".hoodie/timeline"
METADATA = ".hoodie/metadata/"
COMMITS = 6
SETTLED = 3
"""The first ones make the metadata table."""
BEGIN_REQUESTS_MAX = 17
COMMIT_REQUESTS_MAX = 40
OUR_REQUESTS_MAX = 7
"""Of ours, in a transaction: who opens it, two looks at its file, decision, verdict, and clocks at times."""


class TablePlace(Protocol):
    """Where a table is that nobody else has. `settings`: by which its driver reaches it; `direct`: its store,
    for whoever looks on.
    """

    path: str
    settings: Any
    direct: Store


class Place:
    """A table's place in a bucket of its own, for Hadoop keeps one connector for each."""

    def __init__(self, s3: S3Server, proxy: S3Proxy) -> None:
        bucket = f"tables-{uuid.uuid4().hex[:12]}"
        s3.make_bucket(bucket)
        self.path = f"s3a://{bucket}/lake/events"
        self.proxy, self.server = proxy, s3
        self.settings = replace(s3.settings, endpoint=proxy.endpoint)
        self.direct = store_at(self.path, settings=s3.settings)


class S3Driver(Driver):
    """One driver's table on a server; its worker writes there as well."""

    def __init__(
        self, spark: SparkSession, place: TablePlace, *, services: bool = True, **changes: Any
    ) -> None:
        spec = TableSpec(
            path=place.path,
            name="events",
            mode="insert",
            ddl=DDL,
            key_fields=("event_id",),
            partition_fields=("day",),
            storage=place.settings,
        )
        self.pipeline, self.spec = PIPELINE, replace(spec, **changes)
        self.store = place.direct
        self.table = HudiTable(spark, self.spec, self.pipeline, services=services)  # as a run has it
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
def opened(spark: SparkSession, place: TablePlace) -> Iterator[Callable[..., S3Driver]]:
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
    begun_committed_rolled_back_and_found(opened, spark, place)


def begun_committed_rolled_back_and_found(
    opened: Callable[..., S3Driver], spark: SparkSession, place: TablePlace
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


def test_hudi_reads_the_metadata_table_in_s3_with_buffers_of_a_megabyte(
    opened: Callable[..., S3Driver],
) -> None:
    meta = opened().table._session.meta
    assert meta.getStorage().getDefaultBlockSize(meta.getBasePath()) == READ_BUFFER_BYTES


HOLDS_THE_LOCK = """
import pickle, sys, time
from types import SimpleNamespace
from table.store.location import store_at
from tests.integration.conftest import spark
from tests.integration.test_hudi_table import PLAIN
from tests.integration.test_s3_table import S3Driver

path, settings = sys.argv[1], pickle.loads(bytes.fromhex(sys.argv[2]))
place = SimpleNamespace(path=path, settings=settings, direct=store_at(path, settings=settings))
table = S3Driver(next(spark.__wrapped__()), place, properties=PLAIN).table
session = table._session
session.client.getTransactionManager().beginStateChange(session.none(), session.none())  # as to clean
print("held", session.jvm_pid(), flush=True)
time.sleep(300)
"""


@contextmanager
def holding(place: TablePlace) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A driver in a process of its own that is in the table lock, and its JVM's number."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS_THE_LOCK, place.path, pickle.dumps(place.settings).hex()],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
        start_new_session=True,  # its JVM dies with it
    )
    try:
        assert process.stdout is not None
        said = next(line for line in process.stdout if line.startswith("held"))
        yield process, int(said.split()[1])
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


def test_the_lease_of_a_killed_driver_is_not_waited_for(
    opened: Callable[..., S3Driver], place: TablePlace
) -> None:
    driver = opened(properties=PLAIN)
    with holding(place) as (process, jvm):
        os.killpg(process.pid, signal.SIGKILL)
        await_that("end of the Java process", lambda: started_at(jvm) is None)
        held = json.loads(place.direct.read(LEASE_FILE, bytes_max=4_096))
        assert not held["expired"] and held["validUntil"] > 1_000 * (time.time() + LEASE_S / 2)
        driver.run("t1", 1)
        assert 1_000 * time.time() < held["validUntil"], "its lease was not waited for"


def test_a_jvm_that_stands_still_in_the_lock_is_ended_before_others_may_take_it(
    opened: Callable[..., S3Driver], place: TablePlace
) -> None:
    driver = opened(properties={**PLAIN, "hoodie.write.lock.wait_time_ms": "1000"})
    with holding(place) as (process, jvm):
        os.kill(jvm, signal.SIGSTOP)
        held = json.loads(place.direct.read(LEASE_FILE, bytes_max=4_096))
        with pytest.raises(Unavailable, match="the table lock could not be had"):
            driver.begin("t1")
        await_that("end of the Java process", lambda: started_at(jvm) is None, deadline_s=LEASE_S)
        assert 1_000 * time.time() < held["validUntil"], "its guardian was too late"
        process.wait(30)
    driver.run("t1", 1)


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


@pytest.mark.parametrize("counted_by", ["proxy", "us"])
def test_a_transaction_takes_so_many_requests_however_many_there_were(
    opened: Callable[..., S3Driver], place: Place, counted_by: str
) -> None:
    """With --log-cli-level=INFO it says how many, and how long each step took: without the proxy, too."""
    if counted_by == "us":
        place.settings = replace(place.settings, endpoint=place.server.endpoint)
    driver = opened()
    asked: list[tuple[int, int]] = []
    for number in range(COMMITS):
        took_s, counted, all_before = {}, {}, place.proxy.counts.copy()
        for step, act in steps(driver, f"t{number}"):
            before, ours, began_s = place.proxy.counts.total(), driver.requests(), time.monotonic()
            act()
            took_s[step] = time.monotonic() - began_s
            counted[step] = (place.proxy.counts.total() - before, driver.requests() - ours)
        asked.append((counted["begin"][0], counted["commit"][0]))
        log.info("transaction %d: %s", number, dict(place.proxy.counts - all_before))
        for step, (all_of, ours) in counted.items():
            log.info("%s %d: %.2f s, %d requests, %d of them ours", step, number, took_s[step], all_of, ours)
    later = asked[SETTLED:]
    if counted_by == "us":
        assert max(asked) == (0, 0) and driver.requests() <= (COMMITS + 1) * OUR_REQUESTS_MAX
        return
    assert max(begin for begin, _ in later) <= BEGIN_REQUESTS_MAX
    assert max(commit for _, commit in later) <= COMMIT_REQUESTS_MAX


def test_commits_go_on_where_nothing_may_be_deleted_and_it_is_said_until_it_may(
    opened: Callable[..., S3Driver], place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """Hudi says "Unable to delete heartbeat" each time, and neither why nor what it means."""
    caplog.set_level(logging.INFO, logger="table")
    driver = opened()
    for _, act in steps(driver, "before"):  # it makes the metadata table, which goes wrong without deletes
        act()
    refused = Lasting(blow=Blow.REFUSE, requests=(Request.DELETE, Request.DELETE_MANY))
    with place.proxy.lasting(refused):
        for number in range(3):
            for _, act in steps(driver, f"refused {number}"):
                act()
            driver.table.tend()
    said = [message for message in caplog.messages if "s3:DeleteObject" in message]
    assert len(said) == 1 and HEARTBEATS in said[0]
    for _, act in steps(driver, "allowed"):
        act()
    driver.table.tend()
    with contextlib.suppress(FileNotFoundError):  # a server may have no empty folders
        assert driver.store.names(HEARTBEATS) == []
    assert any("can be removed again" in message for message in caplog.messages)


def steps(driver: S3Driver, transaction: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The table's part of a transaction, call by call, as the table service makes them."""
    opened: list[str] = []
    yield "look", lambda: (driver.table.newest(), driver.table.unfinished())
    yield "begin", lambda: opened.append(driver.table.begin(run="run", transaction=transaction))
    file = driver.write(opened[0], 10)
    commit = driver.planned(transaction, opened[0], 10, file)
    yield "commit", lambda: driver.table.commit(commit, fence=accept)


def test_a_commit_whose_rollback_began_first_is_refused_and_has_no_effect(
    opened: Callable[..., S3Driver],
) -> None:
    """The driver has passed every look, and stood still; its lock is another's by now."""
    driver, successor = opened(properties=PLAIN), opened(properties=PLAIN)
    driver.run("one", 4)
    instant = driver.begin("two")
    commit = driver.planned("two", instant, 7, driver.write(instant, 7))

    def taken_over(_newest: TableState | None) -> str:
        successor.table._fence.roll_back(instant)
        return ""

    with pytest.raises(Refused, match="its rollback was there first"):
        driver.table.commit(commit, fence=taken_over)
    assert successor.table.find("two") is None
    assert successor.table.roll_back(instant)
    successor.run("three", 2)
    assert driver.table.find("two") is None and not driver.table.unfinished()


def test_a_commit_that_may_still_land_is_not_rolled_back_before_its_driver_is_gone(
    opened: Callable[..., S3Driver],
) -> None:
    driver, successor = opened(properties=PLAIN), opened(properties=PLAIN)
    instant = driver.begin("one")
    driver.table._fence.commit(instant)  # and stands still
    with pytest.raises(Unavailable, match="being completed by another driver"):
        successor.table.roll_back(instant)
    driver.table.commit(driver.planned("one", instant, 3, driver.write(instant, 3)), fence=accept)
    assert not successor.table.roll_back(instant), "it is complete"
    assert successor.table.find("one") is not None


def test_a_completion_that_lands_after_its_rollback_is_taken_off_the_timeline(
    opened: Callable[..., S3Driver], spark: SparkSession, place: Place
) -> None:
    driver, successor = opened(properties=PLAIN), opened(properties=PLAIN)
    driver.run("one", 4)
    instant = driver.begin("two")
    file = driver.write(instant, 5)
    driver.table._fence.commit(instant)
    successor.table._fence._clock_s = lambda: time.time() + 2 * LEASE_S
    assert successor.table.roll_back(instant)
    successor.run("three", 2)
    done = next(name for name in place.direct.names(TIMELINE) if name.endswith(".commit"))
    content = place.direct.read(f"{TIMELINE}/{done}", bytes_max=1 << 20)
    late = f"{TIMELINE}/{instant}_{successor.table._session.client.createNewInstantTime(False)}.commit"
    place.direct.put(late, content)
    third = opened(properties=PLAIN)
    assert place.direct.stat(late) is None and place.direct.stat(file.path) is None
    newest = third.table.newest()
    assert newest is not None and newest.transaction == "three"
    assert spark.read.format("hudi").load(place.path).count() == 6


def test_a_request_that_lands_after_its_rollback_is_taken_off_the_timeline_and_its_files_are_swept(
    opened: Callable[..., S3Driver], spark: SparkSession, place: Place
) -> None:
    driver, successor = opened(properties=PLAIN), opened(properties=PLAIN)
    driver.run("one", 4)
    instant = driver.begin("two")
    assert successor.table.roll_back(instant)
    file = driver.write(instant, 5)
    successor.run("three", 2)
    place.direct.put(f"{TIMELINE}/{instant}.commit.requested", b"")
    third = opened(properties=PLAIN)
    assert place.direct.stat(f"{TIMELINE}/{instant}.commit.requested") is None
    third.table.sweep(grace_ms=0)
    assert place.direct.stat(file.path) is None
    assert spark.read.format("hudi").load(place.path).count() == 6


def test_nothing_follows_from_a_completion_that_lands_before_the_successors_first_commit(
    opened: Callable[..., S3Driver], spark: SparkSession, place: Place
) -> None:
    """It is of the newest offsets then, and its files are gone."""
    driver, successor = opened(properties=PLAIN), opened(properties=PLAIN)
    driver.run("one", 4)
    driver.run("two", 5)
    done = max(name for name in place.direct.names(TIMELINE) if name.endswith(".commit"))
    content = place.direct.read(f"{TIMELINE}/{done}", bytes_max=1 << 20)
    instant = driver.begin("three")
    driver.table._fence.commit(instant)
    successor.table._fence._clock_s = lambda: time.time() + 2 * LEASE_S
    assert successor.table.roll_back(instant)
    late = f"{TIMELINE}/{instant}_{successor.table._session.client.createNewInstantTime(False)}.commit"
    place.direct.put(late, content)
    newest = successor.table.newest()
    assert newest is not None and newest.instant == done[:17]
    assert place.direct.stat(late) is None
    assert spark.read.format("hudi").load(place.path).count() == 9


def decided(place: Place) -> set[str]:
    return {name.removesuffix(VERDICT) for name in place.direct.names(FOLDER)}


def test_hudi_leaves_alone_what_decided_and_it_goes_when_its_instant_is_archived(
    opened: Callable[..., S3Driver], spark: SparkSession, place: Place
) -> None:
    driver = opened(properties={**PLAIN, **QUICK_ARCHIVE, **WITHIN_COMMITS})
    instants = [driver.run(f"t{number}", 1) for number in range(6)]
    assert decided(place) == set(instants), "archiving within commits has left them"
    oldest = driver.table._session.oldest()
    assert oldest > instants[0]
    driver.table.sweep(grace_ms=0)
    assert decided(place) == {instant for instant in instants if instant >= oldest}
    assert spark.read.format("hudi").load(place.path).count() == 6


def test_hudi_writes_to_its_metadata_table_in_the_table_lock_alone(
    opened: Callable[..., S3Driver], spark: SparkSession, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On that rests what the driver's connector knows of it: ours, and a foreign writer with our settings."""
    forward, outside, inside = place.proxy._forward, [], Counter[str]()

    def watched(handler: Any, body: bytes) -> Any:
        if handler.command != "GET" and handler.command != "HEAD" and METADATA in f"{handler.path}{body!r}":
            lock = json.loads(place.direct.read(LEASE_FILE, bytes_max=10_000))
            if lock["expired"]:
                outside.append(f"{handler.command} {handler.path}")
            inside[handler.command] += not lock["expired"]
        return forward(handler, body)

    monkeypatch.setattr(place.proxy, "_forward", watched)
    driver = opened(properties={**QUICK_ARCHIVE, "hoodie.metadata.compact.max.delta.commits": "2"})
    for number in range(5):
        driver.run(f"t{number}", 1)
    given_up = driver.begin("given up")
    driver.write(given_up, 7)
    assert driver.table.roll_back(given_up)
    driver.table.sweep(grace_ms=0)  # which compacts, cleans and archives it
    before = inside.copy()
    told = table_kind(HUDI).other_writers(driver.spec).settings
    frame = spark.read.format("hudi").load(place.path)
    frame = frame.drop(*(name for name in frame.columns if name.startswith("_hoodie_")))
    foreign = {**told, "hoodie.table.name": "events", "hoodie.datasource.write.operation": "insert"}
    frame.write.format("hudi").options(**foreign).mode("append").save(place.path)
    assert inside["PUT"] > before["PUT"] > 0 and inside["DELETE"] + inside["POST"]
    assert not outside
