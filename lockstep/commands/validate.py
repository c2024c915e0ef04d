"""`lockstep validate`."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Group, RenderableType
from rich.text import Text

from lockstep.commands.options import config_options, standard_options
from lockstep.config import Config, resolve_kafka
from lockstep.errors import EXIT_FAILED, EXIT_WELL, Failed
from lockstep.launch.short_job import run_short_job
from lockstep.output import Output
from lockstep.validate import BROKER, Check, check_hooks, check_kafka, check_storage
from lockstep.validate_records import check_records
from lockstep.validate_schemas import check_columns, check_schemas

COLOURS = {"ok": "green", "warning": "yellow", "failed": "red"}


@click.command("validate")
@config_options()
@click.option("--master", help="The Spark master that the run would use.")
@click.option(
    "--conf", "confs", multiple=True, metavar="KEY=VALUE", help="A Spark property; may be repeated."
)
@standard_options
def command(config: Config, output: Output, master: str | None, confs: tuple[str, ...]) -> int:
    """Check configuration, broker, topics, records, table, Spark slots and writes; start nothing.

    Exit code 0 when a run would work, 1 when it would not.
    """
    kafka = resolve_kafka(config)
    checks = [
        Check(name="configuration", verdict="ok", detail="valid"),
        *check_kafka(config, kafka),
        check_storage(config),
    ]
    columns, begun = check_columns(config)
    checks += columns
    if begun is not None:
        checks += check_schemas(begun)
        if any(check.name == BROKER for check in checks):
            checks.append(check_records(begun, kafka))
        checks += [*check_hooks(begun, kafka), *_in_spark(begun, master, confs)]
    failed = [check for check in checks if check.verdict == "failed"]
    document = {"valid": not failed, "checks": [asdict(check) for check in checks]}
    output.document(document, lambda: _text(checks))
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


def _text(checks: list[Check]) -> RenderableType:
    """The verdict first; then a line for every check, its sentence below where it is not simply well."""
    failed = sum(check.verdict == "failed" for check in checks)
    verdict = "A run would work." if not failed else f"A run would not work: {failed} failed."
    lines = [Text(verdict, style="bold green" if not failed else "bold red"), Text()]
    for check in checks:
        line = Text(f"{check.verdict:8}", style=COLOURS[check.verdict])
        line.append(f"{check.name}: ", style="bold")
        line.append(check.detail, style="default")
        lines.append(line)
    return Group(*lines)
