"""`make picture`: plays the demo, for real, and writes what its terminal showed to docs/demo.svg.

Two moments of one run: the live view when commits have gone on after the last kill, and the verdict at the
end. Nothing in it is written by hand.
"""

from __future__ import annotations

import io
from pathlib import Path

import click
from rich.console import Console
from rich.rule import Rule
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from lockstep.commands.demo import RECORDS
from lockstep.demo.report import DemoReport
from lockstep.demo.run import DemoSettings, run_demo
from lockstep.demo.view import Scene, note_line, screen
from lockstep.output import ConsoleOutput, readable_duration

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "demo.svg"
COMMAND = "make demo"
WIDTH = 104
HEIGHT = 36
"""Of the terminal in which the live view is shown, in characters."""

COMMITS_AFTER = 2
"""So many under the last coordinator before the moment that is kept."""

THEME = TerminalTheme(
    (13, 17, 23),
    (214, 222, 232),
    [
        (72, 79, 88),
        (255, 123, 114),
        (63, 185, 80),
        (210, 153, 34),
        (88, 166, 255),
        (188, 140, 255),
        (57, 197, 207),
        (177, 186, 196),
    ],
    [
        (110, 118, 129),
        (255, 161, 152),
        (86, 211, 100),
        (227, 179, 65),
        (121, 192, 255),
        (210, 168, 255),
        (86, 212, 221),
        (240, 246, 252),
    ],
)
"""Background, ink, and the eight colours, plain and bright: to be read on a white page and on a black one."""

FORM = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
  font-family: ui-monospace, SFMono-Regular, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px;
  line-height: {line_height}px;
}}
.{unique_id}-title {{ font-size: 16px; font-family: system-ui, "Helvetica Neue", Arial, sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""rich's own, without fonts from elsewhere: a page that shows a picture loads nothing on its behalf."""


class Camera:
    """A view that keeps one moment of what a terminal would show."""

    def __init__(self) -> None:
        self.console = Console(
            file=io.StringIO(),
            record=True,
            force_terminal=True,
            color_system="truecolor",
            width=WIDTH,
            height=HEIGHT,
            highlight=False,
        )
        self.console.print(Text.assemble(("$ ", "dim"), (COMMAND, "bold")), end="\n\n")
        self._notes: list[Text] = []
        self.taken = False

    def say(self, sentence: str, *, style: str = "") -> None:
        self._notes.append(note_line(sentence, style))

    def show(self, scene: Scene) -> None:
        if not self.taken and is_the_moment(scene):
            self.taken = True
            self.console.print(screen(scene, self._notes, height=HEIGHT))

    def close(self) -> None:
        return

    def picture(self, report: DemoReport) -> str:
        """SVG. Raises `ValueError` for a run that is not exact, or that never came to the moment."""
        if not (self.taken and report.exact):
            raise ValueError("The run was not exact, or ended before its second kill: there is no picture.")
        took = readable_duration(report.ran.total_ms)
        finding = report.finding
        for part in (
            Text(),
            Rule(Text(f"at the end, after {took}", style="dim"), style="bright_black"),
            Text(),
            Text(finding.heading(), style="bold green"),
            Text(),
            finding.details(),
        ):
            self.console.print(part)
        return self.console.export_svg(
            title=COMMAND, theme=THEME, code_format=FORM, unique_id="demo", font_aspect_ratio=0.6
        )


def is_the_moment(scene: Scene) -> bool:
    """Commits have gone on under a second coordinator, and a transaction is open."""
    known = scene.known
    later = [one for one in known.commits if one.epoch > 1]
    return len(later) >= COMMITS_AFTER and known.open_transaction is not None


@click.command()
@click.option("--records", type=click.IntRange(min=100_000), default=RECORDS, show_default=True)
def main(records: int) -> None:
    """Play the demo and write its picture."""
    camera = Camera()
    output = ConsoleOutput(io.StringIO())
    report = run_demo(DemoSettings(records=records, interval="2s", keep=False), output, camera)
    PICTURE.write_text(camera.picture(report), encoding="utf-8")
    click.echo(f"The picture is {PICTURE.relative_to(ROOT)}.")


if __name__ == "__main__":
    main()
