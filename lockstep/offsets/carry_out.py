"""What was planned is done, or provably not: by a Spark job, behind which the table is looked at."""

from __future__ import annotations

import getpass
import os
import secrets
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from control_topic.clocks import wall_ms
from control_topic.messages import Offsets
from lockstep.brokers.source_topics import SourceTopics
from lockstep.config import Config
from lockstep.config.kafka import checked_kafka
from lockstep.errors import EXIT_WELL, Failed
from lockstep.offsets.plan import heard_lately, signs_of_life
from lockstep.output import Output
from lockstep.watch.run_seen import ask_driver, read_topic
from table.errors import TableError
from table.instants import MissingTable
from table.kinds import table_kind
from table.state import StateError, TableState

REASON_CHARS_MAX = 1_000
PLANNED_BY_MAX = 200


def newest(config: Config) -> TableState | None:
    """The pipeline's newest committed state; None where it has none, or the table is not there yet."""
    try:
        reader = table_kind(config.table.format).reader(config.table.path, config.store_settings())
        return reader.newest(config.pipeline.id)
    except MissingTable:
        return None


def operator() -> str:
    """Who asks: by number where the machine knows no name, as in many a container."""
    try:
        return getpass.getuser()[:PLANNED_BY_MAX]
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def refuse_while_alive(output: Output, config: Config, epoch: int, source: SourceTopics) -> None:
    """A run that is alive would be refused its next commit, or refuse ours. `epoch`: the change's.

    What the control topic alone says is shown and keeps nobody from anything: others may write there, too.
    """
    try:
        timeline = table_kind(config.table.format).reader(config.table.path, config.store_settings())
        now_ms = wall_ms()
        ours = [one for one in timeline.pending() if one.owner.get("pipeline") == config.pipeline.id]
        pending = [(one, now_ms - timeline.time_ms(one.requested)) for one in ours]
    except MissingTable:
        now_ms, pending = wall_ms(), []
    signs = signs_of_life(
        members=source.group_members(config.group_id),
        driver_answers=ask_driver(config.pipeline.id) is not None,
        pending=pending,
        write_timeout_ms=config.transaction.write_timeout_ms,
    )
    if signs:
        raise Failed(
            f"A run of pipeline {config.pipeline.id} seems to be alive: {'; '.join(signs)}. Stop it, wait"
            " half a minute, and try again; nothing has changed."
        )
    known, _odd = read_topic(config, checked_kafka(config), table_epoch=epoch)
    # A run that has halted has said its last word.
    heard_ms_ago = now_ms - known.driver_ms if known.driver_ms and known.halted is None else None
    if said := heard_lately(heard_ms_ago):
        output.note(said)


def carry_out(
    config: Config, planned: TableState, expected: Offsets, master: str, confs: Sequence[str]
) -> None:
    """Commit the planned state where the table has these offsets. Raises `Failed` unless it is there."""
    from lockstep.launch.short_job import run_short_job
    from lockstep.offsets.operator_commit import to_document  # brings Spark with it

    state = replace(planned, transaction=secrets.token_hex(16))
    with tempfile.TemporaryDirectory(prefix="lockstep-offsets-") as folder:
        document = Path(folder) / "plan.json"
        document.touch(mode=0o600)
        document.write_text(to_document(state, expected), encoding="utf-8")
        try:
            status, last = run_short_job(
                config, Path(folder), ["--operator-commit", str(document)], master=master, confs=confs
            )
        except Failed as error:
            look_for(config, state, str(error))
            return
    if status != EXIT_WELL:
        look_for(config, state, f"exit code {status}: {last}")


def look_for(config: Config, state: TableState, ended: str) -> None:
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
