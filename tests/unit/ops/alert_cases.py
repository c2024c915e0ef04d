"""What each alert of ops/alerts.yml is shown, and whether it fires: in Prometheus' notation, by the minute.

`5+0x20` is 5 and twenty more of it, `0+60x20` begins at 0 and grows by 60 a minute, `_x5` is
nothing for five minutes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PIPELINE = "orders"
STATES = ("running", "idle", "stalled", "starting", "stopped", "halted", "never", "unknown")
MODES = ("run", "pause", "drain", "stop", "halt")
MINUTES = 120
"""How long what does not change stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """`series`: metric with its labels but `pipeline` → values; after
    an @ who saw it, where several do. `fires`, `silent`: minutes at which it does and
    does not.
    """

    alert: str
    says: str
    series: Mapping[str, str]
    fires: tuple[int, ...] = ()
    silent: tuple[int, ...] = ()


def always(value: float) -> str:
    return f"{value:g}+0x{MINUTES}"


def standing(state: str, mode: str = "run") -> dict[str, str]:
    """State and mode, as they are for the whole time."""
    states = {f'lockstep_state{{state="{one}"}}': always(one == state) for one in STATES}
    modes = {f'lockstep_mode{{mode="{one}"}}': always(one == mode) for one in MODES} if mode else {}
    return states | modes


RUNNING = standing("running")
PAUSED = standing("idle", "pause")
SINCE = "lockstep_seconds_since_last_commit"
LAG = "lockstep_total_lag_records"
LAG_S = "lockstep_max_lag_seconds"
OPEN = "lockstep_producer_transaction_records"
OPEN_S = "lockstep_producer_transaction_seconds"
ABORTS = "lockstep_consecutive_aborts"
DIED = 'lockstep_transactions_total{outcome="aborted",reason="worker_died"}'
EMPTY = 'lockstep_transactions_total{outcome="aborted",reason="nothing_to_commit"}'
CHANGES = "lockstep_coordinator_changes_total"
MISSING = "lockstep_participants_missing"
RESTARTS = 'lockstep_worker_restarts_total{worker="worker-1"}'
MEMORY = 'lockstep_worker_memory_bytes{worker="worker-1"}'
MEMORY_MAX = 'lockstep_worker_memory_max_bytes{worker="worker-1"}'
LETTERS = "lockstep_dead_letters_total"
FAILURES = 'lockstep_service_failures{service="compaction"}'
DUE = 'lockstep_service_commits_due{service="compaction"}'
TOPIC_AGE = 'lockstep_observed_age_seconds{source="topic"}'
DRIVER_AGE = 'lockstep_observed_age_seconds{source="driver"}'
FILE_AT = 'node_textfile_mtime_seconds{file="/metrics/lockstep-orders.prom"}'
GROWING = {SINCE: "0+60x60", LAG: always(5_000)}

