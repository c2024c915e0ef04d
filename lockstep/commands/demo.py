"""`lockstep demo`: watch it work, with workers killed on the way."""

from __future__ import annotations

import click

from lockstep.commands.options import standard_options
from lockstep.config.units import parse_duration_ms
from lockstep.demo.formats import FORMATS
from lockstep.demo.lake import FILE, STORES
from lockstep.errors import EXIT_NOT_EXACT, EXIT_WELL
from lockstep.output import Output

RECORDS_MAX = 100_000_000
RECORDS = 1_000_000
CDC_RECORDS = 400_000
INTERVAL_MS = (100, 30_000)


def check_interval(_context: click.Context, _parameter: click.Parameter, interval: str) -> str:
    """The interval as given. Raises `click.BadParameter`."""
    try:
        interval_ms = parse_duration_ms(interval)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    if not INTERVAL_MS[0] <= interval_ms <= INTERVAL_MS[1]:
        raise click.BadParameter(f"{interval} is not between 100ms and 30s")
    return interval


@click.command("demo")
@click.option(
    "--records",
    type=click.IntRange(1, RECORDS_MAX),
    default=None,
    show_default=f"{RECORDS:,}; with --cdc {CDC_RECORDS:,}",
    help="How many events to produce.",
)
@click.option(
    "--interval",
    default="2s",
    show_default=True,
    callback=check_interval,
    help="How often records are committed.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default=FORMATS[0],
    show_default=True,
    help="Of events: avro starts a schema registry besides.",
)
@click.option("--cdc", is_flag=True, help="Change events of Debezium's for a table of orders, upserted.")
@click.option(
    "--store",
    type=click.Choice(STORES),
    default=FILE,
    show_default=True,
    help="Where the table is: in a folder, on an S3 server or on HDFS, which is started for it.",
)
@click.option("--keep", is_flag=True, help="Keep broker data, table and configuration, below .demo/.")
@standard_options
def command(
    output: Output, records: int | None, interval: str, form: str, cdc: bool, store: str, keep: bool
) -> int:
    """Watch it work on this machine: a broker, a job under spark-submit, workers killed, a proof.

    Produces events while the job runs, kills one worker and later the one that holds the coordinator
    with SIGKILL, waits until everything is committed, stops the job, and has Spark SQL, the hudi reader and
    lockstep verify count the table.

    With --cdc the events are changes to a shop's orders, as Debezium's PostgreSQL connector tells them: a
    snapshot first, then inserts, updates and deletes, with compactions on the way and one worker killed. In
    the end Spark SQL's rows are compared with the orders as they must be, and one order's history is shown.

    While the job runs its page can be looked at in a browser: the demo says where. With --keep, on a
    terminal, it offers to show it again in the end.

    Exit code 4 where anything is not exact.
    """
    from lockstep.demo.cdc import EVENTS_MAX, EVENTS_MIN
    from lockstep.demo.page import offer_page
    from lockstep.demo.run import DemoSettings, run_demo

    records = records or (CDC_RECORDS if cdc else RECORDS)
    if cdc and not EVENTS_MIN <= records <= EVENTS_MAX:
        raise click.BadParameter(f"with --cdc from {EVENTS_MIN} to {EVENTS_MAX}", param_hint="'--records'")
    if cdc and form != FORMATS[0]:
        raise click.BadParameter("with --cdc change events are JSON", param_hint="'--format'")
    settings = DemoSettings(records=records, interval=interval, keep=keep, cdc=cdc, store=store, form=form)
    report = run_demo(settings, output)
    output.document(report.to_json(), report.to_text)
    offer_page(report, output)
    return EXIT_WELL if report.exact else EXIT_NOT_EXACT
