"""What became of each of their properties, for people and for programs. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from lockstep.config.problems import Problem
from lockstep.migrate.sheet import Line, Verdict
from lockstep.output import table

HEADINGS: Mapping[Verdict, str] = {
    Verdict.SAME: "Means the same",
    Verdict.DIFFERS: "Differs",
    Verdict.NO_EQUAL: "Has no equal",
    Verdict.UNKNOWN: "Not known: nothing was made of these",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One translation."""

    what: str
    """Whose configuration it was."""
    path: str
    """Where the pipeline's file is; empty where it was only printed."""
    lines: Sequence[Line]
    missing: Mapping[str, str]
    """Setting, or variable -> what is to be said there."""
    notes: Sequence[str]
    problems: Sequence[Problem]
    """What a run would refuse, beside what is missing."""
    toml: str

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "what": self.what,
            "file": self.path,
            "properties": [{**asdict(line), "verdict": line.verdict.value} for line in self.lines],
            "missing": dict(self.missing),
            "notes": list(self.notes),
            "problems": [{"settings": list(one.settings), "sentence": one.sentence} for one in self.problems],
            "toml": self.toml,
        }

    def to_text(self) -> RenderableType:
        """For people: the counts, a table for each verdict, and what is to be done next."""
        counts = Counter(line.verdict for line in self.lines)
        told = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict)
        parts: list[RenderableType] = [Text(f"{self.what}: {told}.", style="bold")]
        for verdict, heading in HEADINGS.items():
            lines = [line for line in self.lines if line.verdict is verdict]
            if lines:
                parts += ["", Text(heading, style="bold"), _table(lines)]
        if self.missing:
            rows = list(self.missing.items())
            parts += ["", Text("To be said by you", style="bold"), table(("setting", "what"), rows)]
        if self.problems:
            parts += ["", Text("A run would refuse it yet", style="bold")]
            parts += [Text(f"  {one.settings[0]}: {one.sentence}") for one in self.problems]
        for note in self.notes:
            parts += ["", Text(note)]
        if self.path:
            where = f"{self.path} is written. "
            then = (
                "Read it through, then: lockstep validate -c …"
                if not self.missing
                else "Say what is missing in it."
            )
            parts += ["", Text(where + then, style="bold")]
        else:
            parts += ["", Text(self.toml)]
        return Group(*parts)


def _table(lines: Sequence[Line]) -> RenderableType:
    ours = ("", "") if all(not line.setting for line in lines) else ("ours", "value of ours")
    rows = []
    for line in lines:
        own = (line.setting, line.ours) if ours[0] else ()
        rows.append((line.name, line.value, *own, line.why))
    return table(("theirs", "value", *filter(None, ours), "why"), rows)
