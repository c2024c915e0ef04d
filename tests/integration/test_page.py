"""The page in a real browser: what it shows, to whom, and what it says where nobody answers."""

from __future__ import annotations

import http.client
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from lockstep.errors import Failed
from lockstep.launch.local_server import free_port
from lockstep.watch.page import page_document
from lockstep.watch.page_rows import story
from tests import watched
from tests.page_fixture import TOLD_MS, Serve, Visit, browser, serve, visit
from tests.unit.lockstep.ui import documents
from tests.unit.lockstep.ui.documents import Shown

__all__ = ["browser", "serve", "visit"]

ROOT = Path(__file__).resolve().parents[2]
MARKUP = "<img src=x onerror=\"window.hacked=1;alert('x')\"><script>window.hacked=1</script>"
LONG = "a-topic-whose-name-is-as-long-as-kafka-allows-" * 5
TOKEN = "a-token-of-some-length"

FROZEN = """
import sys, time
from tests.unit.lockstep.ui.documents import Shown
from lockstep.ui.server import PageServer
server = PageServer({"events": Shown()}, bind="127.0.0.1", port=0, token="", speaker="The driver")
server.start()
print(server.url, flush=True)
sys.stdin.read()
"""


def drawn(page: Page) -> Page:
    """Once the first document is shown."""
    expect(page.locator("main[data-shown]")).to_be_attached()
    return page


def bars(page: Page) -> Locator:
    return page.locator("#strip button")


def colour(place: Locator, name: str = "color") -> tuple[int, int, int]:
    said = place.evaluate(f"node => getComputedStyle(node)[{name!r}]")
    red, green, blue = (int(float(one)) for one in re.findall(r"[\d.]+", said)[:3])
    return red, green, blue


def is_red(rgb: tuple[int, int, int]) -> bool:
    return rgb[0] > 1.4 * rgb[1] and rgb[0] > 1.4 * rgb[2]


def overflow_px(page: Page) -> int:
    width: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return width


@pytest.mark.smoke("page")
def test_what_changes_is_seen_without_a_reload(serve: Serve, visit: Visit) -> None:
    shown = Shown(documents.document(count=5))
    page = drawn(visit(serve({"events": shown}).url))
    expect(page.locator("#headline")).to_have_text("RUNNING")
    expect(bars(page)).to_have_count(5)
    later = documents.document(count=7, state="idle", headline="RUNNING, nothing to do")
    later["lag"] = {"records": 0, "seconds": 0.0}
    shown.show(later)
    expect(bars(page)).to_have_count(7)
    expect(page.locator("#headline")).to_have_text("RUNNING, nothing to do")
    expect(page.locator("#behind")).to_have_text("up to date")
    expect(page).to_have_title(re.compile("RUNNING, nothing to do"))


@pytest.mark.parametrize("named", ["%", "%E0%A4%A", "unknown"])
def test_an_address_that_names_no_transaction_keeps_nothing_from_being_shown(
    serve: Serve, visit: Visit, named: str
) -> None:
    page = drawn(visit(serve({"events": Shown()}).url + "#t=" + named))
    before = page.locator("#last").inner_text()
    expect(page.locator("#last")).not_to_have_text(before)


def test_the_last_commit_grows_older_by_itself(serve: Serve, visit: Visit) -> None:
    page = drawn(visit(serve({"events": Shown()}).url))
    before = page.locator("#last").inner_text()
    expect(page.locator("#last")).not_to_have_text(before)
    expect(page.locator("#last")).to_have_text(re.compile(r"\d+ s ago"))


def test_the_next_end_by_the_clock_comes_nearer_by_itself_in_the_zone_of_the_configuration(
    serve: Serve, visit: Visit
) -> None:
    page = drawn(visit(serve({"events": Shown()}).url))
    fact = page.locator("#facts > div").filter(has_text="next end").locator("dd")
    said = re.compile(r"at 2026-11-20 11:00:00 Europe/Berlin by transaction.schedule, in (\d+ s|1 m 00 s)$")
    expect(fact).to_have_text(said)
    before = fact.inner_text()
    expect(fact).not_to_have_text(before)
    expect(fact).to_have_text(said)


