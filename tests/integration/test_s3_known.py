"""What the driver's connector to S3 knows without asking, and what ends that: in a JVM, on a real server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from tests.harness import await_that
from tests.integration.held import TIMELINE, Held
from tests.s3_proxy import Blow, Lasting, Request

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("s3")]

INSTANT = "20260101000000000"
MARKERS = f".hoodie/.temp/{INSTANT}"
PARTITIONS = 12
DEADLINE_S = 30.0


def test_in_the_lock_a_folder_of_the_metadata_table_is_listed_once(there: Held) -> None:
    there.others.put(f"{TIMELINE}/one", b"1")
    there.take()
    with there.asking(requests=1):
        assert there.names(TIMELINE) == {"one"} == there.names(TIMELINE)
    with there.asking(requests=0):
        assert there.connector.getFileStatus(there.at(f"{TIMELINE}/one")).getLen() == 1
        assert not there.connector.exists(there.at(f"{TIMELINE}/two"))
        assert there.connector.getFileStatus(there.at(".hoodie/metadata")).isDirectory()


def test_what_is_written_and_deleted_in_the_lock_is_known(there: Held) -> None:
    there.others.put(f"{TIMELINE}/one", b"1")
    there.take()
    there.names(TIMELINE)
    with there.asking(requests=1):
        there.make(f"{TIMELINE}/two", b"content")
    with there.asking(requests=0):
        assert there.names(TIMELINE) == {"one", "two"}
        made = there.connector.getFileStatus(there.at(f"{TIMELINE}/two"))
        assert (made.getLen(), made.isFile()) == (len(b"content"), True)
        with pytest.raises(Py4JJavaError, match="FileAlreadyExistsException"):
            there.connector.create(there.at(f"{TIMELINE}/two"), False)
    assert there.connector.delete(there.at(f"{TIMELINE}/one"), False)
    assert there.names(TIMELINE) == {"two"}
    assert not there.connector.exists(there.at(f"{TIMELINE}/one"))


def test_an_instants_file_is_looked_for_and_deleted_and_in_the_lock_deleted(there: Held) -> None:
    name = f"{INSTANT}.deltacommit.requested"
    for folder, asked in ((".hoodie/timeline", 2), (TIMELINE, 1)):
        there.others.put(f"{folder}/{name}", b"")
        there.others.put(f"{folder}/other", b"")
        there.take()
        there.names(folder)
        with there.asking(requests=asked):
            assert there.connector.delete(there.at(f"{folder}/{name}"), False)
        assert there.others.stat(f"{folder}/{name}") is None
        assert not there.connector.delete(there.at(f"{folder}/{name}"), False)
        assert there.names(folder) == {"other"}


@pytest.mark.parametrize("end", [Held.take, Held.give_back])
def test_with_the_lock_ends_what_is_known(there: Held, end: Callable[[Held], None]) -> None:
    """Taken anew, renewed or given back: others may have been there."""
    there.others.put(f"{TIMELINE}/one", b"1")
    there.take()
    assert there.names(TIMELINE) == {"one"}
    there.others.put(f"{TIMELINE}/two", b"2")
    assert there.names(TIMELINE) == {"one"}, "whose lock it is, nobody else writes"
    end(there)
    assert there.names(TIMELINE) == {"one", "two"}
    assert there.connector.exists(there.at(f"{TIMELINE}/two"))


def test_without_the_lock_and_of_others_folders_nothing_is_known(there: Held) -> None:
    for held in (False, True):
        for folder in (TIMELINE, ".hoodie/timeline", "a") if not held else (".hoodie/timeline", "a"):
            there.others.put(f"{folder}/one", b"1")
            there.names(folder)
            there.others.put(f"{folder}/two-{held}", b"2")
            assert f"two-{held}" in there.names(folder), folder
        there.take()


@pytest.mark.parametrize("blow", [Blow.FAIL, Blow.LOSE])
def test_what_was_not_written_well_is_asked_for(there: Held, blow: Blow) -> None:
    there.others.put(f"{TIMELINE}/one", b"1")
    there.take()
    there.names(TIMELINE)
    struck = Lasting(requests={Request.PUT}, under=f"{TIMELINE}/two", blow=blow, every=1)
    with there.proxy.lasting(struck), pytest.raises(Py4JJavaError):
        there.make(f"{TIMELINE}/two")
    landed = there.others.stat(f"{TIMELINE}/two") is not None
    assert landed is (blow is Blow.LOSE)
    assert there.connector.exists(there.at(f"{TIMELINE}/two")) is landed
    assert there.names(TIMELINE) == ({"one", "two"} if landed else {"one"})


def test_a_file_that_is_not_there_is_looked_for_once_before_it_is_made(there: Held) -> None:
    marker = f"{MARKERS}/a/one.marker.CREATE"
    with there.asking(requests=2):
        assert not there.connector.exists(there.at(marker))
        there.make(marker)
    with there.asking(requests=1), pytest.raises(Py4JJavaError, match="FileAlreadyExistsException"):
        there.connector.create(there.at(marker), False)


def test_an_instants_markers_are_one_listing_whatever_their_folders(there: Held) -> None:
    expected = {f"a={number}" for number in range(PARTITIONS)}
    for name in expected:
        there.others.put(f"{MARKERS}/{name}/b/one.marker.CREATE", b"")
    with there.asking(requests=1):
        assert there.names(MARKERS) == expected
        for name in expected:
            assert there.names(f"{MARKERS}/{name}") == {"b"}
            files = there.connector.listFiles(there.at(f"{MARKERS}/{name}"), True)
            assert str(files.next().getPath().getName()) == "one.marker.CREATE" and not files.hasNext()
    with there.asking(requests=PARTITIONS):
        for name in expected:
            assert there.connector.delete(there.at(f"{MARKERS}/{name}"), True)
        assert there.connector.delete(there.at(MARKERS), True), "Hudi takes that for a failure"
    assert not [names for _, names in there.others.walk(MARKERS) if names]


def test_a_marker_that_is_made_here_or_comes_later_is_in_the_next_listing(there: Held) -> None:
    there.make(f"{MARKERS}/a/one.marker.CREATE")
    assert there.names(f"{MARKERS}/a") == {"one.marker.CREATE"}
    there.make(f"{MARKERS}/a/two.marker.CREATE")
    assert there.names(f"{MARKERS}/a") == {"one.marker.CREATE", "two.marker.CREATE"}
    there.others.put(f"{MARKERS}/a/three.marker.CREATE", b"")
    assert there.names(MARKERS) == {"a"}
    assert len(there.names(f"{MARKERS}/a")) == 3
    assert there.connector.delete(there.at(MARKERS), True)
    assert not [names for _, names in there.others.walk(MARKERS) if names]


def test_more_markers_than_are_deleted_at_once_are_all_deleted(there: Held) -> None:
    for number in range(301):
        there.others.put(f"{MARKERS}/a/{number}.marker.CREATE", b"")
    assert there.connector.delete(there.at(MARKERS), True)
    assert not [names for _, names in there.others.walk(MARKERS) if names]


def test_a_completed_instant_is_read_once(there: Held) -> None:
    """Nobody changes it; by whom it is listed says whether it is there."""
    path = f".hoodie/timeline/{INSTANT}_20260101000000001.commit"
    there.others.put(path, b"done")
    for requests in (2, 0):
        with there.asking(requests=requests):
            file = there.connector.open(there.at(path), 4_096)
            assert str(there.jvm.org.apache.commons.io.IOUtils.toString(file, "UTF-8")) == "done"
    for number in range(20):
        other = f".hoodie/timeline/{INSTANT}_202601010000001{number:02}.commit"
        there.others.put(other, b"other")
        there.connector.open(there.at(other), 4_096).close()
    with there.asking(requests=2):
        there.connector.open(there.at(path), 4_096).close()


@contextmanager
def answered_late(there: Held, folder: str) -> Iterator[Callable[[], None]]:
    """Somebody lists the folder; what he is told is under way until the function is called."""
    forward, listed, go = there.proxy._forward, threading.Event(), threading.Event()

    def slow(handler: Any, body: bytes) -> Any:
        answer = forward(handler, body)
        if "list-type" in handler.path and not listed.is_set():
            listed.set()
            go.wait(DEADLINE_S)
        return answer

    there.proxy._forward = slow  # type: ignore[method-assign]
    with ThreadPoolExecutor(1) as pool:
        listing = pool.submit(there.names, folder)
        assert listed.wait(DEADLINE_S)

        def arrive() -> None:
            go.set()
            listing.result(DEADLINE_S)

        yield arrive
    there.proxy._forward = forward  # type: ignore[method-assign]


@pytest.mark.parametrize("known", [False, True])
def test_a_listing_that_was_overtaken_by_a_change_is_not_believed(there: Held, known: bool) -> None:
    """Of a reader in the same JVM: it would hide what the holder of the lock has just written, or removed."""
    for name in ("one", "two"):
        there.others.put(f"{TIMELINE}/{name}", b"1")
    there.take()
    if known:
        there.names(TIMELINE)
        there.make(f"{TIMELINE}/any")  # so that a list is asked for anew
        there.connector.create(there.at(f"{TIMELINE}/open"), False)
    with answered_late(there, TIMELINE) as arrive:
        there.make(f"{TIMELINE}/three")
        assert there.connector.delete(there.at(f"{TIMELINE}/two"), False)
        arrive()
    assert there.connector.exists(there.at(f"{TIMELINE}/three"))
    assert there.names(TIMELINE) == {"one", "three"} | ({"any"} if known else set())


def test_a_file_that_is_being_written_stays_unsure_whoever_lists_its_folder(there: Held) -> None:
    there.others.put(f"{TIMELINE}/one", b"1")
    there.take()
    made = there.connector.create(there.at(f"{TIMELINE}/two"), False)
    made.write(b"content")
    there.names(TIMELINE)
    lost = Lasting(requests={Request.PUT}, under=f"{TIMELINE}/two", blow=Blow.LOSE, every=1)
    with there.proxy.lasting(lost), pytest.raises(Py4JJavaError):
        made.close()
    assert there.others.stat(f"{TIMELINE}/two") is not None
    assert there.connector.exists(there.at(f"{TIMELINE}/two"))
    assert there.names(TIMELINE) == {"one", "two"}


def test_a_folder_that_comes_to_be_by_a_file_in_it_is_there(there: Held) -> None:
    there.others.put(f"{TIMELINE}/one", b"1")
    there.take()
    assert there.names(TIMELINE) == {"one"}
    there.make(f"{TIMELINE}/history/manifest_1")
    assert there.connector.exists(there.at(f"{TIMELINE}/history"))
    assert there.names(TIMELINE) == {"one", "history"}


def test_of_markers_that_were_listed_long_ago_nothing_is_kept(there: Held) -> None:
    markers = there.jvm.java.lang.Class.forName(
        "org.apache.hadoop.fs.s3a.Markers", True, there.connector.getClass().getClassLoader()
    )
    listed = markers.getDeclaredField("LISTED")
    listed.setAccessible(True)
    for number in range(30):
        there.names(f".hoodie/.temp/202601010000000{number:02}")

    def one_more() -> bool:
        there.names(MARKERS)
        return int(listed.get(None).size()) <= 2

    await_that("end of what was listed", one_more, deadline_s=DEADLINE_S)
