"""What each metric is, of what was seen. Pure. What is not known gives no sample, and so alarms nobody."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from control_topic.causes import ABORT_CAUSES, END_REASONS, OTHER
from lockstep.watch.counters import WORKERS_MAX, Counters, Histogram, label
from lockstep.watch.status import HEADLINES
from table.service.roster import LIVES_MS

PARTITIONS_MAX = 1_000
SERVICES_MAX = 16
STAGES_MAX = 32
MODES = ("run", "pause", "drain", "stop", "halt")
LOOKED_AT = ("topic", "broker", "table")
ALIVE = ("running", "idle", "stalled", "starting")

Sample: TypeAlias = tuple[tuple[str, ...], float | Histogram]
"""Values of the labels, and the figure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSeen:
    """What a scrape is made of. `document`: the page's, made now."""

    document: Mapping[str, Any]
    partitions: Sequence[Mapping[str, Any]]
    """All source partitions as the document has the worst, the worst first."""

    counters: Counters | None
    """None while it is not known from where on they count."""

    live: Mapping[str, Any] | None
    members: int | None
    """Workers in the consumer group; None where nobody has said so lately."""

    aborts: int | None
    """In a row; None before the topic was read."""

    workers: int
    """So many the run is to have."""

    since_ms: int = 0
    """When the observer began to look; 0 where that is not known."""

    group: str
    version: str


def build(seen: MetricsSeen) -> Iterator[Sample]:
    yield (seen.version,), 1


def run(seen: MetricsSeen) -> Iterator[Sample]:
    if seen.document["run"]:
        yield (label(seen.document["run"]),), 1


def state(seen: MetricsSeen) -> Iterator[Sample]:
    for name in HEADLINES:
        yield (name,), float(seen.document["state"] == name)


def mode(seen: MetricsSeen) -> Iterator[Sample]:
    known = str(seen.document["mode"] or "").lower()
    if known in MODES:
        for name in MODES:
            yield (name,), float(known == name)


def observed_age(seen: MetricsSeen) -> Iterator[Sample]:
    """Of what was never read, since somebody tries: an observer that begins in an outage tells of it. That no
    driver has answered is no trouble where there is none."""
    for name, at_ms in seen.document["sources"].items():
        place = name.removesuffix("_ms")
        since_ms = at_ms or (seen.since_ms if place in LOOKED_AT else 0)
        if since_ms:
            yield (place,), _seconds(seen, since_ms)


def since_last_commit(seen: MetricsSeen) -> Iterator[Sample]:
    """Counts on while everything is away: it needs nobody's answer."""
    last, run_ms = seen.document["last_commit"], seen.document["run_ms"]
    if last is not None:
        yield (), _seconds(seen, last["completed_ms"])
    elif seen.document["sources"]["table_ms"] is not None and run_ms:
        yield (), _seconds(seen, run_ms)


def freshness(seen: MetricsSeen) -> Iterator[Sample]:
    if _has_lag(seen) and seen.document["freshness_ms"] is not None:
        yield (), seen.document["freshness_ms"] / 1_000


def commit_duration(seen: MetricsSeen) -> Iterator[Sample]:
    if seen.counters is not None:
        for part, histogram in seen.counters.durations.items():
            yield (part,), histogram


def transactions(seen: MetricsSeen) -> Iterator[Sample]:
    """Every reason from the start, so that the first of a kind is an increase."""
    if seen.counters is None:
        return
    known = [*(("committed", one) for one in END_REASONS), *(("aborted", one) for one in ABORT_CAUSES)]
    for outcome, reason in (*known, ("committed", OTHER), ("aborted", OTHER)):
        yield (outcome, reason), seen.counters.outcomes.get((outcome, reason), 0)


def records(seen: MetricsSeen) -> Iterator[Sample]:
    if seen.counters is not None:
        yield (), seen.counters.records


