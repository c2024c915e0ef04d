"""What an operator's change of offsets would do, before it is done. Pure.

The plan is committed as an empty instant that carries the new offsets, the operator and the reason, by
`lockstep/entry/job.py --operator-commit`; until then nothing has changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from rich.console import Group, RenderableType
from rich.text import Text

from control_topic.messages import Offsets, SourcePartition
from control_topic.spelling import some
from lockstep.brokers.group import GroupMember
from lockstep.errors import ConfigError
from lockstep.offsets.standing import SourceView, other_cluster, other_topic
from lockstep.output import readable_count, readable_duration, table
from table.instants import PendingInstant
from table.state import TableState

Wanted: TypeAlias = int | Literal["earliest", "latest"]

GENESIS = "genesis"
"""What the first commit of a pipeline is, whoever makes it: `table.state.TableState.kind`."""

ALIVE_MS = 30_000
"""A coordinator or driver that was heard so lately may still be there."""

_ASSIGNMENT = re.compile(r"(?P<topic>[A-Za-z0-9._-]+):(?P<number>\d+|\*)=(?P<offset>\d+|earliest|latest)")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetChange:
    """One source partition's change."""

    partition: SourcePartition
    before: int | None
    after: int | None
    skipped: int = 0
    """Offsets that are passed over, so records at most."""
    reread: int = 0
    """Offsets that are read again, so records at most."""
    anew: bool = False
    """The offsets are of another topic than before, and nothing can be said of what is skipped."""
    begins: bool = False
    """The pipeline has no commit, and begins."""
    trusted: bool = False
    """Stays where it is, and what the log has before it is not compared with what was read."""

    @property
    def effect(self) -> str:
        if self.after is None:
            return "no longer there: its offset is dropped"
        if self.begins:
            return "begins here, whatever of it the table holds already"
        if self.anew:
            return "another topic now: its records are taken from there on"
        if self.skipped:
            return f"at most {readable_count(self.skipped)} records are skipped for good"
        if self.reread:
            again = readable_count(self.reread)
            return f"at most {again} records are read AGAIN: they will be in the table twice"
        if self.trusted:
            return "as it is; the log before it is taken for the one that was read"
        return "as it is"


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsPlan:
    state: TableState
    """What would be committed."""
    expected: Offsets
    """The offsets that it was planned on."""
    changes: tuple[OffsetChange, ...]

    def to_json(self, *, executed: bool) -> dict[str, Any]:
        return {
            "executed": executed,
            "operator": self.state.operator,
            "reason": self.state.reason,
            "changes": [
                {
                    "topic": change.partition.topic,
                    "partition": change.partition.number,
                    **{key: value for key, value in asdict(change).items() if key != "partition"},
                    "effect": change.effect,
                }
                for change in self.changes
            ],
        }

    def to_text(self, *, executed: bool) -> RenderableType:
        numbers = ("before", "after")
        grid = table(
            ("source partition", *numbers, "effect"),
            (
                (
                    str(change.partition),
                    "-" if change.before is None else readable_count(change.before),
                    "-" if change.after is None else readable_count(change.after),
                    change.effect,
                )
                for change in self.changes
            ),
            right=numbers,
        )
        if executed:
            first = Text("Done: the offsets are changed.", style="bold green")
        else:
            first = Text("A dry run: nothing has changed. Do it with --execute --reason TEXT.", style="bold")
        after = "lockstep verify takes what is committed before and after this apart and stays exact: "
        if any(change.reread for change in self.changes):
            after += "rows that are written again count once on each side, and it names how many there are."
        else:
            after += "it names this change, and does not miss what was skipped."
        return Group(first, "", grid, "", Text(after))