COMMITS = (
    Case(
        alert="LockstepNoCommit",
        says="records wait, and nothing is committed",
        series=RUNNING | GROWING,
        silent=(3, 12),
        fires=(17, 40),
    ),
    Case(
        alert="LockstepNoCommit",
        says="all that waits is behind a producer's open transaction, which is another alert's",
        series=RUNNING | GROWING | {OPEN: always(5_000)},
        silent=(17, 40),
    ),
    Case(
        alert="LockstepNoCommit",
        says="some of what waits is behind a producer's open transaction",
        series=RUNNING | GROWING | {OPEN: always(100)},
        fires=(17, 40),
    ),
    Case(
        alert="LockstepProducerTransactionOpen",
        says="a producer has hung, and its transaction ends with its timeout",
        series=RUNNING | {OPEN_S: "0+60x45 0+0x30"},
        silent=(3, 15, 24, 60),
        fires=(30, 44),
    ),
    Case(
        alert="LockstepProducerTransactionOpen",
        says="producers open one transaction after another, and the run is paused by an operator",
        series=PAUSED | {OPEN_S: "0+60x60"},
        silent=(15, 40),
    ),
    Case(
        alert="LockstepProducerTransactionOpen",
        says="transactions of some minutes follow one another",
        series=RUNNING | {OPEN_S: "0+60x10 0+60x10 0+60x10 0+60x10"},
        silent=(9, 21, 32, 43),
    ),
    Case(
        alert="LockstepNoCommit",
        says="it clears with the next commit",
        series=RUNNING | {SINCE: "0+60x20 5+0x20", LAG: always(5_000)},
        fires=(18,),
        silent=(22, 35),
    ),
    Case(
        alert="LockstepNoCommit",
        says="a record comes after a night without any, and is committed within its interval",
        series=RUNNING | {SINCE: "28800+60x10 30+0x50", LAG: "0+0x5 1+0x4 0+0x50"},
        silent=(4, 7, 9, 12, 30),
    ),
    Case(
        alert="LockstepNoCommit",
        says="a run that aborts all the time, and never says that it is stalled",
        series=RUNNING | GROWING | {ABORTS: "0+1x60"},
        fires=(20,),
    ),
    Case(
        alert="LockstepNoCommit",
        says="it was stopped for a night, starts, and commits",
        series=standing("starting") | {SINCE: "28800+60x3 5+0x50", LAG: "90000+0x3 80000-1000x50"},
        silent=(1, 3, 10, 30),
    ),
    Case(
        alert="LockstepNoCommit",
        says="the lag is not known: the broker is away, which is another alert's",
        series=RUNNING | {SINCE: "0+60x60"},
        silent=(17, 50),
    ),
    Case(
        alert="LockstepNoCommit",
        says="of two who look one sees no commit, because it reads no table",
        series=RUNNING
        | {
            SINCE + "@old": "0+60x60",
            SINCE + "@run": always(5),
            LAG: always(5_000),
        },
        silent=(17, 50),
    ),
    Case(
        alert="LockstepNoCommit",
        says="one scrape of eight does not have the lag",
        series=RUNNING | {SINCE: "0+60x60", LAG: "5000+0x6 stale " * 8},
        silent=(3,),
        fires=(17, 24, 32, 40),
    ),
    Case(
        alert="LockstepNoCommit",
        says="the lag was there before the broker went away, which is another alert's",
        series=RUNNING | {SINCE: "0+60x60", LAG: "5000+0x8 stale _x60"},
        silent=(9, 17, 40),
    ),
    Case(
        alert="LockstepNoCommit",
        says="no mode is known: state alone decides",
        series=standing("running", "") | GROWING,
        fires=(17,),
    ),
    Case(
        alert="LockstepStalled",
        says="the run says so for a while",
        series=standing("stalled"),
        silent=(4,),
        fires=(6, 30),
    ),
    Case(
        alert="LockstepStalled",
        says="it says so for a moment",
        series={
            'lockstep_state{state="stalled"}': "0 0 1 1 1 0+0x30",
            'lockstep_state{state="running"}': "1 1 0 0 0 1+0x30",
        },
        silent=(3, 4, 8, 20),
    ),
    Case(
        alert="LockstepStalled",
        says="who sees less says so, the run does not",
        series={
            'lockstep_state{state="stalled"}@ui': always(1),
            'lockstep_state{state="stalled"}@run': always(0),
            'lockstep_state{state="running"}@run': always(1),
        },
        silent=(10,),
    ),
    Case(
        alert="LockstepOutage",
        says="the storage is away, for longer than some retries",
        series=RUNNING | {"lockstep_outage_seconds": "0+60x9 0+0x20"},
        silent=(1, 2, 11),
        fires=(5, 9),
    ),
    Case(
        alert="LockstepAbortsInARow",
        says="three, because workers die",
        series=RUNNING | {ABORTS: "0 1 2 3 4 4 0+0x30", DIED: "0 1 2 3 4 4+0x30"},
        silent=(2, 7),
        fires=(3, 5),
    ),
    Case(
        alert="LockstepAbortsInARow",
        says="of transactions that had nothing to commit",
        series=RUNNING | {ABORTS: "0+1x30", DIED: always(2), EMPTY: "0+1x30"},
        silent=(3, 20),
    ),
    Case(
        alert="LockstepAbortsInARow",
        says="the last ones, before a topic became quiet",
        series=RUNNING | {ABORTS: "0+1x4 4+0x60", DIED: "0+1x4 4+0x60"},
        fires=(4,),
        silent=(30,),
    ),
)

