"""Credentials that are taken back or end while a store is used for weeks: a real server, behind a proxy that
refuses one access key as AWS does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lockstep.stores.local import ACCESS_KEY, SECRET_KEY, S3Server, secret_of
from table.store.location import store_at
from table.store.objects.settings import MIB, AskedKeys, Credentials, FixedKeys, Profile
from table.store.port import Store
from tests.faults.clock import make_clock
from tests.s3_fixture import new_place
from tests.s3_proxy import S3Proxy

pytestmark = pytest.mark.xdist_group("s3")

MAX = 1 << 20
SUCCESSOR = "successor"
ENDED = [(403, "InvalidAccessKeyId"), (400, "ExpiredToken")]
PROFILE = "[lake]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n"
WRITERS, FILES = 4, 40

Kind = tuple[Credentials, Callable[[], None]]
"""Credentials, and what gives them successors where they come from."""


@pytest.fixture
def proxy(s3: S3Server) -> Iterator[S3Proxy]:
    with S3Proxy(s3.port) as running:
        yield running


@pytest.fixture(params=["asked", "profile"])
def kind(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kind:
    if request.param == "asked":
        current = [FixedKeys(ACCESS_KEY, SECRET_KEY)]
        successor = FixedKeys(SUCCESSOR, secret_of(SUCCESSOR))
        return AskedKeys(lambda: current[-1]), lambda: current.append(successor)
    file = tmp_path / "credentials"
    file.write_text(PROFILE.format(key=ACCESS_KEY, secret=SECRET_KEY))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))

    def succeed() -> None:
        file.write_text(PROFILE.format(key=SUCCESSOR, secret=secret_of(SUCCESSOR)))

    return Profile("lake"), succeed


ASKED: dict[str, Callable[[Store], object]] = {
    "put": lambda store: store.put("one", b"1"),
    "create": lambda store: store.create("two", b"2"),
    "read": lambda store: store.read("there", bytes_max=MAX),
    "look": lambda store: store.secure("there"),
    "list": lambda store: store.names(),
    "walk": lambda store: [*store.walk()],
    "delete": lambda store: store.delete("there"),
    "uploads": lambda store: [*store.uploads()],
    "delete a folder": lambda store: store.delete_folder("folder"),
}


@pytest.mark.parametrize(("status", "code"), ENDED)
def test_of_keys_that_were_taken_back_the_successors_are_taken_at_once_by_every_request(
    s3: S3Server, proxy: S3Proxy, kind: Kind, status: int, code: str
) -> None:
    """Also where an answer has no body that says why: to a look."""
    credentials, succeed = kind
    settings = replace(s3.settings, endpoint=proxy.endpoint, credentials=credentials)
    stores = {what: store_at(new_place(), settings=settings) for what in ASKED}
    for store in stores.values():
        store.put("there", b"1")
        assert [*store.uploads()] == []
    succeed()
    proxy.refused[ACCESS_KEY] = (status, code)
    for what, store in stores.items():
        ASKED[what](store)


def test_who_writes_while_keys_are_taken_back_notices_nothing(
    s3: S3Server, proxy: S3Proxy, kind: Kind
) -> None:
    credentials, succeed = kind
    settings = replace(s3.settings, endpoint=proxy.endpoint, credentials=credentials)
    store = store_at(new_place(), settings=settings)
    failed: list[BaseException] = []
    half = threading.Barrier(WRITERS + 1)

    def write(name: str) -> None:
        try:
            for number in range(FILES):
                if number == FILES // 2:
                    half.wait()
                    half.wait()
                store.put(f"{name}/{number}", b"1")
        except OSError as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(str(number),)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    half.wait()
    succeed()
    proxy.refused[ACCESS_KEY] = (403, "InvalidAccessKeyId")
    half.wait()
    for thread in threads:
        thread.join()
    assert not failed
    assert sum(len(names) for _, names in store.walk()) == WRITERS * FILES


def test_a_large_file_whose_keys_are_taken_back_is_whole_or_its_writer_is_told_and_writes_it_again(
    s3: S3Server, proxy: S3Proxy, kind: Kind
) -> None:
    credentials, succeed = kind
    settings = replace(s3.settings, endpoint=proxy.endpoint, credentials=credentials, part_bytes=5 * MIB)
    store = store_at(new_place(), settings=settings)
    sink = store.sink("one")
    sink.write(b"x" * 6 * MIB)
    succeed()
    proxy.refused[ACCESS_KEY] = (403, "InvalidAccessKeyId")
    try:
        sink.write(b"x" * 6 * MIB)
        sink.close()
    except PermissionError:
        assert store.stat("one") is None and [*store.uploads()] == []
        again = store.sink("one")
        again.write(b"x" * 12 * MIB)
        again.close()
    assert store.secure("one") == 12 * MIB


def test_keys_that_nobody_renews_end_in_a_sentence_that_says_so(s3: S3Server, proxy: S3Proxy) -> None:
    store = store_at(new_place(), settings=replace(s3.settings, endpoint=proxy.endpoint))
    proxy.refused[ACCESS_KEY] = (400, "ExpiredToken")
    with pytest.raises(PermissionError, match="have ended") as raised:
        store.put("one", b"1")
    assert "fixed keys are not renewed" in str(raised.value) and SECRET_KEY not in str(raised.value)


ASKING = """
import sys
from table.store.location import store_at
from table.store.objects.settings import FixedKeys, ObjectSettings

settings = ObjectSettings(
    endpoint=sys.argv[2], region="us-east-1", path_style=True, credentials=FixedKeys(*sys.argv[3:5])
)
store = store_at(sys.argv[1], settings=settings)
for ask in (
    lambda: store.put("one", b"1"),
    lambda: store.create("one", b"1"),
    lambda: store.read("one", bytes_max=9),
    lambda: store.secure("one"),
    lambda: store.names(),
    lambda: [*store.uploads()],
):
    try:
        ask()
    except PermissionError as error:
        print(error.strerror)
"""


@pytest.mark.parametrize("minutes", [-20, 20])
def test_of_a_clock_that_is_too_far_off_the_clock_is_named_and_no_permission(
    s3: S3Server, tmp_path: Path, minutes: int
) -> None:
    clock = make_clock(tmp_path / "clock", seconds=60 * minutes)
    done = subprocess.run(
        [sys.executable, "-c", ASKING, new_place(), s3.endpoint, ACCESS_KEY, SECRET_KEY],
        env={**os.environ, **clock.environment()},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    said = done.stdout.splitlines()
    assert len(said) == 6, done.stderr
    for sentence in said:
        assert "set it right, with NTP" in sentence and "must allow" not in sentence, sentence
