"""Hudi's storage lock over the client of ours, in a JVM, on a real S3 server."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from lockstep.stores.gs import GsServer
from lockstep.stores.local import S3Server
from table.hudi.driver.held import Page, page_file
from table.hudi.driver.lock_client import lock_client
from table.hudi.driver.reach import reach
from table.hudi.driver.watchdog import CLOCK
from table.store.location import AZURE, S3, Location, store_at
from table.store.objects.requests import Request
from table.store.port import Store
from tests.azure.server import AzureServer, authority_of
from tests.harness import await_that
from tests.s3_proxy import Blow, S3Proxy

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("s3")]

LOCKS = ".hoodie/.locks/table_lock.json"
LEASE_S = 60
"""The shortest that is allowed. A request is given a fifth of it: with Hudi's least, 10 s, the first one of a
JVM on a busy machine was given up while its classes were loaded."""
SELDOM_S = 60
"""No test takes as long. Hudi wants a lease of ten times that."""
RACERS = 8
LOCK_BYTES_MAX = 10_000


class Locks:
    """The lock of one table, which several holders of one JVM want. Its requests go through a proxy."""

    def __init__(
        self,
        spark: SparkSession,
        server: S3Server | GsServer | AzureServer,
        proxy: S3Proxy,
        opened: ExitStack,
        scheme: str = S3,
    ) -> None:
        bucket = f"locks-{uuid.uuid4().hex[:12]}"  # Hadoop keeps one connector for each
        server.make_bucket(bucket)
        self.path = f"{scheme}://{authority_of(bucket) if scheme == AZURE else bucket}/lake/events"
        self.proxy = proxy
        self._jvm: Any = spark._jvm
        self._opened = opened
        self.store: Store = store_at(self.path, settings=server.settings)
        self._spark, self._settings = spark, server.settings
        self.client_class = lock_client(self._jvm, spark.sparkContext._gateway, scheme)
        self.reach(proxy.endpoint)

    def reach(self, endpoint: str) -> None:
        settings = replace(self._settings, endpoint=endpoint)
        self._conf = reach(self._spark, Location.parse(self.path), settings)
        self.client_class.configure(self._conf)

    def properties(self, *, lease_s: int = LEASE_S, renew_s: int = 1) -> Any:
        made = self._jvm.org.apache.hudi.common.config.TypedProperties()
        made.put("hoodie.base.path", self.path)
        made.put("hoodie.write.lock.storage.validity.timeout.secs", str(lease_s))
        made.put("hoodie.write.lock.storage.renew.interval.secs", str(renew_s))
        return made

    def holder(self, *, renews: bool = True) -> Any:
        """Hudi's own lock provider, as Hudi makes it. `renews`: it does so each second, else never:
        what is counted, or strikes the next request, is of whoever asks next.
        """
        seldom = {} if renews else {"lease_s": 10 * SELDOM_S, "renew_s": SELDOM_S}
        properties = self.properties(**seldom)
        config = self._jvm.org.apache.hudi.common.config.LockConfiguration(properties)
        storage = self._jvm.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(self._conf)
        provider = self._jvm.org.apache.hudi.client.transaction.lock.StorageBasedLockProvider(config, storage)
        self._opened.callback(provider.close)
        return provider

    def client(self, owner: str) -> Any:
        made = self.client_class(owner, f"{self.path}/{LOCKS}", self.properties())
        self._opened.callback(made.close)
        return made

    def data(self, owner: str, *, until_ms: int, expired: bool = False) -> Any:
        return self._jvm.org.apache.hudi.client.transaction.lock.models.StorageLockData(
            expired, until_ms, owner
        )

    def none(self) -> Any:
        return self._jvm.org.apache.hudi.common.util.Option.empty()

    def there(self) -> dict[str, Any]:
        """The object."""
        read: dict[str, Any] = json.loads(self.store.read(LOCKS, bytes_max=LOCK_BYTES_MAX))
        return read

    def write(self, **changes: Any) -> None:
        """As somebody else would, who asks for nothing."""
        self.store.put(LOCKS, json.dumps({**self.there(), **changes}).encode())


@pytest.fixture
def locks(spark: SparkSession, s3: S3Server) -> Iterator[Locks]:
    with S3Proxy(s3.port) as proxy, ExitStack() as opened:
        yield Locks(spark, s3, proxy, opened)
        assert not proxy.unstruck()


def now_ms() -> int:
    return int(time.time() * 1_000)


def test_a_guardian_sees_each_lease_that_the_jvm_holds_from_its_taking_on(locks: Locks) -> None:
    page = Page(page_file().number)
    assert page.held() == []
    holder, other = locks.holder(), locks.holder()
    for _ in range(2):
        before_s = time.clock_gettime(CLOCK)
        assert holder.tryLock()
        (held,) = page.held()
        assert -0.1 <= held.since_s - before_s < 30 and held.lives_s == LEASE_S
        ends_ms = locks.there()["validUntil"]
        await_that("renewal", partial(was_renewed, locks, ends_ms))
        await_that("renewal that is shown", lambda held=held: page.held()[0].since_s > held.since_s)
        assert not other.tryLock()
        assert len(page.held()) == 1, "who is refused it holds nothing"
        holder.unlock()
        assert page.held() == []
    locks.proxy.strike(Request.PUT_IF, Blow.BREAK)
    assert not holder.tryLock()
    assert page.held() == [], "what was not had is not held"


def was_renewed(locks: Locks, ends_ms: int) -> bool:
    return bool(locks.there()["validUntil"] > ends_ms)


def test_what_this_process_gave_back_is_not_read_before_it_is_taken_again(locks: Locks) -> None:
    holder = locks.holder(renews=False)
    assert holder.tryLock()
    holder.unlock()
    before = locks.proxy.counts.copy()
    assert holder.tryLock()
    assert locks.proxy.counts - before == {Request.PUT_IF: 1}
    holder.unlock()


@pytest.mark.parametrize("expired", [True, False])
def test_what_another_has_had_since_is_taken_where_he_gave_it_back(locks: Locks, expired: bool) -> None:
    holder = locks.holder()
    assert holder.tryLock()
    holder.unlock()
    locks.write(owner="another", expired=expired, validUntil=now_ms() + 60_000)
    assert bool(holder.tryLock()) is expired
    assert (locks.there()["owner"] == "another") is not expired


@pytest.mark.parametrize("guessed", [True, False])
def test_a_lock_that_another_has_had_since_is_not_renewed_though_he_gave_it_back(
    locks: Locks, guessed: bool
) -> None:
    """Its holder stood still; what it does next, it would do beside whoever comes then."""
    holder = locks.holder()
    assert holder.tryLock()
    if guessed:
        holder.unlock()
        assert holder.tryLock()
    locks.write(owner="another", expired=True)
    await_that("refused renewal", lambda: not locks.client_class.held().containsKey(locks.path))
    assert locks.there()["owner"] == "another"


def test_of_racers_one_has_the_lock_and_the_next_when_it_is_given_back(locks: Locks) -> None:
    holders = [locks.holder() for _ in range(RACERS)]
    for round_number in range(3):
        with ThreadPoolExecutor(RACERS) as racers:
            had = [*racers.map(lambda holder: bool(holder.tryLock()), holders)]
        assert had.count(True) == 1, round_number
        winner = holders[had.index(True)]
        assert locks.there()["owner"].split()[0] == winner.getLock().getOwner()
        assert not locks.there()["expired"]
        winner.unlock()
        assert locks.there()["expired"]


@pytest.mark.parametrize("blow", [Blow.LOSE, Blow.FAIL_AFTER])
def test_who_took_the_lock_holds_it_though_the_answer_was_lost(locks: Locks, blow: Blow) -> None:
    holder = locks.holder(renews=False)
    locks.proxy.strike(Request.PUT_IF, blow)
    assert holder.tryLock()
    assert not locks.holder().tryLock()
    locks.proxy.strike(Request.PUT_IF, blow)
    holder.unlock()
    assert locks.there()["expired"] and locks.holder().tryLock()


@pytest.mark.parametrize("blow", [Blow.BREAK, Blow.SLOW_DOWN])
def test_a_request_is_not_repeated_behind_the_clients_back(locks: Locks, blow: Blow) -> None:
    holder = locks.holder()
    locks.proxy.strike(Request.PUT_IF, blow)
    assert not holder.tryLock()
    assert locks.proxy.counts[Request.PUT_IF] == 1 and locks.store.stat(LOCKS) is None
    assert holder.tryLock()


def test_who_lost_a_race_is_told_so_though_the_answer_was_lost(locks: Locks) -> None:
    first, second = locks.client("first"), locks.client("second")
    assert str(first.readCurrentLockFile().getLeft()) == "NOT_EXISTS"
    taken = second.tryUpsertLockFile(locks.data("second", until_ms=now_ms() + 60_000), locks.none())
    assert str(taken.getLeft()) == "SUCCESS"
    locks.proxy.strike(Request.PUT_IF, Blow.LOSE)
    lost = first.tryUpsertLockFile(locks.data("first", until_ms=now_ms() + 60_000), locks.none())
    assert str(lost.getLeft()) == "ACQUIRED_BY_OTHERS"
    assert locks.there()["owner"].split()[0] == "second"


def test_a_lease_that_is_over_is_taken_and_one_that_is_renewed_is_not(locks: Locks) -> None:
    holder, other = locks.holder(), locks.holder()
    assert holder.tryLock()
    first = locks.there()["validUntil"]
    await_that("second renewal", lambda: locks.there()["validUntil"] > first + 1_500, deadline_s=30)
    assert not other.tryLock()
    holder.unlock()
    assert other.tryLock()
    other.unlock()
    locks.write(expired=False, owner="somebody elsewhere", validUntil=now_ms() + 60_000)
    assert not other.tryLock()
    locks.write(validUntil=now_ms() - 1_000)
    assert other.tryLock()


@pytest.mark.parametrize("taken", [True, False], ids=["another's", "not answered"])
def test_who_cannot_give_the_lock_back_is_told_so(locks: Locks, taken: bool) -> None:
    """So that what was done under it is looked up, and not believed."""
    holder = locks.holder(renews=False)
    assert holder.tryLock()
    if taken:
        locks.write(owner="somebody else", validUntil=now_ms() + 60_000)
    else:
        locks.proxy.strike(Request.PUT_IF, Blow.FAIL)
    with pytest.raises(Py4JJavaError, match="FAILED_TO_RELEASE"):
        holder.unlock()


def test_a_renewal_whose_answer_was_lost_is_known_and_the_next_goes_on_from_it(locks: Locks) -> None:
    holder = locks.holder()
    assert holder.tryLock()
    first = locks.there()["validUntil"]
    locks.proxy.strike(Request.PUT_IF, Blow.LOSE)
    await_that("renewals", lambda: locks.there()["validUntil"] > first + 2_500, deadline_s=30)
    holder.unlock()
    assert locks.there()["expired"]


def test_a_write_that_lands_late_keeps_its_holder_from_nothing(locks: Locks) -> None:
    """The object is the holder's own, and not the one that it knows of."""
    client = locks.client("mine")
    taken = client.tryUpsertLockFile(locks.data("mine", until_ms=now_ms() + 60_000), locks.none())
    locks.write(validUntil=now_ms() + 61_000)  # as a renewal that was given up for lost
    renewed = client.tryUpsertLockFile(locks.data("mine", until_ms=now_ms() + 62_000), taken.getRight())
    assert str(renewed.getLeft()) == "SUCCESS"
    locks.write(owner="theirs")
    late = client.tryUpsertLockFile(locks.data("mine", until_ms=now_ms() + 63_000), renewed.getRight())
    assert str(late.getLeft()) == "ACQUIRED_BY_OTHERS" and locks.there()["owner"] == "theirs"


