"""`lockstep validate`."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict
from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from lockstep.commands.options import config_options, standard_options
from lockstep.config import Config, resolve_kafka
from lockstep.errors import EXIT_FAILED, EXIT_WELL, Failed
from lockstep.output import Output
from lockstep.short_job import run_short_job
from lockstep.validate import Check, check_kafka

COLOURS = {"ok": "green", "warning": "yellow", "failed": "red"}


@click.command("validate")
@config_options()
@click.option("--master", help="The Spark master that the run would use.")
@click.option(
    "--conf", "confs", multiple=True, metavar="KEY=VALUE", help="A Spark property; may be repeated."
)
@standard_options
def command(config: Config, output: Output, master: str | None, confs: tuple[str, ...]) -> int:
    """Check configuration, broker, topics, table, Spark slots and writes; start nothing.

    Exit code 0 when a run would work, 1 when it would not.
    """
    checks = [
        Check(name="configuration", verdict="ok", detail="valid"),
        *check_kafka(config, resolve_kafka(config)),
    ]
    checks += _in_spark(config, master, confs)
    failed = [check for check in checks if check.verdict == "failed"]
    document = {"valid": not failed, "checks": [asdict(check) for check in checks]}
    output.document(document, lambda: _table(checks))
    return EXIT_FAILED if failed else EXIT_WELL


def _in_spark(config: Config, master: str | None, confs: tuple[str, ...]) -> list[Check]:
    """The checks of a short Spark job."""
    with tempfile.TemporaryDirectory(prefix="lockstep-validate-") as folder:
        report = Path(folder) / "report.json"
        status, last = run_short_job(
            config, Path(folder), ["--validate", str(report)], master=master or "", confs=confs
        )
        if not report.exists():
            raise Failed(f"the Spark job did not start (exit code {status}): {last}")
        return [Check(**check) for check in json.loads(report.read_text(encoding="utf-8"))]


def _table(checks: list[Check]) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in checks:
        table.add_row(Text(check.verdict, style=COLOURS[check.verdict]), check.name, check.detail)
    return table
