"""Between a client and a real S3 server, or one of Google's or Azure's storage: counts requests, and does to
some what networks and servers do.

Signatures stay valid: nothing of a request is changed.
"""

from __future__ import annotations

import http.client
import re
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from table.store.objects.requests import Request

UPSTREAM_TIMEOUT_S = 60.0
ERROR = b"<Error><Code>%s</Code><Message>m</Message></Error>"
SIGNED = frozenset({"date"})
"""Of a request it is the client's, whose signature is over it."""
PUTS = (Request.PUT, Request.PUT_IF, Request.UPLOAD)
"""By which an object comes to be."""
GOOGLES_UPLOAD = "/upload/storage/"
GOOGLES_NAME = re.compile(rb'"name"\s*:\s*"([^"]+)"')
HEAD_BYTES = 4_096
BETWEEN = frozenset({"transfer-encoding", "connection", "keep-alive", "date", "server"})


class Blow(StrEnum):
    LOSE = "it is carried out, and its answer lost"
    BREAK = "it is not carried out, and the connection breaks"
    SLOW_DOWN = "it is not carried out: 503 SlowDown"
    FAIL = "it is not carried out: 500"
    REFUSE = "it is not carried out: 403 AccessDenied"
    FULL = "it is not carried out: 507, the bucket is full"
    QUOTA = "it is not carried out: 403 QuotaExceeded"
    FAIL_AFTER = "it is carried out, and answered 500"


NOT_CARRIED_OUT = {
    Blow.SLOW_DOWN: (503, b"SlowDown"),
    Blow.FAIL: (500, b"InternalError"),
    Blow.REFUSE: (403, b"AccessDenied"),
    Blow.FULL: (507, b"InsufficientStorage"),
    Blow.QUOTA: (403, b"QuotaExceeded"),
}


@dataclass(slots=True)
class _Plan:
    request: Request
    blow: Blow | Callable[[], None]
    times: int
    left: int


@dataclass(slots=True, kw_only=True)
class Lasting:
    """What happens to requests for a while. `under`: a part of their objects' keys. `every`: to so many-th of
    each key, beginning with its first; 0: to its first only. `struck`: what it has happened to, key by key.
    """

    blow: Blow
    requests: Collection[Request]
    under: str = ""
    every: int = 1
    struck: Counter[str] = field(default_factory=Counter)
    _met: Counter[str] = field(default_factory=Counter)

    def strikes(self, request: Request, key: str) -> bool:
        if request not in self.requests or self.under not in key:
            return False
        before = self._met[key]
        self._met[key] += 1
        if before % self.every if self.every else before:
            return False
        self.struck[key] += 1
        return True


