"""What the page says of the table's files and columns, in a real browser."""

from __future__ import annotations

import re
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from lockstep.watch.page_table import CHANGES_SHOWN_MAX, COLUMNS_SHOWN_MAX
from tests.integration.test_page import drawn, overflow_px
from tests.page_fixture import Serve, Visit, browser, serve, visit
from tests.unit.lockstep.ui import documents
from tests.unit.lockstep.ui.documents import Shown

__all__ = ["browser", "serve", "visit"]


def figure(page: Page, name: str) -> Locator:
    return page.locator("#table-figures > div").filter(has=page.get_by_text(name, exact=True))


def document(*, files: dict[str, Any] | None = None, schema: dict[str, Any] | None = None) -> dict[str, Any]:
    """What is given overrides."""
    shown = documents.document(count=4)
    shown["table"]["files"].update(files or {})
    shown["table"]["schema"].update(schema or {})
    return shown


def wide(columns: int) -> dict[str, Any]:
    """A document of a table of so many columns, all of which came at once, over and over."""
    named = [f"a_column_with_a_name_{number:05}" for number in range(columns)]
    column = [{"name": name, "type": "DECIMAL(38,18)", "nullable": True} for name in named]
    changed = [{"name": name, "was": None, "now": "DECIMAL(38,18)"} for name in named[:10]]
    changes = [
        {"instant": f"{number:017}", "completed_ms": 1_000, "columns": changed, "columns_total": columns}
        for number in range(CHANGES_SHOWN_MAX)
    ]
    return document(
        schema={
            "columns": column[:COLUMNS_SHOWN_MAX],
            "columns_total": columns,
            "changes": changes,
            "changes_total": 90,
        }
    )


def test_files_sizes_and_the_share_of_small_ones_are_shown_with_the_limit(serve: Serve, visit: Visit) -> None:
    page = drawn(visit(serve({"events": Shown(document())}).url))
    expect(page.locator("#table-sum")).to_have_text(re.compile(r"^counted 3 m \d\d s ago$"))
    expect(figure(page, "Files")).to_contain_text("1,260")
    expect(figure(page, "Files")).to_contain_text("in 3 table partitions")
    expect(figure(page, "Size")).to_contain_text("84.0 GB")
    expect(figure(page, "Mean size")).to_contain_text("66.7 MB")
    expect(figure(page, "Small files")).to_contain_text("17 %")
    expect(figure(page, "Small files")).to_contain_text("212 below 60.0 MB")
    expect(figure(page, "Log files")).to_have_count(0)
    rows = page.locator("#worst tr")
    expect(rows).to_have_count(3)
    expect(rows.first).to_contain_text("region=eu")
    expect(rows.first).to_contain_text("140")


def test_the_age_of_a_count_grows_and_a_new_one_is_seen_without_a_reload(serve: Serve, visit: Visit) -> None:
    shown = Shown(document(files={"counted_ms": documents.document()["at_ms"] - 5_000}))
    page = drawn(visit(serve({"events": shown}).url))
    before = page.locator("#table-sum").inner_text()
    expect(page.locator("#table-sum")).not_to_have_text(before)
    shown.show(document(files={"files": 4_711}))
    expect(figure(page, "Files")).to_contain_text("4,711")


def test_before_a_count_the_card_says_so_and_shows_nothing(serve: Serve, visit: Visit) -> None:
    shown = documents.document(count=4)
    shown["table"].update(files=None, schema=None)
    source = Shown(shown)
    page = drawn(visit(serve({"events": source}).url))
    expect(page.locator("#table-sum")).to_have_text("not counted yet")
    expect(page.locator("#table-figures > div")).to_have_count(0)
    for name in ("#worst-part", "#schema-part"):
        expect(page.locator(name)).to_be_hidden()
    source.show(document())
    expect(figure(page, "Files")).to_be_visible()
    source.show(shown)
    expect(page.locator("#table-sum")).to_have_text("not counted yet")
    expect(page.locator("#table-figures > div")).to_have_count(0)


def test_log_files_of_upserts_are_told_apart(serve: Serve, visit: Visit) -> None:
    shown = document(files={"log_files": 1_200, "log_bytes": 3_000_000})
    shown["table"]["mode"] = "upsert"
    page = drawn(visit(serve({"events": Shown(shown)}).url))
    expect(figure(page, "Log files")).to_contain_text("1,200")
    expect(figure(page, "Log files")).to_contain_text("3.0 MB, not compacted yet")


