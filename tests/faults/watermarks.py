"""How far a table is complete, with the driver killed and offsets moved by an operator in between."""

from __future__ import annotations

import json
import signal
from collections import Counter
from datetime import UTC, datetime
from itertools import pairwise

from control_topic.messages import SourcePartition
from lockstep.hooks.complete import MARKER
from lockstep.hooks.stretches import MINUTE_MS, Stretch, completed
from table.state import TableState
from table.watermark import Watermark
from tests.faults import commits
from tests.faults.blows import Victim, kill, on_target, send_to
from tests.faults.commits import wall_ms
from tests.faults.kills import DRIVER_LIMIT_S
from tests.faults.scenario import ON_FILES, Outcome, scenario
from tests.faults.stage import START_S, Stage
from tests.faults.steps import Step
from tests.harness import await_that
from tests.transaction_times import rows

PER_SECOND = 1_000
SETTINGS = {
    "record.event_time": "_kafka_timestamp",
    "record.lateness": "1s",
    "transaction.interval": "2s",
    "hooks.complete_every": "1m",
}
SKIPPED = 500
"""Records that an operator goes past."""
COMPLETE_S = 150.0
"""A minute is over by then, and its file written."""


@scenario(
    "Boundaries of time",
    fault="SIGKILL of the driver; an operator sets a source partition's offset back to the beginning; twice "
    "SIGKILL of the driver and restarted while that is read again; once more, and another's is set forward",
    expected="the watermark never goes back, what is read again behind it is counted as late, each minute is "
    "completed by one commit and has one file, and who waits for one that is complete goes on",
    limit_s=DRIVER_LIMIT_S,
    settings=SETTINGS,
    stores=ON_FILES,
)
def watermark_across_resets(stage: Stage) -> Outcome:
    folder = stage.pipeline.folder / "complete"
    stage.pipeline.settings["hooks.complete_folder"] = f"file://{folder}"
    back, forward = (SourcePartition(stage.pipeline.topic, number) for number in (1, 2))
    stage.start(per_second=PER_SECOND)
    await_that("file of a minute", lambda: list(folder.glob(f"*/{MARKER}")), deadline_s=COMPLETE_S)

    _die_and_move(stage, back)
    again_ms = wall_ms()
    stage.restart()
    first_s = stage.recovery_s(again_ms, deadline_s=START_S)
    blow, misses = on_target(stage, Step.MID_WRITE, lambda: kill(stage, Victim.DRIVER, Step.MID_WRITE))
    last, more = on_target(stage, Step.COMMIT_BEGUN, lambda: kill(stage, Victim.DRIVER, Step.COMMIT_BEGUN))
    _await_minutes(stage, len(_minutes(stage)) + 1)

    _die_and_move(stage, forward, past=SKIPPED)
    stage.restart()
    stage.await_commit_after(wall_ms(), deadline_s=START_S)
    _await_minutes(stage, len(_minutes(stage)) + 1)
    stage.drain()
    minutes = _minutes(stage)
    _assert_files(stage, minutes)
    assert stage.current.stop() == 0, stage.current.text()[-4_000:]

    states = _states(stage)
    late = _assert_watermarks(stage, states)
    _assert_waits(stage, minutes)
    verdict = stage.pipeline.verify()
    reread = {part["partition"]: part["reread"] for part in verdict["partitions"] if part["reread"]}
    assert verdict["exact"] is True and reread.keys() == {back.number}, verdict
    assert verdict["rows"] == stage.pipeline.produced + reread[back.number] - SKIPPED, verdict
    return Outcome(
        recovery_s=max(first_s, blow.recovery.commit_s, last.recovery.commit_s),
        expiry_s=max(blow.expiry_s, last.expiry_s),
        notes={
            "misses": misses + more,
            "records": stage.pipeline.produced,
            "read_again": reread[back.number],
            "late": late,
            "skipped": SKIPPED,
            "minutes": len(minutes),
        },
    )


