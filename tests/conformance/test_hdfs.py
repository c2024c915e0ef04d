"""What a table relies on of HDFS, on a real one: who created a file, and what its server's faults do."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hdfs_native import AsyncClient, Client, WriteOptions

from lockstep.stores.hdfs import HdfsServer
from table.errors import Refused
from table.hudi.upkeep.drafts import OLD_S, Drafts
from table.store.hdfs.loop import CountedLoop
from table.store.hdfs.settings import HdfsSettings
from table.store.hdfs.sink import HdfsSink
from table.store.hdfs.store import FORGET_S, HdfsStore
from table.store.location import store_at
from table.store.paths import DRAFT, draft_of, of_draft
from table.store.port import OutcomeUnknown
from tests.faults.data_node import DataNode
from tests.hdfs_fixture import new_store, store_of

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("hdfs")]

MAX = 1 << 24
PATIENCE_S = 3.0


@pytest.fixture
def store(hdfs: HdfsServer) -> HdfsStore:
    return new_store(hdfs)


class Passing:
    """A real client or writer: whatever a class below does not say otherwise is done by it."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class Deaf(Passing):
    """A client; of its renames the answer is lost, and what `carried_out` says is done before."""

    def __init__(self, client: Client, times: int) -> None:
        super().__init__(client)
        self._times = times
        self.lost = False

    def rename(self, source: str, target: str, overwrite: bool) -> None:
        if self.lost:
            return self._real.rename(source, target, overwrite)
        self.lost = True
        for _ in range(self._times):  # the client asks again by itself where no answer comes
            self._real.rename(source, target, overwrite)
        raise ConnectionAbortedError("RPC listener disconnected")


@pytest.fixture(params=[0, 1, 2], ids=["it did not arrive", "it was carried out", "it was asked for twice"])
def deaf(request: pytest.FixtureRequest, store: HdfsStore) -> tuple[HdfsStore, int]:
    client = Deaf(store._calls.client(), request.param)
    store._calls._client = client  # type: ignore[assignment]
    return store, request.param


def left(store: HdfsStore) -> list[str]:
    return [name for name in store.names() if name.startswith(DRAFT)]


def test_who_created_a_file_is_told_so_though_the_answer_was_lost(deaf: tuple[HdfsStore, int]) -> None:
    store, times = deaf
    if times == 0:
        with pytest.raises(OSError):
            store.create("one", b"mine")
        assert store.stat("one") is None
    else:
        assert store.create("one", b"mine") is True
        assert store.read("one", bytes_max=MAX) == b"mine"
    assert left(store) == []


def test_who_lost_a_race_is_told_so_though_the_answer_was_lost(hdfs: HdfsServer) -> None:
    store = new_store(hdfs)
    assert store.create("one", b"same") is True
    client = Deaf(store._calls.client(), 1)
    store._calls._client = client  # type: ignore[assignment]
    assert store.create("one", b"same") is False
    assert client.lost and left(store) == []


def test_what_is_put_is_there_though_the_answer_was_lost(store: HdfsStore) -> None:
    store.put("one", b"before")
    client = Deaf(store._calls.client(), 2)
    store._calls._client = client  # type: ignore[assignment]
    store.put("one", b"after it")
    assert store.read("one", bytes_max=MAX) == b"after it" and left(store) == []


class Slow(Passing):
    """A client; before its first rename all drafts are swept, as of one who stands still for a day."""

    def __init__(self, store: HdfsStore, meanwhile: Callable[[], object] = lambda: None) -> None:
        super().__init__(store._calls.client())
        self._meanwhile = meanwhile
        self._is_first = True

    def rename(self, source: str, target: str, overwrite: bool) -> None:
        if self._is_first:
            self._is_first = False
            self._meanwhile()
            self._real.delete(source, False)
        self._real.rename(source, target, overwrite)


