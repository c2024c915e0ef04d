"""The document of the page: everything that there is to see of a pipeline, as one JSON object. Pure.

Base units; times in milliseconds of the Unix epoch, 0 where a thing has not happened, null where nobody knows
it. What other people wrote (names, reasons) is in it as it is, in one line each: whoever shows it escapes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from control_topic.bounds import REASON_CHARS_MAX
from control_topic.controls import STOP
from control_topic.messages import SourcePartition
from control_topic.spelling import one_line, short_line
from lockstep.offsets.standing import NOT_CONFIGURED, OffsetRow
from lockstep.watch.counters import Counters
from lockstep.watch.history import History
from lockstep.watch.page_rows import (
    transaction_entry,
    worker_entries,
)
from lockstep.watch.page_table import Counted, files_entry, schema_entry
from lockstep.watch.status import Status
from lockstep.watch.told import REASON_LENGTH_MAX, REASONS_COUNTED_MAX

VERSION = 1
TRANSACTIONS_SHOWN_MAX = 300
PARTITIONS_SHOWN_MAX = 100
DONE, OPEN, GIVEN_UP = "done", "open", "given up"
"""How an order stands."""
SERVICE_FIELDS = (
    *("name", "mode", "every", "commits", "running_ms", "doing", "done", "last_instant", "last_what"),
    *("last_took_ms", "last_age_ms", "failures", "problem"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """When each was last read well, by the observer's clock; None: never yet."""

    topic_ms: int | None = None
    broker_ms: int | None = None
    table_ms: int | None = None
    driver_ms: int | None = None

    def to_json(self) -> dict[str, int | None]:
        return {
            "topic_ms": self.topic_ms,
            "broker_ms": self.broker_ms,
            "table_ms": self.table_ms,
            "driver_ms": self.driver_ms,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """What is known of the table beside its newest commit."""

    path: str
    format: str
    mode: str | None = None
    counted: Counted | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSeen:
    """Everything that a document is made of. `rows`: as `compare` has them, as of the last good look."""

    now_ms: int
    status: Status
    history: History
    sources: Sources
    table: TableFacts
    interval_ms: int
    write_timeout_ms: int
    rows: Sequence[OffsetRow] | None = None
    rows_are_old: bool = False
    """The broker has not answered lately: what is behind now is not known."""

    written_ms: Mapping[SourcePartition, int] = field(default_factory=dict)
    """When the oldest record that is not committed was written; of those that are behind, as far as known."""

    opened_ms: Mapping[SourcePartition, int] = field(default_factory=dict)
    """When the oldest open producer transaction wrote its first record, as far as known."""

    live: Mapping[str, Any] | None = None
    mode: str | None = None
    """What the run is to do, or was to do last."""

    shows_values: bool = False
    """Whether readers may ask for the value of a dead letter."""


def page_document(seen: PageSeen, rows: Sequence[Mapping[str, Any]] | None = None) -> dict[str, Any]:
    """As docs and the page's own code expect it. `rows`: `source_partition_entries` of the same, where they
    are made already.
    """
    status, history, live = seen.status, seen.history, seen.live
    fold, totals = history.run.fold, history.run.heard
    rows = source_partition_entries(seen) if rows is None else rows
    lag = lag_entry(rows if seen.rows is not None and not seen.rows_are_old else None)
    return {
        "version": VERSION,
        "at_ms": seen.now_ms,
        "pipeline": status.pipeline,
        "state": status.state,
        "headline": status.headline,
        "advice": [one_line(line) for line in status.advice],
        "problems": [one_line(line) for line in status.problems],
        "halted": _halted(status),
        "run": status.run or None,
        "run_ms": fold.run_ms or None,
        "epoch": status.epoch,
        "coordinator": one_line(status.coordinator) or None,
        "coordinators": [
            {"epoch": led.epoch, "name": one_line(led.name), "since_ms": led.since_ms}
            for led in history.coordinators()
        ],
        "mode": seen.mode,
        "control": control_entry(live, seen.now_ms),
        "settings": {"interval_ms": seen.interval_ms, "write_timeout_ms": seen.write_timeout_ms},
        "table": {
            "path": seen.table.path,
            "format": seen.table.format,
            "mode": seen.table.mode,
            "busy_with": (live.get("table", {}).get("busy_with") or None) if live is not None else None,
            "files": files_entry(seen.table.counted),
            "schema": schema_entry(seen.table.counted),
        },
        "last_commit": last_commit_entry(seen),
        "watermark": dict(status.watermark) if status.watermark is not None else None,
        "next_end": asdict(status.next_end) if status.next_end is not None else None,
        "freshness_ms": None if lag["seconds"] is None else round(1_000 * lag["seconds"]),
        "lag": lag,
        "producer_transactions": open_transactions_entry(seen),
        "rates": history.rates.to_json(seen.now_ms),
        "totals": _totals(totals),
        "transactions": [
            transaction_entry(one, history.names(one.run))
            for one in history.transactions(TRANSACTIONS_SHOWN_MAX)
        ],
        "source_partitions": rows[:PARTITIONS_SHOWN_MAX],
        "source_partitions_total": len(rows),
        "workers": worker_entries(fold, live, history.last_deaths),
        "services": [
            {name: service.get(name) for name in SERVICE_FIELDS}
            for service in (live.get("services", ()) if live is not None else ())
        ],
        "troubles": [
            {"time_ms": one.time_ms, "kind": one.kind, "text": one.text} for one in history.troubles()
        ],
        "dead_letters": {**_dead_letters(totals), "values": seen.shows_values},
        "sources": seen.sources.to_json(),
    }


def control_entry(live: Mapping[str, Any] | None, now_ms: int) -> dict[str, Any] | None:
    """The orders to the run, the newest first, and what is in force; null where no driver tells."""
    control = (live or {}).get("control")
    if control is None:
        return None
    return {
        "paused": control.get("paused") is not None,
        "settings": control.get("in_force") or {},
        "changed": sorted(control.get("settings") or ()),
        "orders": [
            {
                "number": one["number"],
                "action": one["action"],
                "settings": one["settings"],
                "who": one_line(one["who"]),
                "why": one_line(one["why"] or ""),
                "time_ms": now_ms - one["age_ms"],
                "state": _order_state(control, one),
            }
            for one in reversed(control.get("orders") or ())
        ],
    }


def _order_state(control: Mapping[str, Any], one: Mapping[str, Any]) -> str:
    """As long as the driver answers, it has not stopped."""
    if one["number"] in (control.get("expired") or ()):
        return GIVEN_UP
    return DONE if one["number"] <= control.get("settled", 0) and one["action"] != STOP else OPEN


def source_partition_entries(seen: PageSeen) -> list[dict[str, Any]]:
    """Every source partition, the worst first: what cannot go on, then what is furthest behind."""
    owners = _owners(seen)
    entries = [
        (
            (not row.fine, lag_ms or 0, row.lag or 0),
            {
                "topic": row.topic,
                "partition": row.partition,
                "committed": row.committed,
                "end": row.end,
                "lag": row.lag,
                "lag_ms": lag_ms,
                "owner": owners.get(f"{row.topic}:{row.partition}"),
                "verdict": row.verdict,
            },
        )
        for row in seen.rows or ()
        for lag_ms in (_lag_ms(seen, row),)
    ]
    entries.sort(key=lambda entry: entry[0], reverse=True)
    return [entry for _, entry in entries]


def lag_entry(rows: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    """Of all source partitions together: offsets, and the age of the oldest record that is not committed.

    As far as it is known; null where it is known of none, for what has no offset yet is not up to date.
    """
    if rows is None:
        return {"records": None, "seconds": None}
    behind = [row for row in rows if row["lag"] != 0 and row["verdict"] != NOT_CONFIGURED]
    ages_ms = [row["lag_ms"] for row in behind if row["lag_ms"] is not None]
    seconds = max(ages_ms, default=None) if behind else 0
    seconds = seconds / 1_000 if seconds is not None else None
    lags = [row["lag"] for row in rows if row["lag"] is not None]
    return {"records": sum(lags) if lags else None, "seconds": seconds}


def open_transactions_entry(seen: PageSeen) -> dict[str, Any]:
    """Return the offsets from the oldest open producer transaction on, and that transaction's age.

    Null where the broker has not answered lately; the age, too, where it is not known.
    """
    if seen.rows is None or seen.rows_are_old:
        return {"records": None, "seconds": None}
    records = sum(row.undecided for row in seen.rows)
    ages_ms = [max(0, seen.now_ms - at_ms) for at_ms in seen.opened_ms.values()]
    seconds = max(ages_ms, default=None) if records else 0
    return {"records": records, "seconds": seconds / 1_000 if seconds is not None else None}


def last_commit_entry(seen: PageSeen) -> dict[str, Any] | None:
    """The newest commit that is known."""
    last = seen.status.last_commit
    if last is None:
        return None
    return {
        "transaction": last.transaction,
        "instant": last.instant,
        "kind": last.kind,
        "epoch": last.epoch,
        "rows": last.rows,
        "completed_ms": seen.now_ms - last.age_ms,
    }


def _lag_ms(seen: PageSeen, row: OffsetRow) -> int | None:
    if row.lag is None:
        return None
    if row.lag == 0:
        return 0
    written_ms = seen.written_ms.get(SourcePartition(row.topic, row.partition))
    return max(0, seen.now_ms - written_ms) if written_ms is not None else None


def _owners(seen: PageSeen) -> dict[str, str]:
    """Source partition -> worker, as the driver knows it, or else the topic."""
    if seen.live is not None:
        return {
            str(place): f"worker-{worker['slot']}"
            for worker in seen.live.get("workers", ())
            if worker["state"] != "dead"
            for place in worker.get("partitions", ())
        }
    return {str(place): one_line(name) for place, name in seen.history.run.fold.owners.items()}


def _halted(status: Status) -> dict[str, Any] | None:
    if status.halted is None:
        return None
    return {
        "reason": short_line(str(status.halted["reason"]), REASON_CHARS_MAX),
        "time_ms": status.halted["time"],
    }


def _totals(counters: Counters) -> dict[str, int]:
    return {
        "commits": counters.commits,
        "aborts": counters.aborts,
        "records": counters.records,
        "bytes": counters.size_bytes,
        "files": counters.files,
        "dead_letters": counters.rejects.count,
        "late": counters.late_records,
    }


def _dead_letters(counters: Counters) -> dict[str, Any]:
    """By reason and by place; the values themselves are not in it."""
    rejects = counters.rejects
    by_reason = sorted(rejects.by_reason.items(), key=lambda item: -item[1])
    reasons = [
        {"reason": short_line(reason, REASON_LENGTH_MAX), "count": count} for reason, count in by_reason
    ]
    if rest := rejects.count - sum(rejects.by_reason.values()):
        reasons = [*reasons[: REASONS_COUNTED_MAX - 1], {"reason": "other", "count": rest}]
    return {
        "count": rejects.count,
        "reasons": reasons,
        "sample": [
            {
                "source_partition": str(one.partition),
                "offset": one.offset,
                "reason": short_line(one.reason, REASON_LENGTH_MAX),
                "time_ms": time_ms,
            }
            for one, time_ms in reversed(rejects.sample)
        ],
    }