def test_open_transactions_of_producers_are_told_with_the_age_of_the_oldest(
    serve: Serve, visit: Visit
) -> None:
    document = documents.document()
    document["producer_transactions"] = {"records": 12_345, "seconds": 90.0}
    page = drawn(visit(serve({"events": Shown(document)}).url))
    fact = page.locator("#facts > div").filter(has_text="producers").locator("dd")
    expect(fact).to_have_text("12,345 records in open transactions, the oldest for 1 m 30 s")


def test_an_aborted_transaction_is_red_and_says_why(serve: Serve, visit: Visit) -> None:
    shown = documents.document(count=6)
    shown["transactions"][-2] = documents.aborted(4, shown["at_ms"] - 900)
    page = drawn(visit(serve({"events": Shown(shown)}).url))
    bar = page.locator("#strip button[data-phase=aborted]")
    expect(bar).to_have_count(1)
    expect(bar).to_have_attribute("aria-label", re.compile("aborted after .*worker-1: its process died"))
    assert "repeating-linear-gradient" in bar.locator(".collect").evaluate(
        "node => getComputedStyle(node).backgroundImage"
    )
    row = page.locator("#rows button[data-phase=aborted] .why")
    expect(row).to_have_text("worker died")
    assert is_red(colour(row))
    bar.click()
    story = page.get_by_role("dialog")
    expect(story).to_contain_text("a worker that was to write died")
    expect(story).to_contain_text("the same records are read again")


def test_an_open_transaction_says_what_it_does_and_one_without_a_run_that_nobody_decides(
    serve: Serve, visit: Visit
) -> None:
    shown = documents.document(count=3)
    source = Shown(shown)
    page = drawn(visit(serve({"events": source}).url))
    newest = page.locator("#rows button .why").first
    expect(newest).to_have_text("collecting …")
    last = shown["transactions"][-1]
    last.update(phase="ending", end_ms=last["started_ms"] + 300, late="worker-1")
    source.show(shown)
    expect(newest).to_have_text("closing files …")
    expect(page.locator("#caption")).to_contain_text("worker-1 has not answered")
    last.update(written_ms=last["end_ms"] + 100, late=None)
    source.show(shown)
    expect(newest).to_have_text("committing …")
    last.update(undecided=True)
    source.show(shown)
    expect(newest).to_have_text("undecided")
    bars(page).last.click()
    expect(page.get_by_role("dialog")).to_contain_text("nobody has decided yet what became of it")


def test_a_halt_is_read_first_with_its_reason_and_what_to_do(serve: Serve, visit: Visit) -> None:
    reason = "events:3@41233: amount is not a DOUBLE"
    advice = "Remove what the halt names, then start again with `lockstep run`; nothing is lost."
    shown = documents.document(state="halted", headline="HALTED", advice=[advice])
    shown["halted"] = {"reason": reason, "time_ms": shown["at_ms"]}
    page = drawn(visit(serve({"events": Shown(shown)}).url))
    expect(page.get_by_role("heading", level=1)).to_have_text("HALTED")
    assert is_red(colour(page.locator("#word")))
    expect(page.locator("#sign svg")).to_be_visible()
    expect(page.locator("#halt")).to_contain_text(reason)
    expect(page.locator("#advice code")).to_have_text("lockstep run")