def test_a_holder_that_was_taken_over_is_interrupted_and_leaves_its_successors_lock(
    locks: Locks, spark: SparkSession
) -> None:
    holder = locks.holder()
    java: Any = spark._jvm.java  # type: ignore[union-attr]
    interrupted = threading.Event()

    def hold() -> None:
        assert holder.tryLock()
        locks.write(owner="somebody else", validUntil=now_ms() + 60_000)
        try:
            java.lang.Thread.sleep(30_000)
        except Py4JJavaError as error:
            assert "InterruptedException" in str(error.java_exception)
            interrupted.set()

    thread = threading.Thread(target=hold)
    thread.start()
    thread.join(40)
    assert interrupted.is_set()
    with pytest.raises(Py4JJavaError):
        holder.unlock()
    assert locks.there()["owner"] == "somebody else" and not locks.there()["expired"]


def test_the_lease_of_a_dead_process_is_not_waited_for_and_that_of_a_living_one_is(locks: Locks) -> None:
    holder = locks.holder()
    assert holder.tryLock()
    word, boot, space, _pid, _started = locks.there()["owner"].split()
    holder.unlock()
    with stranger() as (pid, started):
        lives = f"{word} {boot} {space} {pid} {started}"
        locks.write(expired=False, validUntil=now_ms() + 60_000, owner=lives)
        assert not holder.tryLock()
    another_boot = f"{word} {boot[::-1]} {space} {pid} {started}"
    another_container = f"{word} {boot} pid:[1] {pid} {started}"
    for owner in (another_boot, another_container, word):
        locks.write(owner=owner)
        assert not holder.tryLock(), "it cannot be judged from here"
    locks.write(owner=lives)
    assert holder.tryLock()
    assert locks.there()["owner"].split()[0] == holder.getLock().getOwner()


