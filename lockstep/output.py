"""How results leave a command: commands never print, they call an `Output`.

The console form is for people: tables and lines on stdout, styled on a terminal, plain otherwise (NO_COLOR is
obeyed). The JSON form is for programs: one document, or JSON lines for what has no end; sizes and times in
base units. Logs and errors go to stderr in both.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import IO, Protocol, TypeAlias

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table

from control_topic.spelling import json_escaped, one_line, plain

PLAIN_WIDTH = 10_000
"""Lines are not folded where nobody looks at them: a pipe, a file."""

Text: TypeAlias = RenderableType | Callable[[], RenderableType]


class OutputClosed(Exception):
    """Whoever read our output has seen enough, as `head` does."""


class _PlainConsole(Console):
    """Whatever is shown, a terminal obeys our styles alone. rich takes only some control characters away.

    rich ends the process itself on a broken pipe; how a command ends is the command line's to say.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As rich does."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control or text.isprintable() else Segment(plain(text), style)

    def on_broken_pipe(self) -> None:
        raise OutputClosed


class Output(Protocol):
    """Where a command's results go."""

    is_json: bool
    console: Console
    """For live views and widths; in the JSON form it writes to stderr."""

    def document(self, value: object, text: Text) -> None:
        """The command's one result: `value` as one JSON document, or `text` for people."""

    def line(self, value: object, text: Text) -> None:
        """One of a stream of results: `value` as one JSON line, or `text`. Flushed at once."""

    def note(self, text: Text) -> None:
        """Something for people only; nothing in the JSON form."""


class ConsoleOutput:
    """For people."""

    is_json = False

    def __init__(self, stream: IO[str] | None = None) -> None:
        stream = stream if stream is not None else sys.stdout
        width = None if stream.isatty() else PLAIN_WIDTH
        self.console: Console = _PlainConsole(
            file=stream, width=width, highlight=False, markup=False, emoji=False
        )

    def document(self, value: object, text: Text) -> None:
        self._show(text)

    def line(self, value: object, text: Text) -> None:
        self._show(text)

    def note(self, text: Text) -> None:
        self._show(text)

    def _show(self, text: Text) -> None:
        try:
            self.console.print(text() if callable(text) else text, soft_wrap=not self.console.is_terminal)
            self.console.file.flush()
        except BrokenPipeError as error:
            raise OutputClosed from error


class JsonOutput:
    """For programs."""

    is_json = True

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._stream = stream if stream is not None else sys.stdout
        self.console = Console(stderr=True, highlight=False, markup=False, emoji=False)

    def document(self, value: object, text: Text) -> None:
        self._write(json_escaped(json.dumps(value, ensure_ascii=False, indent=2)))

    def line(self, value: object, text: Text) -> None:
        self._write(json_escaped(json.dumps(value, ensure_ascii=False, separators=(",", ":"))))

    def note(self, text: Text) -> None:
        return

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text + "\n")
            self._stream.flush()
        except BrokenPipeError as error:
            raise OutputClosed from error


OUTPUTS: dict[str, Callable[[], Output]] = {"text": ConsoleOutput, "json": JsonOutput}


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[str] = ()) -> Table:
    """A table without lines; the columns named in `right` hold numbers and are aligned to the right."""
    grid = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in columns:
        grid.add_column(name, justify="right" if name in right else "left", no_wrap=name in right)
    for row in rows:
        grid.add_row(*(one_line(str(cell)) for cell in row))
    return grid


def readable_size(size_bytes: int) -> str:
    """`18.2 MB`: decimal units, three figures."""
    size = float(size_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 99.95 else f"{size:.1f} {unit}"
        size /= 1_000
    return f"{size:,.1f} TB"


def readable_duration(duration_ms: int) -> str:
    """`12 ms`, `3.4 s`, `2 m 05 s`, `1 h 02 m`, `3 d 04 h`."""
    if duration_ms < 1_000:
        return f"{duration_ms} ms"
    if duration_ms < 59_950:
        return f"{duration_ms / 1_000:.1f} s"
    seconds = round(duration_ms / 1_000)
    for size, unit, inner, inner_unit in (
        (86_400, "d", 3_600, "h"),
        (3_600, "h", 60, "m"),
        (60, "m", 1, "s"),
    ):
        if seconds >= size:
            return f"{seconds // size} {unit} {seconds % size // inner:02} {inner_unit}"
    raise AssertionError(duration_ms)


def readable_count(count: int) -> str:
    """`1,000,000`."""
    return f"{count:,}"