@pytest.mark.parametrize("others", [b"", b"this", b"theirs"])
def test_who_stood_still_until_his_draft_was_swept_is_not_told_that_he_created_the_file(
    store: HdfsStore, hdfs: HdfsServer, others: bytes
) -> None:
    other = HdfsStore(store.location, hdfs.settings)
    meanwhile = partial(other.create, "one", others) if others else lambda: None
    store._calls._client = Slow(store, meanwhile)  # type: ignore[assignment]
    if others:
        assert store.create("one", b"mine") is False
        assert store.read("one", bytes_max=MAX) == others
    else:
        with pytest.raises(FileNotFoundError):
            store.create("one", b"mine")
        assert store.create("one", b"mine") is True


def test_a_client_that_is_collected_in_a_thread_of_another_client_ends_elsewhere(
    store: HdfsStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("one", b"1")
    collected = [store._calls.client()]
    store._calls._client = None
    caller, wake = threading.current_thread(), CountedLoop.call_soon_threadsafe
    unraisable: list[object] = []

    def collecting(loop: CountedLoop, *args: Any, **named: Any) -> asyncio.Handle:
        if threading.current_thread() is not caller:
            collected.clear()
        return wake(loop, *args, **named)

    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    monkeypatch.setattr(CountedLoop, "call_soon_threadsafe", collecting)
    store.put("one", b"2")
    assert collected == [] and unraisable == []


def test_who_creates_a_file_in_a_folder_that_is_taken_away_meanwhile_is_told_so(store: HdfsStore) -> None:
    store.make_folder("markers")
    gone = partial(store.delete_folder, "markers")
    store._calls._client = Slow(store, gone)  # type: ignore[assignment]
    with pytest.raises(FileNotFoundError):
        store.create("markers/one")


def test_who_stood_still_until_his_draft_was_swept_puts_his_file_all_the_same(store: HdfsStore) -> None:
    store.put("one", b"old")
    store._calls._client = Slow(store)  # type: ignore[assignment]
    store.put("one", b"new")
    assert store.read("one", bytes_max=MAX) == b"new" and left(store) == []


PUTS = """
import sys
from tests.hdfs_fixture import store_of

store = store_of(sys.argv[1], sys.argv[2])
print("ready", flush=True)
while True:
    store.put("one", b"1")
"""


def test_what_a_process_leaves_that_is_killed_as_it_puts_a_file_is_swept_a_day_later(
    store: HdfsStore, hdfs: HdfsServer
) -> None:
    root = store.place().removeprefix(hdfs.url)
    tries = 0
    while not left(store):
        tries += 1
        assert tries < 20
        putting = subprocess.Popen([sys.executable, "-c", PUTS, hdfs.address, root], stdout=subprocess.PIPE)
        with putting:
            assert putting.stdout is not None and putting.stdout.readline()
            time.sleep(0.05 * tries)
            putting.kill()
    was = set(store.names())
    Drafts(store, clock_s=lambda: time.time() + OLD_S - 60).sweep()
    assert set(store.names()) == was
    Drafts(store, clock_s=lambda: time.time() + OLD_S + 60).sweep()
    assert left(store) == []


def test_a_colon_in_a_path_is_refused_with_the_reason(store: HdfsStore) -> None:
    asked: Callable[[], object]
    for asked in (
        lambda: store.put("a:b", b""),
        lambda: store.create("a:b"),
        lambda: store.sink("a:b").close(),
    ):
        with pytest.raises(OSError, match="colon"):
            asked()


def test_what_this_user_may_not_do_is_said_with_the_path(store: HdfsStore, hdfs: HdfsServer) -> None:
    store.put("one", b"1")
    Client(hdfs.url).set_permission(store.place("one").removeprefix(hdfs.url), stat.S_IRWXU & 0o700)
    code = (
        "import sys; from tests.hdfs_fixture import store_of\n"
        "try: store_of(sys.argv[1], sys.argv[2]).read('one', bytes_max=10)\n"
        "except PermissionError as error: print(error)"
    )
    root = store.place().removeprefix(hdfs.url)
    environment = {**os.environ, "HADOOP_USER_NAME": "stranger"}
    asked = [sys.executable, "-c", code, hdfs.address, root]
    said = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60, env=environment)
    assert "Permission denied: user=stranger, access=READ" in said.stdout
    assert store.place("one") in said.stdout and "\tat " not in said.stdout


