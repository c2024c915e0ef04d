"""Documents of the page as a run would make them, and somebody watched who shows whichever a test wants."""

from __future__ import annotations

import copy
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from control_topic.clocks import wall_ms
from lockstep.ui.port import WantedOrder

HOUR_MS = 3_600_000
IN_FORCE = {
    "transaction.interval": 2_000,
    "transaction.write_timeout": 60_000,
    "transaction.max_records": 0,
    "transaction.max_bytes": 512_000_000,
    "transaction.schedule": "every 1h",
    "transaction.align": 0,
}
STAGES = ("wait", "consume", "decode", "derive", "encode", "upload")


def transaction(number: int, ended_ms: int, **more: Any) -> dict[str, Any]:
    """A committed one of about two seconds; `more` overrides."""
    collected, closed, committed = 2_000 + number * 37 % 400, 200 + number * 53 % 500, 150 + number * 29 % 250
    started_ms = ended_ms - collected - closed - committed
    made = {
        "id": f"{number:08x}-7c1e-4d5a-9a3b-0123456789ab",
        "instant": f"202611260313{number:05d}",
        "epoch": 2,
        "phase": "committed",
        "started_ms": started_ms,
        "end_ms": started_ms + collected,
        "written_ms": started_ms + collected + closed,
        "ended_ms": ended_ms,
        "records": 50_000 + number * 911 % 9_000,
        "files": 6,
        "bytes": 1_600_000 + number * 7_919 % 400_000,
        "end_reason": "interval",
        "cause": "",
        "reason": "",
        "took_ms": {"files": 8, "lock": 12, "check": 3, "metadata": committed - 60, "write": 20},
        "workers": 2,
        "late": None,
        "late_by_ms": 0,
        "missing": [],
        "run": "4f2a9c1d0b7e6a35",
        "undecided": False,
    }
    return {**made, **more}


def aborted(number: int, ended_ms: int, **more: Any) -> dict[str, Any]:
    """One that a worker's death ended."""
    made = transaction(number, ended_ms)
    return {
        **made,
        "phase": "aborted",
        "end_ms": 0,
        "written_ms": 0,
        "records": 0,
        "files": 0,
        "bytes": 0,
        "end_reason": "",
        "cause": "worker_died",
        "reason": "worker-1: its process died",
        "took_ms": {},
        "late": "worker-1",
        **more,
    }


def opened(number: int, started_ms: int, **more: Any) -> dict[str, Any]:
    """One that is open."""
    made = transaction(number, started_ms)
    nothing = {"end_ms": 0, "written_ms": 0, "ended_ms": 0, "records": 0, "files": 0, "bytes": 0}
    now = {"phase": "writing", "started_ms": started_ms, "end_reason": "", "took_ms": {}}
    return {**made, **nothing, **now, **more}


def transactions(count: int, now_ms: int, *, interval_ms: int = 2_500) -> list[dict[str, Any]]:
    """`count` of them, oldest first, an abort now and then, the last one open."""
    first_ms = now_ms - 800 - (count - 2) * interval_ms
    made = []
    for number in range(count - 1):
        make = aborted if number % 97 == 61 else transaction
        made.append(make(number, first_ms + number * interval_ms))
    made.append(opened(count - 1, now_ms - 700))
    return made


def source_partition(number: int, *, topic: str = "events", lag: int = 0, **more: Any) -> dict[str, Any]:
    made = {
        "topic": topic,
        "partition": number,
        "committed": 1_000_000 + number,
        "end": 1_000_000 + number + lag,
        "lag": lag,
        "lag_ms": lag // 25 if lag else 0,
        "owner": f"worker-{number % 2}",
        "verdict": "behind" if lag else "ok",
    }
    return {**made, **more}


def worker(number: int, **more: Any) -> dict[str, Any]:
    made = {
        "name": f"worker-{number}",
        "state": "writing",
        "pid": 4_000 + number,
        "host": "host-a",
        "age_ms": 400,
        "source_partitions": 2,
        "memory_bytes": 310_000_000 + number * 50_000_000,
        "memory_max_bytes": 512_000_000,
        "buffered_bytes": 18_000_000,
        "seconds": dict(zip(STAGES, (41.0, 22.5, 61.0, 3.5, 48.0, 12.0), strict=True)),
        "restarts": number,
        "last_death": "its process was ended by SIGKILL" if number else None,
        "alarms": [],
    }
    return {**made, **more}


def service(name: str, **more: Any) -> dict[str, Any]:
    made = {
        "name": name,
        "mode": "async",
        "every": 50,
        "commits": 31,
        "running_ms": None,
        "doing": "",
        "done": 4,
        "last_instant": "20261126030102003",
        "last_what": "12 files",
        "last_took_ms": 2_400,
        "last_age_ms": 95_000,
        "failures": 0,
        "problem": "",
    }
    return {**made, **more}


