"""Who looks at a run while it is measured: a browser's stream of the page, and Prometheus' scrapes."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable
from types import TracebackType

from lockstep.errors import Failed

HOST = "127.0.0.1"
STREAM = "/api/p/0/events"
METRICS = "/metrics"
OPENMETRICS = "application/openmetrics-text; version=1.0.0, text/plain; version=0.0.4; q=0.5"
"""As Prometheus asks."""
SCRAPE_EVERY_S = 5.0
AGAIN_S = 0.2
ANSWER_S_MAX = 10.0
LINE_BYTES_MAX = 64 << 20
JOIN_S = ANSWER_S_MAX + 5.0


class Onlookers:
    """Both, from `__enter__` on, as soon as something answers there and again whenever it does."""

    def __init__(self, port: int, *, scrape_every_s: float = SCRAPE_EVERY_S) -> None:
        self.documents = 0
        self.document_bytes = 0
        self.scrapes = 0
        self.scrape_bytes = 0
        self.scrape_s = 0.0
        """Of the slowest."""
        self._port = port
        self._every_s = scrape_every_s
        self._stopping = threading.Event()
        looks = {"stream": self._stream, "scrapes": self._scrape}
        self._threads = [
            threading.Thread(target=self._again, args=(look,), name=name, daemon=True)
            for name, look in looks.items()
        ]

    def __enter__(self) -> Onlookers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(JOIN_S)

    def said(self) -> str:
        """What they saw. Raises `Failed` where that is so little that the run was as good as alone."""
        if not self.documents or not self.scrapes:
            raise Failed(
                f"The page sent {self.documents} documents and {self.scrapes} answers to scrapes: "
                "it was not looked at."
            )
        return (
            f"{self.documents} documents of {self.document_bytes // self.documents:,} bytes, "
            f"{self.scrapes} scrapes of {self.scrape_bytes // self.scrapes:,} bytes, "
            f"the slowest in {1_000 * self.scrape_s:.0f} ms"
        )

    def _again(self, look: Callable[[], None]) -> None:
        """The page is there later than they are, and ends with its run."""
        while not self._stopping.wait(AGAIN_S):
            try:
                look()
            except (OSError, http.client.HTTPException):
                continue

    def _asked(self, path: str, accept: str) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        connection = http.client.HTTPConnection(HOST, self._port, timeout=ANSWER_S_MAX)
        connection.request("GET", path, headers={"Accept": accept})
        answer = connection.getresponse()
        if answer.status != http.client.OK:
            connection.close()
            raise http.client.HTTPException(f"{path}: {answer.status}")
        return connection, answer

    def _stream(self) -> None:
        connection, answer = self._asked(STREAM, "text/event-stream")
        try:
            while not self._stopping.is_set():
                line = answer.readline(LINE_BYTES_MAX)
                if not line:
                    return
                if line.startswith(b"data:"):
                    self.documents += 1
                    self.document_bytes += len(line)
        finally:
            connection.close()

    def _scrape(self) -> None:
        """One after the other, until one fails."""
        while True:
            began_s = time.monotonic()
            connection, answer = self._asked(METRICS, OPENMETRICS)
            try:
                self.scrape_bytes += len(answer.read(LINE_BYTES_MAX))
            finally:
                connection.close()
            took_s = time.monotonic() - began_s
            self.scrapes, self.scrape_s = self.scrapes + 1, max(self.scrape_s, took_s)
            if self._stopping.wait(max(0.0, self._every_s - took_s)):
                return