@pytest.fixture
def own(tmp_path: Path) -> Iterator[HdfsServer]:
    """One that may be frozen and killed."""
    with HdfsServer(tmp_path / "own") as running:
        yield running


def test_a_file_that_nobody_holds_any_more_asks_the_name_node_for_nothing(own: HdfsServer) -> None:
    """Whoever collects garbage may be anybody."""
    held = [new_store(own, own.settings).sink("half")]
    held[0].write(b"x")
    own.pause()
    try:

        def collect() -> None:
            held.clear()
            gc.collect()

        thread = threading.Thread(target=collect, daemon=True)
        thread.start()
        thread.join(10 * PATIENCE_S)
        assert not thread.is_alive()
    finally:
        own.resume()


def test_a_name_node_that_stands_still_or_is_gone_is_waited_for_no_longer_than_patience_lasts(
    own: HdfsServer,
) -> None:
    patient = new_store(own)
    store = HdfsStore(patient.location, replace(own.settings, patience_s=PATIENCE_S))
    assert patient.create("one", b"1") is True
    sink = patient.sink("half")
    sink.write(b"x" * 1_000)
    assert store.stat("one") is not None
    own.pause()
    try:
        for asked in (lambda: store.stat("one"), lambda: store.create("two", b"2")):
            began_s = time.monotonic()
            with pytest.raises(OutcomeUnknown, match="did not answer within 3 s"):
                asked()
            assert time.monotonic() - began_s < 10 * PATIENCE_S
    finally:
        own.resume()
    assert patient.read("one", bytes_max=MAX) == b"1"
    own.kill()
    with pytest.raises(OSError, match="HDFS"):
        store.read("one", bytes_max=MAX)
    own.start()
    assert patient.read("one", bytes_max=MAX) == b"1"
    assert patient.create("one", b"other") is False
    other = patient.sink("other")
    other.write(b"1" * (5 << 20))
    own.kill()
    for asked_of in (other.close, lambda: store.create("three", b"3")):
        with pytest.raises(OSError):  # and no panic of the client's
            asked_of()
    own.start()
    sink.close()  # none of its data was under way: it goes on where it was
    assert patient.read("half", bytes_max=MAX) == b"x" * 1_000


def test_a_data_node_that_has_died_keeps_nobody_from_writing_files_though_the_name_node_still_names_it(
    tmp_path: Path,
) -> None:
    """hdfs-native fails with a file's first block where one of its data nodes is away."""
    with HdfsServer(tmp_path / "hdfs", data_nodes=2) as server:
        store = new_store(server)
        with DataNode(tmp_path / "data-node", server) as node:
            store.put("before", b"1")
            node.kill()
            for number in range(5):
                store.put(f"put {number}", b"2", durable=True)
                assert store.create(f"created {number}", b"3")
                with closing(store.sink(f"sink {number}")) as sink:
                    sink.write(b"4" * 100_000)
        assert left(store) == []
        wanted = store._calls.client().get_file_info(store._full("before")).replication
        for name in store.names():
            assert store._calls.client().get_file_info(store._full(name)).replication == wanted, name
            assert store.read(name, bytes_max=1)


def test_a_data_node_that_stands_still_keeps_none_of_the_files_that_are_closed_at_once(
    tmp_path: Path,
) -> None:
    """Each of them waits for it, and is begun again beside all the calls that still do."""
    with HdfsServer(tmp_path / "hdfs", data_nodes=2) as server:
        store = new_store(server)
        at_once = store.capabilities.ending_at_once

        def write(number: int) -> None:
            with closing(store.sink(f"{number}")) as sink:
                sink.write(b"1" * 100_000)

        with DataNode(tmp_path / "data-node", server) as node:
            store.put("before", b"1")
            node.pause()
            with ThreadPoolExecutor(at_once) as pool:
                list(pool.map(write, range(2 * at_once)))
            node.resume()
        assert len(store.names()) == 1 + 2 * at_once


