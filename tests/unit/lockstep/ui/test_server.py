"""The page's server: what it answers, what it refuses, and what nobody can take from it."""

from __future__ import annotations

import http.client
import json
import logging
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from http.client import HTTPResponse
from typing import Any

import pytest

from control_topic.causes import END_REASONS
from lockstep.errors import Failed
from lockstep.ui import feed, gate, protocol
from lockstep.ui.errors import Hidden, NoPage
from lockstep.ui.server import PageServer, listen
from tests.unit.lockstep.ui import documents
from tests.unit.lockstep.ui.documents import Shown

TOKEN = "a-token-of-some-length"
DEADLINE_S = 20.0


class Client:
    """Asks one server, each time on a connection of its own."""

    def __init__(self, server: PageServer) -> None:
        self.port = server.port

    def ask(
        self,
        path: str,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> tuple[HTTPResponse, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_S)
        connection.request(method, path, headers=dict(headers or {}), body=body)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer, content

    def json(self, path: str) -> Any:
        answer, content = self.ask(path)
        assert answer.status == 200
        return json.loads(content)

    def stream(self, headers: Mapping[str, str] | None = None) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_S)
        connection.request("GET", "/api/p/0/events", headers=dict(headers or {}))
        return connection.getresponse()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE_S)


Start = Callable[..., Client]


@pytest.fixture
def start() -> Iterator[Start]:
    with ExitStack() as stack:

        def make(*watched: Shown, token: str = "", bind: str = "127.0.0.1") -> Client:
            named = {f"p{number}": one for number, one in enumerate(watched or (Shown(),))}
            server = PageServer(named, bind=bind, port=0, token=token, speaker="The driver")
            server.start()
            stack.callback(server.stop)
            return Client(server)

        yield make


def next_event(stream: http.client.HTTPResponse) -> Any:
    """The next document of a stream."""
    while True:
        line = stream.readline()
        assert line, "the stream has ended"
        if line.startswith(b"data: "):
            return json.loads(line[6:])


def await_that(probe: Callable[[], bool]) -> None:
    until_s = time.monotonic() + DEADLINE_S
    while not probe():
        assert time.monotonic() < until_s
        time.sleep(0.02)


# --- what it answers --------------------------------------------------------------------------


def test_every_route_answers(start: Start) -> None:
    shown = Shown()
    client = start(shown, Shown(documents.document(pipeline="orders")))
    assert client.json("/api/pipelines") == ["p0", "p1"]
    assert client.json("/api/p/0/page")["pipeline"] == "events"
    assert client.json("/api/p/1/page")["pipeline"] == "orders"
    wanted = shown.page().document["transactions"][3]["id"]
    assert client.json(f"/api/p/0/transactions/{wanted}")["id"] == wanted
    assert len(client.json("/api/p/0/source_partitions")) == 8
    assert client.json("/api/words")["end_reasons"] == dict(END_REASONS)
    for path, kind in (
        ("/", "text/html"),
        ("/static/page.js", "text/javascript"),
        ("/static/page.css", "text/css"),
        ("/static/icon.svg", "image/svg+xml"),
        ("/metrics", "text/plain; version=0.0.4"),
        ("/healthz", "text/plain"),
    ):
        answer, content = client.ask(path)
        assert (answer.status, bool(content)) == (200, True), path
        assert str(answer.headers["Content-Type"]).startswith(kind)
    answer, content = client.ask(
        "/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"}
    )
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
    assert content.endswith(b"# EOF\n") and content.count(b"# EOF") == 1


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/static/../server.py",
        "/static/..%2Fserver.py",
        "/static/server.py",
        "/static/",
        "/api/p/7/page",
        "/api/p/-1/page",
        "/api/p/x/page",
        "/api/p/0/transactions/" + "x" * 300,
        "/api/p/0/transactions/unknown",
        "/api/p/99999999999999999999999/page",
    ],
)
def test_what_is_not_there_is_not_found(start: Start, path: str) -> None:
    answer, content = start().ask(path)
    assert answer.status == 404
    assert json.loads(content)["error"]


def test_the_stream_has_the_document_at_once_and_each_change(start: Start) -> None:
    shown = Shown(documents.document(count=2))
    stream = start(shown).stream()
    assert stream.headers["Content-Type"] == "text/event-stream"
    assert len(next_event(stream)["transactions"]) == 2
    shown.show(documents.document(count=3))
    assert len(next_event(stream)["transactions"]) == 3
    stream.close()


