"""Messages of the control topic for people and for programs. Pure: what was read in, lines and values out."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, tzinfo
from typing import Any, TypeAlias

from rich.text import Text

from control_topic.codec import Incomplete, Unreadable
from control_topic.controls import SETTINGS
from control_topic.messages import (
    TYPE_NAMES,
    AbortCommit,
    AckCommit,
    Body,
    Control,
    CoordinatorClaim,
    EndCommit,
    EndRequest,
    Halt,
    Message,
    Offsets,
    ParticipantJoin,
    ParticipantLeave,
    RunAnnounce,
    SourcePartition,
    StartCommit,
    Witness,
    WriteProgress,
    WriteStatus,
)
from control_topic.spelling import one_line
from control_topic.transport import Received
from lockstep.orders.words import spelled
from lockstep.output import readable_count, readable_size

UNREADABLE = "UNREADABLE"
PART = "PART"
"""A part of a message whose other parts have not been read yet."""

UNCHECKED = "unchecked"
NO_MARK = "none"
"""Who wrote a message is known to the workers of its run alone: only they have the key for its mark."""

TYPES = (*TYPE_NAMES.values(), PART, UNREADABLE)

ID_SHOWN = 8
"""Random ids are shown this long; so much is unique on any topic that a person looks at."""

ITEMS_SHOWN_MAX = 6
GAP = "  "
TIME_WIDTH = len("12:34:56.789")
NO_TIME = "--:--:--.---"
"""Shown for a time that is in no calendar."""

SENDER_WIDTH = len("coordinator@worker-0")
TYPE_WIDTH = max(map(len, TYPES))

_STYLES: Mapping[str, str] = {
    "RUN_ANNOUNCE": "bold",
    "COORDINATOR_CLAIM": "bold magenta",
    "PARTICIPANT_JOIN": "cyan",
    "PARTICIPANT_LEAVE": "cyan",
    "PARTICIPANT_READY": "dim cyan",
    "START_COMMIT": "blue",
    "END_REQUEST": "dim blue",
    "END_COMMIT": "blue",
    "WRITE_PROGRESS": "dim yellow",
    "WRITE_STATUS": "yellow",
    "ACK_COMMIT": "bold green",
    "ABORT_COMMIT": "bold red",
    "HALT": "bold white on red",
    "CONTROL": "bold cyan",
    PART: "dim",
    UNREADABLE: "red",
}

Content: TypeAlias = Message | Unreadable | Incomplete


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which messages to show. Empty: all."""

    types: frozenset[str] = frozenset()
    transaction: str = ""
    """May be the beginning of an id."""

    def __call__(self, received: Received) -> bool:
        if self.types and type_name(received.content) not in self.types:
            return False
        return not self.transaction or transaction(received.content).startswith(self.transaction)


def type_name(content: Content) -> str:
    """The message's type, `PART` or `UNREADABLE`."""
    if isinstance(content, Message):
        return content.type_name
    return PART if isinstance(content, Incomplete) else UNREADABLE


def transaction(content: Content) -> str:
    """The transaction that the message speaks of, or empty."""
    return content.transaction if isinstance(content, Message) else ""


# --- for programs -----------------------------------------------------------------------------


def as_json(received: Received) -> dict[str, Any]:
    """One JSON line. `time` is the record's timestamp in milliseconds of the Unix epoch; sizes are bytes.

    `mark`: whether the message carries one. Nobody has checked it here.
    """
    content = received.content
    head: dict[str, Any] = {
        "offset": received.offset,
        "time": received.time_ms,
        "type": type_name(content),
        "mark": UNCHECKED if received.marked else NO_MARK,
        "epoch": None,
        "sender": None,
        "transaction": transaction(content) or None,
    }
    if isinstance(content, Message):
        head |= {
            "epoch": content.epoch,
            "sender": content.sender,
            "content": _body_json(content.body),
            "pipeline": content.pipeline,
            "run": content.run,
            "incarnation": content.incarnation,
            "sequence": content.sequence,
        }
    else:
        head["content"] = asdict(content) | {"size_bytes": received.size_bytes}
    return head


