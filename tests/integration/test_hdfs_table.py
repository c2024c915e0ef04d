"""The Hudi table of the driver on HDFS: real Spark, real Hudi, a real name node and a real data node."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lockstep.stores.hdfs import HdfsServer
from table.errors import ClockAhead, Unavailable
from table.hudi.driver.file_clock import NAME as CLOCK
from table.hudi.driver.holder import LOCK
from table.hudi.driver.table_lock import FileLock
from table.store.hdfs.settings import HdfsSettings
from table.store.location import Location, store_at
from tests.integration.test_hudi_table import PLAIN
from tests.integration.test_s3_table import (  # what decides is the same, and so are its tests
    S3Driver,
    begun_committed_rolled_back_and_found,
    opened,
    test_a_commit_that_may_still_land_is_not_rolled_back_before_its_driver_is_gone,
    test_a_commit_whose_rollback_began_first_is_refused_and_has_no_effect,
    test_a_completion_that_lands_after_its_rollback_is_taken_off_the_timeline,
    test_hudi_leaves_alone_what_decided_and_it_goes_when_its_instant_is_archived,
    test_nothing_follows_from_a_completion_that_lands_before_the_successors_first_commit,
)

__all__ = [
    "opened",
    "test_a_commit_that_may_still_land_is_not_rolled_back_before_its_driver_is_gone",
    "test_a_commit_whose_rollback_began_first_is_refused_and_has_no_effect",
    "test_a_completion_that_lands_after_its_rollback_is_taken_off_the_timeline",
    "test_hudi_leaves_alone_what_decided_and_it_goes_when_its_instant_is_archived",
    "test_nothing_follows_from_a_completion_that_lands_before_the_successors_first_commit",
]

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("hdfs")]

LOCK_FILE = f".hoodie/{LOCK}"
PATIENCE_S = 3.0


class HdfsPlace:
    """See `test_s3_table.TablePlace`."""

    def __init__(self, hdfs: HdfsServer) -> None:
        self.path = f"{hdfs.url}/lake-{uuid.uuid4().hex[:12]}/events"
        self.server = hdfs
        self.settings = hdfs.settings
        self.direct = store_at(self.path, settings=hdfs.settings)


@pytest.fixture
def place(hdfs: HdfsServer) -> HdfsPlace:
    return HdfsPlace(hdfs)


def test_transactions_on_hdfs_are_begun_committed_rolled_back_and_found(
    opened: Callable[..., S3Driver], spark: SparkSession, place: HdfsPlace
) -> None:
    begun_committed_rolled_back_and_found(opened, spark, place)
    assert place.direct.stat(LOCK_FILE) is None, "the lock was given back"


def test_a_lock_that_somebody_left_on_hdfs_makes_the_table_unavailable_and_expires_by_the_name_nodes_date(
    opened: Callable[..., S3Driver], place: HdfsPlace
) -> None:
    """It is Hudi's own comparison: the file's date against this machine's clock."""
    driver = opened(properties={**PLAIN, "hoodie.write.lock.wait_time_ms": "500"})
    driver.run("one", 1)
    place.direct.put(LOCK_FILE, b"somebody's")
    with pytest.raises(Unavailable, match="the table lock could not be had"):
        driver.begin("two")
    found = place.direct.stat(LOCK_FILE)
    assert found is not None
    aged_ms = round(1_000 * (found.modified_s - 61))
    place.direct._calls.client().set_times(  # type: ignore[attr-defined]
        Location.parse(f"{place.path}/{LOCK_FILE}").path, aged_ms, aged_ms
    )
    driver.run("two", 1)
    assert place.direct.stat(LOCK_FILE) is None


def test_a_clock_that_is_ahead_of_the_name_nodes_takes_no_lock(
    opened: Callable[..., S3Driver], place: HdfsPlace
) -> None:
    driver = opened(properties=PLAIN)
    clock = driver.table._session.lock.clock
    assert "agree to 10 s" in driver.table.compare_clocks()
    right = clock._clock_s  # type: ignore[attr-defined]
    clock._clock_s = lambda: right() + 30  # type: ignore[attr-defined]
    with pytest.raises(ClockAhead, match="ahead of the file system's"):
        driver.begin("one")
    clock._clock_s = right  # type: ignore[attr-defined]
    driver.run("one", 1)
    assert place.direct.stat(f".hoodie/{CLOCK}") is not None


def test_a_table_is_reached_by_its_name_service_whose_name_nodes_the_clusters_configuration_names(
    opened: Callable[..., S3Driver], spark: SparkSession, hdfs: HdfsServer, tmp_path: Path
) -> None:
    """The first of two name nodes is away."""
    named = f"lake{uuid.uuid4().hex[:8]}"
    hosts = {"one": "127.0.0.1:9", "two": hdfs.address}
    properties = {
        "fs.defaultFS": "hdfs://nobody",
        "dfs.nameservices": named,
        f"dfs.ha.namenodes.{named}": ",".join(hosts),
        **{f"dfs.namenode.rpc-address.{named}.{one}": host for one, host in hosts.items()},
        f"dfs.client.failover.proxy.provider.{named}": (
            "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
        ),
    }
    lines = [f"<property><name>{k}</name><value>{v}</value></property>" for k, v in properties.items()]
    (tmp_path / "hdfs-site.xml").write_text(f"<configuration>{''.join(lines)}</configuration>")
    before = spark.sparkContext._jsc.hadoopConfiguration().get("fs.defaultFS")
    path = f"hdfs://{named}/lake-{uuid.uuid4().hex[:12]}/events"
    settings = HdfsSettings(config_folder=str(tmp_path))
    opened(path=path, storage=settings).table.compare_clocks()
    assert store_at(path, settings=settings).stat(".hoodie/hoodie.properties") is not None
    assert spark.sparkContext._jsc.hadoopConfiguration().get("fs.defaultFS") == before


def test_a_table_lock_whose_folder_is_elsewhere_on_hdfs_is_there(
    opened: Callable[..., S3Driver], place: HdfsPlace
) -> None:
    folder = f"{place.server.url}/locks-{uuid.uuid4().hex[:12]}/events"
    driver = opened(properties={**PLAIN, "hoodie.write.lock.filesystem.path": folder})
    lock = driver.table._session.lock
    assert isinstance(lock, FileLock) and lock.folder is not None and lock.folder.place() == folder
    with driver.table._session.locked():
        assert lock.folder.stat(LOCK) is not None and place.direct.stat(LOCK_FILE) is None
    assert lock.folder.stat(LOCK) is None
