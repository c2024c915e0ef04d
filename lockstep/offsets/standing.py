"""Where a pipeline stands, source partition by source partition: the table, the log, the consumer group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from control_topic.messages import Offsets, SourcePartition
from control_topic.spelling import some
from lockstep.brokers.source_topics import SourceTopics
from lockstep.output import readable_count, table
from table.state import TableState

OK = "ok"
BEHIND = "behind"
OPEN_TRANSACTION = "open producer transaction"
"""All that can be read is committed; what is beyond waits for a producer."""
NO_OFFSET = "no offset yet"
OTHER_CLUSTER = "other cluster"
OTHER_TOPIC = "other topic id"
NOT_CONFIGURED = "not configured any more"
GONE = "gone from the broker: topic recreated?"
BEYOND = "beyond the end: topic recreated?"
GROUP_AHEAD = "group ahead of the table (S8!)"

WAITING_SHOWN_MAX = 5

_FINE = frozenset({OK, BEHIND, OPEN_TRANSACTION, NO_OFFSET, NOT_CONFIGURED})


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceView:
    """What the broker says, at one moment."""

    cluster: str
    topics: Mapping[str, str]
    partitions: tuple[SourcePartition, ...]
    earliest: Offsets
    end: Offsets
    """What a read-committed consumer can reach."""
    group: Offsets = field(default_factory=dict)
    written: Offsets = field(default_factory=dict)
    """The ends of the logs, what producers have not yet committed or aborted included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRow:
    """One source partition."""

    topic: str
    partition: int
    committed: int | None
    earliest: int | None
    end: int | None
    lag: int | None
    """Offsets between the table and the log's end, with gaps and with those of open producer transactions."""
    group: int | None
    verdict: str
    undecided: int = 0
    """Offsets beyond the end, from the oldest producer transaction on that is still open."""

    @property
    def fine(self) -> bool:
        return self.verdict in _FINE

    @property
    def readable_lag(self) -> int | None:
        """Offsets between the table and the end that a read-committed consumer reaches."""
        return max(0, self.lag - self.undecided) if self.lag is not None else None


def look(source: SourceTopics, group: str) -> SourceView:
    """Ask the broker. Raises `lockstep.brokers.source_topics.SourceTopicsError`."""
    facts = source.facts()
    return SourceView(
        cluster=facts.cluster,
        topics=facts.topics,
        partitions=facts.partitions,
        earliest=source.earliest(facts.partitions),
        end=source.end(facts.partitions),
        group=source.group_offsets(group, facts.partitions),
        written=source.end(facts.partitions, read_committed=False),
    )


def compare(state: TableState | None, view: SourceView) -> list[OffsetRow]:
    """Every partition that the table or the broker has, in order."""
    committed: Offsets = state.offsets if state is not None else {}
    return [
        _row(partition, committed.get(partition), state, view)
        for partition in sorted({*committed, *view.partitions})
    ]


def _row(
    partition: SourcePartition, committed: int | None, state: TableState | None, view: SourceView
) -> OffsetRow:
    earliest, end = view.earliest.get(partition), view.end.get(partition)
    group = view.group.get(partition)
    written = max(end, view.written.get(partition, 0)) if end is not None else None
    return OffsetRow(
        topic=partition.topic,
        partition=partition.number,
        committed=committed,
        earliest=earliest,
        end=end,
        lag=max(0, written - committed) if written is not None and committed is not None else None,
        group=group,
        verdict=_verdict(partition, committed, state, view),
        undecided=written - end if written is not None and end is not None else 0,
    )


def _verdict(
    partition: SourcePartition, committed: int | None, state: TableState | None, view: SourceView
) -> str:
    if committed is None or state is None:
        return GROUP_AHEAD if view.group.get(partition, 0) > view.earliest.get(partition, 0) else NO_OFFSET
    if partition.topic not in view.topics:
        return NOT_CONFIGURED
    if other_cluster(state, view):
        return OTHER_CLUSTER
    if other_topic(partition.topic, state, view):
        return OTHER_TOPIC
    if partition not in view.end:
        return GONE
    earliest, end, group = view.earliest[partition], view.end[partition], view.group.get(partition, 0)
    if committed > end:
        return BEYOND
    if committed < earliest:
        return f"data lost: retention removed [{committed}, {earliest})"
    if group > committed:
        return GROUP_AHEAD
    if committed < end:
        return BEHIND
    return OPEN_TRANSACTION if view.written.get(partition, 0) > end else OK


