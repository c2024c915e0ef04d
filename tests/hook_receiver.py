"""A real HTTP server for hooks: it takes what it is sent, or fails as real ones do."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

WELL, HANG, CUT, DRIP, GARBAGE = "well", "hang", "cut", "drip", "garbage"
"""What it does beside answering with a status: nothing; it closes; a byte from time to time; no HTTP."""


@dataclass(frozen=True, slots=True)
class Received:
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


class Receiver:
    """`does`: what becomes of the next ones, one of the words above, or a status; changed at any time."""

    def __init__(self, *, certificate: Path | None = None, port: int = 0) -> None:
        self.does: str | int = WELL
        self.answer_headers: dict[str, str] = {}
        self.asked = 0
        self.taken: list[Received] = []
        self._released = threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 30

            def do_POST(self) -> None:
                receiver._take(self)

            def log_message(self, format: str, *arguments: Any) -> None:
                """Nothing is logged."""

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def instants(self) -> list[str]:
        return [one.document["instant"] for one in self.taken]

    def close(self) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def __enter__(self) -> Receiver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self, handler: BaseHTTPRequestHandler) -> None:
        does = self.does
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        self.asked += 1
        if does in (WELL, 200, 202, 204):
            self.taken.append(Received(handler.path, dict(handler.headers), body))
        if does == HANG:
            self._released.wait(60)
            does = CUT
        if does == DRIP:
            self._drip(handler)
            does = CUT
        if does == CUT:
            handler.close_connection = True
            return
        if does == GARBAGE:
            handler.wfile.write(b"\x00\xffno HTTP at all\r\n\r\n")
            handler.close_connection = True
            return
        handler.send_response(200 if does == WELL else int(does))
        for name, value in self.answer_headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    def _drip(self, handler: BaseHTTPRequestHandler) -> None:
        try:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            while not self._released.wait(0.1):
                handler.wfile.write(b"x")
        except OSError:
            return  # whoever waited has gone
