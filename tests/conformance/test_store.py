"""What every store promises: those that are registered, and the one in memory that tests use."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from table.memory.store import MemoryStore
from table.store.location import STORES, store_at
from table.store.port import Store

MAX = 1 << 24
PLACES: Mapping[str, Callable[[Path], str]] = {"file": Path.as_uri}
"""Scheme -> the address of a store that is empty, for a test."""


@pytest.fixture(params=sorted(STORES))
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of a store that several processes share."""
    return PLACES[request.param](tmp_path)


@pytest.fixture(params=[*sorted(STORES), "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return MemoryStore() if request.param == "memory" else store_at(PLACES[request.param](tmp_path))


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


def test_of_several_processes_that_create_a_file_one_wins(address: str) -> None:
    """In memory there is one process."""
    code = (
        "import sys, time; from table.store.location import store_at\n"
        "store, begin_s = store_at(sys.argv[1]), float(sys.argv[2])\n"
        "while time.time() < begin_s: pass\n"
        "print(sum(store.create(f'{number}') for number in range(200)))"
    )
    begin_s = str(time.time() + 1.5)
    started = [
        subprocess.Popen([sys.executable, "-c", code, address, begin_s], stdout=subprocess.PIPE)
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


def test_a_file_grows_where_the_store_says_that_it_may(store: Store) -> None:
    store.put("one", b"ab")
    if not store.capabilities.appends:
        with pytest.raises(io.UnsupportedOperation):
            store.append("one", b"c")
        return
    store.append("one", b"c", b"d")
    store.append("two", b"e")
    assert store.read("one", bytes_max=MAX) == b"abcd" and store.read("two", bytes_max=MAX) == b"e"
    with pytest.raises(FileNotFoundError):
        store.append("none/one", b"")


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
    store.put("one", b"abc")
    if not store.capabilities.dates:
        with pytest.raises(io.UnsupportedOperation):
            store.date("one")
        return
    before = store.stat("one")
    time.sleep(0.02)
    store.date("one")
    after = store.stat("one")
    assert before is not None and after is not None and after.modified_s > before.modified_s
    with pytest.raises(FileNotFoundError):
        store.date("none")


def test_what_is_deleted_is_gone_and_may_be_deleted_again(store: Store) -> None:
    store.make_folder("a/b")
    store.put("a/one", b"")
    assert store.delete("a/one") is True
    assert store.delete("a/one") is False
    assert store.stat("a/one") is None and store.names("a") == ["b"]
    store.put("a/b/two", b"")
    store.delete_folder("a")
    store.delete_folder("a")
    assert store.names() == []


def test_what_is_missing_is_said_to_be_missing(store: Store) -> None:
    store.put("one", b"")
    asked: Callable[[], object]
    for asked in (
        lambda: store.read("none", bytes_max=MAX),
        lambda: store.source("none"),
        lambda: store.secure("none"),
        lambda: store.names("none"),
        lambda: store.put("none/one", b""),
        lambda: store.create("none/one"),
        lambda: store.sink("none/one"),
    ):
        with pytest.raises(FileNotFoundError):
            asked()
    with pytest.raises(NotADirectoryError):
        store.names("one")


def test_a_claimed_file_is_one_claimants_alone(store: Store) -> None:
    store.put("count", b"0")
    if not store.capabilities.claims:
        with pytest.raises(io.UnsupportedOperation):
            store.claimed("count").__enter__()
        return

    def add(_number: int) -> None:
        with store.claimed("count") as claim:
            counted = int(claim.read(100))
            time.sleep(0.001)
            claim.write(b"%d" % (counted + 1))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(40)))
    assert store.read("count", bytes_max=MAX) == b"40"
    with store.claimed("new") as claim:
        assert claim.read(100) == b""
        claim.write(b"longer")
        claim.write(b"new")
    assert store.read("new", bytes_max=MAX) == b"new"


def test_a_claim_ends_with_its_process(address: str) -> None:
    """In memory there is one process."""
    if not store_at(address).capabilities.claims:
        pytest.skip("the store has no claims")
    code = (
        "import os, sys; from table.store.location import store_at\n"
        "claim = store_at(sys.argv[1]).claimed('one')\n"
        "claim.__enter__(); print('claimed', flush=True); sys.stdin.read(); os._exit(9)"
    )
    asked = [sys.executable, "-c", code, address]
    process = subprocess.Popen(asked, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None
    assert process.stdout.readline() == b"claimed\n"
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(store_at(address).claimed("one").__enter__)
        time.sleep(0.1)
        assert not waiting.done()
        process.kill()
        waiting.result(timeout=30)
    process.communicate()
