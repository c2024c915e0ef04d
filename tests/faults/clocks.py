"""Wall clocks that are set forth and back, and local times that come twice, while a pipeline runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import product

from table.hudi.reader.stored import table_properties
from tests.faults import upkeep
from tests.faults.aim import hit
from tests.faults.clock import Clock, make_clock
from tests.faults.commits import wall_ms
from tests.faults.scenario import ON_FILES, Notes, Outcome, Scenario, put
from tests.faults.stage import START_S, Stage
from tests.faults.steps import AIMED, Step
from tests.harness import Run, await_that

INTERVAL_S = 2.0
HOUR_S = 3_600.0
LIMIT_S = INTERVAL_S + 13.0
"""Beside the seconds that a clock is behind, which are waited for."""
COMPACTED = {"compaction_every": "4"}
"""The services of a table of upserts."""
COMPACTION_S = 180.0
"""One that was refused because of the clock is tried again after a minute."""
UPSERTS = "upserts with compactions: "
EVERY_ROW = "every row is as the last of its changes says"
ZONES = {
    "Europe/Berlin": datetime(2026, 10, 25, 1, tzinfo=UTC),
    "America/New_York": datetime(2026, 11, 1, 6, tzinfo=UTC),
}
"""When their local hour begins for the second time."""
BEFORE_S, AFTER_S = 10.0, 12.0
WEST_S = 5 * HOUR_S
"""So much earlier is a table made that is put in local time: its first names are in UTC, and stay."""
BEHIND = "behind the table"
AHEAD = "ahead of the file system's"
REFUSED_FOR_MS = 2_000
"""Of an outage: long enough for a refusal, a pause and a second one."""


class Clocks:
    """The driver's clock and the workers', of one pipeline. Made before anything of it is started."""

    def __init__(self, stage: Stage, *, seconds: float = 0.0, files_apart: bool = False) -> None:
        folder = stage.pipeline.folder
        self.driver = make_clock(folder / "driver.clock", seconds=seconds, files_apart=files_apart)
        self.workers = make_clock(folder / "workers.clock", seconds=seconds)
        stage.pipeline.environment |= self.driver.environment()
        stage.pipeline.settings |= {"transaction.interval": f"{INTERVAL_S:.0f}s"}
        [(variable, value)] = self.workers.variable().items()
        self.arguments = ["--conf", f"spark.executorEnv.{variable}={value}"]

    def show(self, moment_s: float) -> None:
        """From now on both show this time (Unix epoch), and go on."""
        for clock in (self.driver, self.workers):
            clock.off_by(moment_s - time.time())


def _commits(run: Run) -> int:
    status = run.status()
    return int(status["commits"]) if status else 0


def goes_on_s(run: Run) -> float:
    """Seconds until two more transactions are committed, by the monotonic clock of here."""
    began_s, before = time.monotonic(), _commits(run)
    run.await_commits(before + 2, deadline_s=START_S)
    return time.monotonic() - began_s


def _await_said(run: Run, what: str) -> None:
    """That the driver's live status names this failure."""

    def probe() -> bool:
        status = run.status() or {"failures": {"reasons": []}}
        return any(what in reason for reason in status["failures"]["reasons"])

    await_that(f"status that says {what!r}", probe, deadline_s=START_S)


def _settled(stage: Stage) -> Notes:
    """As the stage, where there are compactions after one that was completed."""
    if stage.upserts:
        await_that(
            "compaction that completes",
            lambda: upkeep.completed(stage.pipeline.place, upkeep.Action.COMPACTION),
            deadline_s=COMPACTION_S,
        )
    return dict(stage.settle_and_verify())


def _at_each_step(stage: Stage, clocks: Clocks, struck: Callable[[int], None]) -> Outcome:
    """`struck`: what is done to a clock when step number so and so is reached, from 1 on."""
    stage.start(arguments=clocks.arguments)
    longest_s = _strike_each_step(stage, struck)
    return Outcome(recovery_s=longest_s, notes={"steps": len(AIMED), **_settled(stage)})


