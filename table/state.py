"""What Lockstep stores in a commit's extra metadata, and how it is spelled. Pure: standard library only.

The whole offsets map is in every commit, not only what changed, so that the newest commit alone says
where to go on, however many foreign instants came after it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from control_topic.messages import (
    EPOCH_LEAD_MAX,
    EPOCH_MAX,
    REJECTS_LISTED_MAX,
    Lost,
    Offsets,
    Range,
    Reject,
    SourcePartition,
    Witness,
    Witnesses,
)
from table import watermark as marks
from table.watermark import Watermark

PREFIX = "lockstep."
STATE_VERSION = "1"
_FINGERPRINT = re.compile(r"[0-9a-f]{16}")


class StateError(ValueError):
    """Commit metadata that begins `lockstep.` but cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """This pipeline's state as one commit left it."""

    pipeline: str
    run: str
    epoch: int
    transaction: str
    offsets: Offsets
    ranges: tuple[Range, ...] = ()
    lost: tuple[Lost, ...] = ()
    rejects: tuple[Reject, ...] = ()
    reject_count: int = 0
    witnesses: Witnesses = field(default_factory=dict)
    """What whoever begins to read looks for first. A version that knew none leaves none."""
    watermark: Watermark | None = None
    """None where no event time is declared, and of a version that knew none."""
    cluster: str = ""
    topics: Mapping[str, str] = field(default_factory=dict)
    """Topic -> topic id."""
    kind: str = "data"
    """`genesis`, `data`, `operator`, or `admission`, which gives source partitions that are new to the table
    a place to begin.
    """
    operator: str = ""
    """Who changed offsets by hand."""
    reason: str = ""
    """And why."""
    instant: str = ""
    """The requested time of the instant that holds it; not stored, filled in by whoever read it."""


def owner(pipeline: str, run: str, transaction: str) -> dict[str, str]:
    """The metadata of an inflight instant: enough for recovery to know its own."""
    return {PREFIX + "pipeline": pipeline, PREFIX + "run": run, PREFIX + "transaction": transaction}


def encode(state: TableState) -> dict[str, str]:
    """The commit's extra metadata for `state`. Raises `StateError` for what `decode` would not take.

    A commit that nobody can read ends the table for every later run.
    """
    written = {
        PREFIX + "version": STATE_VERSION,
        **owner(state.pipeline, state.run, state.transaction),
        PREFIX + "epoch": str(state.epoch),
        PREFIX + "kind": state.kind,
        PREFIX + "offsets": _dump(nest(state.offsets)),
        PREFIX + "ranges": _dump(
            [[r.partition.topic, r.partition.number, r.start, r.next, r.records] for r in state.ranges]
        ),
        PREFIX + "lost": _dump(
            [[x.partition.topic, x.partition.number, x.start, x.next] for x in state.lost]
        ),
        PREFIX + "rejects": _dump(
            [
                [x.partition.topic, x.partition.number, x.offset, x.reason]
                for x in state.rejects[:REJECTS_LISTED_MAX]
            ]
        ),
        PREFIX + "reject_count": str(max(state.reject_count, len(state.rejects))),
        PREFIX + "witnesses": _dump(_nest_witnesses(state.witnesses)),
        PREFIX + "cluster": state.cluster,
        PREFIX + "topics": _dump(dict(state.topics)),
        PREFIX + "operator": state.operator,
        PREFIX + "reason": state.reason,
    }
    if state.watermark is not None:
        written[PREFIX + "watermark"] = _dump(marks.to_json(state.watermark))
    try:
        decode(written)
    except StateError as error:
        said = f"transaction {state.transaction} is not committed, for nobody could read it: {error}"
        raise StateError(said) from error
    return written