def size_bytes(seen: MetricsSeen) -> Iterator[Sample]:
    if seen.counters is not None:
        yield (), seen.counters.size_bytes


def files(seen: MetricsSeen) -> Iterator[Sample]:
    if seen.counters is not None:
        yield (), seen.counters.files


def table_files(seen: MetricsSeen) -> Iterator[Sample]:
    yield from _counted(seen, "files")


def table_size(seen: MetricsSeen) -> Iterator[Sample]:
    yield from _counted(seen, "bytes")


def table_small_files(seen: MetricsSeen) -> Iterator[Sample]:
    yield from _counted(seen, "small_files")


def dead_letters(seen: MetricsSeen) -> Iterator[Sample]:
    if seen.counters is not None:
        yield (), seen.counters.rejects.count


def late_records(seen: MetricsSeen) -> Iterator[Sample]:
    if seen.counters is not None:
        yield (), seen.counters.late_records


def absurd_times(seen: MetricsSeen) -> Iterator[Sample]:
    if seen.counters is not None:
        yield (), seen.counters.absurd_times


def watermark(seen: MetricsSeen) -> Iterator[Sample]:
    if (at_ms := _watermark(seen, "at_ms")) is not None:
        yield (), at_ms / 1_000


def watermark_lag(seen: MetricsSeen) -> Iterator[Sample]:
    if (at_ms := _watermark(seen, "at_ms")) is not None:
        yield (), (int(seen.document["at_ms"]) - at_ms) / 1_000


def watermark_idle(seen: MetricsSeen) -> Iterator[Sample]:
    if (idle := _watermark(seen, "idle")) is not None:
        yield (), idle


def lag_records(seen: MetricsSeen) -> Iterator[Sample]:
    for row in _behind(seen, "lag"):
        yield (row["topic"], str(row["partition"])), row["lag"]


def lag_seconds(seen: MetricsSeen) -> Iterator[Sample]:
    for row in _behind(seen, "lag_ms"):
        yield (row["topic"], str(row["partition"])), row["lag_ms"] / 1_000


def total_lag_records(seen: MetricsSeen) -> Iterator[Sample]:
    if _has_lag(seen):
        yield (), seen.document["lag"]["records"]


def max_lag_seconds(seen: MetricsSeen) -> Iterator[Sample]:
    if _has_lag(seen) and seen.document["lag"]["seconds"] is not None:
        yield (), seen.document["lag"]["seconds"]


def open_transaction_records(seen: MetricsSeen) -> Iterator[Sample]:
    if (records := seen.document["producer_transactions"]["records"]) is not None:
        yield (), records


def open_transaction_seconds(seen: MetricsSeen) -> Iterator[Sample]:
    if (seconds := seen.document["producer_transactions"]["seconds"]) is not None:
        yield (), seconds


def group_lag(seen: MetricsSeen) -> Iterator[Sample]:
    for (topic, partition), lag in lag_records(seen):
        yield (seen.group, topic, partition), lag


def group_lag_seconds(seen: MetricsSeen) -> Iterator[Sample]:
    for (topic, partition), lag in lag_seconds(seen):
        yield (seen.group, topic, partition), lag


def participants(seen: MetricsSeen) -> Iterator[Sample]:
    count = _participants(seen)
    if count is not None:
        yield (), count


def participants_missing(seen: MetricsSeen) -> Iterator[Sample]:
    count = _participants(seen)
    if count is not None and seen.document["state"] in ALIVE:
        yield (), max(0, seen.workers - count)


def coordinator_epoch(seen: MetricsSeen) -> Iterator[Sample]:
    if seen.document["epoch"]:
        yield (), seen.document["epoch"]


def coordinator_changes(seen: MetricsSeen) -> Iterator[Sample]:
    if seen.counters is not None:
        yield (), seen.counters.coordinator_changes


def consecutive_aborts(seen: MetricsSeen) -> Iterator[Sample]:
    if seen.aborts is not None:
        yield (), seen.aborts