def hostile() -> dict[str, Any]:
    """A document in which whatever somebody else may write is markup, and long."""
    shown = documents.document(
        pipeline="events", state="halted", headline="HALTED", advice=[MARKUP, LONG * 3]
    )
    text = MARKUP + LONG
    shown["halted"] = {"reason": text, "time_ms": shown["at_ms"]}
    shown["problems"] = [text]
    shown["coordinator"] = text
    shown["coordinators"] = [{"epoch": 3, "name": text, "since_ms": shown["at_ms"]}]
    shown["table"]["path"] = f"s3a://{LONG}/{MARKUP}"
    shown["table"].update(hostile_table(shown["at_ms"], text))
    shown["transactions"][-2] = documents.aborted(1, shown["at_ms"], reason=text, cause=MARKUP, late=text)
    shown["troubles"] = [{"time_ms": shown["at_ms"], "kind": MARKUP, "text": text}]
    shown["source_partitions"] = [documents.source_partition(0, topic=text, owner=text, verdict=MARKUP)]
    shown["workers"] = [
        documents.worker(
            1, name=text, state=MARKUP, host=text, last_death=text, alarms=[text], seconds={text: 1.0}
        )
    ]
    shown["services"] = [documents.service(text, last_what=text, problem=text, doing=text, running_ms=5)]
    shown["dead_letters"] = {
        "count": 1,
        "reasons": [{"reason": text, "count": 1}],
        "sample": [{"source_partition": text, "offset": 1, "reason": text, "time_ms": shown["at_ms"]}],
    }
    return shown


def hostile_table(now_ms: int, text: str) -> dict[str, Any]:
    """Its files and columns, whatever is named in them being this text."""
    worst = [{"path": text, "files": 9, "small_files": 8, "bytes": 7}]
    files = documents.table_files(now_ms, worst=worst, log_files=3, at_least=True)
    changed = {"name": text, "was": text, "now": text}
    change = {"instant": text, "completed_ms": now_ms, "columns": [changed] * 3, "columns_total": 9}
    schema = documents.table_schema(
        now_ms,
        columns=[{"name": text, "type": text, "nullable": False}],
        changes=[change],
        changes_total=7,
        since_instant=text,
    )
    return {"files": files, "schema": schema}


@pytest.mark.parametrize("width", [400, 1_600])
def test_what_others_write_stays_text_and_within_the_page(serve: Serve, visit: Visit, width: int) -> None:
    shown = Shown(hostile())
    aborted = shown.page().document["transactions"][-2]
    told = documents.story(aborted)
    told["writers"][0]["name"] = MARKUP + LONG
    told["writers"][0]["ranges"] = [
        {"topic": MARKUP + LONG, "partition": 1, "start": 0, "next": 1, "records": 1} for _ in range(5)
    ]
    told["messages"].append(
        {"offset": 1, "time_ms": 1, "type": MARKUP, "sender": MARKUP, "text": MARKUP + LONG}
    )
    shown.stories[aborted["id"]] = told
    page = drawn(visit(serve({"events": shown, MARKUP: Shown()}).url, width=width))
    expect(page.locator("#halt")).to_contain_text(MARKUP)
    expect(page.locator("#partitions th").first).to_contain_text(MARKUP)
    expect(page.locator("#tabs")).to_contain_text(MARKUP)
    page.locator("#schema-sum").click()
    for name in ("#worst", "#schema", "#schema-changes", "#schema-since"):
        expect(page.locator(name)).to_contain_text(MARKUP)
    assert overflow_px(page) <= 0
    page.locator("#strip button[data-phase=aborted]").last.click()
    expect(page.get_by_role("dialog")).to_contain_text(MARKUP)
    assert overflow_px(page) <= 0
    assert page.locator("img").count() == 0
    assert page.locator("script:not([src])").count() == 0
    assert page.evaluate("window.hacked") is None