RUNS = (
    Case(
        alert="LockstepHalted",
        says="at once, and until another run is there",
        series={"lockstep_halted": "0+0x2 1+0x20 0+0x20"},
        silent=(1, 25),
        fires=(3, 20),
    ),
    Case(
        alert="LockstepRunGone",
        says="its driver died, and nobody starts it again",
        series={
            'lockstep_state{state="running"}': "1+0x5 0+0x40",
            'lockstep_state{state="stopped"}': "0+0x5 1+0x40",
            'lockstep_mode{mode="run"}': always(1),
        },
        silent=(4, 9),
        fires=(12, 40),
    ),
    Case(
        alert="LockstepRunGone",
        says="its driver died, and it was started again",
        series={
            'lockstep_state{state="stopped"}': "0+0x5 1+0x2 0+0x40",
            'lockstep_mode{mode="run"}': always(1),
        },
        silent=(6, 8, 12, 30),
    ),
    Case(
        alert="LockstepRunGone",
        says="how it ended is not known",
        series=standing("stopped", ""),
        silent=(10, 60),
    ),
    Case(
        alert="LockstepRunGone",
        says="its driver died while it was paused",
        series=standing("stopped", "pause"),
        silent=(4,),
        fires=(6, 40),
    ),
    Case(
        alert="LockstepRunGone",
        says="it was paused, and was stopped then",
        series=standing("stopped", "stop"),
        silent=(6, 40),
    ),
    Case(
        alert="LockstepStateUnknown",
        says="a `lockstep ui` began in an outage, and sees nothing",
        series=standing("unknown", "") | {"lockstep_build_info": always(1)},
        silent=(5, 14),
        fires=(16, 60),
    ),
    Case(
        alert="LockstepStateUnknown",
        says="one of two who look knows it",
        series={
            'lockstep_state{state="unknown"}@ui': always(1),
            'lockstep_state{state="unknown"}@run': always(0),
        },
        silent=(20, 60),
    ),
    Case(
        alert="LockstepNotScraped",
        says="nothing answers there",
        series={'up{job="lockstep",instance="driver:8080"}': "1 1 0+0x30"},
        silent=(1, 5),
        fires=(8, 20),
    ),
    Case(
        alert="LockstepNotScraped",
        says="something else does not answer",
        series={'up{job="node",instance="driver:9100"}': always(0)},
        silent=(10,),
    ),
    Case(
        alert="LockstepFileOld",
        says="the driver wrote it for ten minutes, and no more after that",
        series={FILE_AT: "0+60x10 600+0x30"},
        silent=(5, 14),
        fires=(18, 35),
    ),
    Case(
        alert="LockstepFileOld",
        says="the driver took it away",
        series={FILE_AT: "0+60x10 _x30"},
        silent=(14, 18, 30),
    ),
    Case(
        alert="LockstepObservationOld",
        says="the topic cannot be read",
        series={TOPIC_AGE: "0+60x30 1+0x20"},
        silent=(1, 6, 35),
        fires=(9, 30),
    ),
    Case(
        alert="LockstepObservationOld",
        says="one of two who look reads it",
        series={TOPIC_AGE + "@ui": "0+60x30", TOPIC_AGE + "@run": always(1)},
        silent=(20,),
    ),
    Case(
        alert="LockstepObservationOld",
        says="no driver answers where none is",
        series={DRIVER_AGE: "0+60x60"},
        silent=(20, 60),
    ),
)