def test_a_stream_in_which_nothing_happens_is_alive(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "HEARTBEAT_S", 0.05)
    stream = start().stream()
    next_event(stream)
    said = [stream.readline() for _ in range(7)]
    assert sum(line.startswith(b": now ") for line in said) >= 3
    stream.close()


def test_many_changes_become_few_documents(start: Start) -> None:
    shown = Shown(documents.document(count=2))
    stream = start(shown).stream()
    next_event(stream)
    for count in range(3, 40):
        shown.show(documents.document(count=count))
    seen = [len(next_event(stream)["transactions"])]
    while seen[-1] != 39:
        seen.append(len(next_event(stream)["transactions"]))
    assert len(seen) <= 3
    stream.close()


# --- what it refuses --------------------------------------------------------------------------


def test_every_answer_has_the_strict_headers(start: Start) -> None:
    client = start()
    for path in ("/", "/api/p/0/page", "/nothing", "/static/page.js", "/metrics"):
        answer, _ = client.ask(path)
        policy = answer.headers["Content-Security-Policy"]
        assert (
            "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
        )
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert "Server" not in answer.headers
        assert "Access-Control-Allow-Origin" not in answer.headers
    answer, _ = client.ask("/", headers={"Host": "evil.example"})
    assert answer.status == 421
    assert "Content-Security-Policy" in answer.headers


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_nothing_but_reading_is_taken(start: Start, method: str) -> None:
    answer, _ = start().ask("/api/p/0/page", method=method)
    assert answer.status == 405
    assert answer.headers["Allow"] == "GET, HEAD"


def test_head_has_no_body(start: Start) -> None:
    client = start()
    for path in ("/", "/api/p/0/page", "/api/p/0/events", "/metrics"):
        answer, content = client.ask(path, method="HEAD")
        assert (answer.status, content) == (200, b"")


def test_bodies_and_long_addresses_are_refused(start: Start) -> None:
    client = start()
    assert client.ask("/", body=b"x" * 100)[0].status == 413
    assert client.ask("/?" + "x" * 4_000)[0].status == 414
    with client.connect() as broken:
        broken.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000)
        said = broken.recv(64)
        assert said == b"" or b" 400 " in said


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:80", "192.0.2.1", ""])
def test_another_name_that_leads_here_is_refused(start: Start, host: str) -> None:
    assert start().ask("/api/p/0/page", headers={"Host": host})[0].status == 421


