"""A store of objects whose answers get lost, whose server asks for less, is frozen, is killed: a real one."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from lockstep.stores.local import S3Server
from table.store.location import store_at
from table.store.objects.requests import Request
from table.store.objects.settings import MIB, ObjectSettings
from table.store.objects.store import ObjectStore
from table.store.port import OutcomeUnknown
from tests.s3_fixture import new_place
from tests.s3_proxy import Blow, Lasting, S3Proxy

pytestmark = pytest.mark.xdist_group("s3")

MAX = 1 << 24
PART = 5 * MIB
DEADLINE_S = 60.0


def store_of(settings: ObjectSettings, place: str = "") -> ObjectStore:
    made = store_at(place or new_place(), settings=settings)
    assert isinstance(made, ObjectStore)
    return made


@pytest.fixture
def proxy(s3: S3Server) -> Iterator[S3Proxy]:
    with S3Proxy(s3.port) as running:
        yield running
        assert not running.unstruck()


@pytest.fixture
def store(s3: S3Server, proxy: S3Proxy) -> ObjectStore:
    """Through the proxy."""
    return store_of(replace(s3.settings, endpoint=proxy.endpoint, part_bytes=PART))


# --- answers that get lost ----------------------------------------------------------------------------


@pytest.mark.parametrize("blow", [Blow.LOSE, Blow.FAIL_AFTER])
def test_who_created_a_file_is_told_so_though_the_answer_was_lost(
    store: ObjectStore, proxy: S3Proxy, blow: Blow
) -> None:
    proxy.strike(Request.PUT_IF, blow)
    assert store.create("one", b"mine") is True
    assert store.create("one", b"mine") is False, "another's, though it holds the same"
    assert store.read("one", bytes_max=MAX) == b"mine"


def test_who_lost_a_race_is_told_so_though_the_answer_was_lost_and_the_winner_wrote_the_same(
    store: ObjectStore, proxy: S3Proxy
) -> None:
    assert store.create("one", b"all the same") is True
    proxy.strike(Request.PUT_IF, Blow.LOSE)
    assert store.create("one", b"all the same") is False


def test_of_racing_creators_whose_answers_are_lost_one_wins(s3: S3Server, proxy: S3Proxy) -> None:
    place = new_place()
    stores = [store_of(replace(s3.settings, endpoint=proxy.endpoint), place) for _ in range(4)]
    proxy.strike(Request.PUT_IF, Blow.LOSE, times=3)
    with ThreadPoolExecutor(4) as pool:
        won = [*pool.map(lambda store: store.create("one", b"all the same"), stores)]
    assert won.count(True) == 1


def test_a_file_whose_creation_did_not_reach_the_server_is_created_all_the_same(
    store: ObjectStore, proxy: S3Proxy
) -> None:
    proxy.strike(Request.PUT_IF, Blow.BREAK)
    assert store.create("one", b"mine") is True
    assert store.read("one", bytes_max=MAX) == b"mine"


def test_where_nobody_says_whether_a_file_was_created_that_is_what_is_said(
    s3: S3Server, proxy: S3Proxy
) -> None:
    store = store_of(replace(s3.settings, endpoint=proxy.endpoint, patience_s=0.5))
    proxy.strike(Request.PUT_IF, Blow.LOSE, times=1_000)
    proxy.strike(Request.HEAD, Blow.BREAK, times=1_000)
    with pytest.raises(OutcomeUnknown, match="not known"):
        store.create("one", b"mine")
    assert store_of(s3.settings, store.place()).read("one", bytes_max=MAX) == b"mine"


def test_what_is_put_is_there_though_answers_are_lost(store: ObjectStore, proxy: S3Proxy) -> None:
    for blow in (Blow.LOSE, Blow.FAIL_AFTER, Blow.BREAK, Blow.SLOW_DOWN):
        proxy.strike(Request.PUT, blow)
        store.put("one", blow.encode())
        assert store.read("one", bytes_max=MAX) == blow.encode()


def test_a_store_that_nobody_answers_for_is_an_error_while_that_lasts(s3: S3Server, proxy: S3Proxy) -> None:
    """Also by a connection that is open."""
    store = store_of(replace(s3.settings, endpoint=proxy.endpoint, patience_s=0.5))
    store.put("one", b"before")
    with proxy.away():
        for ask in (lambda: store.put("one", b"meanwhile"), lambda: store.read("one", bytes_max=MAX)):
            with pytest.raises(OSError):
                ask()
    assert store.read("one", bytes_max=MAX) == b"before"


def test_a_file_that_was_dated_is_as_it_was_though_the_answer_was_lost(
    store: ObjectStore, proxy: S3Proxy
) -> None:
    store.put("one", b"mine")
    before = store.stat("one")
    proxy.strike(Request.PUT_IF, Blow.LOSE)
    store.date("one")
    after = store.stat("one")
    assert store.read("one", bytes_max=MAX) == b"mine"
    assert before is not None and after is not None and after.identity != before.identity


# --- files that are uploaded in parts -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "blow"),
    [
        (Request.UPLOAD, Blow.LOSE),
        (Request.PART, Blow.LOSE),
        (Request.PART, Blow.FAIL_AFTER),
        (Request.COMPLETE, Blow.LOSE),
        (Request.COMPLETE, Blow.FAIL_AFTER),
        (Request.COMPLETE, Blow.SLOW_DOWN),
    ],
)
def test_a_large_file_is_whole_though_an_answer_was_lost_or_an_error(
    store: ObjectStore, proxy: S3Proxy, request_: Request, blow: Blow
) -> None:
    """Or its writer is told, and nothing of it is there."""
    proxy.strike(request_, blow)
    sink = store.sink("one")
    content = bytes(range(256)) * (PART // 256) * 2 + b"end"
    try:
        for begin in range(0, len(content), PART // 2):
            sink.write(content[begin : begin + PART // 2])
        sink.close()
    except OSError:
        assert request_ is Request.UPLOAD, "a begin is not asked for again"
        assert store.stat("one") is None
        return
    with store.source("one") as source:
        assert source.read() == content


def test_of_a_large_file_whose_parts_are_refused_nothing_is_left(s3: S3Server, proxy: S3Proxy) -> None:
    settings = replace(s3.settings, endpoint=proxy.endpoint, part_bytes=PART, patience_s=0.5)
    store = store_of(settings)
    proxy.strike(Request.PART, Blow.SLOW_DOWN, times=1_000)
    sink = store.sink("one")
    with pytest.raises(OSError, match="fewer requests"):
        sink.write(b"x" * 2 * PART)
        sink.close()
    assert sink.closed
    sink.close()
    assert store.stat("one") is None and [*store.unfinished.uploads()] == []


def test_an_upload_that_may_not_be_aborted_is_left_to_a_sweep_that_may(
    store: ObjectStore, proxy: S3Proxy
) -> None:
    refused = (Request.ABORT,)
    with proxy.lasting(Lasting(blow=Blow.REFUSE, requests=refused)) as lasting:
        sink = store.sink("one")
        sink.write(b"x" * 2 * PART)
        store.discard(sink)
        (left,) = [*store.uploads()]
        with pytest.raises(PermissionError, match="s3:AbortMultipartUpload"):
            store.abort(left)
    assert lasting.struck and store.stat("one") is None
    store.abort(left)
    assert [*store.uploads()] == []


# --- a server that asks for less, is frozen, is killed ------------------------------------------------


def test_a_server_that_asks_for_less_is_asked_again_and_no_longer_than_patience_lasts(
    s3: S3Server, proxy: S3Proxy
) -> None:
    store = store_of(replace(s3.settings, endpoint=proxy.endpoint))
    for request in (Request.PUT, Request.GET, Request.HEAD, Request.LIST, Request.PUT_IF):
        proxy.strike(request, Blow.SLOW_DOWN, times=2)
    store.put("one", b"1")
    assert store.read("one", bytes_max=MAX) == b"1" and store.secure("one") == 1
    assert store.names() == ["one"] and store.create("two") is True
    impatient = store_of(replace(s3.settings, endpoint=proxy.endpoint, patience_s=1.0), store.place())
    proxy.strike(Request.PUT, Blow.SLOW_DOWN, times=1_000)
    began_s = time.monotonic()
    with pytest.raises(OSError, match="asks for fewer requests") as raised:
        impatient.put("one", b"1")
    assert raised.value.errno == errno.EBUSY and time.monotonic() - began_s < DEADLINE_S


def test_a_server_that_is_frozen_is_waited_for_no_longer_than_patience_lasts(s3: S3Server) -> None:
    """What it was sent meanwhile it may still do when it wakes."""
    store = store_of(s3.settings)
    store.put("one", b"old")  # the server's first put takes its time
    impatient = store_of(replace(s3.settings, request_timeout_s=0.5, patience_s=0.5), store.place())
    s3.pause()
    try:
        with pytest.raises(TimeoutError, match="did not answer in time"):
            impatient.put("one", b"new")
        with pytest.raises(OutcomeUnknown):
            impatient.create("two", b"new")
        with pytest.raises(TimeoutError):
            impatient.read("one", bytes_max=MAX)
    finally:
        s3.resume()
    assert store.read("one", bytes_max=MAX) in (b"old", b"new")
    assert store.create("two", b"new") is False or store.read("two", bytes_max=MAX) == b"new"


def test_a_server_that_is_killed_in_the_middle_leaves_whole_files_or_none(
    s3: S3Server, proxy: S3Proxy
) -> None:
    settings = replace(
        s3.settings, endpoint=proxy.endpoint, part_bytes=PART, request_timeout_s=30.0, patience_s=0.5
    )
    store = store_of(settings)
    store.put("kept", b"kept")
    sink = store.sink("large")
    sink.write(b"x" * 2 * PART)
    killing = threading.Lock()

    def kill() -> None:
        with killing:
            if s3.running:
                s3.kill()

    try:
        proxy.strike(Request.COMPLETE, kill, times=1_000)
        with pytest.raises(OSError):
            sink.close()
        for what in (lambda: store.put("one", b"1"), lambda: store.create("two", b"2")):
            with pytest.raises(OSError):
                what()
    finally:
        s3.start()
    again = store_of(replace(s3.settings, part_bytes=PART), store.place())
    assert again.read("kept", bytes_max=MAX) == b"kept"
    large = again.stat("large")
    assert large is None or large.size_bytes == 2 * PART
    for upload in again.unfinished.uploads():
        again.unfinished.abort(upload)
    assert [*again.unfinished.uploads()] == []
    assert again.create("two", b"2") is True and again.create("two", b"2") is False