WORKERS = (
    Case(
        alert="LockstepCoordinatorUnstable",
        says="another one every five minutes",
        series=RUNNING | {CHANGES: "1 1 1 1 1 2 2 2 2 2 3 3 3 3 3 4 4 4 4 4 5 5 5 5 5 6+0x60"},
        silent=(1, 10, 70),
        fires=(26,),
    ),
    Case(
        alert="LockstepCoordinatorUnstable",
        says="one died, and a new run began",
        series=RUNNING | {CHANGES: "1+0x10 2+0x10 1+0x40"},
        silent=(5, 15, 25, 50),
    ),
    Case(
        alert="LockstepParticipantsMissing",
        says="one is not replaced",
        series=RUNNING | {MISSING: "0 0 1+0x30 0+0x5"},
        silent=(1, 6, 34),
        fires=(8, 30),
    ),
    Case(
        alert="LockstepParticipantsMissing",
        says="one is replaced, and all are awaited at the start",
        series=RUNNING | {MISSING: "2 2 0 0 0 1 0+0x30"},
        silent=(1, 3, 5, 10),
    ),
    Case(
        alert="LockstepWorkerRestarts",
        says="one that crashes again and again",
        series={RESTARTS: "0 1 2 3 4 4+0x60"},
        silent=(1, 50),
        fires=(4, 10),
    ),
    Case(
        alert="LockstepWorkerRestarts",
        says="one that crashed once",
        series={RESTARTS: "0 0 0 1+0x60"},
        silent=(3, 5, 30),
    ),
    Case(
        alert="LockstepWorkerMemoryHigh",
        says="it grows to the end of what it may have",
        series={MEMORY: "600e6+20e6x30 500e6+0x10", MEMORY_MAX: always(1_200e6)},
        silent=(5, 15, 22, 34),
        fires=(30,),
    ),
    Case(
        alert="LockstepWorkerMemoryHigh",
        says="what a busy worker takes",
        series={MEMORY: always(780e6), MEMORY_MAX: always(1_000e6)},
        silent=(30,),
    ),
    Case(
        alert="LockstepWorkerMemoryHigh",
        says="it is not measured there",
        series={MEMORY_MAX: always(1_000e6)},
        silent=(30,),
    ),
)

LAGS = (
    Case(
        alert="LockstepLagGrowing",
        says="more comes than goes",
        series=RUNNING | {LAG_S: "0+60x90"},
        silent=(5, 20),
        fires=(40, 80),
    ),
    Case(
        alert="LockstepLagGrowing",
        says="more comes than goes, and one scrape of eight does not say so",
        series=RUNNING
        | {LAG_S: " ".join("stale" if minute % 8 == 7 else f"{60 * minute}" for minute in range(90))},
        silent=(5, 20),
        fires=(40, 80),
    ),
    Case(
        alert="LockstepLagGrowing",
        says="records of last year come, and are worked off",
        series=RUNNING | {LAG_S: "0+0x30 31536000+0x9 31536000-1000000x29 0+0x10"},
        silent=(31, 40, 60, 70),
    ),
    Case(
        alert="LockstepLagGrowing",
        says="a long interval: it grows until each commit",
        series=RUNNING | {LAG_S: "0+60x15 0+60x15 0+60x15 0+60x15"},
        silent=(14, 30, 45, 60),
    ),
    Case(
        alert="LockstepLagTooOld",
        says="two hours behind, and no better",
        series=RUNNING | {LAG_S: always(7_200)},
        silent=(5, 20),
        fires=(27, 90),
    ),
    Case(
        alert="LockstepLagTooOld",
        says="two hours behind, and one scrape of eight does not say so",
        series=RUNNING | {LAG_S: "7200+0x6 stale " * 12},
        silent=(5, 20),
        fires=(27, 79),
    ),
    Case(
        alert="LockstepLagTooOld",
        says="after a night's stop it catches up",
        series=RUNNING | {LAG_S: "28800-240x115"},
        silent=(10, 30, 60, 90),
    ),
)