def test_of_two_in_one_process_the_clock_gives_neither_the_others_lock(locks: Locks) -> None:
    """It was set forth: by it the lease is over."""
    holder, other = locks.holder(), locks.holder()
    assert holder.tryLock()
    locks.write(validUntil=now_ms() - 3_600_000)
    assert not other.tryLock()
    holder.close()
    assert other.tryLock()


def test_a_holder_whose_first_try_landed_late_takes_its_own_lock(locks: Locks) -> None:
    holder = locks.holder()
    assert holder.tryLock()
    mine = locks.there()["owner"]
    holder.unlock()
    locks.write(expired=False, owner=mine, validUntil=now_ms() + 60_000)
    assert holder.tryLock()


def test_a_lock_that_this_process_has_let_go_of_is_taken_at_once(locks: Locks) -> None:
    """Its release was not answered, and did not land: nobody closes what Hudi holds it by."""
    holder = locks.holder(renews=False)
    assert holder.tryLock()
    locks.proxy.strike(Request.PUT_IF, Blow.BREAK)
    with pytest.raises(Py4JJavaError):
        holder.unlock()
    assert not locks.there()["expired"] and Page(page_file().number).held() == []
    other = locks.holder()
    assert other.tryLock()
    assert not holder.tryLock(), "it holds nothing any more"
    other.unlock()
    assert holder.tryLock() and len(Page(page_file().number).held()) == 1


