"""A driver that dies while it compacts, clusters or cleans, and what its successor makes of that."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from table.hudi.upkeep.clustering import COPYING, STRATEGY_CLASS
from tests.faults import commits, upkeep
from tests.faults.blows import ANSWER_S, ATTEMPTS_MAX, Victim, left_locked_s, send_to
from tests.faults.commits import wall_ms
from tests.faults.kills import DRIVER_LIMIT_S
from tests.faults.scenario import Outcome, Scenario
from tests.faults.stage import START_S, Recovery, Stage
from tests.faults.upkeep import Action, Moment
from tests.harness import Run, await_that


@dataclass(frozen=True, slots=True, kw_only=True)
class Struck:
    """An instant that was being carried out at the blow."""

    instant: str
    base_files: int
    """As many it had made."""
    expiry_s: float
    """The table was locked, which may last for so long; 0: it was not."""
    recovery: Recovery

    def outcome(self, **notes: float | int | str) -> Outcome:
        return Outcome(
            recovery_s=self.recovery.commit_s,
            expiry_s=self.expiry_s,
            notes={
                "base_files_begun": self.base_files,
                **({"left_the_table_locked": "yes"} if self.expiry_s else {}),
                "all_source_partitions_s": self.recovery.all_partitions_s,
                **notes,
            },
        )


def driver_kills(
    action: Action,
    does: str,
    *,
    prefix: str = "",
    how: str = "",
    readers: str = "",
    settings: Mapping[str, str] | None = None,
    upserts: Mapping[str, str] | None = None,
) -> tuple[Scenario, ...]:
    """A row for each moment of a service in which the driver is killed. `does`: the verb, of the next run;
    `how`: what tells this one from others, behind its name.
    """
    what = action.value[0]
    moments = (
        (Moment.BEGUN, f"as_a_{what}_begins", "has just been begun", f"{what} away"),
        (Moment.WRITING, f"while_a_{what}_writes", "is writing base files", f"{what} and its files away"),
        (
            Moment.LISTED,
            f"as_a_{what}_completes",
            "is in Hudi's metadata table, and not yet complete on the timeline",
            f"{what} out of both",
        ),
    )
    return tuple(
        Scenario(
            f"{prefix}driver_killed_{name}",
            f"SIGKILL of the driver and restarted: a {what}{how} {is_so_far}",
            f"the next run takes the {taken} and {does} anew{readers if moment is Moment.LISTED else ''}",
            partial(killed_while, action=action, moment=moment),
            DRIVER_LIMIT_S,
            settings=settings or {},
            upserts=upserts,
        )
        for moment, name, is_so_far, taken in moments
    )


def killed_while(stage: Stage, *, action: Action, moment: Moment) -> Outcome:
    """A pipeline under load whose driver is killed in the middle of a service; proved in the end."""
    stage.start()
    struck, misses = until_done_anew(stage, action, moment)
    figures = stage.settle_and_verify()
    if action is Action.CLUSTERING:
        unnamed = commits.unnamed_base_files(stage.pipeline.place)
        assert not unnamed, f"base files that no commit names: {unnamed}"
        done = upkeep.completed(stage.pipeline.place, action)
        figures["clusterings"] = len(done)
        copies = stage.pipeline.settings.get(f"table.hudi.{STRATEGY_CLASS}") == COPYING
        assert upkeep.are_copies(stage.pipeline.place, max(done)) == copies
    return struck.outcome(misses=misses, **figures)


def until_struck(strike: Callable[[], Struck | None]) -> tuple[Struck, int]:
    """Strike until something is hit that was not complete by then; and how many attempts missed."""
    for misses in range(ATTEMPTS_MAX):
        struck = strike()
        if struck is not None:
            return struck, misses
    raise AssertionError(f"nothing was hit in {ATTEMPTS_MAX} attempts")


def kill_driver(stage: Stage, action: Action, moment: Moment = Moment.BEGUN) -> Struck | None:
    """SIGKILL as soon as such an instant is so far; and start it again. None for a miss."""
    place, who = stage.pipeline.place, stage.processes()
    instant = upkeep.await_begun(place, action, moment)
    send_to(stage, who, Victim.DRIVER, signal.SIGKILL)
    stage.current.process.wait(10)
    was_pending = instant in upkeep.pending(place, action)
    files, expiry_s = len(upkeep.base_files(place, instant)), left_locked_s(stage)
    at_ms = wall_ms()
    stage.restart()
    recovery = stage.recovery(at_ms, deadline_s=ANSWER_S)
    if not was_pending:
        return None
    return Struck(instant=instant, base_files=files, expiry_s=expiry_s, recovery=recovery)


def until_done_anew(stage: Stage, action: Action, moment: Moment) -> tuple[Struck, int]:
    """Kill the driver in the middle of one: the next run takes it and its files away, and does it anew.

    The blow that hit, and how many missed.
    """
    struck, misses = until_struck(lambda: kill_driver(stage, action, moment))
    await_taken_away(stage, stage.current, action, struck.instant)
    left = upkeep.base_files(stage.pipeline.place, struck.instant)
    assert not left, f"files of the {action.value[0]} that was taken away are still there: {left}"
    await_another(stage, action, struck.instant)
    return struck, misses


def await_taken_away(stage: Stage, run: Run, action: Action, instant: str) -> None:
    """Until this run says so. Nothing of it is left then."""
    said = f"{action.value[0]} {instant} was begun and not completed"
    await_that(f"end of the {action.value[0]} that was left", lambda: said in run.text(), deadline_s=START_S)
    place = stage.pipeline.place
    assert instant not in upkeep.pending(place, action) | upkeep.completed(place, action)


def await_another(stage: Stage, action: Action, instant: str) -> None:
    """Until one that was planned later is complete."""
    place = stage.pipeline.place
    await_that(
        f"another {action.value[0]}",
        lambda: any(one > instant for one in upkeep.completed(place, action)),
        deadline_s=START_S,
    )
