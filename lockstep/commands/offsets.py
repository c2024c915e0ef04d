"""`lockstep offsets`: where the pipeline stands, and the way out of every refusal."""

from __future__ import annotations

import getpass
import os
import secrets
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from control_topic.clocks import wall_ms
from lockstep.brokers.source_topics import SourceTopics
from lockstep.commands.options import PATH, standard_options
from lockstep.config import Config, load
from lockstep.config.kafka import checked_kafka
from lockstep.errors import EXIT_WELL, ConfigError, Failed
from lockstep.offsets.plan import (
    OffsetsPlan,
    heard_lately,
    parse_assignments,
    plan_adopt,
    plan_set,
    signs_of_life,
)
from lockstep.offsets.standing import SourceView, compare, look, to_json, to_text
from lockstep.output import Output
from lockstep.watch.run_seen import ask_driver, read_topic
from table.errors import TableError
from table.instants import MissingTable
from table.kinds import table_kind
from table.state import StateError, TableState

REASON_CHARS_MAX = 1_000
PLANNED_BY_MAX = 200


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
    state = _newest(config)
    view = look(source, config.group_id)
    if not changing:
        rows = compare(state, view)
        output.document(to_json(rows), lambda: to_text(rows, state))
        return EXIT_WELL
    plan = _plan(state, view, assignments, adopt=adopt, reason=reason.strip()[:REASON_CHARS_MAX])
    if execute:
        _refuse_while_alive(output, config, plan.state, source)
        _execute(config, plan, master, confs)
    output.document(plan.to_json(executed=execute), lambda: plan.to_text(executed=execute))
    return EXIT_WELL


def _newest(config: Config) -> TableState | None:
    try:
        reader = table_kind(config.table.format).reader(config.table.path, config.store_settings())
        return reader.newest(config.pipeline.id)
    except MissingTable:
        return None


def _plan(
    state: TableState | None, view: SourceView, assignments: Sequence[str], *, adopt: bool, reason: str
) -> OffsetsPlan:
    if state is None:
        raise ConfigError(
            "The table holds no offsets of this pipeline yet: choose where to start with"
            " source.starting_offsets"
        )
    wanted = parse_assignments(assignments, view.partitions)
    plan = plan_adopt if adopt else plan_set
    return plan(state, wanted, view, operator=operator(), reason=reason)


def operator() -> str:
    """Who asks: by number where the machine knows no name, as in many a container."""
    try:
        return getpass.getuser()[:PLANNED_BY_MAX]
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def _refuse_while_alive(output: Output, config: Config, state: TableState, source: SourceTopics) -> None:
    """A run that is alive would be refused its next commit, or refuse ours.

    What the control topic alone says is shown and keeps nobody from anything: others may write there, too.
    """
    timeline = table_kind(config.table.format).reader(config.table.path, config.store_settings())
    now_ms = wall_ms()
    ours = [one for one in timeline.pending() if one.owner.get("pipeline") == config.pipeline.id]
    signs = signs_of_life(
        members=source.group_members(config.group_id),
        driver_answers=ask_driver(config.pipeline.id) is not None,
        pending=[(one, now_ms - timeline.time_ms(one.requested)) for one in ours],
        write_timeout_ms=config.transaction.write_timeout_ms,
    )
    if signs:
        raise Failed(
            f"A run of pipeline {config.pipeline.id} seems to be alive: {'; '.join(signs)}. Stop it, wait"
            " half a minute, and try again; nothing has changed."
        )
    known, _odd = read_topic(config, checked_kafka(config), table_epoch=state.epoch)
    # A run that has halted has said its last word.
    heard_ms_ago = now_ms - known.driver_ms if known.driver_ms and known.halted is None else None
    if said := heard_lately(heard_ms_ago):
        output.note(said)


def _execute(config: Config, plan: OffsetsPlan, master: str, confs: Sequence[str]) -> None:
    from lockstep.launch.short_job import run_short_job
    from lockstep.offsets.operator_commit import to_document  # brings Spark with it

    state = replace(plan.state, transaction=secrets.token_hex(16))
    with tempfile.TemporaryDirectory(prefix="lockstep-offsets-") as folder:
        document = Path(folder) / "plan.json"
        document.touch(mode=0o600)
        document.write_text(to_document(state, plan.expected), encoding="utf-8")
        try:
            status, last = run_short_job(
                config, Path(folder), ["--operator-commit", str(document)], master=master, confs=confs
            )
        except Failed as error:
            _look_for(config, state, str(error))
            return
    if status != EXIT_WELL:
        _look_for(config, state, f"exit code {status}: {last}")


def _look_for(config: Config, state: TableState, ended: str) -> None:
    """The job did not end well, and may have been killed right behind its commit: the table knows.

    Raises `Failed` unless the change is there.
    """
    look = f"lockstep offsets -c … shows what table {config.table.path} holds: look before you try again"
    try:
        reader = table_kind(config.table.format).reader(config.table.path, config.store_settings())
        newest = reader.newest(config.pipeline.id)
    except (TableError, StateError) as error:
        raise Failed(
            f"Whether the change was committed is not known ({ended}), and the table cannot be asked: "
            f"{error}. Once it can, {look}."
        ) from error
    if newest is None or newest.transaction != state.transaction:
        raise Failed(f"The change is not in the table ({ended}). {look[0].upper()}{look[1:]}.")
