"""Their offsets as the table's first: what would be set, where that can be, and what stands against it. Pure.

The first commit of a pipeline is its genesis, which a run makes of `source.starting_offsets`; here an
operator makes it, and it says who and why. A table that has offsets already is moved by `lockstep offsets`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from rich.console import Group, RenderableType
from rich.text import Text

from control_topic.messages import Offsets, SourcePartition
from lockstep.errors import Failed
from lockstep.offsets.plan import genesis
from lockstep.offsets.standing import SourceView
from lockstep.output import readable_count, table
from table.state import TableState

OFFSET_MAX = 2**63 - 1
CHECKPOINT_CHARACTERS_MAX = 50_000_000
_CHECKPOINT = re.compile(r"(?P<topic>[A-Za-z0-9._-]+),(?P<offsets>\d+:\d+(?:,\d+:\d+)*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Theirs:
    """Where theirs stands."""

    said_by: str
    """For people: a group, a commit, files."""
    offsets: Offsets
    """The next to be read. Of other topics than the pipeline's as well."""
    alive: str = ""
    """Why theirs seems to run still; empty where it does not."""
    notes: Sequence[str] = ()
    """What was looked at, and what may be twice, or missing; a sentence each."""
    begins_at_earliest: bool = False
    """The other sink starts a source partition without an offset at the log's start, whatever is set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """One source partition."""

    partition: SourcePartition
    theirs: int | None
    earliest: int
    end: int
    after: int
    effect: str
    refused: bool = False
    """Whether a run could not begin there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptionPlan:
    """What would be committed, and where each of it comes from."""

    theirs: Theirs
    state: TableState
    rows: tuple[Adopted, ...]
    left: tuple[SourcePartition, ...] = field(default=())
    """What theirs has an offset of, and the pipeline does not read."""

    @property
    def refusal(self) -> str:
        """Why it cannot be done; empty where it can."""
        if self.theirs.alive:
            return f"{self.theirs.alive}: stop it first, or both go on from here"
        bad = [row for row in self.rows if row.refused]
        if bad:
            first = bad[0]
            more = f", and {len(bad) - 1} more" if len(bad) > 1 else ""
            return f"{first.partition}{more}: {first.effect}"
        if not any(row.theirs is not None for row in self.rows):
            return (
                f"{self.theirs.said_by} has no offset of the pipeline's topics: is it of this sink, and of "
                "this cluster?"
            )
        return ""

    def to_json(self, *, executed: bool) -> dict[str, Any]:
        """For programs."""
        return {
            "executed": executed,
            "said_by": self.theirs.said_by,
            "operator": self.state.operator,
            "reason": self.state.reason,
            "refusal": self.refusal,
            "partitions": [
                {
                    "topic": row.partition.topic,
                    "partition": row.partition.number,
                    "theirs": row.theirs,
                    "earliest": row.earliest,
                    "end": row.end,
                    "after": row.after,
                    "effect": row.effect,
                }
                for row in self.rows
            ],
            "left": [str(one) for one in self.left],
            "notes": list(self.theirs.notes),
        }

    def to_text(self, *, executed: bool) -> RenderableType:
        """For people."""
        numbers = ("theirs", "earliest", "end", "to be set")
        rows = [
            (
                str(row.partition),
                *(
                    "-" if one is None else readable_count(one)
                    for one in (row.theirs, row.earliest, row.end, row.after)
                ),
                row.effect,
            )
            for row in self.rows
        ]
        if executed:
            first = Text("Done: the table's first commit holds their offsets.", style="bold green")
        elif self.refusal:
            first = Text(f"It cannot be done: {self.refusal}.", style="bold red")
        else:
            first = Text("A dry run: nothing has changed. Do it with --yes.", style="bold")
        parts: list[RenderableType] = [
            *(first, "", Text(f"By {self.theirs.said_by}:"), ""),
            table(("source partition", *numbers, "effect"), rows, right=numbers),
        ]
        if self.left:
            parts += ["", Text(f"Not read by this pipeline: {', '.join(map(str, self.left[:20]))}.")]
        for note in self.theirs.notes:
            parts += ["", Text(note)]
        return Group(*parts)


def plan_adoption(
    theirs: Theirs,
    view: SourceView,
    *,
    pipeline: str,
    on_data_loss: Literal["fail", "earliest"],
    starting: Literal["earliest", "latest"],
    operator: str,
    reason: str,
) -> AdoptionPlan:
    """Each source partition where theirs would go on; where it has none, where ours would begin."""
    starting = "earliest" if theirs.begins_at_earliest else starting
    rows = tuple(_row(one, theirs.offsets.get(one), view, on_data_loss, starting) for one in view.partitions)
    offsets = {row.partition: row.after for row in rows}
    state = genesis(pipeline, offsets, view, operator=operator, reason=reason)
    left = tuple(sorted(theirs.offsets.keys() - set(view.partitions)))
    return AdoptionPlan(theirs=theirs, state=state, rows=rows, left=left)


