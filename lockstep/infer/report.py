"""What a sample says, for people (TOML, to be pasted) and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from control_topic.spelling import plain
from lockstep.infer.columns import Proposal
from lockstep.infer.sample import Sample
from lockstep.infer.shapes import OBJECT, Shape, is_map, together
from lockstep.infer.trial import Verdict
from participant.records.sources import CONNECT

FIELDS_SHOWN = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a registry says."""

    said_by: str
    """Schemas, for people."""
    ddl: str

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {"said_by": self.said_by, "schema": self.ddl, "columns": {}}

    def to_text(self) -> str:
        """For people: settings."""
        lines = [*_commented(iter([f"By {self.said_by}."])), "", *_schema(self.ddl)]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inferred:
    """All that was found out."""

    topics: tuple[str, ...]
    sample: Sample
    shape: Shape
    """Of the values that are objects."""
    without_value: int
    """Records that have none."""
    no_objects: dict[str, int]
    """Why values are no objects -> how many."""
    proposal: Proposal
    verdict: Verdict
    envelope: str = "none"
    """Envelope of the values: one of `participant.records.kinds.ENVELOPES`."""

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "topics": list(self.topics),
            "records": self.sample.records,
            "size_bytes": self.sample.size_bytes,
            "source_partitions": self.sample.source_partitions,
            "cut": self.sample.cut,
            "without_value": self.without_value,
            "no_objects": self.no_objects,
            "schema": self.proposal.ddl,
            "columns": self.proposal.sources,
            "envelope": self.envelope,
            "fields": [
                {
                    "field": path,
                    "seen": one.seen,
                    "missing": of - one.seen,
                    "null": one.nulls,
                    "types": dict(one.kinds.most_common()),
                    "example": one.example,
                }
                for path, one, of in fields_of(self.shape)
            ],
            "notes": self.proposal.notes,
            "rows": self.verdict.rows,
            "rejects": self.verdict.rejects,
            "reasons": dict(self.verdict.reasons.most_common()),
            "refused": self.verdict.refused,
        }

    def to_text(self) -> str:
        """For people: settings, and what they rest on as comments."""
        lines = [*_commented(self._facts()), ""]
        if self.proposal.columns:
            lines += _schema(self.proposal.ddl)
            if self.envelope != "none":
                lines.append(f"envelope = {_toml(self.envelope)}")
        if self.proposal.sources:
            lines += ["", "[record.columns]"]
            lines += [f"{name} = {_toml(source)}" for name, source in self.proposal.sources.items()]
        return "\n".join(lines)

    def _facts(self) -> Iterator[str]:
        sample = self.sample
        yield (
            f"{sample.records:,} records, {sample.size_bytes:,} bytes of values, of "
            f"{sample.source_partitions:,} source partitions of {', '.join(self.topics)}"
        )
        if sample.cut:
            yield f"Not as many as were asked for: {sample.cut}."
        if self.without_value:
            yield f"{self.without_value:,} have no value: with inserts rejects, with upserts deletes."
        for why, count in self.no_objects.items():
            yield f"{count:,} are no objects: {why}."
        if self.envelope == CONNECT:
            yield "Values are in Kafka Connect's envelope: the fields are those of their payload."
        yield ""
        yield from self._table()
        if self.proposal.notes:
            yield ""
        yield from (f"{note}." for note in self.proposal.notes)
        yield ""
        if self.verdict.refused:
            yield f"These columns cannot be read as they are: {self.verdict.refused}."
        else:
            yield f"By these columns {self.verdict.rows:,} are rows, {self.verdict.rejects:,} rejects."
        yield from (f"{count:,} × {reason}" for reason, count in self.verdict.reasons.most_common())

    def _table(self) -> Iterator[str]:
        rows = [("field", "missing", "null", "values", "the first")]
        for path, one, of in fields_of(self.shape):
            kinds = ", ".join(f"{kind} {count:,}" for kind, count in one.kinds.most_common())
            rows.append((path, f"{of - one.seen:,}", f"{one.nulls:,}", kinds, one.example))
        left_out, rows = max(0, len(rows) - FIELDS_SHOWN - 1), rows[: FIELDS_SHOWN + 1]
        widths = [max(len(row[place]) for row in rows) for place in range(5)]
        for name, missing, null, kinds, first in rows:
            cells = (name.ljust(widths[0]), missing.rjust(widths[1]), null.rjust(widths[2]))
            yield "  ".join((*cells, kinds.ljust(widths[3]), first)).rstrip()
        if left_out:
            yield f"… and {left_out:,} fields more"


def fields_of(shape: Shape, path: str = "") -> Iterator[tuple[str, Shape, int]]:
    """Each field by its path, what was seen there, and of how many objects. What stands in an array is behind
    `[]`, in a map behind `{}`, whose keys are not shown: they may be anybody's.
    """
    for name, inner in shape.fields.items():
        here = f"{path}.{name}" if path else name
        yield here, inner, shape.kinds[OBJECT]
        yield from _within(inner, here)


def _within(shape: Shape, path: str) -> Iterator[tuple[str, Shape, int]]:
    if is_map(shape):
        inner, here = together(shape.fields.values()), f"{path}{{}}"
    elif shape.items is not None:
        inner, here = shape.items, f"{path}[]"
        yield from fields_of(shape, path)
    else:
        yield from fields_of(shape, path)
        return
    yield here, inner, inner.seen
    yield from _within(inner, here)


def _schema(ddl: str) -> list[str]:
    return ["[record]", 'schema = """', *(f"  {line}" for line in ddl.split("\n")), '"""']


def _commented(lines: Iterator[str]) -> Iterator[str]:
    return (f"# {plain(line)}".rstrip() for line in lines)


def _toml(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in escaped) + '"'
