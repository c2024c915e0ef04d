"""Workers that hand rows over to each other: killed and frozen while they do, and cut off from each other."""

from __future__ import annotations

from functools import partial

from control_topic.messages import AckCommit, WriteStatus
from tests.faults.blows import Victim
from tests.faults.kills import WORKER_LIMIT_S, killed_at
from tests.faults.pauses import SESSION_S, paused
from tests.faults.scenario import Act, Outcome, Scenario, put
from tests.faults.slow_writers import said
from tests.faults.stage import Stage
from tests.faults.steps import Step

SETTINGS = {
    "transaction.writers_per_partition": "1",
    "table.partition_by": "bucket(16, user_id)",
}
"""Each worker has rows of all table partitions, and writes some of them for both."""
PAUSE_LIMIT_S = 9.0


def exchanged(stage: Stage, act: Act) -> Outcome:
    """Do it; in the end rows were handed over in commits, and no table partition has two files of one."""
    outcome = act(stage)
    messages = said(stage)
    committed = {one.transaction for one in messages if isinstance(one.body, AckCommit)}
    found: dict[str, list[WriteStatus]] = {}
    for one in messages:
        if isinstance(one.body, WriteStatus) and one.transaction in committed:
            known = found.setdefault(one.transaction, [])
            known += [one.body] if one.body not in known else []
    handing = {name: statuses for name, statuses in found.items() if any(s.handed for s in statuses)}
    assert handing, "no rows were handed over in any transaction that was committed"
    for name, statuses in handing.items():
        places = [file.table_partition for status in statuses for file in status.files]
        assert len(places) == len(set(places)), f"{name}: a table partition has several files"
    handed = sum(sum(status.handed.values()) for of in handing.values() for status in of)
    notes = {"exchanges": len(handing), "transactions": len(found), "rows_handed_over": handed}
    return Outcome(recovery_s=outcome.recovery_s, expiry_s=outcome.expiry_s, notes={**outcome.notes, **notes})


def _killed(victim: Victim, step: Step, expected: str, *, in_tests: bool = False) -> Scenario:
    name = f"{victim.value}_that_hands_over_killed_at_{step.value}".replace("'s ", "s_")
    return Scenario(
        name.lower().replace(" ", "_").replace("-", "_"),
        f"SIGKILL of the {victim.value}, which others hand rows over to and which hands over its own: "
        f"{step.value}",
        expected,
        partial(exchanged, act=partial(killed_at, victim=victim, step=step)),
        WORKER_LIMIT_S,
        in_tests=in_tests,
        settings=SETTINGS,
    )


LOST = "what it had read, and what it was to write for others, is in the next transactions, once"
put(
    "Workers that hand rows over",
    _killed(Victim.WORKER, Step.MID_WRITE, LOST, in_tests=True),
    _killed(Victim.WORKER, Step.END_SENT, LOST),
    _killed(Victim.WORKER, Step.SOME_STATUS, "where its files are reported they belong to the transaction"),
    _killed(Victim.COORDINATOR, Step.MID_WRITE, LOST),
    _killed(Victim.COORDINATOR, Step.END_SENT, LOST),
    Scenario(
        "worker_that_hands_over_paused_past_its_session",
        f"a worker is stopped for {SESSION_S:.0f} s in the middle of handing rows over, then goes on",
        "its source partitions are read by the other; what it sends as it wakes up is refused",
        partial(
            exchanged,
            act=partial(paused, victim=Victim.WORKER, step=Step.MID_WRITE, seconds=SESSION_S),
        ),
        PAUSE_LIMIT_S,
        settings=SETTINGS,
    ),
)
