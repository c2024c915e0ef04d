"""`make page-pictures`: plays the demo, for real, and takes its page as a browser shows it, light and dark.

One moment of one run: after both kills, while a transaction is open. Nothing in it is drawn by hand.
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import click
from playwright.sync_api import Browser, Page, expect, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from lockstep.demo.run import DemoSettings, run_demo  # noqa: E402
from lockstep.demo.view import Scene  # noqa: E402
from lockstep.output import ConsoleOutput  # noqa: E402
from tests.debian import chromium  # noqa: E402

FOLDER = ROOT / "docs"
THEMES = ("light", "dark")
WIDTH, HEIGHT = 1_280, 1_010
BYTES_MAX = 250_000
RECORDS = 1_500_000
INTERVAL = "1s"
SHARE = 0.8
"""Of the records committed before the moment that is kept: both kills are over by then."""


class Camera:
    """A view that takes the page of the run that it watches, once."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self.taken: list[Path] = []

    def say(self, sentence: str, *, style: str = "") -> None:
        click.echo(sentence)

    def show(self, scene: Scene) -> None:
        known = scene.known
        enough = known.committed_total >= SHARE * sum(scene.wanted.values())
        if self.taken or not (enough and scene.page and known.open_transaction is not None):
            return
        windows = {theme: self._open(scene.page, theme) for theme in THEMES}
        for theme, window in windows.items():
            path = FOLDER / f"page-{theme}.png"
            window.screenshot(path=path)
            self.taken.append(path)
            window.context.close()

    def _open(self, url: str, theme: str) -> Page:
        size = {"width": WIDTH, "height": HEIGHT}
        context = self._browser.new_context(viewport=size, color_scheme=theme, reduced_motion="reduce")
        page = context.new_page()
        page.goto(url)
        page.wait_for_selector("main[data-shown] #strip button")
        expect(page.locator("#link")).to_have_text("live")
        return page

    def close(self) -> None:
        return


@click.command()
@click.option("--records", type=click.IntRange(min=100_000), default=RECORDS, show_default=True)
def main(records: int) -> None:
    """Play the demo and write the two pictures."""
    binary, environment = chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(binary),
            env={**os.environ, **environment},
            args=["--no-sandbox", "--disable-gpu"],
        )
        camera = Camera(browser)
        settings = DemoSettings(records=records, interval=INTERVAL, keep=False)
        report = run_demo(settings, ConsoleOutput(io.StringIO()), camera)
        browser.close()
    if len(camera.taken) < len(THEMES) or not report.exact:
        raise click.ClickException(
            "The run was not exact, or ended before its moment: there are no pictures."
        )
    for path in camera.taken:
        if path.stat().st_size > BYTES_MAX:
            raise click.ClickException(f"{path.name} is larger than {BYTES_MAX:,} bytes.")
        click.echo(f"{path.relative_to(ROOT)} is written.")


if __name__ == "__main__":
    main()