def test_the_client_says_of_a_data_node_that_dies_under_a_file_what_lets_it_be_begun_again(
    own: HdfsServer,
) -> None:
    """Of the only one that has the file, between two syncs."""
    store = new_store(own)
    held = store._calls.writing()

    async def begin() -> Any:
        options = WriteOptions(overwrite=True, create_parent=False)
        return await held.inner.create(store._full("one"), options)

    writer = store._calls.run("one", begin)

    async def write() -> None:
        await writer.write(b"1" * 100_000)
        await writer.hsync()

    store._calls.run("one", write)
    own.kill()
    with pytest.raises(ConnectionError, match="data nodes of HDFS did not do it"):
        store._calls.run("one", write)


class Unlucky(Passing):
    """A client; the name node names a dead data node for the first `times` blocks that are asked for."""

    def __init__(self, client: AsyncClient, times: int) -> None:
        super().__init__(client.inner)
        self._client = client  # which is to be held as long
        self.inner = self
        self.left = times

    async def create(self, path: str, options: WriteOptions) -> Any:
        writer = await self._real.create(path, options)
        return self if self._refuses() else writer

    async def write(self, data: bytes) -> int:
        raise OSError("Connection refused (os error 111)")

    def _refuses(self) -> bool:
        self.left -= 1
        return self.left >= 0


def test_a_file_gets_through_though_the_name_node_names_a_dead_data_node_many_times(store: HdfsStore) -> None:
    """Of three nodes it names the dead one in every third attempt, by chance: seen on a real one, and here
    as often as it takes."""
    client = Unlucky(store._calls.writing(), times=16)
    store._calls._writing = client  # type: ignore[assignment]
    store.put("one", b"1")
    assert client.left < 0
    assert store.read("one", bytes_max=MAX) == b"1"
    assert left(store) == []


def test_a_file_that_no_data_node_takes_is_given_up_with_the_reason(
    store: HdfsStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("table.store.hdfs.writing.PAUSE_MAX_S", 0.01)
    store._calls._writing = Unlucky(store._calls.writing(), times=1_000)  # type: ignore[assignment]
    with pytest.raises(ConnectionError, match="HDFS cannot be reached"):
        store.put("one", b"1")


@pytest.mark.parametrize("size_bytes", [1, 5 << 20], ids=["written anew", "recovered"])
def test_a_file_is_closed_though_its_first_closing_was_given_up_before_the_name_node_knew_its_length(
    store: HdfsStore, monkeypatch: pytest.MonkeyPatch, size_bytes: int
) -> None:
    """Where its lease is recovered, which takes seconds, that is not asked of the cluster again soon."""
    monkeypatch.setattr("table.store.hdfs.closing.AGAIN_FIRST_S", 0.0)
    monkeypatch.setattr("table.store.hdfs.closing.SYNCS", 0.0)
    monkeypatch.setattr("table.store.hdfs.closing.AGAIN_SUM_S", 0.1)
    content = os.urandom(size_bytes)
    with closing(store.sink("one")) as sink:
        sink.write(content)
    assert store.read("one", bytes_max=MAX) == content
    assert store._calls.unhurried is (size_bytes > 1)
    store.date("one")  # which only a closed file lets happen


@pytest.mark.parametrize("size_bytes", [1, 1_000, (4 << 20) + 1, 130 << 20])
def test_a_file_is_whole_however_often_the_name_node_is_asked_to_close_it(
    store: HdfsStore, size_bytes: int
) -> None:
    content = os.urandom(1_000) * (size_bytes // 1_000 + 1)
    content = content[:size_bytes]

    def write(number: int) -> None:
        with closing(store.sink(f"{number}")) as sink:
            sink.write(content)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(2 if size_bytes > MAX else 40)))
    for name in store.names():
        assert store.read(name, bytes_max=1 << 28) == content
        store.date(name)


class Late(Passing):
    """A writer; its first `close` is carried out, and does not end."""

    def __init__(self, writer: Any) -> None:
        super().__init__(writer)
        self._asked = 0

    async def close(self) -> None:
        self._asked += 1
        if self._asked == 1:
            await self._real.close()
            await asyncio.sleep(60.0)
        raise RuntimeError('RPCError("org.apache.hadoop.hdfs.server.namenode.LeaseExpiredException", "no")')


