"""`lockstep dead-letters`: what was set aside, whether it would be a row now, and the way back."""

from __future__ import annotations

from pathlib import Path

import click

from control_topic.clocks import wall_ms
from lockstep.commands.options import PATH, SET_HELP, standard_options
from lockstep.config import load
from lockstep.config.kafka import checked_kafka
from lockstep.errors import EXIT_FAILED, EXIT_WELL, ConfigError
from lockstep.letters.choice import Choice, parse_records, parse_since
from lockstep.letters.marks import By
from lockstep.letters.replay import How
from lockstep.letters.report import Outcome, Seen, as_json, as_text, heading
from lockstep.letters.walk import Asked, Walk
from lockstep.offsets.carry_out import REASON_CHARS_MAX, operator
from lockstep.output import Output

LIMIT = 1_000
LIMIT_MAX = 1_000_000
SCHEMA_BYTES_MAX = 1_000_000


@click.command("dead-letters")
@click.option("-c", "--config", "config_path", type=PATH, required=True, help="The pipeline's TOML file.")
@click.option("--set", "sets", multiple=True, metavar="SETTING=VALUE", help=SET_HELP)
@click.option(
    "--record",
    "records",
    multiple=True,
    metavar="TOPIC[:P[=OFFSET[-LAST]]]",
    help="Only these records of source topics; may be repeated.",
)
@click.option("--reason", default="", metavar="TEXT", help="Only those whose reason has this in it.")
@click.option(
    "--since", default="", metavar="TIME", help="Only what was set aside since: 2h, 2026-12-31T15:00."
)
@click.option(
    "--limit", type=click.IntRange(1, LIMIT_MAX), default=None, help=f"So many at most. [default: {LIMIT:,}]"
)
@click.option("--all", "with_sent_back", is_flag=True, help="Also those that were sent back.")
@click.option(
    "--schema",
    default="",
    metavar="FILE|DDL",
    help="Try this schema in place of record.schema; writes nothing.",
)
@click.option("--mended", is_flag=True, help="Only those that would be rows now.")
@click.option("--values", is_flag=True, help="Show what is in them: values, keys, headers, rows.")
@click.option("--follow", "-f", is_flag=True, help="Go on with what arrives, until Ctrl-C.")
@click.option(
    "--replay", is_flag=True, help="Send them back to their source topics. A dry run, but for --execute."
)
@click.option("--execute", is_flag=True, help="Do what the dry run shows.")
@click.option("--why", default="", metavar="TEXT", help="Why they go back; kept with your name.")
@click.option(
    "--other-group",
    "other_groups",
    multiple=True,
    metavar="GROUP",
    help="Replay: this other consumer group may receive the records again; may be repeated.",
)
@click.option("--by-key", is_flag=True, help="Replay: let the key choose the source partition anew.")
@click.option("--new-time", is_flag=True, help="Replay: with the time of now in place of their own.")
@standard_options
def command(
    output: Output,
    config_path: Path,
    sets: tuple[str, ...],
    records: tuple[str, ...],
    reason: str,
    since: str,
    limit: int | None,
    with_sent_back: bool,
    schema: str,
    mended: bool,
    values: bool,
    follow: bool,
    replay: bool,
    execute: bool,
    why: str,
    other_groups: tuple[str, ...],
    by_key: bool,
    new_time: bool,
) -> int:
    """Show what was set aside as a dead letter, and whether it would be a row now.

    The oldest first, each record once, without those that were sent back. What is in a record is shown with
    --values only.

    With --replay: what would go back to its source topic, with its own key, value, headers and time, to its
    own source partition. Nothing is sent without --execute. What was sent is marked in the same transaction
    of Kafka's, on the topic `<dead-letter topic>.replayed`: each letter goes back once at most, also where
    this command is killed and run again. Only records that a commit of the table counts as rejects go back.
    """
    how = How(by_key=by_key, new_time=new_time)
    only_replay = by_key or new_time or bool(other_groups)
    _refuse_odd(replay, execute=execute, why=why, follow=follow, schema=schema, only_replay=only_replay)
    if schema:
        sets = (*sets, f"record.schema={_ddl(schema)}")
    config = load(config_path, sets=sets)
    choice = Choice(
        topics=frozenset(config.source.topics),
        records=tuple(map(parse_records, records)),
        reason=reason,
        since_ms=parse_since(since, wall_ms()) if since else None,
    )
    limit = limit if limit is not None or follow else LIMIT
    asked = Asked(
        choice=choice,
        limit=limit,
        with_sent_back=with_sent_back and not replay,
        mended=mended,
        known_groups=frozenset(other_groups),
    )
    outcome = Outcome(replay=replay, executed=execute, limit=limit)
    if not config.record.ddl:
        from lockstep.columns import with_columns

        config = with_columns(config)
    walk = Walk(config, checked_kafka(config), asked, outcome)
    try:
        if execute:
            by = By(pipeline=config.pipeline.id, operator=operator(), why=why.strip()[:REASON_CHARS_MAX])
            _show(output, walk.replayed(by, how), values=values)
        else:
            _show(output, walk.planned(how) if replay else walk.seen(follow=follow), values=values)
    except KeyboardInterrupt:
        if not follow:
            raise
    output.line(outcome.to_json(), outcome.to_text)
    return EXIT_FAILED if execute and outcome.not_sent else EXIT_WELL


def _refuse_odd(
    replay: bool, *, execute: bool, why: str, follow: bool, schema: str, only_replay: bool
) -> None:
    if (execute or only_replay) and not replay:
        raise ConfigError(
            "--execute, --by-key, --new-time and --other-group belong to --replay: add --replay, or leave "
            "them out"
        )
    if replay and follow:
        raise ConfigError("--replay sends what is there, and does not go on: leave --follow out")
    if execute and schema:
        raise ConfigError(
            "--schema only tries, and a run reads by record.schema: mend that, and send them back without "
            "--schema"
        )
    if execute and not why.strip():
        raise ConfigError("--execute needs --why TEXT, which is kept with your name beside what is sent back")


def _ddl(schema: str) -> str:
    """The schema itself, or what the file of this name holds."""
    path = Path(schema)
    try:
        if not path.is_file():
            return schema
        with path.open("rb") as file:
            content = file.read(SCHEMA_BYTES_MAX + 1)
        if len(content) > SCHEMA_BYTES_MAX:
            raise ConfigError(f"--schema {path}: more than {SCHEMA_BYTES_MAX:,} bytes are no schema")
        return content.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"--schema {path}: it is no UTF-8") from error
    except OSError:  # of a schema that is longer than a path may be
        return schema


def _show(output: Output, some: object, *, values: bool) -> None:
    width = output.console.width if output.console.is_terminal else None
    first = True
    for seen in some:  # type: ignore[attr-defined]
        if first:
            output.note(heading)
            first = False
        _line(output, seen, values=values, width=width)


def _line(output: Output, seen: Seen, *, values: bool, width: int | None) -> None:
    output.line(as_json(seen, values=values), lambda: as_text(seen, values=values, width=width))