def test_a_table_that_is_too_large_to_be_counted_says_at_least(serve: Serve, visit: Visit) -> None:
    page = drawn(visit(serve({"events": Shown(document(files={"at_least": True}))}).url))
    expect(figure(page, "Files")).to_contain_text("at least 1,260")
    expect(page.locator("#table-sum")).to_contain_text("each figure is a least")


def test_a_count_that_still_holds_says_until_when(serve: Serve, visit: Visit) -> None:
    shown = document()
    shown["table"]["files"]["counted_ms"] -= 3_600_000
    page = drawn(visit(serve({"events": Shown(shown)}).url))
    expect(page.locator("#table-sum")).to_contain_text(re.compile(r"1 h 03 m ago, unchanged until \S+"))


@pytest.mark.parametrize(
    ("mode", "small", "warns"), [("insert", 900, True), ("insert", 40, False), ("upsert", 900, False)]
)
def test_many_small_files_are_marked_where_something_can_be_done(
    serve: Serve, visit: Visit, mode: str, small: int, warns: bool
) -> None:
    shown = document(files={"small_files": small, "files": small + 10})
    shown["table"]["mode"] = mode
    page = drawn(visit(serve({"events": Shown(shown)}).url))
    expect(figure(page, "Small files")).to_be_visible()
    assert (figure(page, "Small files").get_attribute("data-kind") == "warn") is warns


@pytest.mark.parametrize(("small", "said"), [(0, "0 %"), (1, "< 1 %"), (1_259, "> 99 %"), (1_260, "100 %")])
def test_a_share_is_never_rounded_to_none_or_to_all(
    serve: Serve, visit: Visit, small: int, said: str
) -> None:
    page = drawn(visit(serve({"events": Shown(document(files={"small_files": small}))}).url))
    expect(figure(page, "Small files").locator("dd").first).to_have_text(said)


def test_columns_open_by_the_keyboard_and_their_changes_name_the_instant(serve: Serve, visit: Visit) -> None:
    page = drawn(visit(serve({"events": Shown(document())}).url))
    change = page.locator("#schema-changes li")
    expect(change).to_contain_text("note added, STRING; amount is DOUBLE, was FLOAT")
    expect(change).to_contain_text("instant 20261126030102003")
    expect(page.locator("#schema-since")).to_contain_text("since instant 20261126010000000")
    summary = page.locator("#schema-sum")
    expect(summary).to_have_text("8 columns now")
    expect(page.locator("#schema")).to_be_hidden()
    summary.focus()
    page.keyboard.press("Enter")
    columns = page.locator("#schema li")
    expect(columns).to_have_count(8)
    expect(columns.first).to_be_visible()
    expect(columns.last).to_have_text("_kafka_timestampTIMESTAMP NOT NULL")
    page.keyboard.press("Enter")
    expect(columns.first).to_be_hidden()


@pytest.mark.parametrize("width", [400, 1_600])
def test_thousands_of_columns_are_bounded_and_within_the_window(
    serve: Serve, visit: Visit, width: int
) -> None:
    page = drawn(visit(serve({"events": Shown(wide(5_000))}).url, width=width))
    page.locator("#schema-sum").click()
    expect(page.locator("#schema-sum")).to_have_text("5,000 columns now")
    expect(page.locator("#schema li")).to_have_count(COLUMNS_SHOWN_MAX)
    expect(page.locator("#schema-rest")).to_have_text("and 4,800 more")
    expect(page.locator("#schema-changes li")).to_have_count(CHANGES_SHOWN_MAX)
    expect(page.locator("#schema-changes li").first).to_contain_text("and 4,990 more")
    expect(page.locator("#schema-since")).to_contain_text("and 70 more")
    assert overflow_px(page) <= 0


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_in_the_card_that_is_open(serve: Serve, visit: Visit, dark: bool) -> None:
    nothing = documents.document(count=0)
    nothing["table"].update(files=None, schema=None)
    marked = document(files={"small_files": 1_100, "log_files": 4, "at_least": True})
    for shown in (marked, wide(400), nothing):
        page = drawn(visit(serve({"events": Shown(shown)}).url, dark=dark, width=700))
        if shown is not nothing:
            page.locator("#schema-sum").click()
            expect(page.locator("#schema li").first).to_be_visible()
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()