def test_a_file_is_closed_of_which_the_name_node_has_said_so_too_late(store: HdfsStore) -> None:
    sink = store.sink("one")
    sink.write(b"1" * (5 << 20))
    assert isinstance(sink, HdfsSink) and sink._file is not None
    sink._file._writer = Late(sink._file._writer)
    sink.close()
    assert store.read("one", bytes_max=MAX) == b"1" * (5 << 20)


class Short(Passing):
    """A client; of a file that is closed it says that a byte of it is missing."""

    async def get_file_info(self, path: str) -> Any:
        found = await self._real.get_file_info(path)
        return SimpleNamespace(length=found.length - 1)


def test_a_file_that_has_lost_some_of_what_was_written_is_not_taken_for_whole(store: HdfsStore) -> None:
    sink = store.sink("one")
    sink.write(b"1" * (5 << 20))
    assert isinstance(sink, HdfsSink) and sink._file is not None
    sink._file._writer = Late(sink._file._writer)
    sink._file._client = Short(sink._file._client)
    with pytest.raises(ConnectionError, match="5242880 bytes were synced, and 5242879 are left"):
        sink.close()


class TooEarly(Passing):
    """A writer; its first `close` is not carried out, and does not end. Meanwhile `hook` is called."""

    def __init__(self, writer: Any, hook: Callable[[], object]) -> None:
        super().__init__(writer)
        self._hook: Callable[[], object] | None = hook

    async def close(self) -> None:
        if self._hook is None:
            return await self._real.close()
        hook, self._hook = self._hook, None
        asked = asyncio.ensure_future(self._close())
        await asyncio.sleep(0)  # it begins
        asked.cancel()
        await asyncio.wait({asked})
        await asyncio.to_thread(hook)
        await asyncio.sleep(60.0)

    async def _close(self) -> None:
        await self._real.close()


@pytest.fixture(params=[1, 5 << 20], ids=["small", "large"])
def half(request: pytest.FixtureRequest, store: HdfsStore) -> tuple[HdfsStore, HdfsSink]:
    """A file of that many bytes that is begun, at `one`."""
    sink = store.sink("one")
    sink.write(b"1" * request.param)
    assert isinstance(sink, HdfsSink)
    sink._file = sink._begun()
    return store, sink


def test_a_file_that_is_taken_away_while_it_is_closed_is_said_to_be_gone(
    half: tuple[HdfsStore, HdfsSink],
) -> None:
    """And stays so: a rollback comes only once."""
    store, sink = half
    assert sink._file is not None
    sink._file._writer = TooEarly(sink._file._writer, lambda: store.delete(draft_of("one")))
    with pytest.raises(FileNotFoundError):
        sink.close()
    assert store.names() == []


@pytest.mark.parametrize("is_open", [False, True], ids=["closed", "open"])
def test_a_file_that_another_has_put_in_its_place_is_neither_taken_for_its_own_nor_touched(
    half: tuple[HdfsStore, HdfsSink], is_open: bool
) -> None:
    """Though it be as long."""
    store, sink = half
    other = store.sink("one")
    assert isinstance(other, HdfsSink)

    taken = threading.Event()

    def take_over() -> None:
        other._file = other._begun()
        other.write(b"2" * (sink.tell() - 1))
        if not is_open:
            other.write(b"2")
            other.close()
        taken.set()

    assert sink._file is not None
    sink._file._writer = TooEarly(sink._file._writer, take_over)
    with pytest.raises(FileNotFoundError):
        sink.close()
    assert taken.wait(60.0)
    if is_open:
        other.write(b"2")
        other.close()
    assert store.read("one", bytes_max=MAX) == b"2" * sink.tell()


def test_a_file_that_another_has_closed_in_its_place_is_not_taken_for_its_own(store: HdfsStore) -> None:
    """Nor one that came when it was asked for the last time."""
    sink = store.sink("one")
    sink.write(b"1" * (5 << 20))
    assert isinstance(sink, HdfsSink) and sink._file is not None

    class Since(Passing):
        async def recover_lease(self, path: str) -> bool:
            await asyncio.to_thread(write)
            return await self._real.recover_lease(path)  # type: ignore[no-any-return]

    def write() -> None:
        with closing(store.sink("one")) as other:
            other.write(b"2" * (5 << 20))

    sink._file._writer = TooEarly(sink._file._writer, lambda: None)
    sink._file._client = Since(sink._file._client)
    with pytest.raises(FileNotFoundError):
        sink.close()
    assert store.read("one", bytes_max=MAX) == b"2" * (5 << 20)


