"""What must hold before the table's offsets are trusted, and before a commit is made of write statuses. Pure.

The checks of the source answer with a sentence for the operator, or an empty string where all is well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from control_topic.messages import (
    REJECTS_LISTED_MAX,
    DataFile,
    EventTimes,
    Lost,
    Offsets,
    Range,
    Reject,
    SourcePartition,
    Witness,
    Witnesses,
    WriteStatus,
)
from table.errors import Refused
from table.state import TableState

RANGES_SHOWN = 3
REJECTS_SHOWN = 3
TOPICS_SHOWN = 3
ADOPT = "if that is intended, accept it with `lockstep offsets --adopt --execute`"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitPlan:
    """What one commit changes."""

    ranges: tuple[Range, ...]
    offsets: Mapping[SourcePartition, int]
    """The whole new map."""
    files: tuple[DataFile, ...]
    lost: tuple[Lost, ...]
    rejects: tuple[Reject, ...]
    reject_count: int
    """All rejects, of which `rejects` names REJECTS_LISTED_MAX at most."""
    witnesses: tuple[Witness, ...]
    rows: int
    """In the files."""
    event_times: tuple[EventTimes, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    """Of records, in Spark DDL, as workers have written them, where they are more than the run began with ->
    of which schemas, for people."""

    def witnesses_after(self, before: TableState | None) -> Witnesses:
        """Of what was written the last record; else what stood before the offset stands there still.

        Each is the last before its offset: of a range with records that names none, none is known. Nor is it
        where offsets behind it were lost: records stood there, and a log's beginning may come back (a broker
        that was killed, a leader that is behind in deleting).
        """
        old = before.witnesses if before is not None else {}
        passed = {item.partition for item in self.ranges if item.records}
        lost: dict[SourcePartition, int] = {}
        for item in self.lost:
            lost[item.partition] = max(item.start, lost.get(item.partition, 0))
        stand = {
            p: witness
            for p, witness in old.items()
            if witness.offset < self.offsets.get(p, 0) and p not in passed
        }
        named = {**stand, **{witness.partition: witness for witness in self.witnesses}}
        return {p: witness for p, witness in named.items() if witness.offset >= lost.get(p, 0)}


def assemble(
    transaction: str,
    expected: Offsets,
    statuses: Sequence[WriteStatus],
    *,
    rows_are_records: bool,
    rejects_listed_max: int = REJECTS_LISTED_MAX,
) -> CommitPlan:
    """All write statuses of a transaction as one commit. Raises `Refused` where they do not fit together.

    `rows_are_records`: each record is a row or a reject, so that a worker that reports fewer rows has lost
    some. Of upserts, several records may become one row. `rejects_listed_max`: so many are named at most.
    """
    ranges: dict[SourcePartition, Range] = {}
    paths: set[str] = set()
    for status in statuses:
        if status.transaction != transaction:
            raise Refused(f"a write status of transaction {status.transaction} came with {transaction}")
        if rows_are_records:
            _check_rows(transaction, status)
        for item in status.ranges:
            if item.partition in ranges:
                raise Refused(f"transaction {transaction}: {item.partition} is in two write statuses")
            if item.start != expected.get(item.partition, 0):
                raise Refused(
                    f"transaction {transaction}: the range of {item.partition} starts at {item.start}, "
                    f"committed is {expected.get(item.partition, 0)}"
                )
            ranges[item.partition] = item
        for file in status.files:
            if file.path in paths:
                raise Refused(f"transaction {transaction}: file {file.path} is in two write statuses")
            paths.add(file.path)
    plan = CommitPlan(
        ranges=tuple(ranges[partition] for partition in sorted(ranges)),
        offsets={**expected, **{item.partition: item.next for item in ranges.values()}},
        files=tuple(file for status in statuses for file in status.files),
        lost=tuple(lost for status in statuses for lost in status.lost),
        rejects=tuple(islice((r for status in statuses for r in status.rejects), rejects_listed_max)),
        reject_count=sum(status.reject_count for status in statuses),
        witnesses=tuple(witness for status in statuses for witness in status.witnesses),
        rows=sum(file.rows for status in statuses for file in status.files),
        event_times=tuple(times for status in statuses for times in status.event_times),
        columns={status.columns: status.columns_from for status in statuses if status.columns},
    )
    _check_exchange(transaction, statuses)
    _check_contents(transaction, plan, ranges)
    return plan


def too_many_rejects(plan: CommitPlan, rejects_max: int | None) -> str:
    """Why the run halts instead of passing so many rejects, all workers' together; empty where it does not.

    `rejects_max`: None is no limit. A single worker that has more than these sets none of its own aside.
    """
    if rejects_max is None or plan.reject_count <= rejects_max:
        return ""
    records = sum(item.records for item in plan.ranges)
    named = "".join(
        f"; {reject.partition} at offset {reject.offset}: {reject.reason}"
        for reject in plan.rejects[:REJECTS_SHOWN]
    )
    return (
        f"{plan.reject_count:,} of the {records:,} records of a transaction are no rows, more than "
        f"record.max_rejects ({rejects_max:,}) allows, all workers together{named}. They are in the "
        "dead-letter topic, and not committed: the next run reads them again. Mend the producer or "
        "record.schema, or raise record.max_rejects, and start again"
    )


def _check_rows(transaction: str, status: WriteStatus) -> None:
    """Of each worker by itself: what one has too many must not hide what another lacks."""
    rows, records = sum(file.rows for file in status.files), sum(item.records for item in status.ranges)
    handed, taken = sum(status.handed.values()), sum(status.taken.values())
    if rows != records - status.reject_count - handed + taken:
        named = [f"{item.partition} [{item.start}, {item.next})" for item in status.ranges[:RANGES_SHOWN]]
        where = ", ".join(named) + (", …" if len(status.ranges) > RANGES_SHOWN else "")
        raise Refused(
            f"transaction {transaction}: the files of one worker hold {rows} rows of {records} records, of "
            f"which {status.reject_count} were rejected{_exchanged(handed, taken)}; nothing of it is "
            f"committed ({where})"
        )


def _check_exchange(transaction: str, statuses: Sequence[WriteStatus]) -> None:
    """Of every two workers the coordinator has compared them."""
    handed = sum(sum(status.handed.values()) for status in statuses)
    taken = sum(sum(status.taken.values()) for status in statuses)
    if handed != taken:
        raise Refused(
            f"transaction {transaction}: {handed} rows were handed over, and {taken} of them were taken"
        )


def _exchanged(handed: int, taken: int) -> str:
    return f" and {handed} handed over to others, of whom {taken} were taken" if handed or taken else ""


def _check_contents(transaction: str, plan: CommitPlan, ranges: Mapping[SourcePartition, Range]) -> None:
    for lost in plan.lost:
        whole = ranges.get(lost.partition)
        if whole is None or not whole.start <= lost.start <= lost.next <= whole.next:
            raise Refused(f"transaction {transaction}: lost offsets of {lost.partition} outside of its range")
    for reject in plan.rejects:
        whole = ranges.get(reject.partition)
        if whole is None or not whole.start <= reject.offset < whole.next:
            raise Refused(f"transaction {transaction}: a reject of {reject.partition} outside of its range")
    for witness in plan.witnesses:
        whole = ranges.get(witness.partition)
        if whole is None or not whole.start <= witness.offset < whole.next:
            raise Refused(f"transaction {transaction}: a record of {witness.partition} outside of its range")
    for times in plan.event_times:
        whole = ranges.get(times.partition)
        if whole is None or times.late + times.absurd > whole.records:
            raise Refused(f"transaction {transaction}: event times of {times.partition} outside of its range")
    records = sum(item.records for item in plan.ranges)
    if plan.rows > records:
        raise Refused(f"transaction {transaction}: its files hold {plan.rows} rows of {records} records")


def same_ranges(left: Iterable[Range], right: Iterable[Range]) -> bool:
    """Whether both cover the same offsets."""
    return _covered(left) == _covered(right)


def _covered(ranges: Iterable[Range]) -> set[tuple[SourcePartition, int, int]]:
    return {(item.partition, item.start, item.next) for item in ranges}


def rival_open(instant: str, rival: str) -> str:
    """Why `instant` cannot be completed while another instant of this pipeline is open.

    Whoever began that one may have passed all checks and be paused inside a table lock that has expired
    since; once its instant is rolled back it can complete nothing. So that comes first.
    """
    return (
        f"instant {instant} cannot be completed: instant {rival} of this pipeline is open too, and is rolled "
        "back first"
    )


def identity_problem(newest: TableState, cluster: str, topics: Mapping[str, str]) -> str:
    """Whether the table's offsets are of another cluster or of a topic that was recreated (S13)."""
    if newest.cluster and cluster and newest.cluster != cluster:
        return (
            f"The table's offsets (instant {newest.instant}) are of Kafka cluster {newest.cluster}, the "
            f"broker is of cluster {cluster}: check source.bootstrap_servers; {ADOPT}."
        )
    for topic in sorted(topics):
        recorded, present = newest.topics.get(topic, ""), topics[topic]
        if recorded and present and recorded != present:
            return (
                f"Topic {topic} was recreated: the table's offsets (instant {newest.instant}) are of topic "
                f"id {recorded}, the broker's is {present}, and its records are other ones; {ADOPT}."
            )
    return ""


