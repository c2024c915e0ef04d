"""How a pipeline stands: what the control topic says, joined with the table, the log and the driver.

Pure. The table and the topics alone are enough; what the driver says, where it answers, is fresher.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lockstep.offsets.standing import OffsetRow, advice
from lockstep.watch.next_end import NextEnd
from lockstep.watch.told import Phase, Transaction
from lockstep.watch.topic_fold import Fold

HEADLINES: Mapping[str, str] = {
    "running": "RUNNING",
    "idle": "RUNNING, nothing to do",
    "starting": "STARTING",
    "stalled": "STALLED",
    "stopped": "NOT RUNNING",
    "halted": "HALTED",
    "never": "NEVER RUN",
    "unknown": "NOT KNOWN",
}
"""Every state, in words for people."""

PAUSED = "PAUSED"
"""Instead of them, of a run that an operator has paused."""

ALIVE_MS = 30_000
"""Who was heard within this time may still be there."""

COMMITTING_FACTOR = 3
"""Lag with no commit for so many intervals (and the write timeout) is a stall."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastCommit:
    """The newest commit in the table."""

    transaction: str
    instant: str
    kind: str
    epoch: int
    rows: int
    """In its files."""

    age_ms: int
    """Since it completed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Current:
    """The open transaction."""

    id: str
    instant: str
    age_ms: int
    ended: bool
    answered: tuple[str, ...]
    """Workers, by sender's name where it is known."""

    missing: tuple[str, ...]
    """Workers likewise."""

    writing: Mapping[str, int] = field(default_factory=dict)
    """Of the missing ones: files finished so far."""

    progress_age_ms: int | None = None
    """Since one of them said how far it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Everything that was looked at."""

    pipeline: str
    now_ms: int
    fold: Fold
    last_commit: LastCommit | None
    offsets: Sequence[OffsetRow] | None
    """As `lockstep.offsets.standing.compare` has them; None where the broker did not say."""

    members: int | None
    """Consumers in the group; None where the broker did not say."""

    interval_ms: int
    write_timeout_ms: int
    live: Mapping[str, Any] | None = None
    """The driver's own status, None where it does not answer."""

    next_end: NextEnd | None = None
    """By schedule or alignment; None where nothing ends by the clock."""

    watermark: Mapping[str, Any] | None = None
    """The newest commit's, as `table.service.progress.watermark_json` has it."""

    strangers: str = ""
    """A sentence on who else is given source partitions."""

    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How the pipeline stands."""

    pipeline: str
    state: str
    """One of `HEADLINES`."""

    run: str
    epoch: int
    coordinator: str
    transaction: Current | None
    last_commit: LastCommit | None
    lag: int | None
    """Offsets, all together; None where it is known of no source partition."""

    watermark: Mapping[str, Any] | None
    """How far the table is complete, by event time; None where no commit says it."""

    partitions: tuple[OffsetRow, ...]
    workers: int
    halted: Mapping[str, Any] | None
    paused: Mapping[str, Any] | None
    """Who has paused the run, why, and for how long it has been; None where it is not paused."""
    next_end: NextEnd | None
    """When a transaction is ended by the clock next; None where none is, or nobody is there to end it."""
    aborts: int
    advice: tuple[str, ...]
    """What to do, most urgent first; empty where nothing is to be done."""

    problems: tuple[str, ...]
    live: Mapping[str, Any] | None

    @property
    def headline(self) -> str:
        """How it stands, in a word or two."""
        return PAUSED if self.paused is not None else HEADLINES[self.state]

    def to_json(self) -> dict[str, Any]:
        """Base units: milliseconds, offsets, rows."""
        document = asdict(self)
        document["run"] = self.run or None
        document["coordinator"] = self.coordinator or None
        return document


def conclude(seen: Observed) -> Status:
    """What it all means."""
    known, live = seen.fold, seen.live
    alive = _alive(seen)
    halted = _halted(seen)
    paused = _paused(seen) if alive and halted is None else None
    current = _current(seen) if alive and halted is None else None
    rows = tuple(seen.offsets or ())
    known_lags = [row.lag for row in rows if row.lag is not None]
    lag = sum(known_lags) if known_lags else None
    readable = sum(row.readable_lag or 0 for row in rows) if known_lags else None
    state = _state(seen, alive=alive, halted=halted is not None, current=current, readable=readable)
    if paused is not None and state == "stalled" and not _stands(seen):
        state = "idle"  # nothing is committed because somebody wants it so
    return Status(
        pipeline=seen.pipeline,
        state=state,
        run=str(live["run"]) if live is not None else known.run,
        epoch=max(known.epoch, int(live["epoch"]) if live is not None else 0, _table_epoch(seen)),
        coordinator=known.coordinator if alive and halted is None else "",
        transaction=current,
        last_commit=seen.last_commit,
        lag=lag,
        watermark=_watermark(seen),
        partitions=rows,
        workers=_workers(seen),
        halted=halted,
        paused=paused,
        next_end=seen.next_end if alive and halted is None and paused is None else None,
        aborts=known.aborts,
        advice=(*_of_pause(paused), *_advice(seen, state, halted, current)),
        problems=seen.problems,
        live=live,
    )


def _watermark(seen: Observed) -> Mapping[str, Any] | None:
    """With how far it is behind now."""
    if seen.watermark is None:
        return None
    at_ms = seen.watermark["at_ms"]
    return {**seen.watermark, "behind_ms": seen.now_ms - at_ms if at_ms is not None else None}


def _alive(seen: Observed) -> bool:
    """Whether a run is up: its driver answers, or its workers are in the group, or are still to come."""
    known = seen.fold
    if seen.live is not None or seen.members:
        return True
    if seen.members == 0 and known.heard_ms > known.run_ms:
        return False  # workers or coordinator have spoken in this run, and are in the group no more
    return _ago(seen, known.driver_ms) < ALIVE_MS


def _ago(seen: Observed, time_ms: int) -> int:
    return max(0, seen.now_ms - time_ms)


def _table_epoch(seen: Observed) -> int:
    return seen.last_commit.epoch if seen.last_commit is not None else 0


def _workers(seen: Observed) -> int:
    if seen.live is not None:
        return sum(worker["state"] != "dead" for worker in seen.live.get("workers", ()))
    return seen.members or 0


def _halted(seen: Observed) -> Mapping[str, Any] | None:
    """The newest run's halt. The topic tells of it after the driver is gone; the driver, before."""
    if seen.live is not None:
        reason = seen.live.get("halted")
        return {"reason": str(reason), "time": seen.now_ms} if reason else None
    if seen.fold.halted is None:
        return None
    reason, time_ms = seen.fold.halted
    return {"reason": reason, "time": time_ms}


