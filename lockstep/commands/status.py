"""`lockstep status`: is it running, is it committing, how far behind, what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import click

from control_topic.clocks import wall_ms
from control_topic.errors import ControlTopicUnavailable
from lockstep.brokers.group import GroupMember
from lockstep.brokers.source_topics import SourceTopics
from lockstep.commands.options import config_options, standard_options
from lockstep.config import Config
from lockstep.config.kafka import checked_kafka
from lockstep.driver.stands import ours, sentence, strangers
from lockstep.errors import EXIT_HALTED, EXIT_WELL
from lockstep.offsets.standing import OffsetRow, compare
from lockstep.output import Output
from lockstep.watch.looks import look_at_source, look_at_table
from lockstep.watch.next_end import next_end
from lockstep.watch.run_seen import ask_driver, read_topic
from lockstep.watch.status import LastCommit, Observed, Status, conclude
from lockstep.watch.status_text import to_text
from lockstep.watch.topic_fold import Fold
from lockstep.watch.watermarks import newest_watermark
from table.service.source_facts import SourceTopicsError
from table.state import TableState

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
    table = look_at_table(config)
    last_commit = table.last_commit(wall_ms())
    with ThreadPoolExecutor(2) as asking:  # a broker that is away lets each of them wait for its whole time
        source = asking.submit(_source, config, kafka, table.state)
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
            watermark=newest_watermark(table.state, live),
            offsets=offsets,
            members=None if members is None else ours(members, config.group_id),
            strangers=sentence(guests, config.group_id) if guests else "",
            interval_ms=config.transaction.interval_ms,
            write_timeout_ms=config.transaction.write_timeout_ms,
            next_end=next_end(config.transaction, wall_ms(), live),
            live=live,
            problems=(*filter(None, (problem, table.savepoint_problem(wall_ms()))), *odd),
        )
    )


def _source(
    config: Config, kafka: Mapping[str, str], state: TableState | None
) -> tuple[list[OffsetRow] | None, Sequence[GroupMember] | None, str]:
    """Offsets, members of the group, and why they are not known."""
    try:
        seen = look_at_source(SourceTopics(kafka, config.source.topics, timeout_s=ASK_S), config.group_id)
    except SourceTopicsError as error:
        return None, None, str(error)
    return compare(state, seen.view), seen.members, ""


def _topic(
    config: Config, kafka: Mapping[str, str], last_commit: LastCommit | None
) -> tuple[Fold, list[str]]:
    """What the control topic says, and what is odd about that."""
    epoch = last_commit.epoch if last_commit is not None else 0
    try:
        return read_topic(config, kafka, table_epoch=epoch, timeout_s=ASK_S)
    except ControlTopicUnavailable as error:
        return Fold(), [str(error)]
