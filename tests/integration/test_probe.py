"""What `lockstep validate` asks of a store, on a file system and on a real S3 server."""

from __future__ import annotations

import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from lockstep.stores.local import S3Server, secret_of
from table.store import probe as probe_module
from table.store.location import store_at
from table.store.objects.requests import Request
from table.store.objects.settings import FixedKeys, ObjectSettings
from table.store.port import Store
from table.store.probe import PREFIX, probe
from tests.s3_fixture import new_place
from tests.s3_proxy import Blow, Lasting, S3Proxy

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("s3")]
ALL = (
    *("write a file", "read it", "list it", "put a file only where there is none"),
    *("replace it only where it is still the same", "delete it"),
    *("list unfinished uploads", "abort an unfinished upload"),
)
OF_OBJECTS = (ALL[4], ALL[7])
SOON_S = 100.0
"""Of an outage a run would wait 600 s."""


@pytest.fixture(scope="module")
def tls_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A server whose certificate nobody has signed."""
    own = tmp_path_factory.mktemp("tls")
    files = [str(own / "key.pem"), str(own / "certificate.pem")]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=nobody"]
    subprocess.run([*made, "-keyout", files[0], "-out", files[1]], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files[1], files[0])
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server.server_port
        server.shutdown()


def failures(path: str, settings: ObjectSettings | None) -> dict[str, str]:
    """What was not possible. All is tried where all could be done."""
    began_s = time.monotonic()
    tried = list(probe(path, settings))
    assert time.monotonic() - began_s < SOON_S
    found = {one.what: one.why_not for one in tried if one.why_not}
    if not found:
        wanted = ALL if settings is not None else [one for one in ALL if one not in OF_OBJECTS]
        assert [one.what for one in tried] == list(wanted)
    return found


def test_all_that_a_table_asks_can_be_done_and_nothing_is_left(s3: S3Server, tmp_path: Path) -> None:
    place = new_place()
    assert failures(place, s3.settings) == {}
    assert not list(store_at(place, settings=s3.settings).walk())
    assert failures(f"file://{tmp_path}/not/there/yet", None) == {}
    assert list(tmp_path.iterdir()) == []


def test_whoever_may_only_read_is_told_which_permissions_are_missing(s3: S3Server) -> None:
    reader = replace(s3.settings, credentials=FixedKeys("reader", secret_of("reader")))
    found = failures(new_place(), reader)
    assert "s3:PutObject" in found["write a file"]
    assert "s3:AbortMultipartUpload" in found["abort an unfinished upload"]
    assert set(found) == {"write a file", "abort an unfinished upload"}
    assert secret_of("reader") not in str(found)


def test_what_is_not_there_and_whoever_is_nobody_is_named(s3: S3Server) -> None:
    found = failures("s3a://no-such-bucket/t", s3.settings)
    assert "there is no bucket no-such-bucket" in found["write a file"]
    nobody = replace(s3.settings, credentials=FixedKeys("nobody", "wrong"))
    refused = failures(new_place(), nobody)
    assert "nobody has this access key" in refused["write a file"]
    assert len(found) == len(refused) == 1, "the same is not said of all that follows"


@pytest.mark.parametrize(
    ("request_", "what", "permission"),
    [
        (Request.GET, "read it", "s3:GetObject"),
        (Request.PUT, "write a file", "s3:PutObject"),
        (Request.LIST, "list it", "s3:ListBucket"),
        (Request.DELETE_MANY, "delete it", "s3:DeleteObject"),
        (Request.LIST_UPLOADS, "list unfinished uploads", "s3:ListBucketMultipartUploads"),
        (Request.ABORT, "abort an unfinished upload", "s3:AbortMultipartUpload"),
    ],
)
def test_the_one_permission_that_is_missing_is_named(
    s3: S3Server, request_: Request, what: str, permission: str
) -> None:
    with S3Proxy(s3.port) as proxy, proxy.lasting(Lasting(blow=Blow.REFUSE, requests=(request_,))):
        found = failures(new_place(), replace(s3.settings, endpoint=proxy.endpoint))
    assert permission in found[what], found


@pytest.mark.parametrize(
    ("endpoint", "sentence"),
    [
        ("http://127.0.0.1:9", "cannot be reached"),
        ("http://s3.nowhere.invalid", "cannot be reached"),
        ("https://127.0.0.1:{port}", "http or https"),
        ("http://127.0.0.1:{tls}", "http or https"),
        ("https://127.0.0.1:{tls}", "cannot be reached"),
    ],
)
def test_an_endpoint_that_cannot_be_had_is_said_soon_and_once(
    s3: S3Server, tls_port: int, endpoint: str, sentence: str
) -> None:
    there = endpoint.format(port=s3.port, tls=tls_port)
    found = failures(new_place(), replace(s3.settings, endpoint=there))
    assert list(found) == ["write a file"] and sentence in found["write a file"], found


@pytest.mark.parametrize("tampering", [None, 'W/"changed"'])
def test_a_proxy_that_changes_or_drops_etags_is_found_out(s3: S3Server, tampering: str | None) -> None:
    with S3Proxy(s3.port, e_tag=lambda _tag: tampering) as proxy:
        found = failures(new_place(), replace(s3.settings, endpoint=proxy.endpoint))
    what = "replace it only where it is still the same" if tampering else "write a file"
    assert list(found) == [what] and "changes or drops ETags" in found[what], found


def test_a_folder_where_nothing_may_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = failures(f"file://{tmp_path}/file", None)
    assert found["write a file"] == "Not a directory"


class Unconditional:
    """A server that knows no conditions: it puts all the same, and says yes."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def create(self, path: str, data: bytes = b"") -> bool:
        self._store.put(path, data)
        return True


@pytest.fixture
def unconditional(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    right = probe_module.store_at
    monkeypatch.setattr(
        probe_module, "store_at", lambda *given, **named: Unconditional(right(*given, **named))
    )
    yield


@pytest.mark.usefixtures("unconditional")
def test_a_server_that_keeps_no_conditions_is_refused(s3: S3Server) -> None:
    found = failures(new_place(), s3.settings)
    assert list(found) == ["put a file only where there is none"]
    assert "without which no table is safe in it" in str(found)
    assert PREFIX not in str(found)
