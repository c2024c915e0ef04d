"""Small files that are copied together and table partitions that go out of the table, on HDFS: as in S3."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from table.hudi.files.base_file import PARTITION_METADATA, create_marker, file_name, new_file_id
from table.store.hdfs.sink import HdfsSink
from table.store.paths import draft_of, of_draft
from table.store.port import Store
from tests.integration import test_hdfs_table
from tests.integration.test_s3_table import S3Driver
from tests.integration.test_s3_upkeep import (
    test_what_a_driver_leaves_that_died_as_it_copied_files_is_taken_away_and_done_anew,
    test_what_a_driver_leaves_that_died_as_it_took_table_partitions_out_is_taken_away_and_done_anew,
    test_what_is_past_its_time_goes_out_and_its_files_later,
    there,
)

__all__ = [
    "test_what_a_driver_leaves_that_died_as_it_copied_files_is_taken_away_and_done_anew",
    "test_what_a_driver_leaves_that_died_as_it_took_table_partitions_out_is_taken_away_and_done_anew",
    "test_what_is_past_its_time_goes_out_and_its_files_later",
    "there",
]

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("hdfs")]
place, opened = test_hdfs_table.place, test_hdfs_table.opened


def begun(store: Store, instant: str) -> tuple[str, HdfsSink]:
    """The name of a file that a worker is writing."""
    name = file_name(new_file_id(uuid.uuid4()), "0-0-0", instant)
    create_marker(store, instant, "a", name)
    sink = store.sink(f"a/{name}")
    assert isinstance(sink, HdfsSink)
    sink.write(bytes(5 << 20))
    return name, sink


def test_drafts_of_instants_that_are_over_go_and_those_that_are_shown_late_go_as_well(
    opened: Callable[..., S3Driver],
) -> None:
    driver = opened()
    store, table = driver.store, driver.table
    committed = driver.run("one", 3)
    of_killed, _killed = begun(store, given_up := driver.begin("two"))
    table.roll_back(given_up)
    pending = driver.begin("three")
    of_slow, slow = begun(store, pending)
    of_frozen, frozen = begun(store, pending)
    frozen._begun().end(frozen._taken())  # whole, and then its worker stands still
    assert table.sweep(grace_ms=0).removed == 1
    names = set(store.names("a"))
    assert {of_draft(name) for name in names} - {""} == {of_slow, of_frozen}
    table.roll_back(pending)
    frozen._show(frozen.tell())  # its date is older than the sweep before
    assert of_frozen in store.names("a") and draft_of(of_killed) not in names
    assert table.sweep(grace_ms=0).removed == 2
    with pytest.raises(FileNotFoundError):
        slow.close()
    assert table.sweep(grace_ms=0).removed == 0
    assert all(committed in name or name == PARTITION_METADATA for name in store.names("a"))
