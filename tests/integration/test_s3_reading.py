"""Reading a Hudi table in S3 without Spark: its timeline by the store, its rows by the `hudi` reader."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from lockstep.stores.local import S3Server, secret_of
from table.errors import Unavailable
from table.instants import MissingTable
from table.kinds import HUDI, table_kind
from table.store.objects.requests import Request
from table.store.objects.settings import FixedKeys
from tests.integration import test_s3_table
from tests.integration.test_s3_table import S3Driver

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("s3")]
place, opened = test_s3_table.place, test_s3_table.opened


def test_timeline_rows_and_metadata_table_are_read_from_s3(
    opened: Callable[..., S3Driver], s3: S3Server
) -> None:
    driver = opened()
    instants = [driver.run(f"t{number}", 3) for number in range(3)]
    open_one = driver.begin("left open")
    reader = table_kind(HUDI).reader(driver.spec.path, s3.settings)
    assert reader.place == driver.spec.path
    assert [one.requested for one in reader.completed() if one.state is not None] == instants[::-1]
    newest = reader.newest("events")
    assert newest is not None and newest.instant == instants[-1]
    assert [one.requested for one in reader.pending()] == [open_one]
    assert reader.damage() == ""
    rows = reader.rows()
    found = [row["instant"] for file in rows.files for batch in file.batches for row in batch.to_pylist()]
    assert sorted(found) == sorted(3 * instants)


def test_whoever_may_not_read_or_asks_elsewhere_is_told_so(
    opened: Callable[..., S3Driver], s3: S3Server
) -> None:
    driver = opened()
    stranger = replace(s3.settings, credentials=FixedKeys("stranger", secret_of("stranger")))
    with pytest.raises(Unavailable, match="s3:GetObject") as raised:
        table_kind(HUDI).reader(driver.spec.path, stranger)
    assert secret_of("stranger") not in str(raised.value)
    with pytest.raises(MissingTable):
        table_kind(HUDI).reader(driver.spec.path + "-not", s3.settings)
    with pytest.raises(Unavailable, match="there is no bucket"):
        table_kind(HUDI).reader("s3a://no-such-bucket/t", s3.settings)


def test_a_look_at_the_newest_commit_is_a_request_for_each_commit_and_no_more(
    opened: Callable[..., S3Driver], s3: S3Server
) -> None:
    driver = opened()
    for number in range(3):
        driver.run(f"t{number}", 1)
    reader = table_kind(HUDI).reader(driver.spec.path, s3.settings)
    assert reader.newest("events") is not None
    store = reader._store  # type: ignore[attr-defined]
    assert store.requests.counts() == {Request.GET: 1 + 3, Request.LIST: 1}