def test_a_file_of_which_a_piece_was_not_written_is_not_there(store: HdfsStore) -> None:
    refused: list[int] = []

    def refuse_once() -> None:
        refused.append(1)
        if len(refused) == 1:
            raise OSError(errno.EIO, "Input/output error")

    sink = store.sink("one", before=refuse_once)
    with pytest.raises(OSError, match="Input/output error"):
        sink.write(b"1" * (5 << 20))
    sink.write(b"2")
    with pytest.raises(OSError, match="a piece of the file could not be written"):
        sink.close()
    store.discard(sink)
    assert store.names() == []


def test_a_file_that_is_being_written_is_a_draft_that_tells_what_it_is_to_be(store: HdfsStore) -> None:
    given_up, whole = store.sink("one.parquet"), store.sink(".two.log.1_0-0-0")
    for sink in (given_up, whole):
        sink.write(b"1" * (5 << 20))
    assert sorted(of_draft(name) for name in store.names()) == [".two.log.1_0-0-0", "one.parquet"]
    assert not [name for name in store.names() if name.endswith(".parquet") or ".log" in name]
    store.discard(given_up)
    whole.close()
    assert store.names() == [".two.log.1_0-0-0"]


def test_of_files_that_are_given_up_a_silent_name_node_keeps_one_for_two_seconds_and_no_other(
    own: HdfsServer,
) -> None:
    store = new_store(own)
    sinks = [store.sink(f"{number}") for number in range(20)]
    for sink in sinks:
        sink.write(b"1" * (5 << 20))
    own.pause()
    try:
        began_s = time.monotonic()
        for sink in sinks:
            store.discard(sink)
        assert time.monotonic() - began_s < 10 * FORGET_S
    finally:
        own.resume()
    assert all(of_draft(name) for name in store.names())


WRITES = """
import sys, threading, time
from tests.hdfs_fixture import store_of

store = store_of(sys.argv[1], "/left")
store.put("before", b"1")

def write(number):
    for _ in range(1_000):
        store._written("one", store._full(f"{number}")).end(b"1" * 100_000)

for number in range(4):
    threading.Thread(target=write, args=(number,), daemon=True).start()
time.sleep(float(sys.argv[2]))
"""


@pytest.mark.parametrize("after_ms", [5, 10, 20, 40, 80])
def test_a_process_ends_in_peace_while_files_are_being_written(hdfs: HdfsServer, after_ms: int) -> None:
    """Threads of the client's want Python's lock, which a Python that ends gives to nobody."""
    store_of(hdfs.address, "/left").make_folder("")
    command = [sys.executable, "-c", WRITES, hdfs.address, f"{after_ms / 1_000}"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert said.returncode == 0, said.stderr


LETS_GO = """
import sys, threading
from tests.hdfs_fixture import store_of

def burn():
    while True:
        sum(range(1_000))

for _ in range(3):
    threading.Thread(target=burn, daemon=True).start()
for _ in range(10):
    store_of(sys.argv[1], "/left").put("one", b"1")
"""


def test_a_store_that_nobody_holds_any_more_keeps_nobody(hdfs: HdfsServer) -> None:
    """Its client's threads may want Python's lock, which whoever ends the client has: seen within ten."""
    store_of(hdfs.address, "/left").make_folder("")
    command = [sys.executable, "-c", LETS_GO, hdfs.address]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert said.returncode == 0, said.stderr


def test_a_cluster_that_wants_kerberos_is_refused_with_the_reason(tmp_path: Path) -> None:
    said = "<property><name>hadoop.security.authentication</name><value>kerberos</value></property>"
    (tmp_path / "core-site.xml").write_text(f"<configuration>{said}</configuration>")
    with pytest.raises(Refused, match="its cluster wants kerberos"):
        store_at("hdfs://cluster/lake/t", settings=HdfsSettings(config_folder=str(tmp_path)))