class S3Proxy:
    """`port`: of the server, on loopback. `e_tag`: what becomes of its tags; None: they are left out."""

    def __init__(self, port: int, *, e_tag: Callable[[str], str | None] = lambda tag: tag) -> None:
        self._e_tag = e_tag
        self.refused: dict[str, tuple[int, str]] = {}  # access key -> with what its requests are answered
        self.insists: dict[str, str] = {}  # header -> what each put must say by it, as a policy may want it
        self.unsaid: Counter[Request] = Counter()  # those that did not
        self.asked_by: Counter[str] = Counter()  # access key -> its requests
        self._port = port
        self._plans: list[_Plan] = []
        self._lasting: list[Lasting] = []
        self._lock = threading.Lock()
        self.counts: Counter[Request] = Counter()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # an answer is several writes: each would wait for the other side
            upstream: http.client.HTTPConnection | None = None

            def finish(self) -> None:
                super().finish()
                if self.upstream is not None:
                    self.upstream.close()

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except ConnectionError:
                    self.close_connection = True

            def log_message(self, *_arguments: object) -> None:
                return None

            def do_GET(self) -> None:
                proxy._serve(self)

            do_PUT = do_POST = do_HEAD = do_DELETE = do_GET

        self._handler = Handler
        self._is_away = False
        self._server = self._listening(0)

    def _listening(self, port: int) -> ThreadingHTTPServer:
        server = ThreadingHTTPServer(("127.0.0.1", port), self._handler)
        server.daemon_threads = True
        return server

    def _serve_forever(self) -> None:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @contextmanager
    def away(self) -> Iterator[None]:
        """Nobody is at the address: connections are refused, and those that are open break."""
        port = self._server.server_port
        self._is_away = True
        self._server.shutdown()
        self._server.server_close()
        try:
            yield
        finally:
            self._server = self._listening(port)
            self._is_away = False
            self._serve_forever()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def strike(self, request: Request, blow: Blow | Callable[[], None], *, times: int = 1) -> None:
        """The next requests of this kind. A function is called before the request goes on."""
        with self._lock:
            self._plans.append(_Plan(request, blow, times, times))

    @contextmanager
    def lasting(self, what: Lasting) -> Iterator[Lasting]:
        """For as long as the context lasts."""
        with self._lock:
            self._lasting.append(what)
        try:
            yield what
        finally:
            with self._lock:
                self._lasting.remove(what)

    def unstruck(self) -> list[Request]:
        """Blows that met no request."""
        return [plan.request for plan in self._plans if plan.left == plan.times]

    def __enter__(self) -> S3Proxy:
        self._serve_forever()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    # --- one request ----------------------------------------------------------------------------------

    def _serve(self, handler: Any) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        if self._is_away:
            handler.close_connection = True
            return
        who = _access_key(handler)
        with self._lock:
            self.asked_by[who] += 1
        if (refusal := self.refused.get(who)) is not None:
            _answer(handler, refusal[0], {}, ERROR % refusal[1].encode())
            return
        kind = _kind(handler)
        unsaid = {name for name, value in self.insists.items() if handler.headers.get(name) != value}
        if unsaid and kind in PUTS:
            self.unsaid[kind] += 1
            _answer(handler, 403, {}, ERROR % b"AccessDenied")
            return
        blow = self._blow_for(kind, _key(handler, body))
        if blow is Blow.BREAK:
            handler.close_connection = True
            return
        if isinstance(blow, Blow) and blow in NOT_CARRIED_OUT:
            status, code = NOT_CARRIED_OUT[blow]
            _answer(handler, status, {}, ERROR % code)
            return
        if callable(blow):
            blow()
        try:
            status, headers, answer = self._forward(handler, body)
        except OSError:
            handler.close_connection = True
            return
        if blow is Blow.LOSE:
            handler.close_connection = True
        elif blow is Blow.FAIL_AFTER:
            _answer(handler, 500, {}, ERROR % b"InternalError")
        else:
            _answer(handler, status, headers, answer)

    def _blow_for(self, request: Request, key: str) -> Blow | Callable[[], None] | None:
        with self._lock:
            self.counts[request] += 1
            for plan in self._plans:
                if plan.request is request and plan.left:
                    plan.left -= 1
                    return plan.blow
            return next((one.blow for one in self._lasting if one.strikes(request, key)), None)

    def _forward(self, handler: Any, body: bytes) -> tuple[int, dict[str, str], bytes]:
        """By a connection of its own for each of the client's; where it breaks, so does the client's."""
        if handler.upstream is None:
            handler.upstream = http.client.HTTPConnection("127.0.0.1", self._port, timeout=UPSTREAM_TIMEOUT_S)
        connection: http.client.HTTPConnection = handler.upstream
        try:
            connection.putrequest(handler.command, handler.path, skip_host=True, skip_accept_encoding=True)
            for name, value in handler.headers.items():
                if name.lower() not in BETWEEN - SIGNED and name.lower() != "expect":
                    connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            headers = dict(answer.getheaders())
            for name in [name for name in headers if name.lower() == "etag"]:
                if (tag := self._e_tag(headers.pop(name))) is not None:
                    headers[name] = tag
            return answer.status, headers, answer.read()
        except http.client.HTTPException as error:
            raise ConnectionError(str(error)) from error


def _answer(handler: BaseHTTPRequestHandler, status: int, headers: dict[str, str], body: bytes) -> None:
    handler.send_response(status)
    sized = {name: value for name, value in headers.items() if name.lower() not in BETWEEN}
    if handler.command != "HEAD" or "content-length" not in map(str.lower, sized):
        sized = {name: value for name, value in sized.items() if name.lower() != "content-length"}
        if status != 204:
            sized["Content-Length"] = str(len(body))
    for name, value in sized.items():
        handler.send_header(name, value)
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(body)


def _kind(handler: BaseHTTPRequestHandler) -> Request:
    asked = urlsplit(handler.path)
    query = parse_qs(asked.query, keep_blank_values=True)
    in_bucket = "/" not in asked.path.strip("/")
    conditional = "If-None-Match" in handler.headers or "If-Match" in handler.headers
    if "ifGenerationMatch" in query:  # Google's
        return Request.PUT_IF
    match handler.command:
        case "GET":
            if "uploads" in query:
                return Request.LIST_UPLOADS
            return Request.LIST if in_bucket else Request.GET
        case "HEAD":
            return Request.HEAD
        case "PUT":
            if "partNumber" in query or query.get("comp") == ["block"]:
                return Request.PART
            if query.get("comp") == ["blocklist"]:  # Azure's
                return Request.COMPLETE
            return Request.PUT_IF if conditional else Request.PUT
        case "POST":
            if "delete" in query:
                return Request.DELETE_MANY
            return Request.UPLOAD if "uploads" in query else Request.COMPLETE
        case _:
            return Request.ABORT if "uploadId" in query else Request.DELETE


def _key(handler: BaseHTTPRequestHandler, body: bytes) -> str:
    """Which object it is about; Google's JSON API says it in the query, or in the body's first part."""
    asked = urlsplit(handler.path)
    key = unquote(asked.path)
    if GOOGLES_UPLOAD not in key:
        return key
    named = parse_qs(asked.query).get("name") or [
        name.decode() for name in GOOGLES_NAME.findall(body[:HEAD_BYTES])
    ]
    return "/".join((key, *named))


def _access_key(handler: Any) -> str:
    """Who has signed the request."""
    signed: str = handler.headers.get("Authorization", "")
    return signed.partition("Credential=")[2].partition("/")[0]
