"""Kills and pauses while the driver compacts an upsert table beside its transactions."""

from __future__ import annotations

import json
import signal

import psutil

from lockstep.errors import EXIT_SUPERSEDED
from tests.faults import upkeep
from tests.faults.blows import ANSWER_S, Victim, await_released, left_locked_s, send_to
from tests.faults.commits import wall_ms
from tests.faults.kills import DRIVER_LIMIT_S, WORKER_LIMIT_S
from tests.faults.scenario import Outcome, Scenario, put
from tests.faults.stage import START_S, Stage
from tests.faults.upkeep import Action, Moment
from tests.faults.upkeep_blows import (
    Struck,
    await_another,
    await_taken_away,
    driver_kills,
    until_struck,
)
from tests.harness import await_that

SERVICES = {"compaction_every": "2"}
"""Commits between compactions, so that there is one soon."""
REFUSALS = ("the table refused the commit", "the commit did not land")
"""How the reason of an abort begins that the table has to do with; others name workers."""


def _pause_driver(stage: Stage) -> Struck | None:
    """Freeze it, start a successor, let it go on once that one commits; None where it proves nothing."""
    place, who, older = stage.pipeline.place, stage.processes(), stage.current
    instant = upkeep.await_begun(place, Action.COMPACTION, Moment.WRITING)
    await_released(stage)  # a driver that is frozen inside the lock is ended by its guardian
    send_to(stage, who, Victim.DRIVER, signal.SIGSTOP)
    await_that("frozen driver", lambda: all(_is_stopped(pid) for pid in who.run), deadline_s=10)
    was_pending = instant in upkeep.pending(place, Action.COMPACTION)
    files, expiry_s = len(upkeep.base_files(place, instant)), left_locked_s(stage)
    at_ms = wall_ms()
    newer = stage.restart()
    recovery = stage.recovery(at_ms, deadline_s=ANSWER_S)
    if was_pending:
        await_taken_away(stage, newer, Action.COMPACTION, instant)
    lives = all(_is_stopped(pid) for pid in who.run)  # its guardian may have ended it
    send_to(stage, who, Victim.DRIVER, signal.SIGCONT)
    status = older.wait(ANSWER_S)
    if not (was_pending and lives):
        return None
    assert status == EXIT_SUPERSEDED, older.text()[-4_000:]
    return Struck(instant=instant, base_files=files, expiry_s=expiry_s, recovery=recovery)


def _driver_paused(stage: Stage) -> Outcome:
    stage.start()
    struck, misses = until_struck(lambda: _pause_driver(stage))
    await_another(stage, Action.COMPACTION, struck.instant)
    tried = f"compaction {struck.instant} of table" in stage.pipeline.runs[-2].text()
    found = stage.settle_and_verify()
    place = stage.pipeline.place
    on_timeline = upkeep.completed(place, Action.COMPACTION) | upkeep.pending(place, Action.COMPACTION)
    assert struck.instant not in on_timeline, "the compaction that was taken away is on the timeline again"
    assert not upkeep.is_listed(place, struck.instant), "the metadata table lists what was taken away"
    return struck.outcome(misses=misses, it_tried_to_complete_it="yes" if tried else "no", **found)


def _is_stopped(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)
    except psutil.NoSuchProcess:
        return False


def _kill_worker(stage: Stage) -> Struck | None:
    place, who = stage.pipeline.place, stage.processes()
    instant = upkeep.await_begun(place, Action.COMPACTION, Moment.WRITING)
    at_ms = send_to(stage, who, Victim.WORKER, signal.SIGKILL)
    was_pending = instant in upkeep.pending(place, Action.COMPACTION)
    files = len(upkeep.base_files(place, instant))
    recovery = stage.recovery(at_ms, deadline_s=ANSWER_S)
    if not was_pending:
        return None
    return Struck(instant=instant, base_files=files, expiry_s=0.0, recovery=recovery)


def _worker_killed(stage: Stage) -> Outcome:
    stage.start()
    place, run = stage.pipeline.place, stage.current
    struck, misses = until_struck(lambda: _kill_worker(stage))
    await_that(
        "end of the compaction",
        lambda: struck.instant in upkeep.completed(place, Action.COMPACTION),
        deadline_s=START_S,
    )
    await_another(stage, Action.COMPACTION, struck.instant)
    reasons = _aborts(stage)
    blamed = [reason for reason in reasons if reason.startswith(REFUSALS)]
    assert not blamed, f"transactions were given up because of the table: {blamed}"
    assert "was not completed" not in run.text(), run.text()[-4_000:]
    return struck.outcome(misses=misses, transactions_given_up=len(reasons), **stage.settle_and_verify())


def _aborts(stage: Stage) -> list[str]:
    """The reasons of all ABORT_COMMIT on the control topic."""
    arguments = ("--from-beginning", "--type", "ABORT_COMMIT", "--output", "json")
    said = stage.pipeline.command("events", *arguments)
    assert said.returncode == 0, said.stderr
    return [
        str(json.loads(line)["content"]["reason"]) for line in said.stdout.splitlines() if line[:1] == "{"
    ]


put(
    "Upserts",
    *driver_kills(
        Action.COMPACTION,
        "compacts",
        prefix="upserts_",
        readers="; readers miss nothing of what is committed after it",
        upserts=SERVICES,
    ),
    Scenario(
        "upserts_driver_paused_while_a_compaction_writes",
        "the driver is frozen while its compaction writes base files, a successor is started, then the "
        "driver goes on",
        "the successor takes the compaction away and compacts anew; the driver cannot complete it and "
        "ends as superseded",
        _driver_paused,
        DRIVER_LIMIT_S,
        upserts=SERVICES,
    ),
    Scenario(
        "upserts_worker_killed_while_a_compaction_writes",
        "SIGKILL of a worker: a compaction is writing base files",
        "commits go on, the compaction is completed, and no transaction is given up because of it",
        _worker_killed,
        WORKER_LIMIT_S,
        upserts=SERVICES,
    ),
)
