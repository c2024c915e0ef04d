"""Random kills and pauses over one long-lived pipeline with a continuous load, drawn from a seed."""

from __future__ import annotations

import random
import statistics
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lockstep.brokers.local import Broker
from tests import evidence
from tests.faults.blows import KILLED, Blow, Victim, kill, pause
from tests.faults.play import make_stage, say
from tests.faults.stage import Stage
from tests.faults.steps import AIMED
from tests.harness import await_that

WEIGHTS = (6, 2, 1, 1)
"""Uneven, so that the workers' answers come one after the other."""
PAUSE_EVERY = 3
"""Every cycle has a kill, every third one a pause as well."""
PAUSES_S = (2.0, 12.0, 25.0)
"""Unnoticed, longer than the group's session, longer than the driver waits for a silent worker."""
VERIFY_EVERY = 10
SWEPT_S = 240.0
"""Lockstep sweeps every minute what is older than a minute."""
DRAIN_S = 600.0
STOPS_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`records`: produced before the end, however long the cycles take. `upserts`: into a table of those."""

    seed: int
    cycles: int
    records: int
    per_second: int
    upserts: bool = False

    def command(self) -> str:
        kind = " --kind upsert" if self.upserts else ""
        return (
            f"python -m tests.faults --cycles {self.cycles} --seed {self.seed} --records {self.records} "
            f"--per-second {self.per_second}{kind}"
        )


@dataclass(slots=True, kw_only=True)
class Tally:
    """What happened so far. `rows_due`: as many as records, but of upserts."""

    blows: list[Blow] = field(default_factory=list)
    restarts: int = 0
    verified: int = 0
    lost: int = 0
    doubled: int = 0
    records: int = 0
    rows: int = 0
    rows_due: int = 0
    leftover_files: int = 0
    leftover_markers: int = 0
    pending_instants: int = 0
    failure: str = ""

    @property
    def passed(self) -> bool:
        wrong = self.lost or self.doubled or self.leftover_files or self.leftover_markers
        return not (wrong or self.pending_instants or self.failure or self.rows != self.rows_due)

    def figures(self) -> dict[str, Any]:
        by_victim: dict[Victim, list[float]] = defaultdict(list)
        for blow in self.blows:
            if blow.kind == "kill":
                by_victim[blow.victim].append(blow.recovery.commit_s)
        figures: dict[str, Any] = {
            "kills": sum(blow.kind == "kill" for blow in self.blows),
            "pauses": sum(blow.kind == "pause" for blow in self.blows),
            "on_target": sum(blow.hit.is_on_target for blow in self.blows),
            "records": self.records,
            "rows": self.rows,
            "rows_due": self.rows_due,
            "lost": self.lost,
            "doubled": self.doubled,
            "leftover_files": self.leftover_files,
            "leftover_marker_folders": self.leftover_markers,
            "pending_instants": self.pending_instants,
            "verifications": self.verified,
            "restarts_after_pauses": self.restarts,
            "failure": self.failure,
        }
        for victim, seconds in by_victim.items():
            name = victim.value.replace("'s", "s").replace(" ", "_")
            figures[f"{name}_kills"] = len(seconds)
            figures[f"{name}_recovery_p50_s"] = round(statistics.median(seconds), 2)
            figures[f"{name}_recovery_max_s"] = round(max(seconds), 2)
        return figures


def run_cycles(folder: Path, plan: Plan) -> bool:
    """All cycles; whether nothing was lost, doubled or left behind.

    Leaves `faults.json`, of upserts `faults-upserts.json`.
    """
    say(f"seed {plan.seed}: {plan.command()}")
    say(f"working in {folder}")
    tally = Tally()
    with Broker(folder / "broker", heap_mb=768) as broker:
        stage = make_stage(broker, folder / "pipeline", f"cycles-{plan.seed}")
        stage.weights = WEIGHTS
        if plan.upserts:
            stage.with_upserts()
        try:
            _play(stage, plan, tally)
        except (AssertionError, OSError) as error:
            tally.failure = str(error)
            say(f"failed: {error}")
            if broker.running:
                (folder / "events.txt").write_text(stage.events())
        finally:
            stage.close()
    figures = {"seed": plan.seed, "cycles": plan.cycles, **tally.figures()}
    for name, value in figures.items():
        say(f"  {name:38} {value}")
    name = "faults-upserts" if plan.upserts else "faults"
    evidence.write(name, command=plan.command(), passed=tally.passed, figures=figures)
    return tally.passed


def _play(stage: Stage, plan: Plan, tally: Tally) -> None:
    chance = random.Random(plan.seed)
    stage.start(per_second=plan.per_second)
    for cycle in range(1, plan.cycles + 1):
        _blow(stage, chance, tally, cycle, kind="kill")
        if cycle % PAUSE_EVERY == 0:
            _blow(stage, chance, tally, cycle, kind="pause")
        if cycle % VERIFY_EVERY == 0 and cycle < plan.cycles:
            verify(stage, tally)
    assert stage.load is not None
    while stage.load.sent < plan.records:
        assert stage.load.running, "the load has ended"
        time.sleep(1)
    conclude(stage, tally, drain_s=DRAIN_S)


def conclude(stage: Stage, tally: Tally, *, drain_s: float) -> None:
    """Commit everything, let the run sweep, stop it, verify, and count what is left behind."""
    stage.drain(deadline_s=drain_s)
    for left in reversed(range(STOPS_MAX)):
        _await_sweep(stage)
        assert stage.current.stop() == 0, stage.current.text()[-4_000:]
        if not left or stage.leftovers().none:
            break
        stage.restart()  # a compaction that was under way as the run stopped is the next one's to take away
    tally.records = tally.rows_due = stage.pipeline.produced
    verify(stage, tally)
    if stage.upserts:
        _compare(stage, tally)
    left = stage.leftovers()
    tally.leftover_files, tally.leftover_markers = len(left.files), len(left.markers)
    tally.pending_instants = len(left.pending)


def _blow(stage: Stage, chance: random.Random, tally: Tally, cycle: int, *, kind: str) -> None:
    victim, step = chance.choice(KILLED), chance.choice(AIMED)
    after_start_ms, seconds = chance.randrange(20, 250), chance.choice(PAUSES_S)
    if kind == "kill":
        blow = kill(stage, victim, step, after_start_ms=after_start_ms)
    else:
        runs = len(stage.pipeline.runs)
        blow = pause(stage, victim, step, seconds=seconds, after_start_ms=after_start_ms)
        tally.restarts += len(stage.pipeline.runs) - runs
    tally.blows.append(blow)
    said(stage, f"cycle {cycle:4}", blow, seconds)


def said(stage: Stage, when: str, blow: Blow, seconds: float) -> None:
    """The line of one blow."""
    sent = stage.load.sent if stage.load is not None else 0
    lasted = f" for {seconds:.0f} s" if blow.kind == "pause" else ""
    say(f"{when}  {sent:>11,} records  {blow.line()}{lasted}")


def verify(stage: Stage, tally: Tally) -> None:
    """While it runs: what is committed by now is exact, or it says what is not."""
    tally.verified += 1
    if stage.upserts:
        stage.assert_no_gap()
        say("verify      no gap between the commits' ranges")
        return
    verdict = stage.pipeline.verify()
    tally.lost, tally.rows = verdict["missing"], verdict["rows"]
    tally.doubled = verdict["duplicated"] + verdict["unexpected"]
    say(f"verify      {verdict['rows']:>11,} rows, {verdict['commits']} commits, exact: {verdict['exact']}")
    assert verdict["exact"] is True, f"not exact: {verdict}"


def _compare(stage: Stage, tally: Tally) -> None:
    """The rows of an upsert table with those that the records on the topic make."""
    found = stage.difference()
    say(f"compared    {found}")
    tally.rows, tally.rows_due = found.rows, found.rows_due
    tally.lost, tally.doubled = found.missing + found.different, found.unexpected + found.doubled


def _await_sweep(stage: Stage) -> None:
    """The run's own sweep takes what the killed ones left; judged by what is there at the end."""
    try:
        await_that("table without leftovers", lambda: stage.leftovers().none, deadline_s=SWEPT_S)
    except AssertionError as error:
        say(f"            {error}: {stage.leftovers()}")