def test_what_the_observer_makes_is_drawn_whole(serve: Serve, visit: Visit) -> None:
    said = watched.rich()
    found = watched.seen(said)
    shown = Shown(page_document(found.page(said.now_ms)))
    history = found.history
    for one in shown.page().document["transactions"]:
        transaction = history.find(one["id"])
        assert transaction is not None
        shown.stories[one["id"]] = story(transaction, history.names(transaction.run))
    page = drawn(visit(serve({"events": shown}).url))
    expect(page.locator("#headline")).to_have_text(shown.page().document["headline"])
    expect(bars(page)).to_have_count(len(shown.page().document["transactions"]))
    expect(page.locator("#workers > li")).to_have_count(3)
    aborted, open_one = page.locator("#strip button[data-phase=aborted]").first, bars(page).last
    for bar, lanes in ((bars(page).first, 4), (aborted, 4), (open_one, 1)):
        bar.click()
        expect(page.locator(".lane")).to_have_count(lanes)
        found_by_axe = Axe().run(page)
        assert found_by_axe.violations_count == 0, found_by_axe.generate_report()
        page.keyboard.press("Escape")
    assert page.locator("#main").inner_text().count("undefined") == 0
    assert page.locator("#main").inner_text().count("NaN") == 0


@pytest.mark.parametrize("width", [400, 700, 1_600, 2_560])
def test_nothing_is_beside_the_window(serve: Serve, visit: Visit, width: int) -> None:
    page = drawn(
        visit(serve({"events": Shown(documents.document(count=300)), "orders": Shown()}).url, width=width)
    )
    assert overflow_px(page) <= 0
    page.locator("#rows button").nth(2).click()
    expect(page.get_by_role("heading", name="Who wrote what")).to_be_attached()
    assert overflow_px(page) <= 0
    sides = page.get_by_role("dialog").bounding_box()
    assert sides is not None and sides["x"] >= 0 and sides["x"] + sides["width"] <= width


def test_the_dark_is_dark_and_the_light_is_light(serve: Serve, visit: Visit) -> None:
    url = serve({"events": Shown()}).url
    for dark in (True, False):
        page = drawn(visit(url, dark=dark))
        paper, ink = colour(page.locator("body"), "backgroundColor"), colour(page.locator("body"))
        assert (sum(paper) < 150) is dark
        assert (sum(ink) > 500) is dark


def test_the_keyboard_alone_opens_a_story_and_comes_back(serve: Serve, visit: Visit) -> None:
    page = drawn(visit(serve({"events": Shown(documents.document(count=40))}).url))
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('#strip') !== null"):
            break
    expect(bars(page).last).to_be_focused()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    wanted = bars(page).nth(36)
    expect(wanted).to_be_focused()
    name = str(wanted.get_attribute("aria-label"))
    expect(page.locator("#caption")).to_have_text(name)
    page.keyboard.press("Enter")
    story = page.get_by_role("dialog")
    expect(story.get_by_role("heading", level=2)).to_contain_text(name.split()[1].rstrip(":"))
    page.keyboard.press("ArrowLeft")
    expect(story.get_by_role("heading", level=2)).not_to_contain_text(name.split()[1].rstrip(":"))
    page.keyboard.press("Escape")
    expect(story).to_be_hidden()
    expect(wanted).to_be_focused()
    page.keyboard.press("Home")
    expect(bars(page).first).to_be_focused()


@pytest.mark.parametrize(
    ("seconds", "behind", "said"),
    [
        (
            {"wait": 30.0, "consume": 29.0, "decode": 1.0},
            True,
            "the broker, or the network, gives them no more",
        ),
        (
            {"consume": 15.0, "decode": 30.0, "encode": 14.0},
            True,
            "more workers on more processors would take more",
        ),
        ({"upload": 40.0, "decode": 10.0, "wait": 5.0}, True, "they wait for the storage"),
        ({"wait": 10.0, "decode": 10.0, "upload": 5.0}, True, "1 of 1 there"),
        ({"wait": 60.0}, False, "1 of 1 there"),
        ({}, True, "1 of 1 there"),
    ],
)
def test_of_a_run_that_is_behind_is_said_what_keeps_it(
    serve: Serve, visit: Visit, seconds: dict[str, float], behind: bool, said: str
) -> None:
    lag = {"records": 9_000 if behind else 0, "seconds": 3.0 if behind else 0.0}
    shown = documents.document(count=5, lag=lag, workers=[documents.worker(0, seconds=seconds)])
    page = drawn(visit(serve({"events": Shown(shown)}).url))
    expect(page.locator("#workers-sum")).to_have_text(re.compile(f"{re.escape(said)}$"))