def _strike_each_step(stage: Stage, struck: Callable[[int], None]) -> float:
    """As `_at_each_step`, of what runs already; the longest that commits took to go on, seconds."""
    longest_s = 0.0
    for number, step in enumerate(AIMED, start=1):

        def strike(number: int = number) -> int:
            struck(number)
            return wall_ms()

        hit(stage, step, strike)
        longest_s = max(longest_s, goes_on_s(stage.current))
    return longest_s


def _set_at_each_step(stage: Stage, *, of: str, seconds: float) -> Outcome:
    """`of`: whose clock; by so many seconds more at each step."""
    clocks = Clocks(stage)
    clock: Clock = getattr(clocks, of)
    return _at_each_step(stage, clocks, lambda number: clock.off_by(number * seconds))


def _back_and_put_right(stage: Stage) -> Outcome:
    clocks = Clocks(stage)

    def struck(_number: int) -> None:
        clocks.driver.off_by(-HOUR_S)
        _await_said(stage.current, BEHIND)
        clocks.driver.off_by(0)

    return _at_each_step(stage, clocks, struck)


def _successor_behind(stage: Stage) -> Outcome:
    clocks = Clocks(stage)
    recovery_s = _one_successor(stage, clocks)
    return Outcome(recovery_s=recovery_s, notes=_settled(stage))


def _successor_behind_and_set_back(stage: Stage) -> Outcome:
    clocks = Clocks(stage)
    first_s = _one_successor(stage, clocks)
    steps_s = _strike_each_step(stage, lambda number: clocks.driver.off_by(-number * INTERVAL_S))
    return Outcome(recovery_s=max(first_s, steps_s), notes={"successor_s": first_s, **_settled(stage)})


def _one_successor(stage: Stage, clocks: Clocks) -> float:
    stage.start(arguments=clocks.arguments).kill()
    clocks.driver.off_by(-HOUR_S)
    run = stage.restart(*clocks.arguments)
    _await_said(run, BEHIND)
    assert _commits(run) == 0
    clocks.driver.off_by(0)
    return goes_on_s(run)


def _ahead_at_two_steps(stage: Stage) -> Outcome:
    clocks = Clocks(stage, files_apart=True)
    run = stage.start(arguments=clocks.arguments)
    longest_s = 0.0
    # Later the last look may have been had: what is completed then bears the time of that clock.
    for step in (Step.START_SENT, Step.MID_WRITE):

        def strike() -> int:
            clocks.driver.off_by(HOUR_S)
            return wall_ms()

        hit(stage, step, strike)
        longest_s = max(longest_s, _ahead_until_put_right(stage, clocks))
    run.kill()
    return _successor_ahead(stage, clocks, longest_s)


def _successor_alone_ahead(stage: Stage) -> Outcome:
    clocks = Clocks(stage, files_apart=True)
    stage.start(arguments=clocks.arguments).kill()
    return _successor_ahead(stage, clocks, 0.0)


def _successor_ahead(stage: Stage, clocks: Clocks, longest_s: float) -> Outcome:
    clocks.driver.off_by(HOUR_S)
    stage.restart(*clocks.arguments)
    recovery_s = max(longest_s, _ahead_until_put_right(stage, clocks))
    return Outcome(recovery_s=recovery_s, notes=_settled(stage))


def _ahead_until_put_right(stage: Stage, clocks: Clocks) -> float:
    """Seconds until commits go on once the clock is right; until then nothing happens to the table."""
    run, hoodie = stage.current, stage.pipeline.table / ".hoodie"

    def timeline_and_lock() -> list[tuple[str, int]]:
        found = [*(hoodie / "timeline").iterdir(), *hoodie.glob("lock")]  # a dead driver may have left one
        return sorted((one.name, one.stat().st_ino) for one in found)

    _await_said(run, AHEAD)
    before = timeline_and_lock()

    def refused() -> bool:
        status = run.status()
        return status is not None and status["failures"]["outage_ms"] >= REFUSED_FOR_MS

    await_that("outage that lasts", refused, deadline_s=START_S)
    assert timeline_and_lock() == before
    clocks.driver.off_by(0)
    return goes_on_s(run)


