"""What a store of objects promises beside what every store does, on a real S3 server."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import io
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import PurePosixPath

import obstore
import pytest

from lockstep.stores.local import S3Server, secret_of
from table.store.location import store_at
from table.store.objects.aws import s3_client
from table.store.objects.requests import Request
from table.store.objects.settings import MIB, FixedKeys, ObjectSettings
from table.store.objects.store import ObjectStore
from tests.s3_fixture import BUCKET, new_place
from tests.s3_proxy import S3Proxy

pytestmark = pytest.mark.xdist_group("s3")

MAX = 1 << 24
PART = 5 * MIB
"""S3's smallest."""
OBJECTS = 3_000
RACERS = 16


def store_of(settings: ObjectSettings, place: str = "") -> ObjectStore:
    made = store_at(place or new_place(), settings=settings)
    assert isinstance(made, ObjectStore)
    return made


@pytest.fixture
def store(s3: S3Server) -> ObjectStore:
    return store_of(replace(s3.settings, part_bytes=PART))


@pytest.fixture
def proxy(s3: S3Server) -> Iterator[S3Proxy]:
    with S3Proxy(s3.port) as running:
        yield running
        assert not running.unstruck()


def key_of(store: ObjectStore, path: str) -> str:
    return store.place(path).removeprefix(f"s3a://{BUCKET}/")


# --- writing ------------------------------------------------------------------------------------------