def outage(seen: MetricsSeen) -> Iterator[Sample]:
    if seen.live is not None:
        yield (), seen.live.get("failures", {}).get("outage_ms", 0) / 1_000


def halted(seen: MetricsSeen) -> Iterator[Sample]:
    if seen.live is not None or seen.aborts is not None:
        yield (), float(seen.document["halted"] is not None)


def worker_memory(seen: MetricsSeen) -> Iterator[Sample]:
    yield from _of_workers(seen, "memory_bytes")


def worker_memory_max(seen: MetricsSeen) -> Iterator[Sample]:
    yield from _of_workers(seen, "memory_max_bytes")


def worker_buffered(seen: MetricsSeen) -> Iterator[Sample]:
    yield from _of_workers(seen, "buffered_bytes")


def worker_seconds(seen: MetricsSeen) -> Iterator[Sample]:
    for name, worker in _workers(seen).items():
        stages = {label(str(one)): taken_s for one, taken_s in sorted(worker["seconds"].items())[:STAGES_MAX]}
        for stage, taken_s in stages.items():
            yield (name, stage), float(taken_s)


def worker_restarts(seen: MetricsSeen) -> Iterator[Sample]:
    if seen.counters is not None:
        for worker, restarts in seen.counters.restarts.items():
            yield (worker,), restarts


def service_running(seen: MetricsSeen) -> Iterator[Sample]:
    for service in _services(seen):
        yield (service["name"],), float(service["running_ms"] is not None)


def service_failures(seen: MetricsSeen) -> Iterator[Sample]:
    for service in _services(seen):
        yield (service["name"],), service["failures"]


def service_commits_due(seen: MetricsSeen) -> Iterator[Sample]:
    for service in _services(seen):
        if service["every"]:
            yield (service["name"],), service["commits"] / service["every"]


def service_last_age(seen: MetricsSeen) -> Iterator[Sample]:
    for service in _services(seen):
        if service["last_age_ms"] is not None:
            yield (service["name"],), service["last_age_ms"] / 1_000


def _seconds(seen: MetricsSeen, since_ms: int) -> float:
    return max(0, int(seen.document["at_ms"]) - since_ms) / 1_000


def _watermark(seen: MetricsSeen, field: str) -> int | None:
    """None where the newest commit has none, or it is not known."""
    known = seen.document["watermark"]
    return known[field] if known is not None else None


def _counted(seen: MetricsSeen, field: str) -> Iterator[Sample]:
    counted = seen.document["table"]["files"]
    if counted is not None:
        yield (), counted[field]


def _has_lag(seen: MetricsSeen) -> bool:
    """Whether log and table were both looked at, the log not long ago: the document says so."""
    return seen.document["lag"]["records"] is not None


def _behind(seen: MetricsSeen, field: str) -> Iterator[Mapping[str, Any]]:
    if _has_lag(seen):
        yield from (row for row in seen.partitions[:PARTITIONS_MAX] if row[field] is not None)


def _participants(seen: MetricsSeen) -> int | None:
    if seen.live is None:
        return seen.members
    workers = seen.live.get("workers", ())
    return sum(int(worker["state"] != "dead" and worker["age_ms"] < LIVES_MS) for worker in workers)


def _of_workers(seen: MetricsSeen, field: str) -> Iterator[Sample]:
    for name, worker in _workers(seen).items():
        if worker[field] is not None and worker["state"] != "dead":
            yield (name,), worker[field]


def _workers(seen: MetricsSeen) -> Mapping[str, Mapping[str, Any]]:
    """By label; of several that are alike in it the first, for a scraper takes no series twice."""
    found: dict[str, Mapping[str, Any]] = {}
    for worker in seen.document["workers"][:WORKERS_MAX]:
        found.setdefault(label(worker["name"]), worker)
    return found


def _services(seen: MetricsSeen) -> Iterator[Mapping[str, Any]]:
    yield from seen.document["services"][:SERVICES_MAX]