def _paused(seen: Observed) -> Mapping[str, Any] | None:
    """The driver's word, or else the control topic's. A run that has been told to end is paused no more."""
    if seen.live is not None:
        said = (seen.live.get("control") or {}).get("paused")
        if not said or seen.live.get("stopping"):
            return None
        return {"who": str(said["who"]), "why": said.get("why"), "age_ms": int(said["age_ms"])}
    if seen.fold.paused is None:
        return None
    order, time_ms = seen.fold.paused
    return {"who": order.who, "why": order.why or None, "age_ms": _ago(seen, time_ms)}


def _names(seen: Observed) -> Mapping[str, str]:
    """Incarnation -> the worker's name, as the topic or the driver has it."""
    workers = seen.live.get("workers", ()) if seen.live is not None else ()
    known = {one["incarnation"]: f"worker-{one['slot']}" for one in workers if "incarnation" in one}
    return {**known, **seen.fold.names}


def _current(seen: Observed) -> Current | None:
    names = _names(seen)

    def named(incarnations: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(names.get(one, one) for one in incarnations))

    report = seen.live.get("coordinator") if seen.live is not None else None
    opened = seen.fold.led_transaction
    if report and report.get("transaction"):
        same = opened if opened is not None and opened.id == report["transaction"] else None
        started_ms = same.started_ms if same is not None else int(report["started_at_ms"])
        missing = set(report.get("missing", ()))
        return Current(
            id=report["transaction"],
            instant=report.get("instant") or "",
            age_ms=_ago(seen, started_ms) if started_ms else 0,
            ended=report.get("state") in ("ended", "committing"),
            answered=named(report.get("answered", ())),
            missing=named(missing),
            **(_progress(seen, same, missing) if same is not None else {}),
        )
    if report or opened is None:
        return None
    missing = set(opened.writers - opened.answered.keys())
    return Current(
        id=opened.id,
        instant=opened.instant,
        age_ms=_ago(seen, opened.started_ms),
        ended=opened.phase is Phase.ENDING,
        answered=named(opened.writers & opened.answered.keys()),
        missing=named(missing),
        **_progress(seen, opened, missing),
    )


def _progress(seen: Observed, opened: Transaction, missing: set[str]) -> dict[str, Any]:
    """How far those are whose files are awaited."""
    if not opened.progress_ms:
        return {}
    names = _names(seen)
    files = {names.get(who, who): said.files for who, said in opened.progress.items() if who in missing}
    return {"writing": files, "progress_age_ms": _ago(seen, opened.progress_ms)}