def _summer_time_ends(stage: Stage, *, zone: str, local: bool) -> Outcome:
    fold_s = ZONES[zone].timestamp()
    early_s = fold_s - 1_200 - time.time()
    clocks = Clocks(stage, seconds=early_s - WEST_S if local else early_s)
    stage.pipeline.environment["TZ"] = zone
    stage.start_load()
    if local:
        made = stage.restart(*clocks.arguments)
        made.await_commits(1, deadline_s=START_S)
        assert made.stop() == 0
        _put_in_local_time(stage)
        clocks.show(early_s + time.time())
    run = stage.restart(*clocks.arguments)
    run.await_commits(2, deadline_s=START_S)
    clocks.show(fold_s - BEFORE_S)
    time.sleep(BEFORE_S + AFTER_S)  # what is waited for is this time of day
    if local:
        _await_said(run, "summer time ended")
        clocks.show(fold_s + HOUR_S + BEFORE_S)
    return Outcome(recovery_s=goes_on_s(run), notes=_settled(stage))


def _put_in_local_time(stage: Stage) -> None:
    """As tables are that were made before timelines were in UTC, or by others."""
    table = stage.pipeline.table
    for folder in (table / ".hoodie", table / ".hoodie" / "metadata" / ".hoodie"):
        file = folder / "hoodie.properties"
        lines = [line for line in file.read_text().splitlines() if "timeline.timezone" not in line]
        file.write_text("\n".join([*lines, "hoodie.table.timeline.timezone=LOCAL", ""]))
        checksum = folder / ".hoodie.properties.crc"
        checksum.unlink(missing_ok=True)
    assert table_properties(str(table))["hoodie.table.timeline.timezone"] == "LOCAL"


def _started_in_other_time_zones(stage: Stage) -> Outcome:
    stage.pipeline.settings |= {"transaction.interval": f"{INTERVAL_S:.0f}s"}
    stage.start_load()
    took_s = []
    for zone in ("UTC", "America/New_York", "Asia/Tokyo", "Australia/Lord_Howe"):
        stage.pipeline.environment["TZ"] = zone
        run = stage.restart()
        run.await_commits(1, deadline_s=START_S)
        took_s.append(goes_on_s(run))
        assert BEHIND not in run.text(), run.text()[-4_000:]
        assert run.stop() == 0
    stage.restart().await_commits(1, deadline_s=START_S)
    return Outcome(recovery_s=max(took_s), notes=_settled(stage))


def _each_step(*, upserts: bool) -> Iterator[Scenario]:
    """Whose clock, by how much, which way."""
    spans_s = {"1_s": 1.0, "an_interval": INTERVAL_S, "1_h": HOUR_S}
    for of, span, way in product(("driver", "workers"), spans_s, ("back", "forth")):
        if (of, span, way) == ("driver", "1_h", "back"):
            continue  # nobody waits for eight hours: see driver_clock_back_1_h
        seconds = spans_s[span] if way == "forth" else -spans_s[span]
        whose = "the driver's" if of == "driver" else "the workers'"
        beside, by = UPSERTS if upserts else "", span.replace("_", " ")
        yield Scenario(
            f"{'upserts_' if upserts else ''}{of}_clock_{way}_{span}_at_each_step",
            f"{beside}{whose} clock is set {way} by {by} at each step of a transaction, {len(AIMED)} times",
            f"{EVERY_ROW if upserts else 'nothing is lost or doubled'}; what a clock is behind is waited for",
            partial(_set_at_each_step, of=of, seconds=seconds),
            LIMIT_S + (spans_s[span] if way == "back" and of == "driver" else 0.0),
            upserts=COMPACTED if upserts else None,
        )


