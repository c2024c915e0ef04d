"""`lockstep sweep`: list orphaned data files with the proof for each, and remove them."""

from __future__ import annotations

import click
from rich.console import Group, RenderableType
from rich.text import Text

from lockstep.commands.options import config_options, standard_options
from lockstep.config import Config
from lockstep.errors import EXIT_WELL, Failed
from lockstep.output import Output, readable_count, table
from table.errors import TableError
from table.kinds import table_kind
from table.orphans import FoundFile, SweepReport

SHOWN_MAX = 100
"""Files in the text form; the JSON form has all."""


@click.command("sweep")
@config_options(with_schema=False)
@click.option("--execute", is_flag=True, help="Remove the orphaned files that the dry run lists.")
@standard_options
def command(output: Output, config: Config, execute: bool) -> int:
    """List data files that Lockstep wrote and that no commit lists, with the proof for each.

    Nothing is removed without --execute. The driver of a run sweeps once a minute by itself, and removes
    nothing if that would be more than services.sweep_share of the files: look at the list, then use
    --execute. Files without a proof always stay. A run may be alive meanwhile.
    """
    try:
        sweeper = table_kind(config.table.format).sweeper(config.table_spec())
        if execute:
            report = sweeper.sweep(config.sweep_grace_ms, limit=False)
        else:
            report = sweeper.look(config.sweep_grace_ms)
    except TableError as error:
        raise Failed(str(error)) from error
    except OSError as error:
        raise Failed(f"table {config.table.path} could not be swept: {error.strerror or error}") from error
    output.document(to_json(report, executed=execute), lambda: to_text(report, executed=execute))
    return EXIT_WELL


def to_json(report: SweepReport, *, executed: bool) -> dict[str, object]:
    """Return the report for programs."""
    return {
        "executed": executed,
        "files": report.files,
        "removed": report.removed,
        "orphaned": [_file(one) for one in report.orphans],
        "unknown": [_file(one) for one in report.unknown],
    }


def _file(one: FoundFile) -> dict[str, str]:
    return {"file": one.path, "instant": one.instant, "proof": one.proof}


def to_text(report: SweepReport, *, executed: bool) -> RenderableType:
    """Return the report for people."""
    orphans, unknown = report.orphans, report.unknown
    seen = f"{readable_count(report.files)} data files"
    if not orphans and not unknown:
        return Text(f"No orphaned files among {seen}.", style="bold green")
    if executed:
        first = f"Removed {readable_count(report.removed)} of {readable_count(len(orphans))} orphaned files."
    else:
        first = (
            f"{readable_count(len(orphans))} orphaned files among {seen}. A dry run: nothing was removed. "
            "Remove them with --execute."
        )
    parts: list[RenderableType] = [Text(first, style="bold")]
    for title, files in (
        ("Orphaned", orphans),
        ("Kept, because the timeline does not know their instants", unknown),
    ):
        if files:
            rows = ((one.path, one.instant, one.proof) for one in files[:SHOWN_MAX])
            parts += ["", Text(f"{title}:"), table(("file", "instant", "why no commit lists it"), rows)]
            if len(files) > SHOWN_MAX:
                parts.append(Text(f"and {readable_count(len(files) - SHOWN_MAX)} more: --output json"))
    if unknown:
        parts += [
            "",
            Text(
                "A part of the timeline may be missing: compare .hoodie/timeline/history with a backup. "
                "These files may hold rows of commits."
            ),
        ]
    return Group(*parts)
