"""`lockstep offsets`: where the pipeline stands, and the way out of every refusal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from lockstep.brokers.source_topics import SourceTopics
from lockstep.commands.options import PATH, standard_options
from lockstep.config import Config, load
from lockstep.config.kafka import checked_kafka
from lockstep.errors import EXIT_WELL, ConfigError
from lockstep.offsets.carry_out import REASON_CHARS_MAX, carry_out, newest, operator, refuse_while_alive
from lockstep.offsets.plan import OffsetsPlan, parse_assignments, plan_adopt, plan_begin, plan_set
from lockstep.offsets.standing import SourceView, compare, look, to_json, to_text
from lockstep.output import Output
from table.state import TableState


@click.command("offsets")
@click.option("-c", "--config", "config_path", type=PATH, required=True, help="The pipeline's TOML file.")
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="TOPIC:P=OFFSET",
    help="Go on from another offset: a number, earliest or latest; P may be *. May be repeated."
    " A setting, SETTING=VALUE, is taken as everywhere else.",
)
@click.option("--adopt", is_flag=True, help="Accept a recreated topic, or another cluster.")
@click.option("--execute", is_flag=True, help="Do what the dry run shows.")
@click.option("--reason", default="", metavar="TEXT", help="Why; kept in the table with your name.")
@click.option("--master", default="", help="The Spark master that commits the change.")
@click.option(
    "--conf", "confs", multiple=True, metavar="KEY=VALUE", help="A Spark property; may be repeated."
)
@standard_options
def command(
    output: Output,
    config_path: Path,
    sets: tuple[str, ...],
    adopt: bool,
    execute: bool,
    reason: str,
    master: str,
    confs: tuple[str, ...],
) -> int:
    """Committed offsets, the log's ends, lag and the group's offset, by source partition.

    With --set or --adopt: what changing the committed offsets would do. Nothing changes without --execute,
    and never while a run is alive.

    Rows of change data are repaired by a new snapshot, and no offset is set for it: what the table holds is
    newer than any snapshot. Read to the end (lockstep run --until latest), DELETE the rows that are to come
    anew, CALL run_compaction, have the connector take its snapshot, and run again: see "A new snapshot" in
    docs/upserts.md.
    """
    assignments = [text for text in sets if ":" in text.partition("=")[0]]
    settings = [text for text in sets if text not in assignments]
    config = load(config_path, sets=settings, with_schema=execute)
    changing = bool(assignments) or adopt
    if execute and not changing:
        raise ConfigError("--execute: nothing to do; give --set TOPIC:P=OFFSET or --adopt")
    if execute and not reason.strip():
        raise ConfigError("--execute needs --reason TEXT, which is kept in the table with your name")
    source = SourceTopics(checked_kafka(config), config.source.topics)
    state = newest(config)
    view = look(source, config.group_id)
    if not changing:
        rows = compare(state, view)
        output.document(to_json(rows), lambda: to_text(rows, state))
        return EXIT_WELL
    plan = _plan(config, state, view, assignments, adopt=adopt, reason=reason.strip()[:REASON_CHARS_MAX])
    if execute:
        refuse_while_alive(output, config, plan.state.epoch, source)
        carry_out(config, plan.state, plan.expected, master, confs)
    output.document(plan.to_json(executed=execute), lambda: plan.to_text(executed=execute))
    return EXIT_WELL


def _plan(
    config: Config,
    state: TableState | None,
    view: SourceView,
    assignments: Sequence[str],
    *,
    adopt: bool,
    reason: str,
) -> OffsetsPlan:
    wanted = parse_assignments(assignments, view.partitions)
    if state is None and adopt:
        raise ConfigError("--adopt: the table holds no offsets of this pipeline yet")
    if state is None:
        return plan_begin(config.pipeline.id, wanted, view, operator=operator(), reason=reason)
    plan = plan_adopt if adopt else plan_set
    return plan(state, wanted, view, operator=operator(), reason=reason)
