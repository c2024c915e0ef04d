"""What `lockstep verify` found, for people and for programs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from lockstep.output import readable_count, table
from lockstep.verify.chain import Move

LINES_SHOWN_MAX = 20


@dataclass(slots=True, kw_only=True)
class PartitionReport:
    """One source partition. Lists of examples hold the first 20 offsets."""

    topic: str
    partition: int
    committed: int | None = None
    """The next offset, in the newest commit."""
    ranges: int = 0
    rows: int = 0
    missing: int = 0
    missing_examples: list[int] = field(default_factory=list)
    duplicated: int = 0
    duplicated_examples: list[int] = field(default_factory=list)
    unexpected: int = 0
    unexpected_examples: list[int] = field(default_factory=list)
    rejected: int = 0
    """Went to the dead-letter topic."""
    lost: list[tuple[int, int]] = field(default_factory=list)
    """Intervals that retention took before they were read, as the commits recorded them."""
    gaps: int = 0
    """Offsets without a row that the log has no record for either."""
    reread: int = 0
    """Offsets committed once more on an operator's order."""
    rewritten: int = 0
    """Rows that another writer's instant wrote last."""
    unknown: int = 0
    """Missing, and not to be looked up."""


@dataclass(slots=True, kw_only=True)
class VerifyReport:
    """The verdict."""

    pipeline: str
    table: str
    exact: bool | None = None
    """None where it is not checkable; then `not_checkable` says why."""
    rows: int = 0
    """Of this pipeline's instants."""
    missing: int = 0
    """Offsets of committed ranges whose record the table does not have."""
    duplicated: int = 0
    """Rows beyond one per offset."""
    unexpected: int = 0
    """Rows that no commit accounts for."""
    rejected: int = 0
    lost: int = 0
    gaps: int = 0
    foreign_rows: int = 0
    """Of everybody else's."""
    later_rows: int = 0
    commits: int = 0
    first_instant: str = ""
    last_instant: str = ""
    epoch: int = 0
    partitions: list[PartitionReport] = field(default_factory=list)
    ranges_broken: list[str] = field(default_factory=list)
    metadata_broken: list[str] = field(default_factory=list)
    """Why readers by Hudi's metadata table find other rows."""
    operator: list[Move] = field(default_factory=list)
    not_checkable: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def conclude(self, *, excusable: int) -> None:
        """Add up and decide. `excusable`: so many missing rows others may have deleted rightfully."""
        for part in self.partitions:
            self.missing += part.missing
            self.duplicated += part.duplicated
            self.unexpected += part.unexpected
            self.gaps += part.gaps
            self.lost += sum(end - start for start, end in part.lost)
        if 0 < self.missing <= excusable:
            self.not_checkable.append(
                f"{readable_count(self.missing)} rows are missing, and other writers have deleted or replaced"
                " rows of this table"
            )
        broken = self.ranges_broken or self.metadata_broken
        wrong = self.duplicated or self.unexpected or broken or self.missing > excusable
        self.exact = False if wrong else None if self.not_checkable else True

    def to_json(self) -> dict[str, Any]:
        """Base units. `operator` lists the offsets that operators changed, with their reasons."""
        return {
            **asdict(self),
            "operator": [
                {
                    **asdict(move),
                    "topic": move.partition.topic,
                    "partition": move.partition.number,
                }
                for move in self.operator
            ],
        }

    def to_text(self) -> RenderableType:
        """A sentence, then a line per source partition, then what was found, then what was not checkable."""
        parts: list[RenderableType] = [self._sentence()]
        if self.partitions:
            parts += ["", self._partitions()]
        for title, lines in (
            ("Broken:", [*self.ranges_broken, *self.metadata_broken]),
            ("Examples:", list(self._examples())),
            ("Not checkable:", self.not_checkable),
            ("Changed by operators:", [_said(move) for move in self.operator]),
            ("Also:", [*self.notes, *self._notes()]),
        ):
            parts += _section(title, lines)
        return Group(*parts)

    def _sentence(self) -> Text:
        rows, commits = readable_count(self.rows), readable_count(self.commits)
        if self.exact:
            style = "bold green"
            said = f"Exact: {rows} rows in {commits} commits, every committed offset once, no other."
        elif self.exact is None:
            style = "bold yellow"
            what = f"{rows} rows in {commits} commits" if self.rows else f"{commits} commits"
            said = f"Not checkable: {what}; nothing wrong was found in what is."
            if self.missing:
                said = (
                    f"Not checkable: {rows} rows in {commits} commits; {self.missing} are missing, see below."
                )
        else:
            style = "bold red"
            found = [
                f"{readable_count(number)} {name}"
                for number, name in (
                    (self.missing, "missing"),
                    (self.duplicated, "duplicated"),
                    (self.unexpected, "unexpected"),
                    (len(self.ranges_broken), "broken rules"),
                )
                if number
            ]
            said = f"NOT EXACT: {', '.join(found)}, of {rows} rows in {commits} commits."
        return Text(said, style=style)

    def _partitions(self) -> RenderableType:
        numbers = ("committed", "ranges", "rows", "missing", "duplicated", "unexpected", "rejected", "lost")
        columns = ("source partition", *numbers, "gaps")
        return table(
            columns,
            (
                (
                    f"{part.topic}:{part.partition}",
                    "-" if part.committed is None else readable_count(part.committed),
                    *map(
                        readable_count,
                        (
                            part.ranges,
                            part.rows,
                            part.missing,
                            part.duplicated,
                            part.unexpected,
                            part.rejected,
                            sum(end - start for start, end in part.lost),
                            part.gaps,
                        ),
                    ),
                )
                for part in self.partitions
            ),
            right=columns[1:],
        )

    def _examples(self) -> Iterable[str]:
        for part in self.partitions:
            for name, examples in (
                ("missing", part.missing_examples),
                ("duplicated", part.duplicated_examples),
                ("unexpected", part.unexpected_examples),
            ):
                if examples:
                    yield f"{part.topic}:{part.partition} {name}: {', '.join(map(str, examples))}"

    def _notes(self) -> Iterable[str]:
        if self.foreign_rows:
            yield f"{readable_count(self.foreign_rows)} rows are of other writers' instants and not counted"
        if self.later_rows:
            yield f"{readable_count(self.later_rows)} rows were committed while this looked"
        for part in self.partitions:
            where = f"{part.topic}:{part.partition}"
            for start, end in part.lost:
                yield f"{where}: retention removed [{start}, {end}) before it was read, as the commit says"
            if part.reread:
                yield f"{where}: {readable_count(part.reread)} offsets are there again on an operator's order"
            if part.rewritten:
                yield f"{where}: {readable_count(part.rewritten)} rows were rewritten by other writers"


def _said(move: Move) -> str:
    before = "nothing" if move.before is None else move.before
    after = "nothing" if move.after is None else move.after
    who = f" by {move.operator}" if move.operator else ""
    return f"{move.partition} from {before} to {after}{who} (instant {move.instant}): {move.reason}"


def _section(title: str, lines: Sequence[str]) -> list[RenderableType]:
    if not lines:
        return []
    shown: list[RenderableType] = ["", Text(title, style="bold")]
    shown += [Text(f"  {line}") for line in lines[:LINES_SHOWN_MAX]]
    if len(lines) > LINES_SHOWN_MAX:
        shown.append(Text(f"  and {len(lines) - LINES_SHOWN_MAX} more; --output json has all"))
    return shown
