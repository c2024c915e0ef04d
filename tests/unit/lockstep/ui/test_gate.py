"""The page's gate: other sites' pages, what costs something, what goes wrong, wrong tokens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from lockstep.ui import shared
from lockstep.ui.seldom import Seldom
from lockstep.ui.server import PageServer
from tests.unit.lockstep.ui.documents import Shown
from tests.unit.lockstep.ui.test_server import DEADLINE_S, TOKEN, Client, Start


@pytest.fixture
def start() -> Iterator[Start]:
    with ExitStack() as stack:

        def make(shown: Shown | None = None, token: str = "") -> Client:
            server = PageServer(
                {"p": shown or Shown()}, bind="127.0.0.1", port=0, token=token, speaker="The driver"
            )
            server.start()
            stack.callback(server.stop)
            return Client(server)

        yield make


# --- other sites ------------------------------------------------------------------------------


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("path", ["/metrics", "/api/p/0/page", "/api/p/0/events", "/static/page.js", "/"])
def test_what_another_sites_page_asks_for_is_refused(start: Start, site: str, path: str) -> None:
    asks = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "empty"}
    answer, content = start().ask(path, headers=asks)
    assert answer.status == 403
    assert json.loads(content)["error"]
    assert "Content-Security-Policy" in answer.headers


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_link_from_elsewhere_leads_to_the_page_and_nowhere_else(start: Start, site: str) -> None:
    client = start()
    link = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert client.ask("/", headers=link)[0].status == 200
    assert client.ask("/metrics", headers=link)[0].status == 403
    assert client.ask("/", headers={**link, "Sec-Fetch-Dest": "iframe"})[0].status == 403


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_what_the_page_itself_asks_for_is_answered(start: Start, site: str) -> None:
    asks = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}
    assert start().ask("/api/p/0/page", headers=asks)[0].status == 200


# --- what it costs ----------------------------------------------------------------------------


class Dear(Shown):
    """Counts how often it is asked for what costs something."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def metrics(self, *, openmetrics: bool) -> bytes:
        self.asked.append(f"metrics {openmetrics}")
        return super().metrics(openmetrics=openmetrics)

    def source_partitions(self) -> list[dict[str, Any]]:
        self.asked.append("source partitions")
        return super().source_partitions()


def test_what_costs_something_is_made_once_for_all_who_ask_meanwhile(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "KEPT_S", DEADLINE_S)
    dear = Dear()
    client = start(dear)
    for _ in range(5):
        assert client.ask("/metrics")[0].status == 200
        assert len(client.json("/api/p/0/source_partitions")) == 8
        client.ask("/metrics", headers={"Accept": "application/openmetrics-text"})
    assert sorted(dear.asked) == ["metrics False", "metrics True", "source partitions"]


def test_what_was_made_for_others_is_not_kept(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "KEPT_S", 0.0)
    dear = Dear()
    client = start(dear)
    for _ in range(3):
        client.ask("/metrics")
    assert dear.asked == ["metrics False"] * 3


# --- what goes wrong --------------------------------------------------------------------------


class Broken(Shown):
    """Whatever it is asked for fails."""

    def metrics(self, *, openmetrics: bool) -> bytes:
        raise RuntimeError("a detail for the log")

    def source_partitions(self) -> list[dict[str, Any]]:
        raise RuntimeError("a detail for the log")


def test_what_cannot_be_answered_has_the_headers_and_is_logged_once(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    client = start(Broken())
    for path in ("/metrics", "/api/p/0/source_partitions", "/metrics"):
        answer, content = client.ask(path)
        assert answer.status == 500
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert json.loads(content)["error"] and b"detail" not in content
    said = [record for record in caplog.records if record.name == "lockstep.ui"]
    assert [record.getMessage() for record in said] == [
        "the page could not answer, 1 times since this was last said"
    ]
    assert "a detail for the log" in caplog.text
    assert client.ask("/healthz")[0].status == 200


def test_wrong_tokens_are_in_the_log_without_what_they_were(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    client = start(token=TOKEN)
    client.ask("/metrics")
    assert caplog.records == [], "who shows none has shown no wrong one"
    wrong = "a-wrong-token-of-some-length"
    client.ask(f"/?token={wrong}")
    client.ask("/metrics", headers={"Authorization": f"Bearer {wrong}"})
    client.ask("/metrics", headers={"Cookie": f"lockstep-{client.port}={wrong}"})
    assert [record.getMessage() for record in caplog.records] == [
        "a wrong token was shown to the page: 1 times since this was last said, now from 127.0.0.1"
    ]
    assert wrong not in caplog.text


def test_what_happens_often_is_said_once_a_minute_with_how_often_it_was() -> None:
    now_s = 100.0
    seldom = Seldom(lambda: now_s)
    assert [seldom.more() for _ in range(4)] == [1, 0, 0, 0]
    now_s += 59.9
    assert seldom.more() == 0
    now_s += 0.1
    assert [seldom.more(), seldom.more()] == [5, 0]