def table_files(now_ms: int, **more: Any) -> dict[str, Any]:
    """A count of three minutes ago."""
    made = {
        "counted_ms": now_ms - 180_000,
        "checked_ms": now_ms - 180_000,
        "files": 1_260,
        "bytes": 84_000_000_000,
        "small_files": 212,
        "small_below_bytes": 60_000_000,
        "log_files": 0,
        "log_bytes": 0,
        "at_least": False,
        "table_partitions": 3,
        "worst": [
            {"path": f"region={name}", "files": 420, "small_files": small, "bytes": 28_000_000_000}
            for name, small in (("eu", 140), ("us", 60), ("ap", 12))
        ],
    }
    return {**made, **more}


def table_schema(now_ms: int, **more: Any) -> dict[str, Any]:
    """Of nine columns, one of which is new."""
    some = (("event_id", "STRING"), ("amount", "DOUBLE"), ("region", "STRING"), ("note", "STRING"))
    kafka = (("topic", "STRING"), ("partition", "INT"), ("offset", "BIGINT"), ("timestamp", "TIMESTAMP"))
    columns = [*some, *((f"_kafka_{name}", kind) for name, kind in kafka)]
    made = {
        "columns": [
            {"name": name, "type": kind, "nullable": not name.startswith("_kafka_")} for name, kind in columns
        ],
        "columns_total": len(columns),
        "changes": [
            {
                "instant": "20261126030102003",
                "completed_ms": now_ms - 7_000_000,
                "columns": [
                    {"name": "note", "was": None, "now": "STRING"},
                    {"name": "amount", "was": "FLOAT", "now": "DOUBLE"},
                ],
                "columns_total": 2,
            }
        ],
        "changes_total": 1,
        "since_instant": "20261126010000000",
        "since_ms": now_ms - 2 * HOUR_MS,
    }
    return {**made, **more}


def document(*, pipeline: str = "events", count: int = 120, now_ms: int = 0, **more: Any) -> dict[str, Any]:
    """A run that goes well; `more` overrides."""
    now_ms = now_ms or wall_ms()
    made = transactions(count, now_ms) if count else []
    committed = [one for one in made if one["phase"] == "committed"]
    last = committed[-1] if committed else None
    partitions = [source_partition(number, lag=max(0, 4 - number) * 900) for number in range(8)]
    lag = sum(one["lag"] for one in partitions)
    whole = {
        "version": 1,
        "at_ms": now_ms,
        "pipeline": pipeline,
        "state": "running",
        "headline": "RUNNING",
        "advice": [],
        "problems": [],
        "halted": None,
        "run": "4f2a9c1d0b7e6a35",
        "run_ms": now_ms - HOUR_MS,
        "epoch": 2,
        "coordinator": "coordinator@worker-0",
        "coordinators": [
            {"epoch": 2, "name": "coordinator@worker-0", "since_ms": now_ms - 2_000_000},
            {"epoch": 1, "name": "coordinator@worker-1", "since_ms": now_ms - HOUR_MS},
        ],
        "mode": "RUN",
        "control": {"paused": False, "settings": dict(IN_FORCE), "changed": [], "orders": []},
        "settings": {"interval_ms": 2_000, "write_timeout_ms": 60_000},
        "table": {
            "path": "file:///data/lake/events",
            "format": "hudi",
            "mode": "insert",
            "busy_with": None,
            "files": table_files(now_ms),
            "schema": table_schema(now_ms),
        },
        "last_commit": last
        and {
            "transaction": last["id"],
            "instant": last["instant"],
            "kind": "commit",
            "epoch": last["epoch"],
            "rows": last["records"],
            "completed_ms": last["ended_ms"],
        },
        "watermark": {
            "of": "created_at",
            "at_ms": now_ms - 900_000,
            "held_by": "events:3",
            "source_partitions": len(partitions),
            "idle": 1,
            "behind_ms": 900_000,
        },
        "next_end": {
            "reason": "schedule",
            "time_ms": now_ms + 60_000,
            "in_ms": 60_000,
            "shown": "2026-11-20 11:00:00 Europe/Berlin",
        },
        "freshness_ms": 1_400,
        "lag": {"records": lag, "seconds": 1.4},
        "producer_transactions": {"records": 0, "seconds": 0.0},
        "rates": {
            "step_ms": 60_000,
            "from_ms": now_ms - HOUR_MS,
            "records": [1_200_000 + number * 7_919 * 13 % 500_000 for number in range(60)],
            "bytes": [40_000_000 + number * 7_919 * 131 % 9_000_000 for number in range(60)],
        },
        "totals": {
            "commits": len(committed),
            "aborts": sum(one["phase"] == "aborted" for one in made),
            "records": sum(one["records"] for one in committed),
            "bytes": sum(one["bytes"] for one in committed),
            "files": sum(one["files"] for one in committed),
            "dead_letters": 3,
            "late": 12,
        },
        "transactions": made,
        "source_partitions": partitions,
        "source_partitions_total": len(partitions),
        "workers": [worker(0), worker(1)],
        "services": [service("compaction", mode="off"), service("clustering"), service("cleaning")],
        "troubles": [
            {"time_ms": one["ended_ms"], "kind": "abort", "text": f"{one['id'][:8]}: {one['reason']}"}
            for one in reversed(made)
            if one["phase"] == "aborted"
        ],
        "dead_letters": {
            "values": False,
            "count": 3,
            "reasons": [{"reason": "amount: not a DOUBLE", "count": 2}, {"reason": "not JSON", "count": 1}],
            "sample": [
                {
                    "source_partition": "events:3",
                    "offset": 41_233,
                    "reason": "amount: not a DOUBLE",
                    "time_ms": now_ms - 600_000,
                }
            ],
        },
        "sources": {"topic_ms": now_ms - 300, "broker_ms": now_ms, "table_ms": now_ms, "driver_ms": now_ms},
    }
    return {**whole, **more}


