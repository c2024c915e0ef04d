"""Orders from the page, in a real browser: to somebody who notes them, and to a real run."""

from __future__ import annotations

import json
import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from lockstep.errors import Failed
from lockstep.ui.port import WantedOrder
from tests.harness import Pipeline, await_that
from tests.page_fixture import Serve, Visit, browser, serve, visit
from tests.unit.lockstep.ui import documents
from tests.unit.lockstep.ui.documents import Desk, Shown, order

__all__ = ["browser", "serve", "visit"]

TOKEN = "a-token-of-some-length"
MARKUP = "<img src=x onerror=\"window.hacked=1;alert('x')\"><script>window.hacked=1</script>"
SOON_MS = 60_000


def opened(serve: Serve, visit: Visit, shown: Shown, desk: Desk, **more: object) -> Page:
    server = serve({"events": shown}, token=TOKEN, orders={"events": desk})
    page = visit(f"{server.url}?token={TOKEN}", **more)
    expect(page.locator("main[data-shown]")).to_be_attached()
    return page


def with_orders(*orders: dict[str, object], paused: bool = False) -> dict[str, object]:
    control = {
        "paused": paused,
        "settings": {**documents.IN_FORCE, "transaction.interval": 500},
        "changed": ["transaction.interval"],
        "orders": list(orders),
    }
    return documents.document(count=5, control=control)


def test_a_page_that_is_only_read_shows_orders_and_gives_none(serve: Serve, visit: Visit) -> None:
    shown = Shown(documents.document(count=5))
    page = visit(serve({"events": shown}).url)
    expect(page.locator("main[data-shown]")).to_be_attached()
    expect(page.locator("#orders-card")).to_be_hidden()
    now_ms = shown.page().document["at_ms"]
    shown.show(with_orders(order(2, now_ms, action="pause", state="open"), order(1, now_ms), paused=True))
    expect(page.locator("#orders > li")).to_have_count(2)
    expect(page.locator("#orders > li").first).to_contain_text("not done yet")
    expect(page.locator("#orders > li").last).to_contain_text("anna@host-a: before a deployment")
    expect(page.locator("#orders-sum")).to_contain_text(
        "paused · transaction.interval = 500 ms until the run ends"
    )
    expect(page.locator("#order-buttons")).to_be_hidden()


def test_a_button_asks_first_and_says_who_and_why(serve: Serve, visit: Visit) -> None:
    desk = Desk()
    page = opened(serve, visit, Shown(documents.document(count=5)), desk)
    page.get_by_role("button", name="Stop …").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("What is open is committed, and the run ends.")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_be_hidden()
    assert desk.given == []
    page.get_by_role("button", name="Commit now").click()
    dialog.get_by_label("Token").fill("another-token-of-some-length")
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("alert")).to_contain_text("shows the token")
    dialog.get_by_label("Token").fill(TOKEN)
    dialog.get_by_label("Why").fill("before a deployment")
    dialog.get_by_label("Your name").fill("Anna")
    page.keyboard.press("Enter")
    expect(dialog).to_be_hidden()
    expect(page.locator("#order-told")).to_have_text("Order 1 is taken: commit.")
    run = documents.document()["run"]
    asked = WantedOrder(action="commit", who="Anna", why="before a deployment", host="127.0.0.1", run=run)
    assert desk.given == [asked]
    page.get_by_role("button", name="Pause").click()
    expect(dialog.get_by_label("Your name")).to_have_value("Anna")
    expect(dialog.get_by_label("Why")).to_have_value("")
    dialog.get_by_role("button", name="Pause").click()
    expect(page.locator("#order-told")).to_have_text("Order 2 is taken: pause.")


def test_settings_are_given_as_they_are_written_and_what_is_refused_stays_open(
    serve: Serve, visit: Visit
) -> None:
    desk = Desk(Failed("run r1 does not take the order: transaction.interval: too long"))
    page = opened(serve, visit, Shown(documents.document(count=5)), desk)
    page.get_by_role("button", name="Set …").click()
    dialog = page.get_by_role("dialog")
    interval = dialog.get_by_label("transaction.interval")
    expect(interval).to_have_attribute("placeholder", "now 2.0 s")
    dialog.get_by_label("Token").fill(TOKEN)
    interval.fill("11m")
    dialog.get_by_role("button", name="Set", exact=True).click()
    expect(dialog.get_by_role("alert")).to_have_text(re.compile("transaction.interval: too long"))
    desk.refusal = None
    interval.fill("500ms")
    dialog.get_by_label("transaction.max_bytes").fill("0")
    dialog.get_by_role("button", name="Set", exact=True).click()
    expect(dialog).to_be_hidden()
    (given,) = desk.given
    assert given.settings == {"transaction.interval": "500ms", "transaction.max_bytes": "0"}


def test_a_schedule_is_given_in_words_and_none_takes_it_away(serve: Serve, visit: Visit) -> None:
    desk = Desk()
    page = opened(serve, visit, Shown(documents.document(count=5)), desk)
    dialog = page.get_by_role("dialog")
    for schedule in ("*/15 * * * *", "none"):
        page.get_by_role("button", name="Set …").click()
        expect(dialog.get_by_label("transaction.schedule")).to_have_attribute("placeholder", "now every 1h")
        expect(dialog.get_by_label("transaction.align")).to_have_attribute("placeholder", "now none")
        dialog.get_by_label("Token").fill(TOKEN)
        dialog.get_by_label("transaction.schedule").fill(schedule)
        dialog.get_by_role("button", name="Set", exact=True).click()
        expect(dialog).to_be_hidden()
    assert [one.settings for one in desk.given] == [
        {"transaction.schedule": "*/15 * * * *"},
        {"transaction.schedule": ""},
    ]