def position_problem(
    newest: TableState,
    partitions: Iterable[SourcePartition],
    earliest: Offsets,
    end: Offsets,
    on_data_loss: str,
) -> str:
    """Whether a committed offset lies beyond its log's end, or before its start where that is to fail."""
    present = set(partitions)
    topics = {partition.topic for partition in present}
    for partition, committed in sorted(newest.offsets.items()):
        if partition.topic not in topics:
            continue  # no longer configured; its offset stays in the table
        if partition not in present:
            return (
                f"Source partition {partition} has committed offset {committed} in the table and does not "
                f"exist on the broker: the topic was recreated with fewer partitions? Then {ADOPT}."
            )
        if committed > end[partition]:
            return (
                f"Source partition {partition}: the table's committed offset {committed} is beyond the end "
                f"of the log, {end[partition]}: the topic was truncated or recreated? To go on from another "
                f"offset, run `lockstep offsets --set {partition}=OFFSET --execute`."
            )
        if committed < earliest[partition] and on_data_loss == "fail":
            return (
                f"Source partition {partition}: offsets [{committed}, {earliest[partition]}) are no longer "
                f"in the log and never reached the table. To go on without them, set source.on_data_loss to "
                f"earliest, or run `lockstep offsets --set {partition}={earliest[partition]} --execute`."
            )
    return ""


def lost_commits(
    pipeline: str, newest: TableState | None, signs: str, partitions: Iterable[SourcePartition]
) -> str:
    """Return the halt of a pipeline whose newest commits the timeline has lost. `signs`: what shows it."""
    if newest is None:
        stands = f"the table's timeline has no commit of pipeline {pipeline}, which has committed before"
    else:
        stands = (
            f"the table's timeline may have lost commits of pipeline {pipeline} after instant "
            f"{newest.instant}"
        )
    topics = sorted({one.topic for one in partitions})
    sets = " ".join(f"--set '{topic}:*=earliest'" for topic in topics[:TOPICS_SHOWN])
    return (
        f"{stands}: {signs}. Nothing was committed: records would be read twice, or skipped. Restore "
        ".hoodie/timeline, its history included, from a backup. To start again on purpose: "
        f"`lockstep offsets -c … {sets}{' …' if len(topics) > TOPICS_SHOWN else ''} --execute --reason TEXT`"
    )
