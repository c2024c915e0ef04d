"""`lockstep status`: is it running, is it committing, how far behind, what to do."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import click

from control_topic.clocks import wall_ms
from control_topic.errors import ControlTopicUnavailable
from lockstep.brokers.group import GroupMember
from lockstep.brokers.source_topics import SourceTopics
from lockstep.commands.options import config_options, standard_options
from lockstep.config import Config
from lockstep.config.kafka import checked_kafka
from lockstep.driver.stands import sentence, strangers
from lockstep.errors import EXIT_HALTED, EXIT_WELL
from lockstep.offsets.standing import OffsetRow, compare, look
from lockstep.output import Output
from lockstep.watch.run_seen import ask_driver, read_topic
from lockstep.watch.status import LastCommit, Observed, Status, conclude
from lockstep.watch.status_text import to_text
from lockstep.watch.topic_fold import Fold
from table.instants import Instant, MissingTable
from table.kinds import table_kind
from table.service.source_facts import SourceTopicsError

ASK_S = 10.0


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
    live = ask_driver(config.pipeline.id)
    instant, last_commit = _last_commit(config)
    with ThreadPoolExecutor(2) as asking:  # a broker that is away lets each of them wait for its whole time
        source = asking.submit(_source, config, kafka, instant)
        topic = asking.submit(_topic, config, kafka, last_commit)
    offsets, members, problem = source.result()
    known, odd = topic.result()
    guests = strangers(members or (), config.group_id)
    return conclude(
        Observed(
            pipeline=config.pipeline.id,
            now_ms=wall_ms(),
            fold=known,
            last_commit=last_commit,
            offsets=offsets,
            members=None if members is None else len(members),
            strangers=sentence(guests, config.group_id) if guests else "",
            interval_ms=config.transaction.interval_ms,
            write_timeout_ms=config.transaction.write_timeout_ms,
            live=live,
            problems=(*((problem,) if problem else ()), *odd),
        )
    )


def _last_commit(config: Config) -> tuple[Instant | None, LastCommit | None]:
    try:
        timeline = table_kind(config.table.format).reader(config.table.path, config.store_settings())
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
    config: Config, kafka: Mapping[str, str], instant: Instant | None
) -> tuple[list[OffsetRow] | None, list[GroupMember] | None, str]:
    """Offsets, members of the group, and why they are not known."""
    try:
        source = SourceTopics(kafka, config.source.topics, timeout_s=ASK_S)
        view = look(source, config.group_id)
        members = source.group_members(config.group_id)
    except SourceTopicsError as error:
        return None, None, str(error)
    return compare(instant.state if instant is not None else None, view), members, ""


def _topic(
    config: Config, kafka: Mapping[str, str], last_commit: LastCommit | None
) -> tuple[Fold, list[str]]:
    """What the control topic says, and what is odd about that."""
    epoch = last_commit.epoch if last_commit is not None else 0
    try:
        return read_topic(config, kafka, table_epoch=epoch, timeout_s=ASK_S)
    except ControlTopicUnavailable as error:
        return Fold(), [str(error)]
