"""`lockstep verify`: does the table hold every committed record once, and no other?"""

from __future__ import annotations

import click

from lockstep.commands.options import config_options, standard_options
from lockstep.config import Config
from lockstep.config.kafka import checked_kafka
from lockstep.errors import EXIT_FAILED, EXIT_NOT_EXACT, EXIT_WELL
from lockstep.output import Output
from lockstep.verify import SourceLog, verify_table

EXIT_CODES = {True: EXIT_WELL, False: EXIT_NOT_EXACT, None: EXIT_FAILED}


@click.command("verify")
@config_options(with_schema=False)
@click.option(
    "--log-timeout",
    "log_timeout_s",
    type=click.IntRange(min=1),
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="How long offsets without a row may be looked up in the source topics.",
)
@standard_options
def command(output: Output, config: Config, log_timeout_s: int) -> int:
    """Check that the table holds every committed record exactly once.

    Reads the table's rows and its timeline; the source topics only where an offset has no row, since a log
    has gaps of its own. Exit code 0: exact; 4: not exact; 1: not checkable, and the result says why.
    """
    source_log = SourceLog(checked_kafka(config), timeout_s=log_timeout_s)
    report = verify_table(
        config.table.path,
        config.pipeline.id,
        source_log,
        kind=config.table.format,
        storage=config.store_settings(),
    )
    output.document(report.to_json(), report.to_text)
    return EXIT_CODES[report.exact]