def _die_and_move(stage: Stage, partition: SourcePartition, *, past: int = 0) -> None:
    """The driver is killed, and while nothing runs an operator moves an offset, to the beginning or past so
    many records: the watermark stays.
    """
    send_to(stage, stage.processes(), Victim.DRIVER, signal.SIGKILL)
    stage.current.process.wait(10)
    was, committed = _newest(stage), commits.committed(stage.pipeline.place, stage.pipeline.id)
    to = committed[partition] + past if past else 0
    change = f"{partition.topic}:{partition.number}={to}"
    stage.pipeline.change_offsets("--set", change, reason="to see what becomes of the watermark")
    assert _newest(stage).at_ms == was.at_ms


def _newest(stage: Stage) -> Watermark:
    state = stage.pipeline.place.timeline().newest(stage.pipeline.id)
    assert state is not None and state.watermark is not None
    return state.watermark


def _states(stage: Stage) -> list[TableState]:
    """What all commits have left, oldest first."""
    found = [one.state for one in stage.pipeline.place.timeline().completed() if one.state is not None]
    return sorted(found, key=lambda one: one.instant)


def _minutes(stage: Stage) -> dict[Stretch, str]:
    """Those that are complete, with the instant that has completed each: one."""
    found: dict[Stretch, str] = {}
    for state in _states(stage):
        mark = state.watermark
        for minute in completed(mark.before_ms, mark.at_ms, MINUTE_MS) if mark is not None else ():
            assert minute not in found, f"{minute.name} is completed by {found[minute]} and {state.instant}"
            found[minute] = state.instant
    return found


def _await_minutes(stage: Stage, count: int) -> None:
    await_that(f"minute number {count}", lambda: len(_minutes(stage)) >= count, deadline_s=COMPLETE_S)


def _assert_files(stage: Stage, minutes: dict[Stretch, str]) -> None:
    """For each that is complete, and for no other, with the instant that completed it."""
    folder = stage.pipeline.folder / "complete"
    names = {minute.name: instant for minute, instant in minutes.items()}

    def told() -> dict[str, str]:
        return {
            one.parent.name: json.loads(one.read_bytes())["instant"] for one in folder.glob(f"*/{MARKER}")
        }

    await_that("files of all minutes", lambda: names.keys() <= told().keys())
    assert told() == names


def _assert_watermarks(stage: Stage, states: list[TableState]) -> int:
    """Each goes on from the one before it, never back; late is what is behind it. How many were late."""
    for one, other in pairwise(states):
        was, now = (state.watermark or Watermark(of="") for state in (one, other))
        assert now.before_ms == was.at_ms, f"{other.instant} does not go on from {one.instant}"
        assert was.at_ms is None or (now.at_ms is not None and now.at_ms >= was.at_ms), other.instant
    before_ms = {one.instant: one.watermark.before_ms for one in states if one.watermark is not None}
    behind: Counter[str] = Counter()
    for instant, came_us in rows(stage.pipeline):
        mark_ms = before_ms[instant]
        behind[instant] += mark_ms is not None and came_us // 1_000 < mark_ms
    told = {one.instant: one.watermark.late for one in states if one.watermark is not None}
    assert {instant: count for instant, count in told.items() if count} == dict(+behind)
    late = sum(told.values())
    assert late > 0, "nothing that was read again was late"
    return late


def _assert_waits(stage: Stage, minutes: dict[Stretch, str]) -> None:
    """For what is complete, and for what is not; no run is alive."""
    last = max(minutes)
    for time_ms, code in ((last.through_ms, 0), (last.through_ms + 60 * MINUTE_MS, 1)):
        spelled = datetime.fromtimestamp(time_ms / 1_000, UTC).isoformat(timespec="milliseconds")
        done = stage.pipeline.command("wait", "--complete-through", spelled, "--timeout", "3s")
        assert done.returncode == code, done.stdout + done.stderr