def test_what_cannot_be_ordered_now_cannot_be_pressed(serve: Serve, visit: Visit) -> None:
    shown = Shown(documents.document(count=5))
    page = opened(serve, visit, shown, Desk())
    expect(page.get_by_role("button", name="Resume")).to_be_disabled()
    shown.show(with_orders(paused=True))
    expect(page.get_by_role("button", name="Pause")).to_be_disabled()
    expect(page.get_by_role("button", name="Resume")).to_be_enabled()
    shown.show(documents.document(count=5, control=None))
    expect(page.get_by_role("button", name="Commit now")).to_be_disabled()
    expect(page.locator("#orders-sum")).to_contain_text("does not answer here")


@pytest.mark.parametrize("width", [400, 1_600])
@pytest.mark.parametrize("dark", [False, True])
def test_hostile_orders_stay_text_within_the_page_and_axe_finds_nothing(
    serve: Serve, visit: Visit, width: int, dark: bool
) -> None:
    shown = Shown(documents.document(count=5))
    now_ms = shown.page().document["at_ms"]
    hostile = order(1, now_ms, who=MARKUP, why=MARKUP + "x" * 400, state="given up")
    set_one = order(2, now_ms, action="set", settings={"transaction.max_records": 0})
    shown.show(with_orders(set_one, hostile))
    desk = Desk(Failed(MARKUP))
    page = opened(serve, visit, shown, desk, width=width, dark=dark)
    expect(page.locator("#orders")).to_contain_text(MARKUP)
    expect(page.locator("#orders")).to_contain_text("set transaction.max_records = no limit")
    page.get_by_role("button", name="Set …").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Token").fill(TOKEN)
    dialog.get_by_role("button", name="Set", exact=True).click()
    expect(dialog.get_by_role("alert")).to_have_text(MARKUP)
    for place in ("document.documentElement", "document.getElementById('order')"):
        assert page.evaluate(f"{place}.scrollWidth - {place}.clientWidth") <= 0
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("window.hacked") is None


@pytest.mark.integration
@pytest.mark.timeout(900)
def test_a_real_run_is_paused_tuned_resumed_and_stopped_from_its_page(
    pipeline: Pipeline, visit: Visit
) -> None:
    pipeline.settings.update({"ui.control": "true", "ui.token": "${env:PAGE_TOKEN}"})
    pipeline.environment["PAGE_TOKEN"] = TOKEN
    run = pipeline.start()
    address = await_that("the page's address", lambda: re.search(r"the page: (\S+)", run.text()))
    pipeline.produce(300)
    run.await_rows(pipeline.produced)
    page = visit(f"{address[1]}?token={TOKEN}")
    expect(page.locator("main[data-shown]")).to_be_attached(timeout=SOON_MS)
    dialog = page.get_by_role("dialog")

    def give(name: str, button: str = "") -> None:
        page.get_by_role("button", name=name).click()
        dialog.get_by_label("Token").fill(TOKEN)
        dialog.get_by_label("Why").fill(f"a reason to {name}")
        dialog.get_by_role("button", name=button or name, exact=True).click()
        expect(dialog).to_be_hidden()

    expect(page.get_by_role("button", name="Pause")).to_be_enabled(timeout=SOON_MS)
    give("Pause")
    expect(page.locator("#headline")).to_contain_text("PAUSED", timeout=SOON_MS)
    expect(page.locator("#orders > li").first).to_contain_text("done", timeout=SOON_MS)
    page.get_by_role("button", name="Set …").click()
    dialog.get_by_label("transaction.interval").fill("1ms")
    dialog.get_by_role("button", name="Set", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("transaction.interval")
    dialog.get_by_label("transaction.interval").fill("700ms")
    dialog.get_by_role("button", name="Set", exact=True).click()
    expect(page.locator("#orders-sum")).to_contain_text("transaction.interval = 700 ms", timeout=SOON_MS)
    pipeline.produce(300)
    give("Resume")
    run.await_rows(pipeline.produced)
    give("Commit now")
    give("Stop …", "Stop the run")
    assert run.wait(120) == 0
    said = pipeline.command("events", "--from-beginning", "--type", "CONTROL", "--output", "json")
    orders = [json.loads(line)["content"] for line in said.stdout.splitlines()]
    assert [one["action"] for one in orders] == ["pause", "set", "resume", "commit", "stop"]
    assert {one["who"] for one in orders} == {"somebody, on the page, from 127.0.0.1"}
    assert orders[0]["why"] == "a reason to Pause"
    assert TOKEN not in run.text()
    pipeline.assert_exact(pipeline.produced)


def test_an_order_is_to_the_run_that_was_shown_when_its_button_was_pressed(
    serve: Serve, visit: Visit
) -> None:
    """Another may have taken its place while a reader thinks."""
    desk, shown = Desk(), Shown(documents.document(count=5, run="run-a"))
    page = opened(serve, visit, shown, desk)
    page.get_by_role("button", name="Stop …").click()
    shown.show(documents.document(count=6, run="run-b"))
    expect(page.locator("#strip button")).to_have_count(6)
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Token").fill(TOKEN)
    dialog.get_by_role("button", name="Stop the run").click()
    expect(dialog).to_be_hidden()
    assert [one.run for one in desk.given] == ["run-a"]
