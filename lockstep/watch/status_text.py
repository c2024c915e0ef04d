"""`lockstep status` for people: what somebody woken at three in the morning wants to know, in that order."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from control_topic.controls import SETTINGS
from control_topic.spelling import one_line
from lockstep.offsets.standing import BEHIND, OK, undecided
from lockstep.orders.words import spelled
from lockstep.output import readable_count, readable_duration, readable_size, table
from lockstep.watch.next_end import NextEnd
from lockstep.watch.status import PAUSED, Current, Status
from lockstep.when import spelled_time

_STYLES: Mapping[str, str] = {
    "running": "bold green",
    "idle": "bold green",
    "starting": "bold yellow",
    "stalled": "bold red",
    "stopped": "bold yellow",
    "halted": "bold red",
    "never": "bold",
    "unknown": "bold red",
}
_PAUSED_STYLE = "bold yellow"
_LABEL_WIDTH = 14
PARTITIONS_SHOWN_MAX = 32


def to_text(status: Status) -> RenderableType:
    """Is it running, is it committing, how far behind, what to do; then the details."""
    parts: list[RenderableType] = [_headline(status)]
    if status.halted is not None:
        parts.append(Text(f"  {one_line(status.halted['reason'])}", style="red"))
    parts += [Text(f"→ {one_line(line)}", style="bold") for line in status.advice]
    parts.append("")
    parts += [_line(label, text) for label, text in _facts(status) if text]
    if status.live is not None:
        parts += _live(status.live)
    troubled = [row for row in status.partitions if row.verdict != OK]
    if troubled:
        parts += ["", _partitions(status)]
    parts += [Text(f"note: {one_line(problem)}", style="yellow") for problem in status.problems]
    return Group(*parts)


def _headline(status: Status) -> Text:
    said = [f"{status.headline}: {status.pipeline}"]
    if status.last_commit is not None:
        said.append(f"last commit {readable_duration(status.last_commit.age_ms)} ago")
    if status.lag is not None:
        said.append(f"{readable_count(status.lag)} offsets behind" if status.lag else "up to date")
    if open_offsets := sum(row.undecided for row in status.partitions):
        said.append(f"{readable_count(open_offsets)} in open producer transactions")
    style = _PAUSED_STYLE if status.headline == PAUSED else _STYLES[status.state]
    return Text(", ".join(said), style=style)


def _facts(status: Status) -> list[tuple[str, str]]:
    last = status.last_commit
    return [
        ("paused", f"{readable_duration(status.paused['age_ms'])} ago" if status.paused is not None else ""),
        ("halted at", _clock(status.halted["time"]) if status.halted is not None else ""),
        ("coordinator", f"{status.coordinator}, epoch {status.epoch}" if status.coordinator else ""),
        ("run", status.run),
        ("workers", str(status.workers) if status.workers else ""),
        ("transaction", _transaction(status.transaction) if status.transaction is not None else ""),
        ("next end", _next_end(status.next_end) if status.next_end is not None else ""),
        (
            "last commit",
            f"instant {last.instant}, {last.kind}, {readable_count(last.rows)} rows, transaction"
            f" {last.transaction}"
            if last is not None
            else "none yet",
        ),
        ("complete", _watermark(status.watermark) if status.watermark is not None else ""),
        ("producers", undecided(status.partitions)),
    ]


def _next_end(end: NextEnd) -> str:
    return f"by transaction.{end.reason} at {end.shown}, in {readable_duration(end.in_ms)}"


def _watermark(known: Mapping[str, Any]) -> str:
    """How far the table is complete, and what it waits for."""
    if known["at_ms"] is None:
        said = f"nobody knows yet how far by {known['of']}"
    else:
        behind = f", {readable_duration(known['behind_ms'])} behind" if known["behind_ms"] > 0 else ""
        said = f"through {spelled_time(known['at_ms'])} by {known['of']}{behind}"
    waits = f"waits for {known['held_by']}" if known["held_by"] else "every source partition is idle"
    idle = f", {known['idle']} of {known['source_partitions']} are idle" if known["idle"] else ""
    return f"{said}; {waits}{idle if known['held_by'] else ''}"


def _transaction(current: Current) -> str:
    phase = "ended, waiting for files" if current.ended else "collecting"
    said = f"{current.id}, {readable_duration(current.age_ms)} old, {phase}"
    if current.answered:
        said += f"; answered: {', '.join(current.answered)}"
    if current.ended and current.missing:
        missing = [
            f"{who} ({readable_count(current.writing[who])} files so far)" if who in current.writing else who
            for who in current.missing
        ]
        said += f"; NOT answered: {', '.join(missing)}"
    return said


def _live(live: Mapping[str, Any]) -> list[RenderableType]:
    """What only the driver knows."""
    failures = live.get("failures", {})
    rejects = f", {readable_count(live['rejects'])} rejected" if live.get("rejects") else ""
    rejects += f", {readable_count(live['late'])} late" if live.get("late") else ""
    rejects += f", {readable_count(live['absurd'])} of an absurd time" if live.get("absurd") else ""
    parts: list[RenderableType] = [
        _line(
            "this run",
            f"{readable_count(live['commits'])} commits, {readable_count(live['rows'])} rows{rejects},"
            f" mode {live['mode'].lower()}",
        )
    ]
    if settings := (live.get("control") or {}).get("settings"):
        fields = {name: field for field, name in SETTINGS.items()}
        now = spelled({fields[name]: value for name, value in settings.items() if name in fields})
        said = ", ".join(f"{name} = {text}" for name, text in now.items())
        parts.append(_line("set", f"{said} (until this run ends)"))
    if failures.get("outage_ms"):
        parts.append(_line("outage", f"for {readable_duration(failures['outage_ms'])}"))
    parts += [_line("failure", str(reason)) for reason in failures.get("reasons", ())[-3:]]
    parts += [_line("worker died", str(reason)) for reason in failures.get("deaths", ())]
    busy = live.get("table", {}).get("busy_with")
    if busy:
        parts.append(_line("table", f"busy with {busy}"))
    parts += [_line(one["name"], _service(one)) for one in live.get("services", ())]
    for worker in live.get("workers", ()):
        said = f"{worker['state']}, {len(worker['partitions'])} partitions"
        said += f", {readable_size(worker.get('buffered_bytes', 0))} buffered"
        said += f", pid {worker['pid']} on {worker['host']}"
        if worker.get("poison"):
            said += f"; {worker['poison']}"
        parts.append(_line(f"worker-{worker['slot']}", said))
    return parts


def _service(service: Mapping[str, Any]) -> str:
    """A service of the table: what it does, what it did last, why it does not."""
    if service["running_ms"] is not None:
        doing = f" ({service['doing']})" if service["doing"] else ""
        parts = [f"running for {readable_duration(service['running_ms'])}{doing}"]
    else:
        parts = [f"{service['mode']}, {service['commits']:,} of {service['every']:,} commits"]
    if service["last_age_ms"] is not None:
        instant = f"instant {service['last_instant']}, " if service["last_instant"] else ""
        took = readable_duration(service["last_took_ms"])
        parts.append(
            f"last: {instant}{service['last_what']}, took {took}, "
            f"{readable_duration(service['last_age_ms'])} ago"
        )
    if service["problem"]:
        failed = f"FAILED {service['failures']:,} times: " if service["failures"] else ""
        parts.append(f"{failed}{service['problem']}")
    return "; ".join(parts)


def _partitions(status: Status) -> RenderableType:
    """The worst first: what cannot go on, then what is furthest behind."""
    rows = sorted(
        status.partitions, key=lambda row: (row.verdict in (OK, BEHIND), -(row.lag or 0), row.topic)
    )
    shown = rows[:PARTITIONS_SHOWN_MAX]
    grid = table(
        ("source partition", "committed", "end", "lag", "verdict"),
        (
            (
                f"{row.topic}:{row.partition}",
                *(
                    "-" if value is None else readable_count(value)
                    for value in (row.committed, row.end, row.lag)
                ),
                row.verdict,
            )
            for row in shown
        ),
        right=("committed", "end", "lag"),
    )
    if len(rows) == len(shown):
        return grid
    return Group(grid, Text(f"and {len(rows) - len(shown)} more; `lockstep offsets` has all"))


def _line(label: str, text: str) -> Text:
    return Text(one_line(f"{label:<{_LABEL_WIDTH}}{text}"))


def _clock(time_ms: int) -> str:
    try:
        return datetime.fromtimestamp(time_ms / 1_000).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")
    except (ValueError, OverflowError, OSError):  # of a record: whoever writes it may say any time
        return "at a time that is in no calendar"
