"""How a run stands, for the supervisor and for `lockstep status`. Pure: standard library only."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from control_topic.messages import Offsets
from table.port import ServiceProgress
from table.service.calls import CoordinatorReport, WorkerReport
from table.service.ledger import LedgerStanding
from table.service.roster import Reported
from table.state import nest
from table.watermark import Watermark


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One snapshot."""

    pipeline: str
    run: str
    standing: LedgerStanding
    workers: tuple[Reported, ...]
    coordinator: CoordinatorReport | None
    committed: Offsets
    commits: int
    """By this run, as rows and rejects are."""
    rows: int
    rejects: int
    late: int
    """Behind the watermark; `absurd`: too far ahead for it."""
    absurd: int
    last_commit_age_ms: int | None
    """None before this run's first commit."""
    newest_instant: str
    """Of the newest commit seen in the table, as the four behind it."""
    newest_transaction: str
    newest_run: str
    newest_epoch: int
    watermark: Watermark | None
    busy_with: str
    """What the table thread is doing."""
    queued: int
    services: tuple[ServiceProgress, ...]
    alarms: tuple[str, ...]
    """What the driver sees not going on."""
    stands: bool
    """Source partitions are not read, because of what an alarm says."""
    now_ms: int

    def to_json(self) -> dict[str, Any]:
        """Base units: milliseconds, bytes, rows."""
        standing = self.standing
        return {
            "pipeline": self.pipeline,
            "run": self.run,
            "epoch": standing.epoch,
            "mode": standing.mode.name,
            "control": dict(standing.control),
            "halted": standing.halted or None,
            "stopping": standing.stopping or None,
            "workers": [worker_json(entry, self.now_ms) for entry in self.workers],
            "coordinator": _coordinator(self.coordinator),
            "commits": self.commits,
            "rows": self.rows,
            "rejects": self.rejects,
            "late": self.late,
            "absurd": self.absurd,
            "last_commit_age_ms": self.last_commit_age_ms,
            "committed": nest(self.committed),
            "newest": {
                "instant": self.newest_instant,
                "transaction": self.newest_transaction,
                "run": self.newest_run,
                "epoch": self.newest_epoch,
            },
            "watermark": watermark_json(self.watermark) if self.watermark is not None else None,
            "failures": {
                "pipeline": standing.pipeline_failures,
                "environment": standing.environment_failures,
                "outage_ms": standing.outage_ms,
                "backoff_left_ms": standing.backoff_left_ms,
                "reasons": list(standing.reasons),
                "deaths": list(standing.deaths),
            },
            "fenced": list(standing.fenced),
            "table": {"busy_with": self.busy_with, "queued": self.queued},
            "services": [asdict(service) for service in self.services],
            "alarms": list(self.alarms),
            "stands": self.stands,
        }


def watermark_json(watermark: Watermark) -> dict[str, Any]:
    """How far the table is complete, and what it waits for. Milliseconds since 1970."""
    holder = watermark.holder
    return {
        "of": watermark.of,
        "at_ms": watermark.at_ms,
        "held_by": str(holder) if holder is not None else None,
        "source_partitions": len(watermark.marks),
        "idle": sum(mark.idle for mark in watermark.marks.values()),
    }


def worker_json(entry: Reported, now_ms: int) -> dict[str, Any]:
    """A worker's line of `Progress.to_json`."""
    report: WorkerReport = entry.report
    return {
        **report.metrics,  # whatever they are called, what follows is what it says
        "slot": report.slot,
        "incarnation": report.incarnation,
        "pid": report.pid,
        "host": report.host,
        "state": "dead" if entry.dead else report.state,
        "age_ms": now_ms - entry.at_ms,
        "partitions": [str(partition) for partition in report.partitions],
        "coordinator": report.coordinator is not None,
        "fenced": report.fenced,
        "poison": report.poison or None,
        "alarms": list(report.alarms),
        "seconds": dict(report.seconds),
    }


def _coordinator(report: CoordinatorReport | None) -> dict[str, Any] | None:
    if report is None:
        return None
    return {
        "epoch": report.epoch,
        "state": report.state,
        "transaction": report.transaction or None,
        "instant": report.instant or None,
        "started_at_ms": report.started_at_ms,
        "answered": list(report.answered),
        "missing": list(report.missing),
        "ignored": report.ignored,
    }