def _summer_times() -> Iterator[Scenario]:
    """Of tables in local time."""
    for upserts, zone in product((False, True), ("America/New_York", "Europe/Berlin")):
        place = zone.partition("/")[2].replace("_", " ")
        beside, there = "upserts_" if upserts else "", place.lower().replace(" ", "_")
        yield Scenario(
            f"{beside}summer_time_ends_in_{there}_in_local_time",
            f"{UPSERTS if upserts else ''}summer time ends in {place} while a pipeline runs there, "
            "whose table is in local time",
            "for the hour that comes twice nothing is begun or completed, status says why, and then "
            f"commits go on{f'; {EVERY_ROW}' if upserts else ''}",
            partial(_summer_time_ends, zone=zone, local=True),
            LIMIT_S,
            upserts=COMPACTED if upserts else None,
        )


put(
    "Clocks",
    *_each_step(upserts=False),
    *_each_step(upserts=True),
    Scenario(
        "driver_clock_back_1_h",
        "the driver's clock is set back by 1 h at each step of a transaction, and put right when the "
        "driver has said so",
        "nothing is begun or completed meanwhile, status says how far the clock is behind, then commits "
        "go on",
        _back_and_put_right,
        LIMIT_S,
    ),
    Scenario(
        "upserts_driver_clock_back_1_h",
        f"{UPSERTS}the driver's clock is set back by 1 h at each step of a transaction, and put right when "
        "the driver has said so",
        f"nothing is begun or completed meanwhile, then commits go on; {EVERY_ROW}",
        _back_and_put_right,
        LIMIT_S,
        upserts=COMPACTED,
    ),
    Scenario(
        "successor_clock_1_h_behind",
        "the driver is killed, and its successor's clock is 1 h behind; later it is put right",
        "the successor begins nothing, says how far its clock is behind, and goes on when it is right",
        _successor_behind,
        LIMIT_S,
    ),
    Scenario(
        "upserts_clock_set_back",
        f"{UPSERTS}the driver is killed, its successor's clock is 1 h behind and put right "
        "later, then set back by an interval at each step of a transaction",
        EVERY_ROW,
        _successor_behind_and_set_back,
        LIMIT_S + INTERVAL_S,
        upserts=COMPACTED,
    ),
    Scenario(
        "driver_clock_1_h_ahead_of_the_file_systems",
        "the clock of the table's file system stays, and the driver's is set forth by 1 h, when START is "
        "sent and in the middle of writing; then the driver is killed, and its successor's clock is 1 h "
        "ahead; each time it is put right later",
        "nobody takes the table lock, nothing is begun or completed meanwhile, status says how far the "
        "clock is ahead, then commits go on",
        _ahead_at_two_steps,
        LIMIT_S,
    ),
    Scenario(
        "upserts_driver_clock_1_h_ahead_of_the_file_systems",
        f"{UPSERTS}the clock of the table's file system stays, the driver is killed, and its successor's "
        "clock is 1 h ahead; later it is put right",
        "the successor takes no table lock, neither to begin nor to take a compaction away, says how "
        f"far its clock is ahead, and goes on when it is right; {EVERY_ROW}",
        _successor_alone_ahead,
        LIMIT_S,
        upserts=COMPACTED,
    ),
    Scenario(
        "summer_time_ends_in_berlin",
        "summer time ends in Berlin while a pipeline runs there, whose table is in UTC, as new ones are",
        "nobody notices",
        partial(_summer_time_ends, zone="Europe/Berlin", local=False),
        LIMIT_S,
    ),
    Scenario(
        "started_again_in_other_time_zones",
        "a pipeline is started again in New York, in Tokyo and on Lord Howe, each time after a stop",
        "its table stays in UTC wherever it is written, and nobody waits for a clock",
        _started_in_other_time_zones,
        LIMIT_S,
    ),
    *_summer_times(),
    stores=ON_FILES,
)
