"""What every store promises: the local one on a real disk, the one in memory that tests use, and objects on a
real S3 server, on one of Google's API and on one of Azure's. What a store cannot do, it says; and then
everybody is told so.
"""

from __future__ import annotations

import errno
import io
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from table.memory.store import MemoryStore
from table.store.hdfs.store import HdfsStore
from table.store.local import LocalStore
from table.store.location import store_at
from table.store.port import Store
from tests.azure_fixture import new_place as new_azure_place
from tests.gs_fixture import new_place as new_gs_place
from tests.hdfs_fixture import new_store
from tests.s3_fixture import new_place

MAX = 1 << 24
DATED_S = 60.0
ODD = ("with blanks", "day=2024%2F01", "100%", "ä ö/日本", "q?#[]*{}~'&+=;:@!$,()|<>^`", 'a"b', ".hidden")


S3 = pytest.param("s3", marks=(pytest.mark.integration, pytest.mark.xdist_group("s3")))


HDFS = pytest.param("hdfs", marks=(pytest.mark.integration, pytest.mark.xdist_group("hdfs")))


GS = pytest.param("gs", marks=(pytest.mark.integration, pytest.mark.xdist_group("gs")))


AZURE = pytest.param("azure", marks=(pytest.mark.integration, pytest.mark.xdist_group("azure")))


@pytest.fixture(params=["local", "memory", S3, GS, AZURE, HDFS])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "hdfs":
        return new_store(request.getfixturevalue("hdfs"))
    if request.param == "gs":
        return store_at(new_gs_place(), settings=request.getfixturevalue("gs").settings)
    if request.param == "azure":
        return store_at(new_azure_place(), settings=request.getfixturevalue("azure").settings)
    if request.param == "s3":
        return store_at(new_place(), settings=request.getfixturevalue("s3").settings)
    return LocalStore(tmp_path) if request.param == "local" else MemoryStore()


def test_what_is_put_is_read_and_put_over(store: Store) -> None:
    store.make_folder("a/b")
    store.put("a/b/one", b"first", durable=True)
    assert store.read("a/b/one", bytes_max=MAX) == b"first"
    store.put("a/b/one", b"2nd")
    assert store.read("a/b/one", bytes_max=MAX) == b"2nd"
    assert store.read("a/b/one", bytes_max=1) == b"2"
    assert store.names("a/b") == ["one"], "nothing is left beside it"


def test_no_reader_sees_a_part_of_what_is_put(store: Store) -> None:
    contents = [bytes([number]) * 200_000 for number in range(40)]
    store.put("one", contents[0])
    over = threading.Event()

    def look() -> bool:
        while not over.is_set():
            if store.read("one", bytes_max=MAX) not in contents:
                return False
        return True

    with ThreadPoolExecutor(2) as pool:
        looks = [pool.submit(look) for _ in range(2)]
        for content in contents:
            store.put("one", content)
        over.set()
        assert all(one.result(timeout=60) for one in looks)


def test_a_file_is_created_once_whoever_tries(store: Store) -> None:
    assert store.create("one", b"mine") is True
    assert store.create("one", b"theirs") is False
    assert store.read("one", bytes_max=MAX) == b"mine"
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda number: store.create("another", b"%d" % number), range(8)))
    assert won.count(True) == 1
    assert store.read("another", bytes_max=MAX) == b"%d" % won.index(True)


def test_of_several_processes_that_create_a_file_one_wins(tmp_path: Path) -> None:
    """In memory there is one process."""
    code = (
        "import sys, time; from table.store.local import LocalStore\n"
        "store, begin_s = LocalStore(sys.argv[1]), float(sys.argv[2])\n"
        "while time.time() < begin_s: pass\n"
        "print(sum(store.create(f'{number}') for number in range(200)))"
    )
    begin_s = str(time.time() + 1.5)
    started = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path), begin_s], stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    assert sum(int(one.communicate(timeout=60)[0]) for one in started) == 200


