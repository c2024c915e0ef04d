"""SIGKILL of each kind of process at each step of a transaction: 4 × 8 scenarios."""

from __future__ import annotations

import time
from functools import partial

from tests.faults.blows import KILLED, Victim, kill, on_target
from tests.faults.scenario import Outcome, Scenario, put
from tests.faults.stage import Stage
from tests.faults.steps import AIMED, Step
from tests.place import Place

INTERVAL_S = 1.0
"""`transaction.interval` of the pipelines here."""
WORKER_LIMIT_S = INTERVAL_S + 8
DRIVER_LIMIT_S = 15.0
BROKER_LIMIT_S = 15.0

SKEWED = (12, 1, 1, 1)
"""The coordinator's worker, which owns source partition 0, has far more to write: its WRITE_STATUS comes
last, so that there is a time at which some are in and some are not."""
SKEWED_PER_SECOND = 15_000

LIMITS_S = {
    Victim.WORKER: WORKER_LIMIT_S,
    Victim.COORDINATOR: WORKER_LIMIT_S,
    Victim.DRIVER: DRIVER_LIMIT_S,
    Victim.BROKER: BROKER_LIMIT_S,
}

_OPEN = (Step.START_SENT, Step.MID_WRITE, Step.END_SENT, Step.SOME_STATUS)
_GIVEN_UP = "the transaction is given up at once, its records are in the next one"
EXPECTED = {
    Victim.WORKER: {
        **dict.fromkeys(_OPEN[:3], _GIVEN_UP),
        Step.SOME_STATUS: "where its files are reported they belong to the transaction, else it is given up",
        **dict.fromkeys(
            AIMED[4:], "the transaction is committed all the same, the next worker goes on after it"
        ),
    },
    Victim.COORDINATOR: {
        **dict.fromkeys(_OPEN, "the next coordinator claims above it and rolls the open instant back"),
        Step.COMMIT_BEGUN: "the driver ends the commit by itself, the next coordinator reads how it went",
        Step.COMMIT_LANDED: "the next coordinator finds the commit on the timeline; nothing is written twice",
        Step.ACK_SENT: "the next coordinator goes on after the commit",
        Step.GROUP_COMMITTED: "the next coordinator goes on after the commit",
    },
    Victim.DRIVER: {
        **dict.fromkeys(_OPEN, "the next run rolls the open instant back and reads the table"),
        Step.COMMIT_BEGUN: "its table lock is taken over or expires (then 60 s more); the commit is whole or "
        "absent",
        Step.COMMIT_LANDED: "the next run finds the commit on the timeline, and nothing is written twice",
        Step.ACK_SENT: "the next run goes on after the commit",
        Step.GROUP_COMMITTED: "the next run goes on after the commit",
    },
    Victim.BROKER: dict.fromkeys(AIMED, "everybody waits for it, and what was said is said again"),
}


def killed_at(stage: Stage, victim: Victim, step: Step) -> Outcome:
    """A pipeline under load whose victim is killed at this step; proved in the end."""
    begin(stage, step)
    blow, misses = on_target(stage, step, lambda: kill(stage, victim, step))
    figures = stage.settle_and_verify()
    return Outcome(
        recovery_s=blow.recovery.commit_s,
        expiry_s=blow.expiry_s,
        notes={
            "hit": blow.hit.last_words,
            "misses": misses,
            **({"left_the_table_locked": "yes"} if blow.expiry_s else {}),
            "all_source_partitions_s": blow.recovery.all_partitions_s,
            **figures,
        },
    )


def begin(stage: Stage, step: Step) -> None:
    """A pipeline under a load by which this step can be hit."""
    if step is Step.SOME_STATUS:
        stage.weights = SKEWED
    stage.start(per_second=SKEWED_PER_SECOND if step is Step.SOME_STATUS else 4_000)


def kills(
    victim: Victim, *steps: Step, prefix: str = "", whose: str = "the", upserts: dict[str, str] | None = None
) -> tuple[Scenario, ...]:
    """A row for each of these steps. `whose`: what the victim is called by, in the sentence."""
    after = " and restarted" if victim in (Victim.DRIVER, Victim.BROKER) else ""
    return tuple(
        Scenario(
            f"{prefix}{words(victim.value)}_killed_at_{words(step.value)}",
            f"SIGKILL of {whose} {victim.value}{after}: {step.value}",
            EXPECTED[victim][step],
            partial(killed_at, victim=victim, step=step),
            LIMITS_S[victim],
            in_tests=not prefix and (victim, step) == (Victim.COORDINATOR, Step.COMMIT_LANDED),
            upserts=upserts,
        )
        for step in steps
    )


def killed_inside_the_table_lock(stage: Stage) -> Outcome:
    """The driver, once the lock says that it is the holder."""
    stage.start()
    place = stage.pipeline.place
    blow, misses = on_target(
        stage,
        Step.COMMIT_BEGUN,
        lambda: kill(stage, Victim.DRIVER, Step.COMMIT_BEGUN, not_before=lambda: await_holder(place)),
    )
    figures = stage.settle_and_verify()
    return Outcome(recovery_s=blow.recovery.commit_s, notes={"misses": misses, **figures})


def await_holder(place: Place) -> None:
    """Until it is written down who holds this very lock; for a moment, then it is a miss."""
    until = time.monotonic() + place.holder_s
    while time.monotonic() < until and not place.says_holder():
        time.sleep(place.look_s)


def words(text: str) -> str:
    """As a part of a name."""
    kept = "".join(letter if letter.isalnum() else " " for letter in text.replace("'s", "s"))
    return "_".join(kept.lower().split())


put(
    "SIGKILL",
    Scenario(
        "driver_killed_inside_the_table_lock",
        "SIGKILL of the driver and restarted: well inside the table lock, which it has said that it holds",
        "the next run proves the holder dead and takes the lock over at once",
        killed_inside_the_table_lock,
        DRIVER_LIMIT_S,
        in_tests=True,
    ),
    *(row for victim in KILLED for row in kills(victim, *AIMED)),
)
