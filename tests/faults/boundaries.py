"""Somebody dies as a day ends, where rows are laid out by `now()`, or as transactions end by the clock."""

from __future__ import annotations

import json
import signal
import time
from datetime import datetime, timedelta
from functools import partial
from itertools import count, product
from typing import Any
from zoneinfo import ZoneInfo

from hudi import HudiReadOptions, HudiTableBuilder

from tests.faults.aim import Hit, hit
from tests.faults.blows import (
    ATTEMPTS_MAX,
    Victim,
    kill,
    left_locked_s,
    on_target,
    send_to,
    writer_of,
)
from tests.faults.clocks import Clocks, goes_on_s
from tests.faults.kills import DRIVER_LIMIT_S, WORKER_LIMIT_S, words
from tests.faults.scenario import ON_FILES, Outcome, Scenario, put
from tests.faults.stage import Stage
from tests.faults.steps import Step
from tests.transaction_times import first_of_each, instant_ms, rows, told

GROUP = "Boundaries of time"
ZONE = ZoneInfo("Europe/Berlin")
BY_DAY = {"table.partition_by": json.dumps([f'day(now(), "{ZONE.key}")'])}
LAID_OUT_BY = ["_hoodie_commit_time", "_hoodie_partition_path", "now_day"]
EARLY_S = 2_400.0
"""So long before midnight the clocks show as the pipeline is started: no start takes longer."""
EVENING_S = 60.0
LAST_S = 6.0
"""By so much clocks leap over midnight at most: less than a lock or a heartbeat would notice."""
DAY_LIMIT_S = 15.0

ALIGN_S = 20
ALIGNED = {
    "transaction.align": f"{ALIGN_S}s",
    "transaction.interval": "120s",  # which nothing lasts for, nor a quarter of it, as after a take-over
    "transaction.write_timeout": "120s",
}
SCHEDULED = {**ALIGNED, "transaction.align": "0s", "transaction.schedule": f"every {ALIGN_S}s at :00:00"}
HEARD_S = 2.0
"""END is said within a tick, and heard within this."""


# --- midnight ---------------------------------------------------------------------------------------


def _killed_as_a_day_ends(stage: Stage, *, victim: Victim, step: Step) -> Outcome:
    """In a transaction that was begun before midnight, as soon as the clocks show that it is over."""
    clocks = Clocks(stage)
    midnight_s = _midnight_after(time.time() + EARLY_S)
    clocks.show(midnight_s - EARLY_S)
    stage.start(arguments=clocks.arguments)
    for misses in count():
        found, recovery_s, expiry_s = _strike(stage, clocks, victim, step, midnight_s)
        if found.is_on_target and instant_ms(found.instant) < 1_000 * midnight_s:
            break
        midnight_s = _midnight_after(midnight_s)
        assert misses < ATTEMPTS_MAX, f"{step.value!r} was not hit at midnight; last: {found.last_words}"
    figures = stage.settle_and_verify()
    days, instants = _laid_out(stage)
    assert len(days) >= misses + 2, f"{misses + 1} midnights went by, and there are rows of {sorted(days)}"
    committed = found.instant in instants
    if step is Step.MID_WRITE or victim is not Victim.DRIVER:
        assert committed == (step is not Step.MID_WRITE), f"{found.instant} is among {sorted(instants)}"
    return Outcome(
        recovery_s=recovery_s,
        expiry_s=expiry_s,
        notes={
            "hit": found.last_words,
            "misses": misses,
            "the_days_last_transaction": "committed" if committed else "given up",
            "days": len(days),
            **figures,
        },
    )


def _strike(
    stage: Stage, clocks: Clocks, victim: Victim, step: Step, midnight_s: float
) -> tuple[Hit, float, float]:
    """What was hit, how long commits took to go on, and for how long the lock was left."""
    clocks.show(midnight_s - EVENING_S)
    goes_on_s(stage.current)  # whatever that leap has met
    who = stage.processes()
    clocks.show(midnight_s - LAST_S)
    over_s = time.monotonic() + LAST_S

    def strike() -> int:
        if time.monotonic() < over_s:
            clocks.show(midnight_s + 0.01)
        return send_to(stage, who, victim, signal.SIGKILL)

    found = hit(stage, step, strike, writer=writer_of(who, victim))
    expiry_s = 0.0
    if victim is Victim.DRIVER:
        stage.current.process.wait(10)
        expiry_s = left_locked_s(stage)
        stage.restart(*clocks.arguments)
    return found, goes_on_s(stage.current), expiry_s


def _midnight_after(moment_s: float) -> float:
    day = datetime.fromtimestamp(moment_s, ZONE).date() + timedelta(days=1)
    return datetime(day.year, day.month, day.day, tzinfo=ZONE).timestamp()


def _laid_out(stage: Stage) -> tuple[set[str], set[str]]:
    """The folders that have rows, and the instants that wrote them: each row is where its instant says."""
    table = HudiTableBuilder.from_base_uri(str(stage.pipeline.table)).build()
    found: set[tuple[str, str, str]] = set()
    for batch in table.read(HudiReadOptions(projection=LAID_OUT_BY)):
        found.update(zip(*(batch.column(name).to_pylist() for name in LAID_OUT_BY), strict=True))
    for instant, folder, value in found:
        day = datetime.fromtimestamp(instant_ms(instant) / 1_000, ZONE).strftime("%Y-%m-%d")
        assert folder == value == day, f"rows of {instant}, which is of {day}, are in {folder!r} as {value!r}"
    return {folder for _, folder, _ in found}, {instant for instant, _, _ in found}


