"""Between a client and a real S3 server: counts requests, and does to some what networks and servers do.

Signatures stay valid: nothing of a request is changed.
"""

from __future__ import annotations

import http.client
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from urllib.parse import parse_qs, urlsplit

from table.store.objects.requests import Request

UPSTREAM_TIMEOUT_S = 60.0
ERROR = b"<Error><Code>%s</Code><Message>m</Message></Error>"
BETWEEN = frozenset({"transfer-encoding", "connection", "keep-alive", "date", "server"})


class Blow(StrEnum):
    LOSE = "it is carried out, and its answer lost"
    BREAK = "it is not carried out, and the connection breaks"
    SLOW_DOWN = "it is not carried out: 503 SlowDown"
    FAIL_AFTER = "it is carried out, and answered 500"


@dataclass(slots=True)
class _Plan:
    request: Request
    blow: Blow | Callable[[], None]
    times: int
    left: int


class S3Proxy:
    """`port`: of the server, on loopback."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._plans: list[_Plan] = []
        self._lock = threading.Lock()
        self.counts: Counter[Request] = Counter()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # else each answer with a body waits for 40 ms

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

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def strike(self, request: Request, blow: Blow | Callable[[], None], *, times: int = 1) -> None:
        """The next requests of this kind. A function is called before the request goes on."""
        with self._lock:
            self._plans.append(_Plan(request, blow, times, times))

    def unstruck(self) -> list[Request]:
        """Blows that met no request."""
        return [plan.request for plan in self._plans if plan.left == plan.times]

    def __enter__(self) -> S3Proxy:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    # --- one request ----------------------------------------------------------------------------------

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        blow = self._blow_for(_kind(handler))
        if blow is Blow.BREAK:
            handler.close_connection = True
            return
        if blow is Blow.SLOW_DOWN:
            _answer(handler, 503, {}, ERROR % b"SlowDown")
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

    def _blow_for(self, request: Request) -> Blow | Callable[[], None] | None:
        with self._lock:
            self.counts[request] += 1
            for plan in self._plans:
                if plan.request is request and plan.left:
                    plan.left -= 1
                    return plan.blow
        return None

    def _forward(self, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=UPSTREAM_TIMEOUT_S)
        try:
            connection.putrequest(handler.command, handler.path, skip_host=True, skip_accept_encoding=True)
            for name, value in handler.headers.items():
                if name.lower() not in BETWEEN and name.lower() != "expect":
                    connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        except http.client.HTTPException as error:
            raise ConnectionError(str(error)) from error
        finally:
            connection.close()


def _answer(handler: BaseHTTPRequestHandler, status: int, headers: dict[str, str], body: bytes) -> None:
    handler.send_response(status)
    sized = {name: value for name, value in headers.items() if name.lower() not in BETWEEN}
    if handler.command != "HEAD" or "Content-Length" not in sized:
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
    match handler.command:
        case "GET":
            if "uploads" in query:
                return Request.LIST_UPLOADS
            return Request.LIST if in_bucket else Request.GET
        case "HEAD":
            return Request.HEAD
        case "PUT":
            if "partNumber" in query:
                return Request.PART
            return Request.PUT_IF if conditional else Request.PUT
        case "POST":
            if "delete" in query:
                return Request.DELETE_MANY
            return Request.UPLOAD if "uploads" in query else Request.COMPLETE
        case _:
            return Request.ABORT if "uploadId" in query else Request.DELETE