def test_a_dead_letters_value_is_hidden_until_it_is_asked_for_and_stays_text(
    serve: Serve, visit: Visit
) -> None:
    shown, hidden = Shown(documents.document(count=5)), documents.document(count=5)
    shown.values["events:3@41233"] = {"text": MARKUP, "size_bytes": 9_000, "is_cut": True}
    page = drawn(visit(serve({"events": shown}).url, width=400))
    button = page.get_by_role("button", name="The value at events:3@41233")
    expect(page.locator("#dead-sample")).to_contain_text("events:3@41233")
    expect(button).to_be_hidden()
    hidden["dead_letters"]["values"] = True
    shown.show(hidden)
    expect(page.locator("main")).not_to_contain_text(MARKUP)
    button.click()
    expect(page.locator("#dead-sample .value")).to_have_text(f"{MARKUP} … (of 9.0 kB)")
    assert overflow_px(page) <= 0
    assert Axe().run(page).violations_count == 0
    shown.values["events:3@41233"] = Failed("it is not in the log any more")
    button.click()
    expect(page.locator("#dead-sample .value")).to_be_hidden()
    button.click()
    expect(page.locator("#dead-sample .value")).to_have_text("it is not in the log any more")
    assert page.evaluate("window.hacked") is None


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing(serve: Serve, visit: Visit, dark: bool) -> None:
    shown = hostile()
    for some in (documents.document(count=60), shown, documents.document(count=0)):
        server = serve({"events": Shown(some), "orders": Shown()})
        page = drawn(visit(server.url, dark=dark))
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()
        if some["transactions"]:
            page.locator("#rows button").nth(1).click()
            expect(page.get_by_role("heading", name="Who wrote what")).to_be_visible()
            found = Axe().run(page)
            assert found.violations_count == 0, found.generate_report()


def test_a_server_that_has_died_is_missed_and_its_return_is_noticed(serve: Serve, visit: Visit) -> None:
    shown = Shown(documents.document(count=4))
    server = serve({"events": shown}, port=free_port())  # which no outgoing connection is given meanwhile
    page = drawn(visit(server.url))
    server.stop()
    expect(page.locator("#notices")).to_contain_text("The driver does not answer since", timeout=TOLD_MS)
    expect(page.locator("#link")).to_have_text("no answer")
    assert "grayscale" in page.locator("main").evaluate("node => getComputedStyle(node).filter")
    shown.show(documents.document(count=9))
    serve({"events": shown}, port=server.port)
    expect(page.locator("#notices")).to_be_empty()
    expect(bars(page)).to_have_count(9)
    expect(page.locator("#link")).to_have_text("live")


@pytest.fixture
def frozen_server() -> Iterator[tuple[subprocess.Popen[str], str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", FROZEN],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def test_a_server_that_is_frozen_is_missed_as_well(
    visit: Visit, frozen_server: tuple[subprocess.Popen[str], str]
) -> None:
    process, url = frozen_server
    page = drawn(visit(url))
    os.kill(process.pid, signal.SIGSTOP)
    expect(page.locator("#notices")).to_contain_text("The driver does not answer since", timeout=TOLD_MS)
    os.kill(process.pid, signal.SIGCONT)
    expect(page.locator("#link")).to_have_text(re.compile("^live"))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("driver_ms", "The driver does not answer since"),
        ("broker_ms", "The broker was last read at"),
        ("table_ms", "The table was last read at"),
        ("topic_ms", "The control topic was last read at"),
    ],
)
def test_what_is_old_is_said_to_be(serve: Serve, visit: Visit, name: str, said: str) -> None:
    shown = documents.document()
    shown["sources"][name] = shown["at_ms"] - 120_000
    page = drawn(visit(serve({"events": Shown(shown)}).url))
    expect(page.locator("#notices p")).to_have_count(1)
    expect(page.locator("#notices")).to_contain_text(said)


