"""Whoever looks at a run that is measured does look, and says so where it could not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from bench.onlookers import HOST, METRICS, STREAM, Onlookers
from lockstep.errors import Failed
from lockstep.launch.local_server import free_port
from tests.harness import await_that


class Page(BaseHTTPRequestHandler):
    """Speaks as the page does: a stream that ends after some documents, and metrics."""

    def do_GET(self) -> None:
        kind = {STREAM: "text/event-stream", METRICS: "text/plain"}.get(self.path)
        self.send_response(200 if kind else 404)
        self.end_headers()
        if self.path == STREAM:
            for number in range(3):
                self.wfile.write(b": heartbeat\n\nevent: page\ndata: %d\n\n" % number)
        elif self.path == METRICS:
            self.wfile.write(b"lockstep_records_total 5\n")

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: it is not the test's own word."""


@contextmanager
def page(port: int) -> Iterator[None]:
    server = ThreadingHTTPServer((HOST, port), Page)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_they_begin_when_the_page_is_there_and_begin_again_when_it_is_again() -> None:
    port = free_port()
    with Onlookers(port, scrape_every_s=0.1) as seen:
        for _ in range(2):
            before = seen.documents, seen.scrapes
            with page(port):
                await_that(
                    "document and scrape",
                    lambda before=before: seen.documents > before[0] and seen.scrapes > before[1],
                )
    assert "documents of 8 bytes" in seen.said() and "scrapes of 25 bytes" in seen.said()


def test_a_run_that_nobody_could_look_at_is_no_figure() -> None:
    with Onlookers(free_port()) as seen:
        pass
    with pytest.raises(Failed, match="it was not looked at"):
        seen.said()