def test_a_file_that_is_written_has_what_was_written_and_its_size(store: Store) -> None:
    store.make_folder("a/b")
    sink = store.sink("a/b/one")
    sink.write(b"abc")
    sink.write(memoryview(b"de"))
    assert sink.tell() == 5
    sink.close()
    assert store.secure("a/b/one") == 5
    store.secure("a/b")
    with store.source("a/b/one") as source:
        source.seek(3)
        assert source.read() == b"de"
        source.seek(-4, io.SEEK_END)
        assert (source.read(2), source.tell(), source.read(100), source.read(1)) == (b"bc", 3, b"de", b"")


def test_a_file_that_is_written_is_seen_before_its_end_unless_the_store_hides_it(store: Store) -> None:
    sink, content = store.sink("one"), b"abc" * (2 << 20)
    sink.write(content)
    seen = store.stat("one") is not None
    assert seen is not store.capabilities.hides
    assert 0 <= store.held_bytes(3) <= 3, "nothing is held that was not given"
    sink.close()
    assert store.read("one", bytes_max=MAX) == content


@pytest.mark.parametrize("size_bytes", [0, 3, 6 << 20])
def test_what_is_to_be_there_before_a_file_is_there_before_anybody_may_see_it(
    store: Store, size_bytes: int
) -> None:
    called: list[bool] = []
    with closing(store.sink("one", before=lambda: called.append(store.stat("one") is None))) as sink:
        sink.write(b"1" * size_bytes)
    assert called == [True] and store.secure("one") == size_bytes


def test_a_file_whose_before_fails_is_not_there(store: Store) -> None:
    def refuse() -> None:
        raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(OSError, match="Input/output error"):
        sink = store.sink("one", before=refuse)
        sink.write(b"1" * (6 << 20))
        sink.close()
    assert store.stat("one") is None


def test_what_was_written_stays_though_the_buffer_that_held_it_is_used_again(store: Store) -> None:
    buffer = bytearray(b"first")
    sink = store.sink("one")
    sink.write(buffer)
    buffer[:] = b"other"
    sink.write(memoryview(buffer)[:2])
    buffer[:] = b"again"
    sink.close()
    assert store.read("one", bytes_max=MAX) == b"firstot"


def test_of_a_file_that_is_discarded_nothing_is_left_once_it_is_deleted(store: Store) -> None:
    store.make_folder("a")
    store.put("a/kept", b"")
    sink = store.sink("a/one")
    sink.write(b"abc")
    store.discard(sink)
    assert sink.closed
    store.delete("a/one")
    assert store.stat("a/one") is None and store.names("a") == ["kept"]


def test_names_may_hold_what_people_and_tables_put_in_them(store: Store) -> None:
    odd = [name.replace(":", "") for name in ODD] if isinstance(store, HdfsStore) else ODD
    for name in odd:
        store.make_folder(f"in/{name}")
        store.put(f"in/{name}/{name.replace('/', '-')}", name.encode())
    for name in odd:
        file = name.replace("/", "-")
        assert store.read(f"in/{name}/{file}", bytes_max=MAX) == name.encode()
        assert store.names(f"in/{name}") == [file]
    assert sorted(store.names("in")) == sorted({name.partition("/")[0] for name in odd})
    assert {path for path, names in store.walk("in") if names} == {f"in/{name}" for name in odd}


def test_nothing_is_reached_that_is_not_below_the_root(store: Store) -> None:
    store.make_folder("a")
    asked: Callable[[], object]
    for asked in (
        lambda: store.read("a/../../b", bytes_max=MAX),
        lambda: store.put("../b", b""),
        lambda: store.create("../b", b""),
        lambda: store.sink("a/../../b"),
        lambda: store.delete(".."),
        lambda: store.stat(".."),
        lambda: store.names(".."),
    ):
        with pytest.raises(OSError, match=r"\.\."):
            asked()


def test_an_empty_file_is_a_file_and_has_no_bytes(store: Store) -> None:
    store.make_folder("a")
    store.put("a/put", b"")
    store.create("a/created")
    store.sink("a/written").close()
    assert [store.read(f"a/{name}", bytes_max=MAX) for name in ("put", "created", "written")] == [b""] * 3
    with store.source("a/put") as source:
        assert source.read() == b"" and source.read(1) == b""
    assert {path: sorted(names) for path, names in store.walk("a")} == {"a": ["created", "put", "written"]}


