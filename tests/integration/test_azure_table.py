"""The Hudi table of the driver in Azure's storage: real Spark, real Hudi, Hadoop's own connector, and Azurite
with the endpoint that it lacks for the store.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from table.errors import Refused
from table.hudi.driver.lock_client import LEASE_FILE
from table.store.location import store_at
from table.store.objects.requests import Request
from tests.azure.server import KEY, AzureServer, authority_of
from tests.integration.test_hudi_table import PLAIN
from tests.integration.test_s3_table import (
    S3Driver,
    begun_committed_rolled_back_and_found,
    opened,
    test_a_jvm_that_stands_still_in_the_lock_is_ended_before_others_may_take_it,
    test_the_lease_of_a_killed_driver_is_not_waited_for,
)
from tests.s3_proxy import Blow, S3Proxy

__all__ = [
    "opened",
    "test_a_jvm_that_stands_still_in_the_lock_is_ended_before_others_may_take_it",
    "test_the_lease_of_a_killed_driver_is_not_waited_for",
]

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("azure")]

LARGE_BYTES = 5 << 20
"""More than is put by one request."""


class AzurePlace:
    """A table's place in a container of its own. `proxy`: what its requests pass."""

    def __init__(self, azure: AzureServer, proxy: S3Proxy) -> None:
        container = f"tables-{uuid.uuid4().hex[:12]}"
        azure.make_bucket(container)
        self.proxy = proxy
        self.path = f"abfss://{authority_of(container)}/lake/events"
        self.settings = replace(azure.settings, endpoint=proxy.endpoint)
        self.direct = store_at(self.path, settings=azure.settings)


@pytest.fixture
def place(azure: AzureServer) -> Iterator[AzurePlace]:
    with S3Proxy(azure.port) as proxy:
        yield AzurePlace(azure, proxy)


def test_transactions_at_azure_are_begun_committed_rolled_back_and_found(
    opened: Callable[..., S3Driver], spark: SparkSession, place: AzurePlace
) -> None:
    begun_committed_rolled_back_and_found(opened, spark, place)


def test_the_lock_at_azure_names_its_holder_and_is_given_back(
    opened: Callable[..., S3Driver], place: AzurePlace
) -> None:
    driver = opened(properties=PLAIN)
    session = driver.table._session
    transactions = session.client.getTransactionManager()
    transactions.beginStateChange(session.none(), session.none())
    try:
        held = json.loads(place.direct.read(LEASE_FILE, bytes_max=4_096))
    finally:
        transactions.endStateChange(session.none())
    assert not held["expired"] and str(session.jvm_pid()) in held["owner"].split()
    assert json.loads(place.direct.read(LEASE_FILE, bytes_max=4_096))["expired"]


def test_an_accounts_key_is_not_among_sparks_or_hadoops_settings(
    opened: Callable[..., S3Driver], spark: SparkSession
) -> None:
    opened(properties=PLAIN)
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    shown = [str(one) for one in spark.sparkContext.getConf().getAll()]
    each = hadoop.iterator()
    while each.hasNext():
        entry = each.next()
        shown.append(f"{entry.getKey()}={entry.getValue()}")
    assert not any(KEY in one for one in shown)


class Files:
    """Hadoop's file system of a table, as the driver's JVM has it."""

    def __init__(self, spark: SparkSession, place: AzurePlace, driver: S3Driver) -> None:
        self.jvm: Any = spark._jvm
        self.place = place
        hadoop = spark.sparkContext._jsc.hadoopConfiguration()
        self.fs = self.path("").getFileSystem(hadoop)

    def path(self, name: str) -> Any:
        return self.jvm.org.apache.hadoop.fs.Path(f"{self.place.path}/{name}" if name else self.place.path)

    def open(self, name: str, *, overwrite: bool = False) -> Any:
        return self.fs.create(self.path(name), overwrite)


@pytest.fixture
def files(opened: Callable[..., S3Driver], spark: SparkSession, place: AzurePlace) -> Files:
    return Files(spark, place, opened(properties=PLAIN))


def test_a_file_that_the_driver_makes_at_azure_is_there_whole_or_not_at_all(files: Files) -> None:
    """Hadoop's own connector shows it empty first."""
    store = files.place.direct
    for name, content in (("one", b"x"), ("large", b"y" * LARGE_BYTES)):
        for where in (name, f".hoodie/timeline/{name}"):
            out = files.open(where)
            out.write(content)
            whole = "timeline" in where or len(content) < LARGE_BYTES
            assert (store.stat(where) is None) is whole
            out.close()
            assert store.read(where, bytes_max=2 * LARGE_BYTES) == content
    files.open("empty").close()
    assert store.read("empty", bytes_max=10) == b""


def test_a_file_that_another_has_made_at_azure_is_not_made_again(files: Files) -> None:
    store = files.place.direct
    store.put("one", b"theirs")
    with pytest.raises(Py4JJavaError, match="is there already"):
        files.open("one")
    out = files.open("two")
    out.write(b"ours")
    store.put("two", b"theirs")
    with pytest.raises(Py4JJavaError, match="is there already"):
        out.close()
    assert store.read("two", bytes_max=10) == b"theirs"


@pytest.mark.parametrize("blow", [Blow.LOSE, Blow.BREAK, Blow.FAIL_AFTER, Blow.SLOW_DOWN])
def test_a_put_at_azure_whose_answer_was_lost_is_known_to_have_landed(files: Files, blow: Blow) -> None:
    files.place.proxy.strike(Request.PUT_IF, blow)
    out = files.open("one")
    out.write(b"ours")
    out.close()
    assert files.place.direct.read("one", bytes_max=10) == b"ours"
    assert not files.place.proxy.unstruck()


def test_an_account_without_folders_of_its_own_is_refused(
    opened: Callable[..., S3Driver], spark: SparkSession, place: AzurePlace
) -> None:
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    name = "fs.azure.account.hns.enabled"
    hadoop.set(name, "false")
    try:
        with pytest.raises(Refused, match="no hierarchical namespace"):
            opened(properties=PLAIN)
    finally:
        hadoop.unset(name)
