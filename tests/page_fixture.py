"""A real browser for tests of the page, and the page of whatever a test shows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import TypeAlias

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from lockstep.ui.port import Ordering, Watched
from lockstep.ui.server import PageServer
from tests.debian import NotToBeHad, chromium

NOTICE_VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (one) => window.violations.push(one.violatedDirective));
"""
ANSWER_MS = 30_000
"""What a page does at once it may do so late, on a machine that does much else."""
TOLD_MS = 60_000
"""So late at most it says that nobody answers, which it knows 8 s after a frozen server's last word."""
expect.set_options(timeout=ANSWER_MS)


Serve: TypeAlias = Callable[..., PageServer]
Visit: TypeAlias = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's chromium; skips where it cannot be had."""
    try:
        binary, environment = chromium()
    except NotToBeHad as error:
        pytest.skip(str(error))
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(
            executable_path=str(binary),
            env={**os.environ, **environment},
            args=["--no-sandbox", "--disable-gpu"],  # of root there is no sandbox
        )
        yield made
        made.close()


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serves pipelines, on loopback, until the test ends."""
    with ExitStack() as stack:

        def start(
            watched: Mapping[str, Watched],
            *,
            port: int = 0,
            token: str = "",
            speaker: str = "The driver",
            orders: Mapping[str, Ordering] | None = None,
        ) -> PageServer:
            server = PageServer(
                watched, bind="127.0.0.1", port=port, token=token, speaker=speaker, orders=orders
            )
            server.start()
            stack.callback(server.stop)
            return server

        yield start


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    """Opens an address in a window of its own. In the end: no error, no dialog, no breach of the policy."""
    found: list[str] = []
    pages: list[Page] = []
    with ExitStack() as stack:

        def start(
            url: str, *, width: int = 1_280, height: int = 900, dark: bool = False, still: bool = True
        ) -> Page:
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme="dark" if dark else "light",
                reduced_motion="reduce" if still else "no-preference",
            )
            stack.callback(context.close)
            context.set_default_timeout(ANSWER_MS)
            page = context.new_page()
            page.add_init_script(NOTICE_VIOLATIONS)
            page.on("pageerror", lambda error: found.append(f"error: {error}"))
            page.on("dialog", lambda dialog: (found.append(f"dialog: {dialog.message}"), dialog.dismiss()))
            page.goto(url)
            pages.append(page)
            return page

        yield start
        for page in pages:
            found += page.evaluate("window.violations ?? []")
    assert found == []
