"""The write behind `lockstep offsets --set | --adopt --execute`: an empty commit that moves the offsets."""

from __future__ import annotations

import json
import logging
import secrets
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from control_topic.messages import Offsets
from lockstep.config import Config
from lockstep.errors import EXIT_WELL, Failed
from table.kinds import table_kind
from table.port import Commit
from table.state import TableState, decode, encode, flatten, nest

log = logging.getLogger("lockstep.offsets")


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
    if planned is None or planned.pipeline != config.pipeline.id or planned.kind != "operator":
        raise Failed(f"the plan {plan} is not one for pipeline {config.pipeline.id}")
    table = table_kind().committer(spark, config.table_spec(), config.pipeline.id)
    try:
        table.open()
        for left in table.unfinished():
            table.roll_back(left.instant)
        transaction = secrets.token_hex(16)
        state = replace(planned, transaction=transaction)
        instant = table.begin(run=state.run, transaction=transaction)
        table.commit(
            Commit(instant=instant, expected=expected, state=state, files=()),
            fence=lambda newest: (
                ""
                if newest is None or newest.epoch < state.epoch
                else f"epoch {newest.epoch} has been used since the plan was made; make it again"
            ),
        )
    finally:
        table.close()
    log.info("committed instant %s: the offsets are as planned", instant)
    return EXIT_WELL