def test_a_file_that_is_written_is_there_when_it_is_closed_and_not_before(store: ObjectStore) -> None:
    sink = store.sink("one")
    for number in range(3 * 4):
        sink.write(bytes([number]) * (PART // 4 + 1))
        assert store.stat("one") is None
    sink.close()
    assert store.secure("one") == sink.tell() == 12 * (PART // 4 + 1)
    with store.source("one") as source:
        for number in range(12):
            assert source.read(PART // 4 + 1) == bytes([number]) * (PART // 4 + 1)


@pytest.mark.parametrize("size", [10, 2 * PART])
def test_a_file_that_is_discarded_is_never_there_and_leaves_no_parts(store: ObjectStore, size: int) -> None:
    sink = store.sink("one")
    sink.write(b"x" * size)
    store.discard(sink)
    with pytest.raises(ValueError, match="closed"):
        sink.write(b"y")
    assert store.stat("one") is None and [*store.unfinished.uploads()] == []


def test_parts_of_a_worker_that_was_killed_are_found_below_their_folder_and_aborted(s3: S3Server) -> None:
    place = new_place()
    code = (
        "import sys\n"
        "from table.store.location import store_at\n"
        "from table.store.objects.settings import FixedKeys, ObjectSettings\n"
        "settings = ObjectSettings(endpoint=sys.argv[2], region='us-east-1', path_style=True,\n"
        "    credentials=FixedKeys('lockstep', 'lockstep-secret'), part_bytes=5 << 20)\n"
        "sink = store_at(sys.argv[1], settings=settings).sink('day=1/one')\n"
        "sink.write(b'x' * (12 << 20)); print('written', flush=True); sys.stdin.read()"
    )
    asked = [sys.executable, "-c", code, place, s3.endpoint]
    worker = subprocess.Popen(asked, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert worker.stdout is not None and worker.stdout.readline() == b"written\n"
    worker.kill()
    worker.communicate()
    store, other = store_of(s3.settings, place), store_of(s3.settings)
    left = [*store.unfinished.uploads()]
    assert [one.path for one in left] == ["day=1/one"] and [*other.unfinished.uploads()] == []
    assert [*store.unfinished.uploads("day=2")] == [] and [*store.unfinished.uploads("day=1")] == left
    assert store.stat("day=1/one") is None
    store.unfinished.abort(left[0])
    assert [*store.unfinished.uploads()] == []
    store.unfinished.abort(left[0])


def test_of_sixteen_that_create_a_file_at_once_one_wins(s3: S3Server) -> None:
    place = new_place()
    stores = [store_of(s3.settings, place) for _ in range(RACERS)]
    with ThreadPoolExecutor(RACERS) as pool:
        won = [*pool.map(lambda store: store.create("one", b"all the same"), stores)]
    assert won.count(True) == 1


# --- listing ------------------------------------------------------------------------------------------


def test_a_folder_of_thousands_is_listed_page_by_page_and_once(store: ObjectStore) -> None:
    wanted = {f"day={number % 3}/{number:05}" for number in range(OBJECTS)} | {"top", ".hoodie/a", "z"}

    async def put_all() -> None:
        at_once = asyncio.Semaphore(32)

        async def put(path: str) -> None:
            async with at_once:
                await obstore.put_async(store._bucket.client, key_of(store, path), b"1")

        await asyncio.gather(*map(put, wanted))

    asyncio.run(put_all())
    before = store.requests.counts().get(Request.LIST, 0)
    found = {f"{folder}/{name}".lstrip("/") for folder, names in store.walk() for name in names}
    assert found == wanted
    assert store.requests.counts()[Request.LIST] - before == 4, "3,003 objects are four pages"
    assert len(store.names("day=1")) == OBJECTS // 3 and len({*store.names("day=1")}) == OBJECTS // 3
    left = {f"{folder}/{name}" for folder, names in store.walk(leaving_out={"day=1"}) for name in names}
    assert left == {path if "/" in path else f"/{path}" for path in wanted if not path.startswith("day=1")}


def test_what_stands_for_a_folder_is_no_file(s3: S3Server, store: ObjectStore) -> None:
    """Hadoop's connectors make such objects."""
    client = s3_client(s3.settings)
    for path in ("empty/", "full/", "full/deep/", "old_$folder$", "old/b_$folder$"):
        client.put_object(Bucket=BUCKET, Key=f"{key_of(store, 'in')}/{path}", Body=b"")
    for path in ("in/full/one", "in/full/deep/two", "in/nothing"):
        store.put(path, b"" if path == "in/nothing" else b"1")
    assert store.names("in") == ["empty", "full", "nothing", "old"]
    assert store.names("in/empty") == [] and store.names("in/full") == ["deep", "one"]
    walked = dict(store.walk("in"))
    assert {path: names for path, names in walked.items() if names} == {
        "in": ["nothing"],
        "in/full": ["one"],
        "in/full/deep": ["two"],
    }
    folder, file = store.stat("in/empty"), store.stat("in/nothing")
    assert folder is not None and folder.is_folder and file is not None and not file.is_folder
    store.delete_folder("in")
    found = client.list_objects_v2(Bucket=BUCKET, Prefix=f"{key_of(store, 'in')}/")
    assert found["KeyCount"] == 0


# --- reading ------------------------------------------------------------------------------------------


def test_a_reader_asks_for_no_more_than_its_read_ahead(s3: S3Server) -> None:
    store = store_of(replace(s3.settings, read_ahead_bytes=1_000))
    content = bytes(range(256)) * 40
    store.put("one", content)
    with store.source("one") as source:
        before = store.requests.total()
        source.seek(-8, io.SEEK_END)
        assert source.read(8) == content[-8:]
        source.seek(-500, io.SEEK_END)
        assert source.read(4) == content[-500:-496] and source.read(400) == content[-496:-96]
        assert store.requests.total() - before == 2
        source.seek(0)
        assert source.read() == content
        assert store.requests.total() - before == 3
    assert store.read("one", bytes_max=10) == content[:10]


def test_of_a_file_that_is_replaced_nobody_reads_parts_of_both(s3: S3Server) -> None:
    store = store_of(replace(s3.settings, read_ahead_bytes=10))
    store.put("one", b"a" * 100)
    with store.source("one") as source:
        assert source.read(5) == b"aaaaa"
        store.put("one", b"b" * 100)
        source.seek(50)
        with pytest.raises(OSError, match="replaced while it was read") as raised:
            source.read(5)
    assert raised.value.errno == errno.ESTALE


# --- processes ---------------------------------------------------------------------------------------


def test_a_process_that_was_forked_is_told_that_it_has_no_threads_to_wait_for(s3: S3Server) -> None:
    code = (
        "import os, signal, sys\n"
        "from table.store.location import store_at\n"
        "from table.store.objects.settings import FixedKeys, ObjectSettings\n"
        "settings = ObjectSettings(endpoint=sys.argv[2], region='us-east-1', path_style=True,\n"
        "    credentials=FixedKeys('lockstep', 'lockstep-secret'))\n"
        "if not os.fork():\n"  # before it is used
        "    store_at(sys.argv[1], settings=settings).put('one', b'1'); os._exit(0)\n"
        "assert os.waitstatus_to_exitcode(os.wait()[1]) == 0\n"
        "store = store_at(sys.argv[1], settings=settings)\n"
        "assert store.names() == ['one']\n"
        "if not os.fork():\n"
        "    signal.alarm(60)\n"
        "    for ask in (store.names, lambda: store.create('two'), lambda: store.sink('two'),\n"
        "                lambda: store_at(sys.argv[1], settings=settings)):\n"
        "        try: ask(); os._exit(1)\n"
        "        except RuntimeError as error: assert 'forked' in str(error)\n"
        "    os._exit(0)\n"
        "assert os.waitstatus_to_exitcode(os.wait()[1]) == 0\n"
    )
    subprocess.run([sys.executable, "-c", code, new_place(), s3.endpoint], check=True, timeout=120)


# --- being refused ------------------------------------------------------------------------------------


def as_(s3: S3Server, access_key: str, **changed: object) -> ObjectStore:
    settings = replace(s3.settings, credentials=FixedKeys(access_key, secret_of(access_key)))
    return store_of(replace(settings, **changed))  # type: ignore[arg-type]


def test_who_may_only_read_is_told_which_permission_writing_needs(s3: S3Server, store: ObjectStore) -> None:
    store.put("one", b"1")
    settings = replace(s3.settings, credentials=FixedKeys("reader", secret_of("reader")))
    reader = store_of(settings, store.place())
    assert reader.read("one", bytes_max=MAX) == b"1" and reader.names() == ["one"]
    asked: Callable[[], object]
    for asked, permission in (
        (lambda: reader.put("one", b"2"), "s3:PutObject"),
        (lambda: reader.create("two", b"2"), "s3:PutObject"),
        (lambda: reader.sink("two").close(), "s3:PutObject"),
        (lambda: reader.delete("one"), "s3:DeleteObject"),
    ):
        with pytest.raises(PermissionError, match=permission):
            asked()
    stranger = as_(s3, "stranger")
    for asked, permission in (
        (lambda: stranger.read("one", bytes_max=MAX), "s3:GetObject"),
        (lambda: stranger.stat("one"), "s3:GetObject"),
        (lambda: stranger.names(), "s3:ListBucket"),
        (lambda: [*stranger.walk()], "s3:ListBucket"),
        (lambda: [*stranger.unfinished.uploads()], "s3:ListBucketMultipartUploads"),
    ):
        with pytest.raises(PermissionError, match=permission):
            asked()


def test_wrong_keys_and_buckets_and_endpoints_are_told_apart_at_once(s3: S3Server) -> None:
    wrong = replace(s3.settings, credentials=FixedKeys("lockstep", "SeCrEt"))
    with pytest.raises(PermissionError, match="the secret is not") as raised:
        store_of(wrong).put("one", b"")
    assert "SeCrEt" not in str(raised.value)
    nobody = replace(s3.settings, credentials=FixedKeys("nobody", "x"))
    with pytest.raises(PermissionError, match="nobody has this access key"):
        store_of(nobody).put("one", b"")
    missing = store_of(s3.settings, "s3a://not-there/t")
    asked: Callable[[], object]
    for asked in (
        lambda: missing.put("one", b""),
        lambda: missing.read("one", bytes_max=MAX),
        lambda: missing.stat("one"),
        lambda: missing.names(),
        lambda: missing.create("one"),
    ):
        with pytest.raises(OSError, match="there is no bucket not-there") as said:
            asked()
        assert not isinstance(said.value, FileNotFoundError)
    nowhere = replace(s3.settings, endpoint="http://127.0.0.1:9", patience_s=0.3)
    with pytest.raises(ConnectionError, match="cannot be reached"):
        store_of(nowhere).put("one", b"")
    tls = replace(s3.settings, endpoint=s3.endpoint.replace("http", "https"), patience_s=0.3)
    with pytest.raises(ConnectionError, match="http or https"):
        store_of(tls).put("one", b"")


class _NoStore(BaseHTTPRequestHandler):
    status = 404

    def do_GET(self) -> None:
        self.send_error(self.status)

    do_PUT = do_HEAD = do_GET

    def log_message(self, *_arguments: object) -> None:
        return None


class _Elsewhere(_NoStore):
    """As AWS answers for a bucket in another region: with no place to go to."""

    status = 301


class _Expired(_NoStore):
    """As AWS answers where a token has ended."""

    def do_GET(self) -> None:
        self.send_response(400)
        body = b"<Error><Code>ExpiredToken</Code><Message>m</Message><Token-0>SeCrEt</Token-0></Error>"
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_PUT = do_HEAD = do_GET


@contextlib.contextmanager
def answering(handler: type[BaseHTTPRequestHandler], s3: S3Server) -> Iterator[ObjectStore]:
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield store_of(replace(s3.settings, endpoint=f"http://127.0.0.1:{server.server_port}"))
        finally:
            server.shutdown()


def test_a_server_that_is_no_object_store_is_not_taken_for_an_empty_one(s3: S3Server) -> None:
    with answering(_NoStore, s3) as store:
        with pytest.raises(OSError, match="is no object store") as raised:
            store.read("one", bytes_max=MAX)
        assert not isinstance(raised.value, FileNotFoundError)
        with pytest.raises(OSError, match="is no object store"):
            store.names()


def test_a_bucket_elsewhere_and_keys_that_have_ended_are_named_and_no_token_is(s3: S3Server) -> None:
    """As AWS says it; the server of these tests knows neither."""
    asked: Callable[[ObjectStore], object]
    for asked in (
        lambda store: store.put("one", b""),
        lambda store: store.read("one", bytes_max=MAX),
        lambda store: store.names(),
        lambda store: store.create("one"),
    ):
        with answering(_Elsewhere, s3) as store, pytest.raises(OSError, match="in another region"):
            asked(store)
        with answering(_Expired, s3) as store, pytest.raises(PermissionError, match="have ended") as raised:
            asked(store)
        assert "SeCrEt" not in str(raised.value)
    with answering(_Expired, s3) as store, pytest.raises(PermissionError, match="have ended"):
        store.stat("one")


# --- requests -----------------------------------------------------------------------------------------


def test_the_requests_that_are_counted_are_those_that_the_server_gets(s3: S3Server, proxy: S3Proxy) -> None:
    store = store_of(replace(s3.settings, endpoint=proxy.endpoint, part_bytes=PART))
    store.put("a/one", b"1")
    store.create("a/two", b"2")
    assert store.create("a/two", b"2") is False
    for name, size in (("small", 100), ("large", 2 * PART + 1)):
        sink = store.sink(f"a/{name}")
        sink.write(b"x" * size)
        sink.close()
        store.secure(f"a/{name}")
    gone = store.sink("a/gone")
    gone.write(b"x" * 2 * PART)
    store.discard(gone)
    store.read("a/one", bytes_max=MAX)
    store.stat("a")
    store.names("a")
    assert [*store.walk()]
    store.date("a/one")
    store.delete("a/one")
    store.delete("a/one")
    with store.source("a/large") as source:
        pathless = source.read(1)
    assert pathless == b"x" and PurePosixPath(store.place("a")).name == "a"
    store.delete_folder("a")
    assert [*store.unfinished.uploads()] == []
    counted = dict(store.requests.counts())
    parts_given_up = proxy.counts[Request.PART] - counted[Request.PART]
    assert 0 <= parts_given_up <= 2 and proxy.counts[Request.UPLOAD] == counted[Request.UPLOAD] + 1
    for request in (Request.PART, Request.UPLOAD):
        del counted[request]
    assert counted == {request: proxy.counts[request] for request in counted}
    assert set(proxy.counts) == set(counted) | {Request.PART, Request.UPLOAD}