UPKEEP = (
    Case(
        alert="LockstepDeadLetters",
        says="some come, and no more after that",
        series={LETTERS: "0 0 7+0x60"},
        silent=(1, 30),
        fires=(3, 10),
    ),
    Case(
        alert="LockstepDeadLetters",
        says="there were some before anybody looked",
        series={LETTERS: always(7)},
        silent=(1, 10),
    ),
    Case(
        alert="LockstepServiceFailing",
        says="again and again, then it succeeds",
        series={FAILURES: "0 1 2 3 4 5 0+0x20"},
        silent=(2, 8),
        fires=(3, 5),
    ),
    Case(
        alert="LockstepServiceOverdue",
        says="it should have been done thrice",
        series=RUNNING | {DUE: "0+0.25x60"},
        silent=(10, 20),
        fires=(29, 50),
    ),
    Case(
        alert="LockstepServiceOverdue",
        says="it was done late",
        series=RUNNING | {DUE: "0+0.5x10 0+0x50"},
        silent=(8, 12, 40),
    ),
)

CASES = (*COMMITS, *RUNS, *WORKERS, *LAGS, *UPKEEP)

HEALTHY = {
    LAG: always(0),
    LAG_S: always(0),
    "lockstep_table_freshness_seconds": always(0),
    "lockstep_halted": always(0),
    "lockstep_outage_seconds": always(0),
    ABORTS: always(0),
    DIED: always(1),
    EMPTY: always(3),
    CHANGES: always(1),
    MISSING: always(0),
    "lockstep_participants": always(2),
    RESTARTS: always(1),
    MEMORY: always(640e6),
    MEMORY_MAX: always(24e9),
    LETTERS: always(7),
    FAILURES: always(1),
    DUE: always(0.5),
    TOPIC_AGE: always(1),
    'lockstep_observed_age_seconds{source="broker"}': always(1),
    'lockstep_observed_age_seconds{source="table"}': always(5),
    DRIVER_AGE: always(1),
    'up{job="lockstep",instance="ui:8080"}': always(1),
}
LATE = {SINCE: "0+60x120", LAG: "0+5000x120", LAG_S: "0+60x120"}

QUIET: Mapping[str, Mapping[str, str]] = {
    "a topic that has been idle for a day": HEALTHY | standing("idle") | {SINCE: "86400+60x120"},
    "a run under load": HEALTHY | RUNNING | {SINCE: always(7), LAG: always(40_000), LAG_S: always(9)},
    "a run that is paused, while records come": HEALTHY | PAUSED | LATE,
    "a paused run that calls itself stalled": HEALTHY | standing("stalled", "pause") | LATE,
    "a run that drains for long": HEALTHY | standing("running", "drain") | LATE | {MISSING: always(1)},
    "a run that was stopped on purpose, while records come": HEALTHY
    | standing("stopped", "stop")
    | LATE
    | {DRIVER_AGE: "0+60x120", MISSING: always(2)},
    "a run that has ended at the end that it was to reach": HEALTHY | standing("stopped", "drain") | LATE,
    "a pipeline that never ran": {**standing("never", ""), LAG: always(5_000), TOPIC_AGE: always(1)},
    "a pipeline of which nothing is known for ten minutes": {
        'lockstep_state{state="unknown"}': "1+0x10 0+0x110",
        'lockstep_state{state="idle"}': "0+0x10 1+0x110",
        "lockstep_build_info": always(1),
    },
    "a first start, before its first commit": standing("starting")
    | {LAG: always(90_000), TOPIC_AGE: always(1)},
    "nothing at all": {"lockstep_build_info": always(1)},
}
"""What alarms nobody, whatever the alert. In each a time that would be long enough for every one of them."""
