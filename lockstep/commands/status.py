"""`lockstep status`: is it running, is it committing, how far behind, what to do."""

from __future__ import annotations

from collections.abc import Mapping

import click

from control_topic.clocks import wall_ms
from control_topic.errors import ControlTopicUnavailable
from lockstep.commands.options import config_options, standard_options
from lockstep.config import Config
from lockstep.config.kafka import checked_kafka
from lockstep.errors import EXIT_HALTED, EXIT_WELL
from lockstep.offsets import OffsetRow, compare, look
from lockstep.output import Output
from lockstep.run_seen import ask_driver, read_topic
from lockstep.stands import sentence, strangers
from lockstep.status import LastCommit, Observed, Status, conclude
from lockstep.status_text import to_text
from lockstep.topic_fold import Fold
from table.group import GroupMember
from table.hudi.timeline import Instant, MissingTable, Timeline
from table.source import SourceTopics
from table.source_facts import SourceError

SOURCE_TIMEOUT_S = 10.0


@click.command("status")
@config_options(with_schema=False)
@standard_options
def command(output: Output, config: Config) -> int:
    """How the pipeline stands: from the table and the topics alone, fresher where the driver answers.

    Exit code 0 whatever the state is, 3 where the newest run has halted.
    """
    status = observe(config)
    output.document(status.to_json(), lambda: to_text(status))
    return EXIT_HALTED if status.halted is not None else EXIT_WELL


def observe(config: Config) -> Status:
    """Look everywhere; what cannot be reached is named and does not hide the rest."""
    kafka = checked_kafka(config)
    problems: list[str] = []
    live = ask_driver(config.pipeline.id)
    instant, last_commit = _last_commit(config)
    offsets, members = _source(config, kafka, instant, problems)
    guests = strangers(members or (), config.group_id)
    return conclude(
        Observed(
            pipeline=config.pipeline.id,
            now_ms=wall_ms(),
            fold=_topic(config, kafka, last_commit, problems),
            last_commit=last_commit,
            offsets=offsets,
            members=None if members is None else len(members),
            strangers=sentence(guests, config.group_id) if guests else "",
            interval_ms=config.transaction.interval_ms,
            write_timeout_ms=config.transaction.write_timeout_ms,
            live=live,
            problems=tuple(problems),
        )
    )


def _last_commit(config: Config) -> tuple[Instant | None, LastCommit | None]:
    try:
        timeline = Timeline(config.table.path)
        instant = timeline.newest_instant(config.pipeline.id)
    except MissingTable:
        return None, None
    if instant is None or instant.state is None:
        return None, None
    now_ms = wall_ms()
    return instant, LastCommit(
        transaction=instant.state.transaction,
        instant=instant.requested,
        kind=instant.state.kind,
        epoch=instant.state.epoch,
        rows=sum(file.rows for file in instant.files),
        age_ms=max(0, now_ms - timeline.time_ms(instant.completed)),
    )


def _source(
    config: Config, kafka: Mapping[str, str], instant: Instant | None, problems: list[str]
) -> tuple[list[OffsetRow] | None, list[GroupMember] | None]:
    try:
        source = SourceTopics(kafka, config.source.topics, timeout_s=SOURCE_TIMEOUT_S)
        view = look(source, config.group_id)
        members = source.group_members(config.group_id)
    except SourceError as error:
        problems.append(str(error))
        return None, None
    return compare(instant.state if instant is not None else None, view), members


def _topic(
    config: Config, kafka: Mapping[str, str], last_commit: LastCommit | None, problems: list[str]
) -> Fold:
    epoch = last_commit.epoch if last_commit is not None else 0
    try:
        known, odd = read_topic(config, kafka, table_epoch=epoch)
    except ControlTopicUnavailable as error:
        problems.append(str(error))
        return Fold()
    problems += odd
    return known