def story(entry: Mapping[str, Any]) -> dict[str, Any]:
    """That of a transaction of two writers."""
    writers = []
    for number in range(2):
        answered = (entry["written_ms"] or entry["ended_ms"]) - (1 - number) * 120
        late = entry["late"] == f"worker-{number}"
        writers.append(
            {
                "name": f"worker-{number}",
                "incarnation": f"f7a9646d{number}",
                "answered_ms": 0 if late or not entry["end_ms"] else answered,
                "records": entry["records"] // 2,
                "files": entry["files"] // 2,
                "bytes": entry["bytes"] // 2,
                "ranges": [
                    {
                        "topic": "events",
                        "partition": place,
                        "start": 20_083,
                        "next": 78_903,
                        "records": 58_820,
                    }
                    for place in (number, number + 2)
                ],
            }
        )
    said = [("START_COMMIT", "coordinator@worker-0", entry["started_ms"], "2 workers · events:0@20083")]
    if entry["end_ms"]:
        said.append(("END_COMMIT", "coordinator@worker-0", entry["end_ms"], "interval"))
        said += [
            ("WRITE_STATUS", one["name"], one["answered_ms"], f"{one['files']} files") for one in writers
        ]
    if entry["ended_ms"]:
        kind = "ACK_COMMIT" if entry["phase"] == "committed" else "ABORT_COMMIT"
        said.append((kind, "coordinator@worker-0", entry["ended_ms"], entry["reason"] or entry["instant"]))
    messages = [
        {"offset": 40 + number, "time_ms": time_ms, "type": kind, "sender": sender, "text": text}
        for number, (kind, sender, time_ms, text) in enumerate(said)
    ]
    return {**entry, "writers": writers, "messages": messages, "end_requests": [], "rejects": 0}


@dataclass(frozen=True, slots=True)
class ShownPage:
    number: int
    document: dict[str, Any]


def order(number: int, now_ms: int, **more: Any) -> dict[str, Any]:
    """One to commit, that is done."""
    made = {
        "number": number,
        "action": "commit",
        "settings": {},
        "who": "anna@host-a",
        "why": "before a deployment",
        "time_ms": now_ms - 60_000,
        "state": "done",
    }
    return {**made, **more}


class Desk:
    """`lockstep.ui.port.Ordering`: takes every order, or refuses with what a test puts there."""

    def __init__(self, refusal: Exception | None = None) -> None:
        self.refusal = refusal
        self.given: list[WantedOrder] = []

    def give(self, wanted: WantedOrder) -> int:
        if self.refusal is not None:
            raise self.refusal
        self.given.append(wanted)
        return len(self.given)


class Shown:
    """`lockstep.ui.port.Watched`, of a document that a test puts there."""

    def __init__(self, shown: dict[str, Any] | None = None) -> None:
        self._page = ShownPage(1, shown if shown is not None else document())
        self._changed = threading.Condition()
        self.stories: dict[str, dict[str, Any]] = {}
        self.values: dict[str, dict[str, Any] | Exception] = {}
        """Of dead letters, by place."""
        self.all_source_partitions: list[dict[str, Any]] | None = None
        self.metrics_text = b"# HELP up x\n# TYPE up gauge\nup 1\n"

    def show(self, shown: dict[str, Any]) -> None:
        """From now on."""
        with self._changed:
            self._page = ShownPage(self._page.number + 1, copy.deepcopy(shown))
            self._changed.notify_all()

    def page(self) -> ShownPage:
        return self._page

    def wait(self, number: int, timeout_s: float) -> ShownPage:
        with self._changed:
            self._changed.wait_for(lambda: self._page.number > number, timeout_s)
            return self._page

    def story(self, transaction: str) -> dict[str, Any] | None:
        if transaction in self.stories:
            return self.stories[transaction]
        found = [one for one in self._page.document["transactions"] if one["id"] == transaction]
        return story(found[0]) if found else None

    def source_partitions(self) -> list[dict[str, Any]]:
        if self.all_source_partitions is not None:
            return self.all_source_partitions
        found: list[dict[str, Any]] = self._page.document["source_partitions"]
        return found

    def dead_letter(self, topic: str, partition: int, offset: int) -> dict[str, Any] | None:
        found = self.values.get(f"{topic}:{partition}@{offset}")
        if isinstance(found, Exception):
            raise found
        return found

    def metrics(self, *, openmetrics: bool) -> bytes:
        return self.metrics_text + (b"# EOF\n" if openmetrics else b"")
