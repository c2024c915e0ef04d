"""Taking over where another sink stands: looked at, planned, and, if that is asked for, committed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from lockstep.brokers.source_topics import SourceTopics
from lockstep.config import Config, load
from lockstep.config.kafka import checked_kafka
from lockstep.errors import ConfigError
from lockstep.migrate.adoption import AdoptionPlan, plan_adoption
from lockstep.migrate.kinds import KINDS, recognised
from lockstep.migrate.theirs import Asking, ask
from lockstep.offsets.carry_out import REASON_CHARS_MAX, carry_out, newest, operator, refuse_while_alive
from lockstep.offsets.standing import look
from lockstep.output import Output


def adopt(
    output: Output,
    given: Mapping[str, str],
    kind: str,
    config_path: Path,
    sets: Sequence[str],
    *,
    executing: bool,
    master: str,
    confs: Sequence[str],
) -> AdoptionPlan:
    """The plan; with `executing` it is in the table when this returns, unless it has a refusal.

    Raises `ConfigError` where the table has offsets already, `Failed` where theirs, the broker or the table
    cannot be asked, or where it is not known whether it was committed.
    """
    config = load(config_path, sets=sets, with_schema=executing)
    kind = recognised(given, kind)
    _only_a_table_without_offsets(config)
    source = SourceTopics(checked_kafka(config), config.source.topics)
    theirs = ask(kind, Asking(given=given, config=config, source=source))
    plan = plan_adoption(
        replace(theirs, notes=(*theirs.notes, KINDS[kind].twice)),
        look(source, config.group_id),
        pipeline=config.pipeline.id,
        on_data_loss=config.source.on_data_loss,
        starting=config.source.starting_offsets,
        operator=operator(),
        reason=f"taken over from {KINDS[kind].what}, by {theirs.said_by}"[:REASON_CHARS_MAX],
    )
    if executing and not plan.refusal:
        refuse_while_alive(output, config, plan.state.epoch, source)
        carry_out(config, plan.state, {}, master, confs)
    return plan


def _only_a_table_without_offsets(config: Config) -> None:
    state = newest(config)
    if state is not None:
        raise ConfigError(
            f"Table {config.table.path} has offsets of pipeline {config.pipeline.id} already (instant "
            f"{state.instant}): they are moved by lockstep offsets --set, and by nothing else"
        )
