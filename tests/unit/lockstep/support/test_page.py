"""The driver's page, as others of its contract serve it."""

from __future__ import annotations

import json
import stat
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from lockstep.config import Config
from lockstep.config.load import from_mapping
from lockstep.driver.rundir import leave_page, read_run_file, write_run_file
from lockstep.errors import Failed
from lockstep.support.page import page_document

ANSWERS: dict[str, object] = {"/api/pipelines": ["other", "events"], "/api/p/1/page": {"version": 1}}


class Page(BaseHTTPRequestHandler):
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        allowed = self.headers.get("Authorization") == "Bearer 0123456789abcdef"
        self.send_response(200 if allowed and self.path in ANSWERS else 401)
        self.end_headers()
        if allowed:
            self.wfile.write(json.dumps(ANSWERS.get(self.path)).encode())

    def log_message(self, format: str, *args: Any) -> None:
        return


@pytest.fixture
def port() -> Iterator[int]:
    Page.asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("PAGE_TOKEN", "0123456789abcdef")


def config(port: int, *, token: str = "${env:PAGE_TOKEN}") -> Config:
    return from_mapping(
        {
            "pipeline": {"id": "events"},
            "source": {"bootstrap_servers": "127.0.0.1:1", "topics": ["events"]},
            "record": {"schema": "id STRING"},
            "table": {"path": "file:///tmp/x", "name": "events"},
            "ui": {"port": port, "token": token},
        }
    )


def left(page: str) -> Path:
    path = write_run_file("events", run="r1", address="127.0.0.1:1", token="t")
    leave_page("events", "r1", page)
    return path


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_the_runs_own_page_is_asked_for_with_the_token(port: int, host: str) -> None:
    left(f"http://{host}:{port}/")
    assert page_document(config(port)) == {"version": 1}


def test_where_nobody_serves_it_that_is_said(port: int) -> None:
    with pytest.raises(Failed, match="where its page is"):
        page_document(config(port))
    left(f"http://127.0.0.1:{port}/")
    with pytest.raises(Failed, match="does not answer: status 401"):
        page_document(config(port, token=""))
    left("http://127.0.0.1:1/")
    with pytest.raises(Failed, match="does not answer"):
        page_document(config(port))
    left("nonsense://[")
    with pytest.raises(Failed, match="does not answer"):
        page_document(config(port))


def test_who_only_listens_where_the_page_would_be_is_asked_nothing(port: int) -> None:
    """Neither where no run has said so, nor where the one that did is gone, and its port free for anybody."""
    with pytest.raises(Failed, match="where its page is"):
        page_document(config(port))
    write_run_file("events", run="r1", address="127.0.0.1:1", token="t")
    with pytest.raises(Failed, match="where its page is"):
        page_document(config(port))
    path = left(f"http://127.0.0.1:{port}/")
    ended = subprocess.Popen(["true"])
    ended.wait()
    path.write_text(json.dumps(json.loads(path.read_text()) | {"pid": ended.pid}))
    with pytest.raises(Failed, match="has ended"):
        page_document(config(port))
    assert not Page.asked


def test_the_page_is_added_to_ones_own_run_file_alone() -> None:
    path = write_run_file("events", run="r2", address="127.0.0.1:1", token="t")
    before = path.read_text()
    leave_page("events", "r1", "http://127.0.0.1:1/")
    assert path.read_text() == before
    leave_page("events", "r2", "http://127.0.0.1:1/")
    entry = read_run_file("events")
    assert entry is not None and (entry.page, entry.token) == ("http://127.0.0.1:1/", "t")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text(before.replace(', "page": ""', ""))  # as an older driver leaves it
    entry = read_run_file("events")
    assert entry is not None and (entry.run, entry.page) == ("r2", "")