def _body_json(body: Body) -> dict[str, Any]:
    match body:
        case RunAnnounce():
            return {
                "address": body.address,
                "table_epoch": body.table_epoch,
                "started_at_ms": body.started_at_ms,
            }
        case ParticipantJoin():
            return {"partitions": [_partition_json(p) for p in body.partitions]}
        case ParticipantLeave():
            return {
                "partitions": [_partition_json(p) for p in body.partitions],
                "reason": body.reason or None,
            }
        case StartCommit():
            writers = sorted(body.writers.items())
            return {
                "instant": body.instant,
                "committed": _offsets_json(body.committed),
                "records_max": body.records_max or None,
                "writers": [_partition_json(p) | {"incarnation": who} for p, who in writers],
                "last_records": _witnesses_json(body.witnesses[p] for p in sorted(body.witnesses)),
                "watermark_ms": body.watermark_ms,
                "takers": dict(sorted(body.takers.items())),
            }
        case WriteProgress():
            return {
                "records": body.records,
                "files": body.files,
                "size_bytes": body.size_bytes,
                "steps": body.steps,
            }
        case WriteStatus():
            return {
                "ranges": [
                    _partition_json(r.partition) | {"start": r.start, "next": r.next, "records": r.records}
                    for r in body.ranges
                ],
                "files": [asdict(file) for file in body.files],
                "rejects": [
                    _partition_json(r.partition) | {"offset": r.offset, "reason": r.reason}
                    for r in body.rejects
                ],
                "reject_count": body.reject_count,
                "lost": [
                    _partition_json(x.partition) | {"start": x.start, "next": x.next} for x in body.lost
                ],
                "last_records": _witnesses_json(body.witnesses),
                "event_times": [
                    _partition_json(t.partition)
                    | {"greatest_ms": t.greatest_ms, "late": t.late, "absurd": t.absurd}
                    for t in body.event_times
                ],
                "behind": _offsets_json(body.behind),
                "handed": dict(sorted(body.handed.items())),
                "taken": dict(sorted(body.taken.items())),
            }
        case AckCommit():
            return {
                "instant": body.instant,
                "committed": _offsets_json(body.committed),
                "took_ms": dict(body.took_ms),
            }
        case AbortCommit():
            return {"reason": body.reason, "cause": body.cause or None}
        case EndCommit():
            return {"reason": body.reason or None}
        case EndRequest() | Halt():
            return {"reason": body.reason}
        case Control():
            return {
                "number": body.number,
                "action": body.action,
                "settings": {SETTINGS[field]: value for field, value in body.settings.items()},
                "who": body.who,
                "why": body.why or None,
            }
    return {}


def _partition_json(partition: SourcePartition) -> dict[str, Any]:
    return {"topic": partition.topic, "partition": partition.number}


def _offsets_json(offsets: Offsets) -> list[dict[str, Any]]:
    return [_partition_json(partition) | {"offset": offsets[partition]} for partition in sorted(offsets)]


def _witnesses_json(witnesses: Iterable[Witness]) -> list[dict[str, Any]]:
    """Fingerprints in hex, as in the commits' metadata."""
    return [
        _partition_json(w.partition) | {"offset": w.offset, "fingerprint": f"{w.fingerprint:016x}"}
        for w in witnesses
    ]


# --- for people -------------------------------------------------------------------------------


def heading(*, offset_width: int = 6) -> Text:
    """The columns' names, in the widths of `as_text`."""
    line = _columns("time", "offset", "epoch", "type", "sender", "txn", offset_width=offset_width)
    line.append("content")
    line.stylize("bold")
    return line


def as_text(
    received: Received, *, width: int | None = None, offset_width: int = 6, zone: tzinfo | None = None
) -> Text:
    """One message as a line; where `width` is given and too small for all of it, the content goes below.

    Times are of `zone`, the machine's own where that is None.
    """
    content = received.content
    epoch, sender = (str(content.epoch), content.sender) if isinstance(content, Message) else ("-", "-")
    line = _columns(
        _time(received.time_ms, zone),
        str(received.offset),
        epoch,
        type_name(content),
        one_line(sender),
        one_line(transaction(content)[:ID_SHOWN]) or "-",
        offset_width=offset_width,
    )
    said = one_line(_said(received))
    if width is None or len(line) + len(said) <= width:
        line.append(said)
    else:
        indent = " " * (TIME_WIDTH + len(GAP))
        line.rstrip()
        folded = textwrap.wrap(said, max(width - len(indent), 20), break_on_hyphens=False)
        line.append("".join(f"\n{indent}{part}" for part in folded), style="dim")
    line.rstrip()
    return line


def _time(time_ms: int, zone: tzinfo | None) -> str:
    """Whoever writes a record may say any time."""
    try:
        return datetime.fromtimestamp(time_ms / 1_000, tz=zone).strftime("%H:%M:%S.%f")[:-3]
    except (ValueError, OverflowError, OSError):
        return NO_TIME


