"""SIGKILL of worker and driver at the steps of a transaction of upserts: log files instead of base files."""

from __future__ import annotations

import signal
import time

from table.hudi.files.log_file import parse_log_file_name, write_token
from tests.faults import upkeep
from tests.faults.aim import hit
from tests.faults.blows import ANSWER_S, ATTEMPTS_MAX, Blow, Victim, send_to
from tests.faults.kills import DRIVER_LIMIT_S, WORKER_LIMIT_S, killed_inside_the_table_lock, kills
from tests.faults.scenario import Notes, Outcome, Scenario, put
from tests.faults.stage import Stage
from tests.faults.steps import AIMED, Step
from tests.faults.upkeep import Action
from tests.place import below

WORKER_STEPS = (Step.SOME_STATUS, Step.COMMIT_BEGUN, Step.COMMIT_LANDED)
"""All between a worker's WRITE_STATUS and the ACK."""
LOG_FILE_S = 2.0


def _killed_while_it_writes_log_blocks(stage: Stage) -> Outcome:
    stage.start()
    for misses in range(ATTEMPTS_MAX):
        blow, log_files = _kill_at_its_log_file(stage)
        if log_files:
            figures = stage.settle_and_verify()
            notes: Notes = {"misses": misses, "its_log_files": log_files, **figures}
            return Outcome(recovery_s=blow.recovery.commit_s, notes=notes)
    raise AssertionError(f"no worker was killed between a log file and its WRITE_STATUS; last {blow.line()}")


def _kill_at_its_log_file(stage: Stage) -> tuple[Blow, int]:
    """Kill a worker as soon as it has a log file of a transaction that ends; how many, 0 for a miss."""
    place, who = stage.pipeline.place, stage.processes()
    incarnation = who.incarnations[who.worker]
    _, mark, life = write_token(0, incarnation).split("-")
    found: list[str] = []

    def look() -> list[str]:
        """The instants of the log files of this worker's life."""
        parsed = (parse_log_file_name(name) for _, name in below(place))
        return [one[2] for one in parsed if one and one[1].split("-")[1:] == [mark, life]]

    def strike() -> int:
        until = time.monotonic() + LOG_FILE_S
        while time.monotonic() < until:
            if upkeep.begun(place, Action.DELTACOMMIT) & set(look()):
                break
            time.sleep(place.look_s)
        at_ms = send_to(stage, who, Victim.WORKER, signal.SIGKILL)
        found.extend(look())
        return at_ms

    struck = hit(stage, Step.END_SENT, strike, writer=incarnation)
    recovery = stage.recovery(struck.at_ms, deadline_s=ANSWER_S)
    blow = Blow(victim=Victim.WORKER, kind="kill", hit=struck, recovery=recovery)
    return blow, 0 if incarnation in struck.reported else found.count(struck.instant)


put(
    "Upserts",
    Scenario(
        "upserts_worker_killed_while_it_writes_log_blocks",
        "SIGKILL of a worker of an upsert pipeline: it has begun a log file and has reported none",
        "the transaction is given up at once, its log files go, its changes are in the next one",
        _killed_while_it_writes_log_blocks,
        WORKER_LIMIT_S,
        upserts={},
    ),
    Scenario(
        "upserts_driver_killed_inside_the_table_lock",
        "SIGKILL of an upsert pipeline's driver and restarted: well inside the table lock, which it has "
        "said that it holds",
        "the next run proves the holder dead and takes the lock over at once",
        killed_inside_the_table_lock,
        DRIVER_LIMIT_S,
        upserts={},
    ),
    *kills(Victim.WORKER, *WORKER_STEPS, prefix="upserts_", whose="an upsert pipeline's", upserts={}),
    *kills(Victim.DRIVER, *AIMED, prefix="upserts_", whose="an upsert pipeline's", upserts={}),
)
