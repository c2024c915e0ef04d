"""The write behind `lockstep offsets --set | --adopt --execute`: an empty commit that moves the offsets; and
behind `lockstep migrate --adopt-offsets`, which makes the first one.

An operator claims the table as a coordinator does: with an epoch above all that it has seen, and a commit
that compares what the plan was made on. Everything that was open is rolled back; a run that is alive after
all finds a higher epoch, and stops.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from threading import Lock

from pyspark.sql import SparkSession

from control_topic.clocks import monotonic_ms
from control_topic.messages import Offsets
from lockstep.config import Config
from lockstep.errors import EXIT_WELL, Failed
from lockstep.offsets.plan import GENESIS
from table.errors import TableError
from table.kinds import table_kind
from table.port import TransactionalTable
from table.service.calls import Answer, Result
from table.service.claiming import Claiming
from table.service.ledger import Ledger
from table.state import TableState, decode, encode, flatten, nest

log = logging.getLogger("lockstep.offsets")

WAIT_MIN_MS = 200
AGAIN = "Nothing has changed; make the plan again"


def to_document(state: TableState, expected: Offsets) -> str:
    """The plan as one JSON document: what to commit, and the offsets it was planned on."""
    return json.dumps({"state": encode(state), "expected": nest(expected)})


def execute_operator_commit(spark: SparkSession, config: Config, plan: Path) -> int:
    """Commit the plan whole or not at all; refused where the table has moved on since it was made."""
    try:
        document = json.loads(plan.read_text(encoding="utf-8"))
        planned = decode(document["state"])
        expected = flatten(document["expected"])
    except (OSError, ValueError, KeyError) as error:
        raise Failed(f"the plan {plan} cannot be read: {error}") from error
    kind = "operator" if expected else GENESIS  # what is there first is where everything begins
    if planned is None or planned.pipeline != config.pipeline.id or planned.kind != kind:
        raise Failed(f"the plan {plan} is not one for pipeline {config.pipeline.id}")
    table = table_kind(config.table.format).committer(spark, config.table_spec(), config.pipeline.id)
    try:
        table.open()
        instant = move_offsets(table, planned, expected)
    except TableError as error:
        raise Failed(str(error)) from error
    finally:
        table.close()
    log.info("committed instant %s: the offsets are as planned", instant)
    return EXIT_WELL


def move_offsets(
    table: TransactionalTable,
    planned: TableState,
    expected: Offsets,
    *,
    clock_ms: Callable[[], int] = monotonic_ms,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Commit the plan's offsets; the instant that holds them.

    Raises `Failed` where the table has moved on, or where it cannot be told, for as long as an outage may
    last, what became of the commit.
    """
    ledger = Ledger(run=planned.run, now_ms=clock_ms())
    claim = Claiming(table=table, ledger=ledger, guard=Lock(), run=planned.run, clock_ms=clock_ms)

    def until_known(ask: Callable[[], Answer]) -> Answer:
        """Ask until there is an answer: the same again, since no call does twice what it has done."""
        while (answer := ask()).result in (Result.UNAVAILABLE, Result.UNKNOWN):
            sleep(max(WAIT_MIN_MS, answer.wait_ms) / 1_000)
        return answer

    registered = until_known(lambda: claim.register(planned.epoch, planned.transaction))
    if registered.result is Result.STALE:
        raise Failed(f"{registered.reason}: somebody has committed since the plan was made. {AGAIN}")
    if registered.result is not Result.OK:
        raise Failed(registered.reason)
    moved = until_known(lambda: claim.move(planned.epoch, expected, planned))
    if moved.result in (Result.STALE, Result.REFUSED):
        raise Failed(f"the table refused the change: {moved.reason}. {AGAIN}")
    if moved.result is not Result.OK:
        raise Failed(f"whether the change was committed is not known: {moved.reason}. Look: lockstep offsets")
    return moved.instant