def _columns(
    time: str, offset: str, epoch: str, kind: str, sender: str, txn: str, *, offset_width: int
) -> Text:
    if len(sender) > SENDER_WIDTH:
        sender = sender[: SENDER_WIDTH - 1] + "…"
    line = Text(GAP.join((f"{time:<{TIME_WIDTH}}", f"{offset:>{offset_width}}", f"{epoch:>5}", "")))
    line.append(kind, style=_STYLES.get(kind, ""))
    line.append(" " * (TYPE_WIDTH - len(kind)) + GAP)
    line.append(GAP.join((f"{sender:<{SENDER_WIDTH}}", f"{txn:<{ID_SHOWN}}", "")))
    return line


def _said(received: Received) -> str:
    match received.content:
        case Message(body=body):
            return _join(_condense(received.content, body), "" if received.marked else "without a mark")
        case Incomplete(part=part, parts=parts):
            return f"part {part + 1} of {parts}, {readable_size(received.size_bytes)}"
        case Unreadable(reason=reason):
            return f"{readable_size(received.size_bytes)}: {reason}"


def _condense(message: Message, body: Body) -> str:
    match body:
        case RunAnnounce():
            return _join(f"run {message.run}", f"answers at {body.address}" if body.address else "")
        case CoordinatorClaim():
            return f"incarnation {message.incarnation[:ID_SHOWN]}"
        case ParticipantJoin():
            owned = _numbers(body.partitions) or "owns nothing"
            return _join(owned, f"incarnation {message.incarnation[:ID_SHOWN]}")
        case ParticipantLeave():
            dropped = "drops its open data" if body.transaction else ""
            return _join(_numbers(body.partitions), dropped, body.reason)
        case StartCommit():
            writers = len(set(body.writers.values()))
            by = f"{writers} worker{'' if writers == 1 else 's'}"
            at_most = f"at most {readable_count(body.records_max)} records" if body.records_max else ""
            over = "hand rows over" if body.takers else ""
            return _join(f"instant {body.instant}", by, over, at_most, _offsets(body.committed))
        case WriteProgress():
            files = f"{readable_count(body.files)} files so far {readable_size(body.size_bytes)}"
            return _join(files, f"of {readable_count(body.records)} records")
        case WriteStatus():
            return _write_status(body)
        case AckCommit():
            took = " ".join(f"{part} {ms} ms" for part, ms in body.took_ms.items())
            return _join(f"instant {body.instant}", _offsets(body.committed), took)
        case AbortCommit():
            return _join(body.cause, body.reason)
        case EndRequest() | EndCommit() | Halt():
            return body.reason
        case Control():
            settings = " ".join(f"{name}={text}" for name, text in spelled(body.settings).items())
            return _join(f"{body.action} {settings}".strip(), f"by {body.who}" if body.who else "", body.why)
    return ""


def _write_status(body: WriteStatus) -> str:
    size = readable_size(sum(file.size_bytes for file in body.files))
    rows = readable_count(sum(file.rows for file in body.files))
    files = f"{len(body.files)} file{'' if len(body.files) == 1 else 's'} {size} {rows} rows"
    ranges = _some([f"{r.partition} [{r.start},{r.next})" for r in body.ranges])
    rejects = f"{readable_count(body.reject_count)} rejected" if body.reject_count else ""
    lost = "lost " + _some([f"{x.partition} [{x.start},{x.next})" for x in body.lost]) if body.lost else ""
    late = sum(times.late for times in body.event_times)
    return _join(files, ranges, rejects, lost, f"{readable_count(late)} late" if late else "")


def _offsets(offsets: Offsets) -> str:
    return _some([f"{partition}@{offsets[partition]}" for partition in sorted(offsets)])


def _numbers(partitions: Sequence[SourcePartition]) -> str:
    """`events:0-3,7`: runs of one topic's partitions."""
    by_topic: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        by_topic.setdefault(topic, []).append(number)
    return " ".join(f"{topic}:{','.join(_runs(numbers))}" for topic, numbers in by_topic.items())


def _runs(numbers: Iterable[int]) -> list[str]:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return [str(first) if first == last else f"{first}-{last}" for first, last in runs]


def _some(items: Sequence[str]) -> str:
    shown = " ".join(items[:ITEMS_SHOWN_MAX])
    return f"{shown} and {len(items) - ITEMS_SHOWN_MAX} more" if len(items) > ITEMS_SHOWN_MAX else shown


def _join(*parts: str) -> str:
    return " · ".join(part for part in parts if part)


def content(message: Message, *, length_max: int) -> str:
    """What the message says, in one line of at most so many characters."""
    said = one_line(_condense(message, message.body)[: length_max + 1])
    return said if len(said) <= length_max else said[: length_max - 1] + "…"
