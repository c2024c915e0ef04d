"""Dead letters for people and for programs. Pure.

What is in a record (its value, its key, what its headers say, the row it would be) may be nobody else's to
see, and is shown only where that is asked for. Reasons and the names of headers hold no content.
"""

from __future__ import annotations

import base64
import json
import textwrap
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from control_topic.messages import SourcePartition
from control_topic.spelling import one_line, some
from lockstep.letters.choice import Counts
from lockstep.letters.committed_rejects import Standing
from lockstep.letters.letter import Letter, NoLetter
from lockstep.letters.marks import SentBack
from lockstep.letters.trial import Verdict
from lockstep.output import readable_count, readable_size

SHOWN_CHARS_MAX = 2_000
"""Of a value, for people. Programs get all of it."""
NAMED_MAX = 3
INDENT = " " * 16
TIME_WIDTH = len("12-31 15:00:00")
NO_TIME = "--"
PLACE_WIDTH = 24
NOW_WIDTH = len("sent back")
UNPROVED = {
    Standing.ROW: "the record is a row (its letter belongs to an aborted transaction)",
    Standing.OPEN: "its offset is not committed (the next commit decides; replay again after it)",
    Standing.UNCOVERED: "no commit covers its offset (an operator skipped it, or another table has it)",
    Standing.UNDECIDED: (
        "its commit does not list all its rejects, and the topics hold more or fewer letters of its run than "
        "it counted"
    ),
}
"""Why a letter is not replayed: only a committed transaction proves that its record was rejected."""
_STYLES = {"row": "green", "delete": "green", "no row": "red", "sent back": "dim"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A letter that is shown. `went`: where it was sent back to; None where it was not. `why_not_sent`: of a
    letter that was to go back and cannot.
    """

    letter: Letter
    verdict: Verdict
    went: SentBack | None = None
    why_not_sent: str = ""

    @property
    def now(self) -> str:
        if self.went is not None:
            return "sent back"
        if not self.verdict.is_row:
            return "no row"
        return "delete" if self.verdict.deletes else "row"


# --- for programs -----------------------------------------------------------------------------


def as_json(seen: Seen, *, values: bool) -> dict[str, Any]:
    """One JSON line. Times are milliseconds since 1970, sizes bytes."""
    letter, verdict, went = seen.letter, seen.verdict, seen.went
    told: dict[str, Any] = {
        "topic": letter.partition.topic,
        "partition": letter.partition.number,
        "offset": letter.offset,
        "timestamp": letter.timestamp_ms,
        "reason": letter.reason,
        "set_aside": letter.place.time_ms,
        "letter": {
            "topic": letter.place.partition.topic,
            "partition": letter.place.partition.number,
            "offset": letter.place.offset,
        },
        "key_bytes": None if letter.key is None else len(letter.key),
        "value_bytes": None if letter.value is None else len(letter.value),
        "headers": [_readable(name) for name, _ in letter.headers],
        "headers_note": letter.note or None,
        "now": {"row": verdict.is_row, "deletes": verdict.deletes, "reason": verdict.reason or None},
        "sent_back": None
        if went is None
        else {"partition": went.number, "offset": went.offset, "time": went.time_ms},
        "why_not_sent": seen.why_not_sent or None,
    }
    if values:
        told |= {
            "key": _content(letter.key),
            "value": _content(letter.value),
            "header_values": [_content(value) for _, value in letter.headers],
            "row": _row(verdict),
        }
    return told


def _content(value: bytes | None) -> dict[str, str] | None:
    """As text where it is UTF-8, else as base64."""
    if value is None:
        return None
    try:
        return {"text": value.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


def _row(verdict: Verdict) -> Any:
    """Of types that JSON has not, their texts."""
    if verdict.row is None:
        return None
    return json.loads(json.dumps(verdict.row, default=_spelled), parse_constant=str)


def _spelled(value: object) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _readable(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


# --- for people -------------------------------------------------------------------------------


def heading() -> Text:
    """The columns' names, in the widths of `as_text`."""
    return Text(_columns("set aside", "record", "size", "now") + "reason", style="bold")


def as_text(seen: Seen, *, values: bool, width: int | None = None, zone: tzinfo | None = None) -> Text:
    """A letter as a line, and what is to be said of it below. Times are of `zone`, None: the machine's."""
    letter = seen.letter
    size = readable_size(letter.size_bytes)
    head = _columns(_time(letter.place.time_ms, zone), letter.name, size, seen.now)
    line = Text(head)
    at = TIME_WIDTH + 2 + max(PLACE_WIDTH, len(one_line(letter.name))) + 2 + 8 + 2
    line.stylize(_STYLES[seen.now], at, at + len(seen.now))
    reason = one_line(letter.reason)
    if width is None or len(head) + len(reason) <= width:
        line.append(reason)
    else:
        line.rstrip()
        _below(line, "", reason, width)
    for label, text in _details(seen, values=values):
        _below(line, label, text, width)
    line.rstrip()
    return line


def _details(seen: Seen, *, values: bool) -> Iterable[tuple[str, str]]:
    letter, verdict = seen.letter, seen.verdict
    if seen.went is not None and seen.went.offset >= 0:
        place = SourcePartition(letter.partition.topic, seen.went.number)
        yield "went to", f"{place}@{seen.went.offset}"
    if seen.why_not_sent:
        yield "stays", seen.why_not_sent
    if not verdict.is_row and verdict.reason != letter.reason:
        yield "now", verdict.reason
    if letter.headers or letter.note:
        names = ", ".join(
            _readable(name) if not values else _header(name, value) for name, value in letter.headers
        )
        yield "headers", "; ".join(filter(None, (names, letter.note)))
    if values:
        yield "key", "none" if letter.key is None else _shown(letter.key)
        yield "value", "none" if letter.value is None else _shown(letter.value)
        if verdict.row is not None:
            yield "row", json.dumps(verdict.row, ensure_ascii=False, default=_spelled)[:SHOWN_CHARS_MAX]


def _header(name: str, value: bytes | None) -> str:
    return f"{_readable(name)}={'none' if value is None else _shown(value)}"


def _shown(value: bytes) -> str:
    text = value[: 4 * SHOWN_CHARS_MAX].decode("utf-8", "backslashreplace")
    return (
        text
        if len(text) <= SHOWN_CHARS_MAX and len(value) <= 4 * SHOWN_CHARS_MAX
        else text[:SHOWN_CHARS_MAX] + "…"
    )


def _below(line: Text, label: str, text: str, width: int | None) -> None:
    label = f"{label:<8}" if label else ""
    whole = label + one_line(text)
    parts = [whole]
    if width is not None:
        parts = textwrap.wrap(whole, max(width - len(INDENT), 20), break_on_hyphens=False)
    line.append("".join(f"\n{INDENT}{part}" for part in parts), style="dim")


def _columns(time: str, place: str, size: str, now: str) -> str:
    return f"{time:<{TIME_WIDTH}}  {one_line(place):<{PLACE_WIDTH}}  {size:>8}  {now:<{NOW_WIDTH}}  "


def _time(time_ms: int, zone: tzinfo | None) -> str:
    try:
        return datetime.fromtimestamp(time_ms / 1_000, tz=zone).strftime("%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return NO_TIME


# --- what came of all of them -----------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class Outcome:
    """`replay`: whether they were to go back; `executed`: whether they did."""

    replay: bool = False
    executed: bool = False
    limit: int | None = None
    counts: list[Counts] = field(default_factory=list)
    shown: int = 0
    rows: int = 0
    left_out: int = 0
    """That would be no row now, where only such as would be one were asked for."""
    sent: Counter[SourcePartition] = field(default_factory=Counter)
    """Or would be."""
    again: int = 0
    """Of those: that are no row with this schema, and set aside again."""
    not_sent: int = 0
    unproved: Counter[Standing] = field(default_factory=Counter)
    """Letters that are not replayed, since no committed transaction rejected their records."""
    limited: bool = False
    """There may be more."""
    warnings: list[str] = field(default_factory=list)

    def add(self, seen: Seen) -> None:
        self.shown += 1
        self.rows += seen.verdict.is_row
        if self.replay and seen.why_not_sent:
            self.not_sent += 1
        elif self.replay:
            letter = seen.letter
            self.again += not seen.verdict.is_row
            topic, number = letter.partition
            self.sent[SourcePartition(topic, seen.went.number if seen.went is not None else number)] += 1

    def _sum(self, name: str) -> int:
        return sum(int(getattr(one, name)) for one in self.counts)

    @property
    def unreadable_named(self) -> list[NoLetter]:
        return [one for counts in self.counts for one in counts.unreadable_named][:NAMED_MAX]

    def to_json(self) -> dict[str, Any]:
        """The last line of a stream that ends."""
        return {
            "summary": {
                "replay": self.replay,
                "executed": self.executed,
                "letters": self.shown,
                "would_be_rows": self.rows,
                "sent" if self.executed else "would_be_sent": sum(self.sent.values()),
                "no_rows_with_this_schema": self.again,
                "not_sent": self.not_sent,
                "left_out": self.left_out,
                "not_rejected_by_a_commit": {one.value: self.unproved[one] for one in UNPROVED},
                "sent_back_before": self._sum("sent_back"),
                "set_aside_more_than_once": self._sum("again"),
                "of_other_pipelines": self._sum("others"),
                "unreadable": self._sum("unreadable"),
                "limit_reached": self.limited,
                "warnings": self.warnings,
            }
        }

    def to_text(self) -> RenderableType:
        """What is to be known beside the letters."""
        lines: list[RenderableType] = [""] if self.shown else []
        lines.append(Text(self._headline(), style="bold"))
        lines += [Text(one_line(line)) for line in self._notes()]
        lines += [Text(f"note: {one_line(line)}", style="yellow") for line in self.warnings]
        return Group(*lines)

    def _headline(self) -> str:
        if not self.shown:
            return "No dead letter to show." if not self.replay else "No dead letter to send back."
        if not self.replay:
            rows = "a row" if self.rows == 1 else "rows"
            return f"{_letters(self.shown)}: {readable_count(self.rows)} would be {rows} now."
        places = some([f"{place} ({readable_count(n)})" for place, n in sorted(self.sent.items())])
        count = _letters(sum(self.sent.values()))
        if self.executed:
            return f"Done: {count} sent back{f' to {places}' if places else ''}."
        return f"A dry run: nothing was sent. {count} would go back{f' to {places}' if places else ''}."

    def _notes(self) -> Iterable[str]:
        if self.replay and not self.executed and self.sent:
            yield "Do it with --execute --why TEXT."
        if self.again:
            yield (
                f"No row with this schema, and set aside again: {readable_count(self.again)} "
                "(without --mended)."
            )
        if self.not_sent:
            yield f"What cannot be sent as it was stays: {_letters(self.not_sent)}, each says why."
        if self.limited and self.limit is not None:
            yield f"The first {readable_count(self.limit)}; there may be more: --limit, --since, --record."
        for count, what in (
            (self.left_out, "no row now either"),
            (self._sum("sent_back"), "sent back before (--all shows them)"),
            (self._sum("again"), "of a record that is shown, and was set aside more than once"),
            (self._sum("others"), "of topics that are not this pipeline's"),
        ):
            if count:
                yield f"Left out, {what}: {readable_count(count)}."
        for standing, why in UNPROVED.items():
            if count := self.unproved[standing]:
                yield f"Not replayed, {why}: {readable_count(count)}."
        if unreadable := self._sum("unreadable"):
            first = self.unreadable_named[0]
            where = f"{first.place.partition}@{first.place.offset}"
            yield f"Not to be read: {readable_count(unreadable)}, first {where}: {first.why}."


def _letters(count: int) -> str:
    return f"{readable_count(count)} dead letter{'' if count == 1 else 's'}"