def parse_assignments(
    texts: Iterable[str], partitions: Sequence[SourcePartition]
) -> dict[SourcePartition, Wanted]:
    """`TOPIC:P=OFFSET`, where P may be `*` and OFFSET `earliest` or `latest`. Raises `ConfigError`."""
    wanted: dict[SourcePartition, Wanted] = {}
    for text in texts:
        match = _ASSIGNMENT.fullmatch(text.strip())
        if match is None:
            raise ConfigError(
                f"--set {text}: write TOPIC:PARTITION=OFFSET, such as events:0=1200, events:0=earliest or"
                " events:*=latest"
            )
        topic, number, offset = match["topic"], match["number"], match["offset"]
        named = [p for p in partitions if p.topic == topic and number in ("*", str(p.number))]
        if not named:
            raise ConfigError(f"--set {text}: there is no source partition {topic}:{number} on the broker")
        for partition in named:
            if partition in wanted and number != "*":
                raise ConfigError(f"--set {text}: {partition} is set more than once")
            wanted[partition] = (
                int(offset) if offset.isdecimal() else "latest" if offset == "latest" else "earliest"
            )
    return wanted


def plan_set(
    state: TableState,
    wanted: Mapping[SourcePartition, Wanted],
    view: SourceView,
    *,
    operator: str,
    reason: str,
) -> OffsetsPlan:
    """Go on from other offsets. Raises `ConfigError` where that would not work, or would not be enough."""
    if other_cluster(state, view) or any(other_topic(topic, state, view) for topic in view.topics):
        raise ConfigError(
            "The table's offsets are of another topic or cluster: give --adopt as well, which accepts that"
        )
    after = {**state.offsets, **_resolve(wanted, view)}
    return _plan(state, after, frozenset(), frozenset(wanted), view, operator=operator, reason=reason)


def genesis(pipeline: str, offsets: Offsets, view: SourceView, *, operator: str, reason: str) -> TableState:
    """Return the first commit of a pipeline, as an operator makes it."""
    return TableState(
        pipeline=pipeline,
        run="operator",
        epoch=1,
        transaction="planned",
        offsets=offsets,
        cluster=view.cluster,
        topics=view.topics,
        kind=GENESIS,
        operator=operator,
        reason=reason,
    )


def plan_begin(
    pipeline: str,
    wanted: Mapping[SourcePartition, Wanted],
    view: SourceView,
    *,
    operator: str,
    reason: str,
) -> OffsetsPlan:
    """Begin a pipeline without a commit on purpose. Raises `ConfigError` unless all partitions are set."""
    if missing := [str(one) for one in view.partitions if one not in wanted]:
        raise ConfigError(
            "The table holds no offsets of this pipeline yet. To begin at others than "
            f"source.starting_offsets says, set all source partitions: without one are {some(missing)}"
        )
    after = _resolve(wanted, view)
    state = genesis(pipeline, after, view, operator=operator, reason=reason)
    changes = tuple(
        OffsetChange(partition=one, before=None, after=after[one], begins=True) for one in sorted(after)
    )
    return OffsetsPlan(state=state, expected={}, changes=changes)


def plan_adopt(
    state: TableState,
    wanted: Mapping[SourcePartition, Wanted],
    view: SourceView,
    *,
    operator: str,
    reason: str,
) -> OffsetsPlan:
    """Accept recreated topics, or another cluster; they begin at the earliest offset unless set otherwise."""
    moved = other_cluster(state, view)
    anew = {
        topic
        for topic in view.topics
        if other_topic(topic, state, view) or (moved and not _same_id(topic, state, view))
    }
    if not anew and not moved:
        raise ConfigError(
            "There is nothing to adopt: cluster and topics are the ones that the table's offsets are of"
        )
    after: dict[SourcePartition, int] = {
        partition: offset for partition, offset in state.offsets.items() if partition.topic not in anew
    }
    after |= {partition: view.earliest[partition] for partition in view.partitions if partition.topic in anew}
    after |= _resolve(wanted, view)
    named = frozenset(state.offsets) if moved else frozenset(wanted)
    return _plan(state, after, frozenset(anew), named, view, operator=operator, reason=reason)