def test_a_folder_lists_what_is_in_it_and_a_walk_what_is_below_it(store: Store) -> None:
    for folder in ("a/b", "a/.hidden"):
        store.make_folder(folder)
    for path in ("one", "a/two", "a/b/three", "a/.hidden/four"):
        store.put(path, b"")
    assert sorted(store.names()) == ["a", "one"]
    assert sorted(store.names("a")) == [".hidden", "b", "two"]
    assert dict(store.walk(leaving_out={".hidden"})) == {"": ["one"], "a": ["two"], "a/b": ["three"]}
    assert dict(store.walk("a/b")) == {"a/b": ["three"]}
    assert list(store.walk("nowhere")) == []


def test_sizes_are_those_of_the_files_that_are_not_empty(store: Store) -> None:
    for folder in ("a/b", "a/.hidden", "c"):
        store.make_folder(folder)
    for path in ("one", "a/two", "a/b/three", "a/.hidden/four", "c/five"):
        store.put(path, path.encode())
    store.put("a/empty", b"")
    found = {(one.folder, one.name): one.size_bytes for one in store.sizes(leaving_out={".hidden"})}
    assert found == {("", "one"): 3, ("a", "two"): 5, ("a/b", "three"): 9, ("c", "five"): 6}
    assert [tuple(one) for one in store.sizes("a/b")] == [("a/b", "three", 9)]
    assert list(store.sizes("nowhere")) == []


def test_a_file_tells_its_size_its_times_and_itself_from_its_successor(store: Store) -> None:
    store.make_folder("a")
    store.put("a/one", b"abc")
    first = store.stat("a/one")
    assert first is not None and not first.is_folder
    assert first.size_bytes == 3 and first.changed_s >= first.modified_s > 0
    assert store.stat("a/one") == first
    store.put("a/one", b"abc")
    second = store.stat("a/one")
    assert second is not None and second.identity != first.identity
    folder = store.stat("a")
    assert folder is not None and folder.is_folder


def test_the_stores_own_clock_dates_a_file(store: Store) -> None:
    """Some in whole seconds."""
    store.put("one", b"abc")
    before = store.stat("one")
    assert before is not None and store.capabilities.dates
    until_s, modified_s = time.monotonic() + DATED_S, before.modified_s
    while modified_s <= before.modified_s:
        assert time.monotonic() < until_s
        time.sleep(0.02)
        store.date("one")
        after = store.stat("one")
        assert after is not None
        modified_s = after.modified_s
    assert store.read("one", bytes_max=MAX) == b"abc"


def test_what_is_deleted_is_gone_and_may_be_deleted_again(store: Store) -> None:
    store.make_folder("a/b")
    store.put("a/one", b"")
    assert store.delete("a/one") is True
    assert store.delete("a/one") is False
    store.put("a/b/two", b"")
    assert store.stat("a/one") is None and store.names("a") == ["b"]
    store.delete_folder("a")
    store.delete_folder("a")
    assert not [names for _, names in store.walk() if names]
    if store.capabilities.folders:  # else a server may show the name for a moment
        assert store.names() == []


def test_what_is_missing_is_said_to_be_missing(store: Store) -> None:
    store.put("one", b"")
    asked: Callable[[], object]
    for asked in (
        lambda: store.read("none", bytes_max=MAX),
        lambda: store.source("none"),
        lambda: store.secure("none"),
        lambda: store.names("none"),
        lambda: store.date("none"),
    ):
        with pytest.raises(FileNotFoundError):
            asked()
    with pytest.raises(NotADirectoryError):
        store.names("one")


def test_no_folder_is_made_unasked_where_there_are_folders(store: Store) -> None:
    """Elsewhere it is there with its first file."""
    if not store.capabilities.folders:
        store.put("none/one", b"")
        assert store.names("none") == ["one"]
        store.delete("none/one")
        assert store.stat("none") is None
        return
    asked: Callable[[], object]
    for asked in (
        lambda: store.put("none/one", b""),
        lambda: store.create("none/one"),
        lambda: store.sink("none/one").close(),
    ):
        with pytest.raises(FileNotFoundError):
            asked()
