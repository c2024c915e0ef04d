"""The driver's page, as others of its contract serve it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest

from lockstep.errors import Failed
from lockstep.support.page import page_document

ANSWERS: dict[str, object] = {"/api/pipelines": ["other", "events"], "/api/p/1/page": {"version": 1}}


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        allowed = self.headers.get("Authorization") == "Bearer 0123456789abcdef"
        self.send_response(200 if allowed and self.path in ANSWERS else 401)
        self.end_headers()
        if allowed:
            self.wfile.write(json.dumps(ANSWERS.get(self.path)).encode())

    def log_message(self, format: str, *args: Any) -> None:
        return


@pytest.fixture
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def config(**ui: object) -> Any:
    return SimpleNamespace(pipeline=SimpleNamespace(id="events"), ui=SimpleNamespace(**ui) if ui else None)


def test_the_pipelines_own_document_is_asked_for_with_the_token(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAGE_TOKEN", "0123456789abcdef")
    assert page_document(config(port=port, token="${env:PAGE_TOKEN}")) == {"version": 1}


def test_where_nobody_serves_it_that_is_said(port: int) -> None:
    with pytest.raises(Failed, match="no page"):
        page_document(config(port=port))  # who shows no token
    with pytest.raises(Failed, match="no page"):
        page_document(config())