def test_a_page_with_a_token_asks_for_it_once(serve: Serve, visit: Visit) -> None:
    server = serve({"events": Shown()}, token=TOKEN)
    page = visit(server.url)
    expect(page.get_by_label("Token")).to_be_visible()
    assert page.locator("#strip").count() == 0
    page.get_by_label("Token").fill("not the right one")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Token")).to_be_visible()
    page.get_by_label("Token").fill(TOKEN)
    page.keyboard.press("Enter")
    drawn(page)
    expect(page.locator("#link")).to_have_text("live")
    assert page.url == server.url
    (cookie,) = page.context.cookies()
    assert cookie["httpOnly"] and cookie["sameSite"] == "Strict" and cookie["value"] != TOKEN
    for headers, status in (({}, 401), ({"Authorization": f"Bearer {TOKEN}"}, 200)):
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        connection.request("GET", "/metrics", headers=headers)
        assert connection.getresponse().status == status
        connection.close()


def test_several_pipelines_are_tabs(serve: Serve, visit: Visit) -> None:
    orders = documents.document(pipeline="orders", state="stalled", headline="STALLED")
    page = drawn(visit(serve({"events": Shown(), "orders": Shown(orders)}).url))
    expect(page.locator("#headline")).to_have_text("RUNNING")
    page.get_by_role("button", name="orders").click()
    expect(page.locator("#headline")).to_have_text("STALLED")
    page.reload()
    expect(page.locator("#headline")).to_have_text("STALLED")


def test_a_thousand_source_partitions_are_found_by_filter_and_by_page(serve: Serve, visit: Visit) -> None:
    shown = Shown(documents.document())
    every = [documents.source_partition(number, lag=1_000 - number) for number in range(1_000)]
    shown.all_source_partitions = every
    shown.page().document.update(source_partitions=every[:100], source_partitions_total=1_000)
    page = drawn(visit(serve({"events": shown}).url))
    rows = page.locator("#partitions tr")
    expect(rows).to_have_count(10)
    page.get_by_role("button", name="all 1,000").click()
    expect(rows).to_have_count(50)
    page.get_by_role("button", name="on →").click()
    expect(page.locator("#partitions-page")).to_have_text("51–100 of 1,000")
    page.get_by_label("Filter").fill("events:777")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("events:777")


def test_a_long_life_is_drawn_by_its_changes(serve: Serve, visit: Visit) -> None:
    now_ms = documents.document(count=2)["at_ms"]
    shown = Shown(documents.document(count=2_000, now_ms=now_ms))
    page = drawn(visit(serve({"events": shown}).url, width=1_600))
    expect(bars(page)).to_have_count(300)
    page.evaluate(
        """() => {
          window.added = 0;
          new MutationObserver((all) => { for (const one of all) window.added += one.addedNodes.length; })
            .observe(document.querySelector("main"), { childList: true, subtree: true });
        }"""
    )
    later = documents.document(count=2_000, now_ms=now_ms)
    ended = documents.transaction(1_999, now_ms + 100)
    later["transactions"][-1] = ended
    later["transactions"].append(documents.opened(2_000, now_ms + 150))
    shown.show(later)
    expect(bars(page).last).to_have_attribute("data-phase", "writing")
    expect(page.locator("#rows button .id").first).to_have_text("000007d0")
    assert page.evaluate("window.added") < 100
    assert page.evaluate("document.querySelectorAll('*').length") < 3_000
