"""What fault scenarios see of a table is the same in a folder, on a real HDFS and on a real S3 server."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from lockstep.stores.hdfs import HdfsServer
from lockstep.stores.local import S3Server
from table.hudi.driver.fence import FOLDER as DECIDED
from table.hudi.driver.holder import HELD_BY, LOCK
from table.hudi.driver.lock_client import LEASE_FILE
from table.store.objects.requests import Request
from tests.place import MARKERS, TIMELINE, Bucket, Folder, OnHdfs, Place, below
from tests.s3_proxy import Blow, Lasting

COMPLETED = "20260101000000000_20260101000001000.commit"
CLOCKS_MS = 1_000
"""A server may date in whole seconds."""


@pytest.fixture(params=["folder", "bucket", "hdfs"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "folder":
        return Folder(tmp_path)
    if request.param == "hdfs":
        return OnHdfs(request.getfixturevalue("hdfs"))
    server: S3Server = request.getfixturevalue("s3")
    return Bucket(server)


def put(place: Place, path: str, data: bytes = b"x") -> None:
    place.store.make_folder(path.rpartition("/")[0])
    place.store.put(path, data)


def test_nothing_is_seen_where_no_table_is(place: Place) -> None:
    assert place.names(TIMELINE) == [] and place.markers() == set() and place.uploads() == []
    assert not place.is_locked() and not place.says_holder()
    assert place.appeared_ms(COMPLETED) is None


def test_files_of_table_partitions_are_seen_and_what_is_not_of_rows_is_not(place: Place) -> None:
    for path in ("a/one.parquet", "b/two.parquet", ".hoodie/three", f"{MARKERS}/20260101000000000/a/m"):
        put(place, path)
    assert sorted(below(place)) == [("a", "one.parquet"), ("b", "two.parquet")]
    assert place.markers() == {"20260101000000000"}
    place.store.delete_folder(f"{MARKERS}/20260101000000000")
    assert place.markers() == set()


def test_an_instant_appears_when_it_is_put(place: Place) -> None:
    put(place, f"{TIMELINE}/before")
    place.names(TIMELINE)
    began_ms = time.time_ns() // 1_000_000
    put(place, f"{TIMELINE}/{COMPLETED}")
    assert COMPLETED in place.names(TIMELINE)
    appeared_ms = place.appeared_ms(COMPLETED)
    seen_ms = time.time_ns() // 1_000_000
    assert appeared_ms is not None
    assert began_ms - CLOCKS_MS <= appeared_ms <= seen_ms + CLOCKS_MS


def test_what_nobody_looked_for_has_appeared_when_its_name_says(s3: S3Server) -> None:
    place = Bucket(s3)
    put(place, f"{TIMELINE}/{COMPLETED}")
    assert COMPLETED in place.names(TIMELINE) and place.appeared_ms(COMPLETED) is None


def test_a_lock_in_a_folder_is_a_file_that_names_its_holder(tmp_path: Path) -> None:
    place = Folder(tmp_path)
    put(place, f".hoodie/{LOCK}")
    assert place.is_locked() and not place.says_holder()
    put(place, f".hoodie/{LOCK}", json.dumps({"lockThreadName": f"{HELD_BY}a b 1 2 3"}).encode())
    assert place.says_holder() and not place.cleans_under_lock()


def test_a_lock_on_hdfs_is_a_file_whose_holder_is_called_back_when_he_has_decided(hdfs: HdfsServer) -> None:
    place = OnHdfs(hdfs)
    put(place, f".hoodie/{LOCK}")
    assert place.is_locked() and not place.says_holder()
    put(place, f"{DECIDED}/20260101000000000")
    assert place.says_holder()
    put(place, f"{TIMELINE}/{COMPLETED}")
    assert not place.says_holder()


@pytest.mark.parametrize(
    ("expired", "left_s", "held"), [(False, 900, True), (True, 900, False), (False, -9, False)]
)
def test_a_lock_in_s3_is_held_until_it_expires(s3: S3Server, expired: bool, left_s: int, held: bool) -> None:
    place = Bucket(s3)
    until_ms = int(1_000 * (time.time() + left_s))
    lock = {"expired": expired, "validUntil": until_ms, "owner": "somebody"}
    put(place, LEASE_FILE, json.dumps(lock).encode())
    assert place.is_locked() is held and not place.says_holder()
    put(place, f"{DECIDED}/20260101000000000")
    assert place.says_holder() is held
    put(place, f"{TIMELINE}/{COMPLETED}")
    assert not place.says_holder()


def test_blows_that_last_meet_the_requests_they_are_meant_for() -> None:
    first = Lasting(blow=Blow.LOSE, requests=(Request.PUT,), under="/timeline/", every=0)
    third = Lasting(blow=Blow.LOSE, requests=(Request.PUT,), every=3)
    asked = [(Request.PUT, "/t/timeline/a"), (Request.GET, "/t/timeline/a"), (Request.PUT, "/t/b")]
    assert [first.strikes(*one) for one in asked * 2] == [True, False, False, False, False, False]
    assert [third.strikes(Request.PUT, "k") for _ in range(7)] == [True, False, False] * 2 + [True]
    assert first.struck == {"/t/timeline/a": 1} and third.struck["k"] == 3
