"""`lockstep infer`: a sample of the source topics, and the schema that it would go into."""

from __future__ import annotations

from pathlib import Path

import click
from rich.text import Text

from lockstep.commands.options import PATH, SET_HELP, standard_options
from lockstep.config import load
from lockstep.config.kafka import checked_kafka
from lockstep.config.values import check_topic
from lockstep.errors import EXIT_WELL, ConfigError
from lockstep.infer.infer import infer, told_or_not
from lockstep.infer.report import Inferred, Told
from lockstep.infer.sample import Limits
from lockstep.output import Output

RECORDS = 10_000
RECORDS_MAX = 1_000_000
PLACEHOLDERS = {
    "record.schema": "nothing_yet STRING",
    "table.path": "file:///nothing/yet",
    "table.name": "nothing_yet",
}
"""What a file may not say yet, and nobody looks at here."""


@click.command("infer")
@click.option("-c", "--config", "config_path", type=PATH, required=True, help="The pipeline's TOML file.")
@click.option("--set", "sets", multiple=True, metavar="SETTING=VALUE", help=SET_HELP)
@click.option(
    "--records",
    type=click.IntRange(1, RECORDS_MAX),
    default=RECORDS,
    show_default=True,
    help="So many at most, of each source partition about as many.",
)
@click.option("--topic", "topics", multiple=True, help="Not source.topics, but this; may be repeated.")
@click.option("--oldest", is_flag=True, help="The first records that are there, not the last.")
@standard_options
def command(
    output: Output,
    config_path: Path,
    sets: tuple[str, ...],
    records: int,
    topics: tuple[str, ...],
    oldest: bool,
) -> int:
    """Read some records of the source topics, and say which columns they would go into.

    What is printed can be pasted into the pipeline's file, where record.schema, and all of [table], may be
    missing until then. Of what records hold nothing is shown but types, and how long values are. At most
    64 MB are read, in at most 30 s, with no consumer group, and nothing is committed.

    Records are objects in JSON, behind a schema registry's id as well (json_schema).

    Of Avro, Protobuf and json_schema no record is read where the registry says the columns: they are
    those of its newest schemas. Where it does not, records of json_schema are.
    """
    config = load(config_path, sets=sets, defaults=PLACEHOLDERS, with_schema=False)
    for topic in topics:
        try:
            check_topic(topic)
        except ValueError as error:
            raise ConfigError(f"--topic: {error}") from None
    if topics:
        config = config.model_copy(update={"source": config.source.model_copy(update={"topics": topics})})
    limits = Limits(records=records, oldest=oldest)
    found: Told | Inferred
    by_registry, why_not = told_or_not(config)
    if by_registry is not None:
        found = by_registry
    else:
        found = infer(config, checked_kafka(config), config.source.topics, limits)
        found.proposal.notes.extend(filter(None, [why_not.rstrip(".")]))
    output.document(found.to_json(), lambda: Text(found.to_text(), no_wrap=True, overflow="ignore"))
    return EXIT_WELL