def other_cluster(state: TableState, view: SourceView) -> bool:
    """Whether the table's offsets are of another Kafka cluster (S13)."""
    return bool(state.cluster and view.cluster and state.cluster != view.cluster)


def other_topic(topic: str, state: TableState, view: SourceView) -> bool:
    """Whether the topic was recreated since the table's offsets were committed (S13)."""
    recorded, present = state.topics.get(topic, ""), view.topics.get(topic, "")
    return bool(recorded and present and recorded != present)


def to_json(rows: Iterable[OffsetRow]) -> list[dict[str, Any]]:
    return [asdict(row) for row in rows]


def to_text(rows: Sequence[OffsetRow], state: TableState | None) -> RenderableType:
    """A sentence, then a line per source partition, then what to do about those that are not well."""
    troubled = [row for row in rows if not row.fine]
    lag = sum(row.lag or 0 for row in rows)
    if state is None:
        sentence = Text("The table holds no offsets of this pipeline yet.", style="bold")
    elif troubled:
        sentence = Text(
            f"{len(troubled)} of {len(rows)} source partitions cannot go on as they are.", style="bold red"
        )
    else:
        sentence = Text(
            f"{readable_count(lag)} offsets behind, as of instant {state.instant}, epoch {state.epoch}.",
            style="bold" if lag else "bold green",
        )
    numbers = ("committed", "earliest", "end", "lag", "group")
    grid = table(
        ("source partition", *numbers, "verdict"),
        (
            (
                f"{row.topic}:{row.partition}",
                *map(_number, (row.committed, row.earliest, row.end, row.lag, row.group)),
                row.verdict,
            )
            for row in rows
        ),
        right=numbers,
    )
    parts: list[RenderableType] = [sentence, "", grid]
    if waiting := undecided(rows):
        parts += ["", Text(waiting)]
    for line in advice(rows):
        parts += ["", Text(line)]
    return Group(*parts)


def undecided(rows: Iterable[OffsetRow]) -> str:
    """What is written and cannot be read by anybody yet; empty where there is nothing."""
    waiting = [row for row in rows if row.undecided]
    if not waiting:
        return ""
    count = sum(row.undecided for row in waiting)
    where = some(
        [f"{row.topic}:{row.partition} from {row.end}" for row in waiting], shown_max=WAITING_SHOWN_MAX
    )
    return (
        f"{readable_count(count)} offsets wait for their producers, who have transactions open: {where}. "
        "They are read when a producer commits or aborts, or its transaction.timeout.ms is over."
    )


def advice(rows: Iterable[OffsetRow]) -> list[str]:
    """What to do, once per kind of trouble."""
    said: dict[str, str] = {}
    for row in rows:
        place = f"{row.topic}:{row.partition}"
        if row.verdict in (OTHER_CLUSTER, OTHER_TOPIC, GONE):
            said.setdefault(
                "adopt",
                "The table's offsets are of another topic or cluster: check source.bootstrap_servers; if it"
                " was recreated on purpose, `lockstep offsets --adopt` shows what going on with it means.",
            )
        elif row.verdict == BEYOND:
            said.setdefault(
                "beyond",
                f"{place} was truncated or recreated: `lockstep offsets --set {place}=earliest` (or another"
                " offset) shows what going on from there means.",
            )
        elif row.verdict.startswith("data lost"):
            said.setdefault(
                "lost",
                f'What retention removed is gone: set source.on_data_loss = "earliest", or `lockstep offsets'
                f" --set {place}=earliest`.",
            )
        elif row.verdict == GROUP_AHEAD:
            said.setdefault(
                "group",
                "The consumer group's offsets passed the table's. Lockstep never starts from them, so nothing"
                " is lost; find out who else commits to this group.",
            )
    return list(said.values())


def _number(value: int | None) -> str:
    return "-" if value is None else readable_count(value)
