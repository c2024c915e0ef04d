"""Entries of the page's document: a transaction, its story, a worker. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from control_topic.spelling import one_line, plain
from lockstep.watch.counters import WORKERS_MAX, durations_ms
from lockstep.watch.told import LINES_MAX, Phase, Transaction
from lockstep.watch.topic_fold import Fold

MEASURED = ("memory_bytes", "memory_max_bytes", "buffered_bytes")
"""Of a worker's own metrics: those that the page shows."""
VALUE_BYTES_MAX = 2_000


def transaction_entry(one: Transaction, names: Mapping[str, str]) -> dict[str, Any]:
    """A transaction as a bar shows it. `names`: incarnation -> worker."""
    return {
        "id": one.id,
        "instant": one.instant,
        "run": one.run,
        "epoch": one.epoch,
        "phase": one.phase.value,
        "started_ms": one.started_ms,
        "end_ms": one.end_ms,
        "written_ms": one.written_ms,
        "ended_ms": one.ended_ms,
        "records": one.records,
        "files": one.files,
        "bytes": one.size_bytes,
        "end_reason": one.end_reason,
        "cause": one.cause,
        "reason": one_line(one.reason),
        "took_ms": durations_ms(one) if one.phase is Phase.COMMITTED else {},
        "workers": one.workers,
        "late": one_line(one.late) or None,
        "late_by_ms": one.late_by_ms,
        "missing": missing(one, names),
        "undecided": one.orphaned and one.is_open,
    }


def missing(one: Transaction, names: Mapping[str, str]) -> list[str]:
    """Whose files are awaited, of a transaction that was ended and is still open."""
    if one.phase is not Phase.ENDING:
        return []
    return sorted(one_line(names.get(who, who)) for who in one.writers - one.answered.keys())[:WORKERS_MAX]


def story(one: Transaction, names: Mapping[str, str]) -> dict[str, Any]:
    """All that is remembered of a transaction; of an older one sums, and its last messages."""
    return transaction_entry(one, names) | {
        "writers": [
            {
                "name": one_line(wrote.name),
                "incarnation": wrote.incarnation,
                "answered_ms": wrote.answered_ms,
                "records": wrote.records,
                "files": wrote.files,
                "bytes": wrote.size_bytes,
                "ranges": [
                    {
                        "topic": span.partition.topic,
                        "partition": span.partition.number,
                        "start": span.start,
                        "next": span.next,
                        "records": span.records,
                    }
                    for span in wrote.ranges
                ],
            }
            for wrote in sorted(one.wrote.values(), key=lambda wrote: wrote.answered_ms)
        ],
        "end_requests": [
            {"name": one_line(asked.name), "reason": asked.reason, "time_ms": asked.time_ms}
            for asked in one.asked
        ],
        "rejects": one.rejects.count,
        "messages": [line._asdict() for line in one.lines[-LINES_MAX:]],
    }


def worker_entries(
    fold: Fold, live: Mapping[str, Any] | None, last_deaths: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Every worker, as the driver knows it; without one as far as the topic tells."""
    if live is not None:
        return [_live_worker(fold, worker, last_deaths) for worker in live.get("workers", ())][:WORKERS_MAX]
    return [
        _entry(fold, worker.name, last_deaths) | {"source_partitions": len(fold.owners.of(worker.name))}
        for worker in sorted(fold.workers.values(), key=lambda worker: worker.name)[:WORKERS_MAX]
    ]


def _whole(figure: float | None) -> int | None:
    return int(figure) if figure is not None else None


def _entry(fold: Fold, name: str, last_deaths: Mapping[str, str]) -> dict[str, Any]:
    return {
        "name": one_line(name),
        "state": "unknown",
        "pid": None,
        "host": None,
        "age_ms": None,
        "source_partitions": 0,
        **dict.fromkeys(MEASURED),
        "seconds": {},
        "restarts": fold.restarts.get(name, 0),
        "last_death": last_deaths.get(name),
        "alarms": [],
    }


def _live_worker(fold: Fold, worker: Mapping[str, Any], last_deaths: Mapping[str, str]) -> dict[str, Any]:
    return _entry(fold, f"worker-{worker['slot']}", last_deaths) | {
        "state": worker["state"],
        "pid": worker["pid"],
        "host": worker["host"],
        "age_ms": worker["age_ms"],
        "source_partitions": len(worker.get("partitions", ())),
        **{name: _whole(worker.get(name)) for name in MEASURED},
        **{name: _whole(worker.get(name)) or None for name in MEASURED if name.startswith("memory")},
        "seconds": dict(worker.get("seconds", {})),
        "alarms": [one_line(alarm) for alarm in worker.get("alarms", ())],
    }


def value_entry(value: bytes | None) -> dict[str, Any]:
    """A record's value, as much of it as a person reads; what is no text is spelled out."""
    if value is None:
        return {"text": None, "size_bytes": 0, "is_cut": False}
    text = plain(value[:VALUE_BYTES_MAX].decode("utf-8", "backslashreplace"))
    return {"text": text, "size_bytes": len(value), "is_cut": len(value) > VALUE_BYTES_MAX}