def test_without_its_token_nothing_of_the_page_is_shown(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    client = start(token=TOKEN)
    paths = (
        "/",
        "/static/page.js",
        "/api/pipelines",
        "/api/p/0/page",
        "/api/p/0/events",
        "/metrics",
        "/healthz",
    )
    for path in paths:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Cookie": f"lockstep-{client.port}={TOKEN}"}):
            answer, content = client.ask(path, headers=headers)
            assert answer.status == 401, path
            assert b"events" not in content
    for path in paths:
        if path != "/api/p/0/events":
            assert client.ask(path, headers={"Authorization": f"Bearer {TOKEN}"})[0].status == 200
    stream = client.stream({"Authorization": f"Bearer {TOKEN}"})
    assert next_event(stream)["pipeline"] == "events"
    stream.close()
    assert TOKEN not in caplog.text


def test_the_token_in_an_address_becomes_a_cookie_and_goes(start: Start) -> None:
    client = start(token=TOKEN)
    answer, _ = client.ask(f"/metrics?a=1&token={TOKEN}&b=%2F")
    assert answer.status == 303
    assert answer.headers["Location"] == "/metrics?a=1&b=%2F"
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and TOKEN not in cookie
    assert client.ask("/metrics", headers={"Cookie": cookie.partition(";")[0]})[0].status == 200
    assert client.ask("/?token=wrong")[0].status == 401
    assert client.ask("/?token=")[0].status == 401
    assert client.ask(f"//evil.example/?token={TOKEN}")[0].headers["Location"] == "/evil.example/"
    assert client.ask(f"/?token=wrong&token={TOKEN}")[0].status == 401


def test_a_page_for_others_without_a_token_is_never_served() -> None:
    with pytest.raises(NoPage, match="open to the network"):
        PageServer({"p": Shown()}, bind="0.0.0.0", port=0, token="", speaker="x")


# --- what nobody can take ---------------------------------------------------------------------


def is_closed(one: socket.socket) -> bool:
    one.settimeout(DEADLINE_S)
    try:
        while one.recv(4_096):
            continue
        return True
    except ConnectionResetError:
        return True


def test_idle_connections_are_closed_and_keep_nobody_out(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "IDLE_S", 0.5)
    client = start()
    idle = [client.connect() for _ in range(4 * protocol.CONNECTIONS_MAX)]
    for one in idle[::2]:
        try:
            one.sendall(b"GET / HTTP/1.1\r\nHost: local")  # and never the rest
        except OSError:
            continue
    await_that(lambda: all(map(is_closed, idle)))
    assert client.ask("/healthz")[0].status == 200
    for one in idle:
        one.close()


def test_a_connection_that_has_been_answered_is_not_kept_for_long(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "IDLE_S", 0.3)
    with start().connect() as one:
        one.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert one.recv(4_096).startswith(b"HTTP/1.1 200")
        one.sendall(b"G")  # as if another request came, for ever
        assert is_closed(one)


def test_so_many_streams_and_no_more(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lockstep.ui.app.LISTENERS_MAX", 3)
    client = start()
    streams = [client.stream() for _ in range(3)]
    for one in streams:
        next_event(one)
    refused = client.stream()
    assert refused.status == 503
    assert client.ask("/healthz")[0].status == 200
    for one in streams:
        one.close()
    await_that(lambda: client.ask("/api/p/0/events", method="HEAD")[0].status == 200)


def test_a_reader_that_does_not_read_is_dropped(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "SLOW_S", 0.3)
    monkeypatch.setattr(feed, "EVERY_S", 0.01)
    monkeypatch.setattr("lockstep.ui.app.LISTENERS_MAX", 1)
    shown = Shown(documents.document(count=300))
    client = start(shown)
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        slow.connect(("127.0.0.1", client.port))
        slow.sendall(b"GET /api/p/0/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        until_s = time.monotonic() + DEADLINE_S
        while client.ask("/api/p/0/events", method="HEAD")[0].status != 503:
            assert time.monotonic() < until_s

        def is_dropped() -> bool:
            shown.show(documents.document(count=300))
            return client.ask("/api/p/0/events", method="HEAD")[0].status == 200

        await_that(is_dropped)


def test_who_asks_again_and_again_and_reads_nothing_is_dropped(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "SLOW_S", 0.3)
    client = start(Shown(documents.document(count=300)))
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        slow.settimeout(DEADLINE_S)
        slow.connect(("127.0.0.1", client.port))

        def is_dropped() -> bool:
            try:
                slow.sendall(b"GET /api/p/0/page HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
            except ConnectionError:
                return True
            return False

        await_that(is_dropped)


def test_a_port_that_is_taken_is_stepped_over() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with listen("127.0.0.1", port) as other:
            assert port < other.getsockname()[1] <= port + 20


def test_an_address_of_somebody_else_is_refused_with_a_sentence() -> None:
    with pytest.raises(
        NoPage, match=r"cannot listen on 203\.0\.113\.9, port 8420: .*Set ui\.bind or ui\.port"
    ):
        listen("203.0.113.9", 8420)


def test_a_page_ends_with_its_readers() -> None:
    server = PageServer({"p": Shown()}, bind="127.0.0.1", port=0, token="", speaker="x")
    server.start()
    stream = Client(server).stream()
    next_event(stream)
    server.stop()
    while stream.readline():
        continue
    with pytest.raises(ConnectionRefusedError):
        Client(server).connect()
    server.stop()


# --- values of dead letters -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ({"text": "x", "size_bytes": 1, "is_cut": False}, 200),
        (Hidden("Values are not shown."), 403),
        (Failed("it is not in the log any more"), 502),
    ],
)
def test_a_dead_letters_value_is_what_the_pipeline_says(start: Start, value: Any, status: int) -> None:
    shown = Shown()
    shown.values["a.topic:3@41"] = value
    client = start(shown)
    answer, content = client.ask("/api/p/0/dead_letters/a.topic/3/41")
    assert answer.status == status
    assert json.loads(content) == (value if status == 200 else {"error": str(value)})


@pytest.mark.parametrize("place", ["a.topic/3/42", "other/3/41", "a.topic/x/41", "a.topic/3/-1", "a.topic/3"])
def test_of_no_other_record_is_the_value_said(start: Start, place: str) -> None:
    shown = Shown()
    shown.values["a.topic:3@41"] = {"text": "x", "size_bytes": 1, "is_cut": False}
    assert start(shown).ask(f"/api/p/0/dead_letters/{place}")[0].status == 404