def test_a_server_that_keeps_conditions_is_told_so_and_nothing_is_left_of_the_question(locks: Locks) -> None:
    assert locks.client("me").ignored() == ""
    assert not [*locks.store.walk()]


@pytest.mark.parametrize("forgotten", ["If-None-Match", "If-Match"])
def test_a_server_that_does_not_keep_a_condition_is_found_out(locks: Locks, forgotten: str) -> None:
    with forgetful(forgotten) as endpoint:
        locks.reach(endpoint)
        assert locks.client("me").ignored() == forgotten


@contextmanager
def forgetful(header: str) -> Iterator[str]:
    """The endpoint of a server of one object that knows the conditions but this one."""
    tags: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_arguments: object) -> None:
            return None

        def do_PUT(self) -> None:
            tag = md5(self.rfile.read(int(self.headers["Content-Length"]))).hexdigest()
            asked = {name: self.headers[name] for name in ("If-None-Match", "If-Match") if name != header}
            there, wanted = bool(tags), (asked.get("If-Match") or "").strip('"')
            refused = (asked.get("If-None-Match") and there) or (wanted and tags[-1:] != [wanted])
            if not refused:
                tags.append(tag)
            self.send_response(412 if refused else 200)
            self.send_header("ETag", f'"{tags[-1]}"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_DELETE(self) -> None:
            self.send_response(204)
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    serving = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def stranger() -> Iterator[tuple[int, str]]:
    """A process, while it lives: its number, and when it was started."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        stat = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8")
        yield process.pid, stat.rpartition(")")[2].split()[19]
    finally:
        process.kill()
        process.wait()
