"""The page of a real run: transactions as they come, a worker that dies, a driver that does."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from lockstep.errors import EXIT_HALTED
from tests.harness import Pipeline, Run, await_that
from tests.page_fixture import TOLD_MS, Visit, browser, visit

__all__ = ["browser", "visit"]

pytestmark = pytest.mark.timeout(900)

SOON_MS = 60_000
ABORTED_MS = 10_000


def address(run: Run) -> str:
    """Where the run says that its page is."""
    found = await_that("address of the page in the log", lambda: re.search(r"the page: (\S+)", run.text()))
    return str(found[1])


def committed(page: Page, count: int) -> None:
    expect(page.locator("#strip button[data-phase=committed]").nth(count - 1)).to_be_attached(timeout=SOON_MS)


@pytest.mark.integration
def test_a_real_run_is_seen_as_it_goes_and_as_it_ends(pipeline: Pipeline, visit: Visit) -> None:
    run = pipeline.start()
    page = visit(address(run), dark=True)
    expect(page.locator("main[data-shown]")).to_be_attached(timeout=SOON_MS)
    for _ in range(2):
        before = page.locator("#strip button[data-phase=committed]").count()
        pipeline.produce(400)
        committed(page, before + 1)
    expect(page.locator("#behind")).to_have_text("up to date", timeout=SOON_MS)
    expect(page.locator("#workers > li")).to_have_count(2)

    page.locator("#rows button[data-phase=committed]").first.click()
    story = page.get_by_role("dialog")
    expect(story.get_by_role("heading", name="Who wrote what")).to_be_visible()
    expect(story).to_contain_text("START_COMMIT")
    expect(story).to_contain_text(f"{pipeline.topic}:")
    page.keyboard.press("Escape")

    def aborted_by_a_kill() -> bool:
        pipeline.produce(400)
        run.kill_worker(coordinator=False)
        try:
            page.wait_for_selector("#strip button[data-phase=aborted]", timeout=ABORTED_MS, state="attached")
        except Exception:  # noqa: BLE001 - it died between two transactions
            return False
        return True

    await_that("transaction that a worker's death has aborted", aborted_by_a_kill)
    expect(page.locator("#troubles")).to_contain_text("worker", timeout=SOON_MS)
    page.locator("#strip button[data-phase=aborted]").last.click()
    expect(story).to_contain_text("the same records are read again")
    page.keyboard.press("Escape")

    expect(page.locator("#table-figures")).to_contain_text("Small files", timeout=SOON_MS)
    expect(page.locator("#schema-sum")).to_contain_text("columns now")
    run.kill()
    expect(page.locator("#notices")).to_contain_text("The driver does not answer since", timeout=TOLD_MS)


@pytest.mark.integration
def test_a_run_that_has_ended_is_seen_without_its_driver(
    pipeline: Pipeline, visit: Visit, make_pipeline: Callable[[int], Pipeline]
) -> None:
    pipeline.produce(300)
    assert pipeline.run_to_end().process.returncode == 0
    command = [sys.executable, "-m", "lockstep.cli", "ui", "-c", str(pipeline.config), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            page = visit(str(re.findall(r"http://\S+", said)[0]))
            expect(page.locator("#headline")).to_have_text("NOT RUNNING", timeout=SOON_MS)
            committed(page, 1)
            expect(page.locator("#behind")).to_have_text("up to date", timeout=SOON_MS)
            expect(page.locator("#sources")).to_contain_text("the driver: does not answer here")
        finally:
            process.terminate()
            process.wait(30)


@pytest.mark.integration
def test_without_a_file_the_page_is_of_the_runs_that_go_on_here(pipeline: Pipeline, visit: Visit) -> None:
    """With what their command lines had set beside their files."""
    run = pipeline.start()
    pipeline.produce(300)
    run.await_rows(pipeline.produced)
    command = [sys.executable, "-m", "lockstep.cli", "ui", "--port", "0"]
    environment = pipeline._environment()
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as process:
        try:
            assert process.stdout is not None
            said = next(line for line in process.stdout if "http://" in line)
            page = visit(str(re.findall(r"http://\S+", said)[0]))
            expect(page.locator("#pipeline")).to_have_text(pipeline.id, timeout=SOON_MS)
            committed(page, 1)
            expect(page.locator("#workers > li")).to_have_count(2)
        finally:
            process.terminate()
            process.wait(30)


@pytest.mark.integration
def test_a_halt_is_still_read_when_its_driver_has_ended(pipeline: Pipeline, visit: Visit) -> None:
    run = pipeline.start()
    page = visit(address(run))
    pipeline.produce(200)
    committed(page, 1)
    pipeline.produce_raw([b"this is no JSON"], partition=1)
    expect(page.locator("#headline")).to_have_text("HALTED", timeout=SOON_MS)
    expect(page.locator("#halt")).to_contain_text(f"{pipeline.topic}:1")
    assert run.wait(120) == EXIT_HALTED
    expect(page.locator("#notices")).to_contain_text("The driver does not answer since", timeout=TOLD_MS)
    expect(page.locator("#halt")).to_be_visible()


@pytest.mark.integration
def test_a_run_whose_page_cannot_be_goes_on_without(pipeline: Pipeline) -> None:
    pipeline.produce(100)
    pipeline.settings.update({"ui.bind": "203.0.113.9", "ui.token": "${env:PAGE_TOKEN}"})
    pipeline.environment["PAGE_TOKEN"] = "a-token-of-some-length"
    run = pipeline.run_to_end()
    assert run.process.returncode == 0, run.text()
    assert "this run has no page: The page cannot listen on 203.0.113.9" in run.text()
    assert "a-token-of-some-length" not in run.text()