def _same_id(topic: str, state: TableState, view: SourceView) -> bool:
    recorded = state.topics.get(topic, "")
    return bool(recorded) and recorded == view.topics.get(topic, "")


def _resolve(wanted: Mapping[SourcePartition, Wanted], view: SourceView) -> dict[SourcePartition, int]:
    resolved: dict[SourcePartition, int] = {}
    for partition, offset in wanted.items():
        earliest, end = view.earliest[partition], view.end[partition]
        if isinstance(offset, int) and not earliest <= offset <= end:
            raise ConfigError(
                f"--set {partition}={offset}: the log holds {earliest} to {end}, and a run would refuse to"
                " start outside of it; earliest and latest name its two ends"
            )
        resolved[partition] = offset if isinstance(offset, int) else earliest if offset == "earliest" else end
    return resolved


def _plan(
    state: TableState,
    after: Mapping[SourcePartition, int],
    anew: frozenset[str],
    named: frozenset[SourcePartition],
    view: SourceView,
    *,
    operator: str,
    reason: str,
) -> OffsetsPlan:
    """`named`: whose log the operator has looked at, or which is another one: nothing is looked for in it."""
    changes = []
    for partition in sorted({*state.offsets, *after}):
        before, then = state.offsets.get(partition), after.get(partition)
        is_new = partition.topic in anew
        trusted = before == then and not is_new and partition in named and partition in state.witnesses
        if before != then or is_new or trusted:
            moves = 0 if is_new or before is None or then is None else then - before
            changes.append(
                OffsetChange(
                    partition=partition,
                    before=before,
                    after=then,
                    skipped=max(0, moves) + (then or 0 if before is None and not is_new else 0),
                    reread=max(0, -moves),
                    anew=is_new and then is not None,
                    trusted=trusted,
                )
            )
    planned = TableState(
        pipeline=state.pipeline,
        run="operator",
        epoch=state.epoch + 1,
        transaction="planned",
        offsets=after,
        witnesses={
            partition: witness
            for partition, witness in state.witnesses.items()
            if partition not in named and partition.topic not in anew and partition in after
        },
        watermark=(
            state.watermark.moved_to({change.partition: change.after for change in changes})
            if state.watermark is not None
            else None
        ),
        cluster=view.cluster,
        topics={**state.topics, **view.topics},
        kind="operator",
        operator=operator,
        reason=reason,
    )
    return OffsetsPlan(state=planned, expected=dict(state.offsets), changes=tuple(changes))


def signs_of_life(
    *,
    members: Sequence[GroupMember],
    driver_answers: bool,
    pending: Sequence[tuple[PendingInstant, int]],
    write_timeout_ms: int,
) -> list[str]:
    """Why a run may be alive, and offsets must not be changed under it.

    `pending`: this pipeline's open instants, each with its age in milliseconds.
    """
    signs = []
    if members:
        names = ", ".join(sorted({member.instance or member.client or "?" for member in members})[:5])
        signs.append(f"{len(members)} consumers are in the pipeline's group ({names})")
    if driver_answers:
        signs.append("its driver answers on this machine")
    signs += [
        f"instant {one.requested} was opened {readable_duration(max(0, age_ms))} ago"
        for one, age_ms in pending
        if age_ms < write_timeout_ms
    ]
    return signs


def heard_lately(heard_ms_ago: int | None) -> str:
    """What to say of a control topic where a driver or coordinator spoke so long ago; empty: nothing."""
    if heard_ms_ago is None or heard_ms_ago >= ALIVE_MS:
        return ""
    ago = readable_duration(max(0, heard_ms_ago))
    return (
        f"note: a driver or coordinator was heard on the control topic {ago} ago, though the group has no "
        "member and nothing is open in the table. Should a run be alive all the same, the table refuses the "
        "later of its commit and this change."
    )