# --- ends by the clock --------------------------------------------------------------------------------


def _killed_at_an_end(stage: Stage, *, victim: Victim, step: Step, aligned: bool) -> Outcome:
    stage.start()
    blow, misses = on_target(stage, step, lambda: kill(stage, victim, step))
    figures = stage.settle_and_verify()
    ends = first_of_each(told(stage.pipeline, "END_COMMIT"))
    reasons = [one["content"]["reason"] for one in ends.values()]
    wanted = "align" if aligned else "schedule"
    assert wanted in reasons and set(reasons) <= {wanted, "drain"}, reasons
    return Outcome(
        recovery_s=blow.recovery.commit_s,
        expiry_s=blow.expiry_s,
        notes={
            "hit": blow.hit.last_words,
            "misses": misses,
            f"ended_by_{wanted}": reasons.count(wanted),
            **({"stretches": _none_spans(stage, ends)} if aligned else {}),
            "all_source_partitions_s": blow.recovery.all_partitions_s,
            **figures,
        },
    )


def _none_spans(stage: Stage, ends: dict[str, dict[str, Any]]) -> int:
    """Each transaction with rows began, started and was ended in one stretch, and has no record of a later
    one, but for what came before END was heard. How many stretches there were.
    """
    starts: dict[str, dict[str, Any]] = {}
    for one in told(stage.pipeline, "START_COMMIT"):
        starts.setdefault(one["content"]["instant"], one)
    latest_us: dict[str, int] = {}
    for instant, came_us in rows(stage.pipeline):
        latest_us[instant] = max(came_us, latest_us.get(instant, 0))
    stretches = set()
    for instant, came_us in latest_us.items():
        over_s = (instant_ms(instant) // 1_000 // ALIGN_S + 1) * ALIGN_S
        start = starts[instant]
        end_s = ends[start["transaction"]]["time"] / 1_000
        assert start["time"] / 1_000 < over_s, f"{instant} started after its stretch"
        assert end_s <= over_s + HEARD_S, f"{instant} was ended {end_s - over_s:.1f} s after its stretch"
        assert came_us / 1e6 <= over_s + HEARD_S, f"{instant} has a record of after its stretch"
        stretches.add(over_s)
    return len(stretches)


# --- the rows -----------------------------------------------------------------------------------------

_DAYS = {
    Step.MID_WRITE: "it is given up, and done anew in the new day",
    Step.COMMIT_BEGUN: "it is committed in its own day, or done anew in the new one",
}
_ONE_FOLDER = "every record is in one folder, that of the instant which has committed it"
_ENDS = (Step.END_SENT, Step.COMMIT_BEGUN)
_AFTER = {Victim.DRIVER: " and restarted"}


def _name(victim: Victim, step: Step) -> str:
    return f"{words(victim.value)}_killed_at_{words(step.value)}"


put(
    GROUP,
    *(
        Scenario(
            f"{_name(victim, step)}_as_a_day_ends",
            f"rows are laid out by the day of now(); SIGKILL of the {victim.value}{_AFTER.get(victim, '')} "
            f"at midnight, in a transaction of the day before: {step.value}",
            f"{_DAYS[step]}: {_ONE_FOLDER}",
            partial(_killed_as_a_day_ends, victim=victim, step=step),
            DAY_LIMIT_S,
            settings=BY_DAY,
        )
        for victim, step in product((Victim.WORKER, Victim.COORDINATOR, Victim.DRIVER), _DAYS)
    ),
    *(
        Scenario(
            f"{_name(victim, step)}_at_an_aligned_end",
            f"transactions are aligned to {ALIGN_S} s; SIGKILL of the {victim.value}{_AFTER.get(victim, '')} "
            f"as a stretch ends: {step.value}",
            "no transaction spans the end of a stretch, that which is done anew neither, and commits go on "
            "with the next end",
            partial(_killed_at_an_end, victim=victim, step=step, aligned=True),
            ALIGN_S + (DRIVER_LIMIT_S if victim is Victim.DRIVER else WORKER_LIMIT_S),
            settings=ALIGNED,
        )
        for victim, step in product((Victim.COORDINATOR, Victim.DRIVER), _ENDS)
    ),
    *(
        Scenario(
            f"{_name(victim, Step.END_SENT)}_at_a_scheduled_end",
            f"transactions end every {ALIGN_S} s by a schedule; SIGKILL of the {victim.value}"
            f"{_AFTER.get(victim, '')} as it has said END",
            "the next coordinator makes the end good at once, and does not wait for the next time",
            partial(_killed_at_an_end, victim=victim, step=Step.END_SENT, aligned=False),
            DRIVER_LIMIT_S if victim is Victim.DRIVER else WORKER_LIMIT_S,
            settings=SCHEDULED,
        )
        for victim in (Victim.COORDINATOR, Victim.DRIVER)
    ),
    stores=ON_FILES,
)
