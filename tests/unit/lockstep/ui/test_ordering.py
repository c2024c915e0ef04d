"""Orders from the page: who may give one, what is one, and what the answer says."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from http.client import HTTPResponse
from typing import Any

import pytest

from control_topic.controls import ACTIONS, WHY_CHARS_MAX
from lockstep.errors import ConfigError, Failed
from lockstep.ui import gate, ordering
from lockstep.ui.access import Access
from lockstep.ui.errors import NoPage
from lockstep.ui.gate import ORDER_BYTES_MAX
from lockstep.ui.ordering import BadOrder, wanted_order
from lockstep.ui.port import WantedOrder
from lockstep.ui.server import PageServer
from tests.unit.lockstep.ui.documents import Desk, Shown
from tests.unit.lockstep.ui.test_server import DEADLINE_S, TOKEN, Client

BEARER = {"Authorization": f"Bearer {TOKEN}"}
JSON = {"Content-Type": "application/json"}
COMMIT = b'{"action": "commit"}'
PLACE = "/api/p/0/orders"

Start = Callable[..., Client]


@pytest.fixture
def start() -> Iterator[Start]:
    with ExitStack() as stack:

        def make(desk: Any = None, *, takes: bool = True) -> Client:
            """A page of two pipelines, of which the first takes orders."""
            watched = {"events": Shown(), "orders": Shown()}
            server = PageServer(
                watched,
                bind="127.0.0.1",
                port=0,
                token=TOKEN,
                speaker="The driver",
                orders={"events": desk or Desk()} if takes else None,
            )
            server.start()
            stack.callback(server.stop)
            return Client(server)

        yield make


def post(
    client: Client, body: bytes = COMMIT, headers: Mapping[str, str] = BEARER, place: str = PLACE
) -> tuple[HTTPResponse, Any]:
    answer, content = client.ask(place, "POST", headers={**JSON, **headers}, body=body)
    return answer, json.loads(content)


def test_what_is_ordered_is_given_to_the_run_with_who_and_why(start: Start) -> None:
    desk = Desk()
    client = start(desk)
    settings = {"transaction.interval": "2s"}
    body = {"action": "set", "settings": settings, "who": "Anna", "why": "a backlog", "run": "r1"}
    answer, said = post(client, json.dumps(body).encode())
    assert (answer.status, said) == (202, {"number": 1})
    assert desk.given == [
        WantedOrder(
            action="set",
            settings={"transaction.interval": "2s"},
            who="Anna",
            why="a backlog",
            host="127.0.0.1",
            run="r1",
        )
    ]
    assert post(client)[1] == {"number": 2}
    assert client.ask("/api/words", headers=BEARER)[1].count(b'"takes_orders":["events"]') == 1


def test_the_words_of_all_orders_are_there_for_the_page(start: Start) -> None:
    words = json.loads(start().ask("/api/words", headers=BEARER)[1])
    assert words["actions"] == dict(ACTIONS)


# --- who may ----------------------------------------------------------------------------------


def test_a_page_that_is_only_read_takes_none(start: Start) -> None:
    desk = Desk()
    answer, said = post(start(desk, takes=False))
    assert answer.status == 403 and "ui.control" in said["error"]
    assert desk.given == []


def test_of_several_pipelines_only_that_one_takes_orders(start: Start) -> None:
    client = start()
    assert post(client, place="/api/p/1/orders")[0].status == 403
    assert post(client, place="/api/p/2/orders")[0].status == 404


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer another-token-of-some-length"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "OWN", "Cookie": "OWN"},
    ],
)
def test_without_the_token_itself_nobody_gives_any(start: Start, headers: dict[str, str]) -> None:
    """Nor with its cookie, which another page on another port of this host has from the browser as well."""
    desk = Desk()
    client = start(desk)
    shown = client.ask(f"/?token={TOKEN}")[0].headers["Set-Cookie"] or ""
    own = {"Origin": f"http://127.0.0.1:{client.port}", "Cookie": shown.partition(";")[0]}
    assert client.ask("/api/words", headers={"Cookie": own["Cookie"]})[0].status == 200
    told = {name: own[name] if value == "OWN" else value for name, value in headers.items()}
    answer, said = post(client, headers=told)
    assert answer.status == 401 and said["error"]
    assert desk.given == []


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_gives_none_though_it_knew_the_token(start: Start, site: str) -> None:
    assert post(start(), headers={**BEARER, "Sec-Fetch-Site": site})[0].status == 403


def test_a_page_without_a_token_takes_none() -> None:
    with pytest.raises(NoPage, match="takes orders needs"):
        PageServer({"p": Shown()}, bind="127.0.0.1", port=0, token="", speaker="x", orders={"p": Desk()})
    assert not Access(bind="127.0.0.1").is_bearer("Bearer ")


def test_whoever_shows_a_wrong_token_waits_for_the_answer(start: Start) -> None:
    began_s = time.monotonic()
    assert start().ask("/", headers={"Authorization": "Bearer wrong"})[0].status == 401
    assert time.monotonic() - began_s >= gate.WRONG_TOKEN_S


# --- what is one ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"Content-Type": "text/plain"}, COMMIT, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, COMMIT, 415),
        ({"Content-Type": "application/json; charset=utf-8"}, COMMIT, 202),
        ({"Transfer-Encoding": "chunked"}, b"0\r\n\r\n", 411),
        ({"Content-Length": "-1"}, b"", 400),
        ({}, b" " * ORDER_BYTES_MAX + COMMIT, 413),
        ({"Content-Length": "9" * 9}, b"", 413),
        ({}, b"", 400),
        ({}, b"{", 400),
        ({}, b"[" * 8_000, 400),
        ({}, b"\xff\xfe", 400),
    ],
)
def test_what_is_no_order_is_refused_in_a_sentence(
    start: Start, headers: dict[str, str], body: bytes, status: int
) -> None:
    desk = Desk()
    answer, content = start(desk).ask(PLACE, "POST", headers={**JSON, **BEARER, **headers}, body=body)
    assert answer.status == status, content
    assert len(desk.given) == (status == 202)


def test_only_its_own_place_takes_a_post_and_nothing_else_there(start: Start) -> None:
    client = start()
    for place in ("/", "/metrics", "/api/p/0/page", "/api/p/x/orders", "/api/p/0/orders/"):
        assert client.ask(place, "POST", headers={**JSON, **BEARER}, body=COMMIT)[0].status == 405
    assert client.ask(PLACE, headers=BEARER)[0].status == 405
    assert client.ask(PLACE, "DELETE", headers=BEARER)[0].status == 405
    answer, said = post(client, place=f"{PLACE}?token={TOKEN}", headers={})
    assert answer.status == 400 and said["error"]


@pytest.mark.parametrize(
    "document",
    [
        [],
        "commit",
        {},
        {"action": "drop"},
        {"action": ["commit"]},
        {"action": {"commit": 1}},
        {"action": "commit", "more": 1},
        {"action": "set", "settings": ["transaction.interval=2s"]},
        {"action": "set", "settings": {"transaction.interval": 2}},
        {"action": "set", "settings": {"a" * 101: "2s"}},
        {"action": "set", "settings": {"transaction.schedule": "x" * 201}},
        {"action": "set", "settings": {str(number): "2s" for number in range(7)}},
        {"action": "pause", "why": None},
        {"action": "pause", "why": "x" * (WHY_CHARS_MAX + 1)},
        {"action": "pause", "who": "x" * 101},
        {"action": "pause", "who": 7},
        {"action": "pause", "why": "\ud800"},
        {"action": "set", "settings": {"\udfff": "2s"}},
    ],
)
def test_an_order_is_an_object_of_its_fields_within_their_bounds(document: object) -> None:
    with pytest.raises(BadOrder) as told:
        wanted_order(json.dumps(document).encode(), "127.0.0.1")
    assert str(told.value).endswith(".")


# --- what becomes of it -----------------------------------------------------------------------


@pytest.mark.parametrize(("refusal", "status"), [(Failed("run r1\nends"), 409), (ConfigError("no 1ms"), 400)])
def test_what_the_run_does_not_take_is_said_as_it_says_it(
    start: Start, refusal: Exception, status: int
) -> None:
    answer, said = post(start(Desk(refusal)))
    assert (answer.status, said["error"]) == (status, str(refusal).replace("\n", " "))


def test_one_order_at_a_time(start: Start) -> None:
    begun, go_on = threading.Event(), threading.Event()

    class Slow(Desk):
        def give(self, wanted: WantedOrder) -> int:
            begun.set()
            assert go_on.wait(DEADLINE_S)
            return super().give(wanted)

    desk = Slow()
    client = start(desk)
    first: list[int] = []
    thread = threading.Thread(target=lambda: first.append(post(client)[0].status))
    thread.start()
    try:
        assert begun.wait(DEADLINE_S)
        answer, _ = post(client)
        assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
    finally:
        go_on.set()
        thread.join(DEADLINE_S)
    assert first == [202]
    assert len(desk.given) == 1


def test_an_order_whose_end_does_not_come_holds_nobody_up(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordering, "BODY_S", 0.2)
    desk = Desk()
    client = start(desk)
    head = f"POST {PLACE} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    with client.connect() as slow:
        slow.sendall(f"{head}Authorization: Bearer {TOKEN}\r\nContent-Length: 20\r\n\r\n{{".encode())
        assert slow.recv(12) == b"HTTP/1.1 408"
    assert post(client)[0].status == 202
    assert len(desk.given) == 1