def _state(
    seen: Observed, *, alive: bool, halted: bool, current: Current | None, readable: int | None
) -> str:
    """`readable`: offsets that a read-committed consumer could read and the table does not hold."""
    if halted:
        return "halted"
    if not alive:
        if seen.members is None:
            return "unknown"
        return "stopped" if seen.last_commit is not None or seen.fold.run else "never"
    if _stands(seen):
        return "stalled"
    patience_ms = _patience_ms(seen)
    if current is not None:
        silent_ms = current.age_ms if current.progress_age_ms is None else current.progress_age_ms
        return "stalled" if min(current.age_ms, silent_ms) > patience_ms else "running"
    committed_ago = seen.last_commit.age_ms if seen.last_commit is not None else None
    if committed_ago is None:
        return "stalled" if _ago(seen, seen.fold.run_ms) > patience_ms else "starting"
    if readable == 0 and not _unread(seen):
        return "idle"
    waits = seen.fold.waiting_ms and _ago(seen, seen.fold.waiting_ms) > patience_ms
    silent = committed_ago > patience_ms and _ago(seen, seen.fold.heard_ms) > patience_ms
    return "stalled" if waits or silent else "running"


def _patience_ms(seen: Observed) -> int:
    """By the settings in force, which operators may have changed."""
    now = ((seen.live or {}).get("control") or {}).get("settings") or {}
    interval_ms = int(now.get("transaction.interval", seen.interval_ms))
    return COMMITTING_FACTOR * interval_ms + int(now.get("transaction.write_timeout", seen.write_timeout_ms))


def _driver_says(live: Mapping[str, Any]) -> Iterable[str]:
    """What does not go on, in the table, for the driver, in workers."""
    failures = live.get("failures", {})
    if failures.get("outage_ms") and failures.get("reasons"):
        yield f"The table cannot be written to at present: {failures['reasons'][-1]}"
    yield from alarms(live)


def alarms(live: Mapping[str, Any]) -> Iterable[str]:
    """The driver's own, and its workers' by their names."""
    yield from map(str, live.get("alarms", ()))
    for worker in live.get("workers", ()):
        yield from (f"worker-{worker['slot']}: {alarm}" for alarm in worker.get("alarms", ()))


def _stands(seen: Observed) -> bool:
    """Whether the driver says that source partitions are not read, and why, in an alarm."""
    return seen.live is not None and bool(seen.live.get("stands"))


def _unread(seen: Observed) -> bool:
    """Whether no worker reads some source partition; False where the driver does not answer."""
    if seen.live is None:
        return False
    workers = seen.live.get("workers", ())
    owned = {one for worker in workers if worker["state"] != "dead" for one in worker.get("partitions", ())}
    return any(f"{row.topic}:{row.partition}" not in owned for row in seen.offsets or ())


def _of_pause(paused: Mapping[str, Any] | None) -> Iterable[str]:
    if paused is not None:
        why = f": {paused['why']}" if paused["why"] else ""
        yield f"Paused by {paused['who'] or 'somebody'}{why}. `lockstep resume` lets it go on."


def _advice(
    seen: Observed, state: str, halted: Mapping[str, Any] | None, current: Current | None
) -> Iterable[str]:
    if halted is not None:
        yield "Remove what the halt names, then start again with `lockstep run`; nothing is lost."
        if seen.live is None:
            yield (
                "No driver answers: this halt is what the control topic says, where others may write, too. "
                "The run's own word are its log and its exit code, which is 3."
            )
    elif state == "unknown":
        yield (
            "Neither the run's driver nor the Kafka broker answers, so that nobody can tell whether a run is "
            "alive. See to the broker first: a run that is alive goes on by itself once it is back."
        )
    elif state == "stopped":
        yield "No run is alive: start it with `lockstep run`. It goes on where the table is."
    elif state == "never":
        yield "No run has been here: start one with `lockstep run`."
    elif state == "stalled":
        if current is not None and current.missing:
            yield f"Waiting for {', '.join(current.missing)}: look at that worker's log."
        if not _stands(seen):  # else the driver says why
            yield (
                "Nothing has been committed for too long: `lockstep events --follow` shows who does not"
                " answer."
            )
    told = tuple(_driver_says(seen.live)) if seen.live is not None and halted is None else ()
    yield from told
    strange = seen.strangers and not any(seen.strangers in line for line in told)
    if strange and state not in ("halted", "stopped", "never", "unknown"):
        yield seen.strangers
    if state in ("running", "stalled", "idle") and seen.fold.aborts > 1:
        yield f"{seen.fold.aborts} transactions in a row were aborted, the last: {seen.fold.abort_reason}"
    yield from advice(seen.offsets or ())