def _row(
    partition: SourcePartition, theirs: int | None, view: SourceView, on_data_loss: str, starting: str
) -> Adopted:
    earliest, end = view.earliest[partition], view.end[partition]
    refused = False
    if theirs is None:
        after = earliest if starting == "earliest" else end
        effect = f"theirs has none: it begins at its {'earliest' if starting == 'earliest' else 'end'}"
    elif theirs > end:
        after, refused = theirs, True
        effect = "beyond the end of the log: another topic, or another cluster"
    elif theirs >= earliest:
        after = theirs
        left = readable_count(end - theirs)
        effect = "all read" if theirs == end else f"at most {left} records are to be read"
    elif on_data_loss == "earliest":
        after = earliest
        effect = f"retention removed [{theirs}, {earliest}): it goes on behind that"
    else:
        after, refused = theirs, True
        effect = (
            f'retention removed [{theirs}, {earliest}): source.on_data_loss = "earliest" goes on behind that'
        )
    return Adopted(
        partition=partition,
        theirs=theirs,
        earliest=earliest,
        end=end,
        after=after,
        effect=effect,
        refused=refused,
    )


# --- how theirs spells them ---------------------------------------------------------------------------


def streamer_offsets(checkpoint: str) -> dict[SourcePartition, int]:
    """HoodieStreamer's checkpoint of a Kafka source: `topic,0:123,1:456`, each the next to be read.

    Raises `Failed` for what is none.
    """
    match = (
        _CHECKPOINT.fullmatch(checkpoint.strip()) if len(checkpoint) <= CHECKPOINT_CHARACTERS_MAX else None
    )
    if match is None:
        raise Failed(
            "The checkpoint is none of a Kafka source, which has the form topic,0:123,1:456: say where to go "
            "on with source.starting_offsets, or with lockstep offsets --set after the first commit"
        )
    pairs = (pair.split(":") for pair in match["offsets"].split(","))
    return _offsets({int(number): int(offset) for number, offset in pairs}, match["topic"])


def sink_offsets(text: str, topic: str) -> dict[SourcePartition, int]:
    """Hudi's Kafka Connect sink's: `0=123,1=456`, of its one topic. Raises `Failed` for what is none."""
    if len(text) > CHECKPOINT_CHARACTERS_MAX or not re.fullmatch(r"\d+=\d+(,\d+=\d+)*", text.strip()):
        raise Failed("What the commit says of Kafka's offsets is not of the form 0=123,1=456")
    pairs = (pair.split("=") for pair in text.strip().split(","))
    return _offsets({int(number): int(offset) for number, offset in pairs}, topic)


def _offsets(found: Mapping[int, int], topic: str) -> dict[SourcePartition, int]:
    if any(number > 2**31 - 1 or offset > OFFSET_MAX for number, offset in found.items()):
        raise Failed("The checkpoint holds a number that no source partition, and no offset, is")
    return {SourcePartition(topic, number): offset for number, offset in found.items()}


_HDFS_FILE = re.compile(
    r"(?P<topic>[A-Za-z0-9._-]+)\+(?P<number>\d{1,10})\+(?P<start>\d{1,19})\+(?P<end>\d{1,19})(\.\w+)*"
)


def hdfs_file(name: str) -> tuple[SourcePartition, int, int] | None:
    """A file of Confluent's HDFS sink, `topic+partition+start+end.format`, the end included; None: none."""
    match = _HDFS_FILE.fullmatch(name)
    if match is None or int(match["end"]) < int(match["start"]) or int(match["number"]) > 2**31 - 1:
        return None
    return SourcePartition(match["topic"], int(match["number"])), int(match["start"]), int(match["end"])


def s3_object(name: str, delim: str = "+") -> tuple[SourcePartition, int] | None:
    """An object of Confluent's S3 sink, `topic+partition+start.format`: where it begins. None: none."""
    of = re.escape(delim)
    match = re.fullmatch(rf"([A-Za-z0-9._-]+?){of}(\d{{1,10}}){of}(\d{{1,19}})(\.[\w.]+)?", name)
    if match is None or int(match[2]) > 2**31 - 1:
        return None
    return SourcePartition(match[1], int(match[2])), int(match[3])