def decode(metadata: Mapping[str, str], *, instant: str = "") -> TableState | None:
    """The state in a commit's extra metadata, None where the commit is not Lockstep's.

    Raises `StateError` where it claims to be and cannot be read: such a table must not be written to.
    """
    if PREFIX + "offsets" not in metadata:
        return None
    version = metadata.get(PREFIX + "version")
    if version != STATE_VERSION:
        raise StateError(
            f"instant {instant}: lockstep.version is {version!r}, this Lockstep reads {STATE_VERSION!r}"
        )
    try:
        offsets = flatten(json.loads(metadata[PREFIX + "offsets"]))
        watermark = json.loads(metadata.get(PREFIX + "watermark", "null"))
        return TableState(
            pipeline=metadata[PREFIX + "pipeline"],
            run=metadata[PREFIX + "run"],
            epoch=_epoch(int(metadata[PREFIX + "epoch"])),
            transaction=metadata[PREFIX + "transaction"],
            offsets=offsets,
            ranges=tuple(
                Range(partition=_partition(t, p), start=_count(s), next=_count(n), records=_count(c))
                for t, p, s, n, c in json.loads(metadata[PREFIX + "ranges"])
            ),
            lost=tuple(
                Lost(partition=_partition(t, p), start=_count(s), next=_count(n))
                for t, p, s, n in json.loads(metadata[PREFIX + "lost"])
            ),
            rejects=tuple(
                Reject(partition=_partition(t, p), offset=_count(o), reason=_text(r))
                for t, p, o, r in json.loads(metadata[PREFIX + "rejects"])
            ),
            reject_count=_count(int(metadata[PREFIX + "reject_count"])),
            witnesses=_flatten_witnesses(json.loads(metadata.get(PREFIX + "witnesses", "{}")), offsets),
            watermark=marks.from_json(watermark) if watermark is not None else None,
            cluster=metadata[PREFIX + "cluster"],
            topics={_text(topic): _text(i) for topic, i in json.loads(metadata[PREFIX + "topics"]).items()},
            kind=metadata[PREFIX + "kind"],
            operator=metadata[PREFIX + "operator"],
            reason=metadata[PREFIX + "reason"],
            instant=instant,
        )
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise StateError(f"instant {instant}: its lockstep.* metadata cannot be read: {error!r}") from error


def _count(value: object) -> int:
    """An offset, a count or a number of that kind. Raises `ValueError` for what JSON may hold instead."""
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a whole number from 0 on")
    return value


def _epoch(value: int) -> int:
    """An epoch that leaves others room after it. Raises `ValueError` for what no run can have committed."""
    if _count(value) > EPOCH_MAX - EPOCH_LEAD_MAX:
        raise ValueError(f"epoch {value} is at the end of all epochs: no run of Lockstep came so far")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not text")
    return value


def _partition(topic: object, number: object) -> SourcePartition:
    return SourcePartition(_text(topic), _count(number))


def nest(offsets: Offsets) -> dict[str, dict[str, int]]:
    """`{topic: {"0": next}}`, sorted: the readable form of an offsets map."""
    nested: dict[str, dict[str, int]] = {}
    for partition in sorted(offsets):
        nested.setdefault(partition.topic, {})[str(partition.number)] = offsets[partition]
    return nested


def flatten(nested: Mapping[str, Mapping[str, int]]) -> dict[SourcePartition, int]:
    """The inverse of `nest`. Raises `ValueError`, `TypeError` or `AttributeError` for what is none."""
    return {
        _partition(topic, int(number)): _count(next_offset)
        for topic, numbers in nested.items()
        for number, next_offset in numbers.items()
    }


def _nest_witnesses(witnesses: Witnesses) -> dict[str, dict[str, tuple[int, str]]]:
    """`{topic: {"0": [offset, fingerprint in hex]}}`, sorted."""
    nested: dict[str, dict[str, tuple[int, str]]] = {}
    for partition in sorted(witnesses):
        witness = witnesses[partition]
        told = (witness.offset, f"{witness.fingerprint:016x}")
        nested.setdefault(partition.topic, {})[str(partition.number)] = told
    return nested


def _flatten_witnesses(
    nested: Mapping[str, Mapping[str, tuple[int, str]]], offsets: Offsets
) -> dict[SourcePartition, Witness]:
    """The inverse. Raises as `flatten`, and `ValueError` for one that does not stand before the offset."""
    witnesses: dict[SourcePartition, Witness] = {}
    for topic, numbers in nested.items():
        for number, (offset, fingerprint) in numbers.items():
            partition = _partition(topic, int(number))
            if _count(offset) >= offsets.get(partition, 0) or _FINGERPRINT.fullmatch(fingerprint) is None:
                raise ValueError(f"{partition}: [{offset!r}, {fingerprint!r}] is no record before its offset")
            witnesses[partition] = Witness(
                partition=partition, offset=offset, fingerprint=int(fingerprint, base=16)
            )
    return witnesses


_dump = json.JSONEncoder(separators=(",", ":")).encode
