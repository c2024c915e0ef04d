"""From a red page to the cause in three clicks, as somebody who was woken up: each on a real run."""

from __future__ import annotations

import os
import re
import signal
from contextlib import ExitStack

import pytest
from playwright.sync_api import Page, expect

from tests.broker_quota import slowed
from tests.harness import Pipeline, Run, await_that
from tests.locked_table import locked
from tests.page_fixture import Visit, browser, visit
from tests.small_disk import NoMount, filled, small_disk

__all__ = ["browser", "visit"]

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

SOON_MS = 180_000
TOKEN = "a-token-of-some-length"
SLOWED = "a-slowed-client"


def begun(pipeline: Pipeline, visit: Visit, *, query: str = "") -> tuple[Run, Page]:
    """A run that has committed, and its page."""
    run = pipeline.start()
    address = await_that("the page's address", lambda: re.search(r"the page: (\S+)", run.text()))
    pipeline.produce(300)
    run.await_rows(pipeline.produced)
    page = visit(address[1] + query)
    expect(page.locator("main[data-shown]")).to_be_attached(timeout=SOON_MS)
    return run, page


def pid_of(run: Run, *, slot: int) -> int | None:
    for one in (run.status() or {}).get("workers", ()):
        if one["slot"] == slot and one["state"] != "dead":
            return int(one["pid"])
    return None


def test_a_worker_killed_in_a_loop(pipeline: Pipeline, visit: Visit) -> None:
    run, page = begun(pipeline, visit)
    for number in range(1, 3):
        killed = await_that("worker-1", lambda: pid_of(run, slot=1))  # whichever holds the coordinator
        os.kill(killed, signal.SIGKILL)
        expect(page.locator("#workers")).to_contain_text(f"started again {number} time", timeout=SOON_MS)
        await_that("the worker's successor", lambda gone=killed: pid_of(run, slot=1) not in (None, gone))
    expect(page.locator("#troubles")).to_contain_text("worker-1: its process died (2 times)")
    expect(page.locator("#workers")).to_contain_text("its process died")


def test_a_full_disk(pipeline: Pipeline, visit: Visit) -> None:
    with ExitStack() as stack:
        try:
            stack.enter_context(small_disk(pipeline.table))
        except NoMount as error:
            pytest.skip(str(error))
        stack.callback(pipeline.close)
        _run, page = begun(pipeline, visit)
        with filled(pipeline.table):
            pipeline.produce(3_000)
            expect(page.locator("#stand")).to_contain_text("No space left on device", timeout=SOON_MS)
            expect(page.locator("#troubles")).to_contain_text("No space left on device", timeout=SOON_MS)


def test_a_poison_record(pipeline: Pipeline, visit: Visit) -> None:
    pipeline.settings |= {
        "record.on_error": "dead_letter",
        "ui.show_values": "true",
        "ui.token": "${env:PAGE_TOKEN}",
    }
    pipeline.environment["PAGE_TOKEN"] = TOKEN
    _run, page = begun(pipeline, visit, query=f"?token={TOKEN}")
    pipeline.produce_raw([b"this is no JSON"], partition=1)
    expect(page.locator("#dead-reasons")).to_contain_text("JSON", timeout=SOON_MS)
    expect(page.locator("#dead-sample")).to_contain_text(f"{pipeline.topic}:1@")
    expect(page.locator("main")).not_to_contain_text("this is no JSON")
    page.locator("#dead-sample button").first.click()
    expect(page.locator("#dead-sample .value")).to_have_text("this is no JSON", timeout=SOON_MS)


def test_a_lock_that_somebody_else_holds(pipeline: Pipeline, visit: Visit) -> None:
    _run, page = begun(pipeline, visit)
    with locked(pipeline.table):
        pipeline.produce(300)
        expect(page.locator("#stand")).to_contain_text(re.compile("lock", re.IGNORECASE), timeout=SOON_MS)


def test_a_consumer_that_is_too_slow(pipeline: Pipeline, visit: Visit) -> None:
    """It is given less than is produced: it waits for the broker nearly all of its time."""
    pipeline.settings["source.kafka.client.id"] = SLOWED
    _run, page = begun(pipeline, visit)
    with slowed(pipeline.broker, SLOWED, bytes_per_s=20_000):
        pipeline.produce(30_000)
        expect(page.locator("#behind-more")).to_contain_text("record", timeout=SOON_MS)
        spent = page.locator("#workers > li").first.locator(".spent-words")
        expect(spent).to_have_text(re.compile(r"most of its time: (wait|consume) \d+ %, (wait|consume)"))
        expect(page.locator("#partitions")).to_contain_text("behind")
        expect(page.locator("#workers-sum")).to_contain_text("the broker, or the network, gives them no more")
