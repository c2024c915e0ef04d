"""`lockstep migrate`: another sink's configuration as a pipeline's, and its offsets as the table's."""

from __future__ import annotations

import os
from pathlib import Path

import click

from lockstep.commands.options import PATH, standard_options
from lockstep.config.sources import flatten
from lockstep.errors import EXIT_FAILED, EXIT_WELL, ConfigError
from lockstep.migrate.adopt import adopt
from lockstep.migrate.connect import with_worker
from lockstep.migrate.default_file_system import default_file_system
from lockstep.migrate.given import read_given, read_options
from lockstep.migrate.kinds import KINDS, recognised
from lockstep.migrate.report import Report
from lockstep.migrate.sheet import Sheet
from lockstep.migrate.written import document, problems_of, to_toml
from lockstep.output import Output


@click.command("migrate", context_settings={"ignore_unknown_options": False})
@click.option(
    "--from",
    "source",
    type=PATH,
    required=True,
    help="Their file: a connector's JSON, Strimzi's YAML, or properties.",
)
@click.option("--worker", type=PATH, help="The Connect worker's properties: brokers, converters, security.")
@click.option("--kind", type=click.Choice(list(KINDS)), help="What it is of, where it does not say so.")
@click.option("-o", "--out", type=PATH, help="The pipeline's file. Without it, it is printed.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="SETTING=VALUE",
    help="What theirs does not say, or says otherwise.",
)
@click.option("--adopt-offsets", "adopting", is_flag=True, help="Take over where theirs stands; a dry run.")
@click.option("-c", "--config", "config_path", type=PATH, help="With --adopt-offsets: the pipeline's file.")
@click.option("--yes", "executing", is_flag=True, help="With --adopt-offsets: do what the dry run shows.")
@click.option("--master", default="", help="The Spark master that commits the offsets.")
@click.option(
    "--conf", "confs", multiple=True, metavar="KEY=VALUE", help="A Spark property; may be repeated."
)
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="[-- HOODIESTREAMER'S OPTIONS]")
@standard_options
def command(
    output: Output,
    source: Path,
    worker: Path | None,
    kind: str | None,
    out: Path | None,
    force: bool,
    sets: tuple[str, ...],
    adopting: bool,
    config_path: Path | None,
    executing: bool,
    master: str,
    confs: tuple[str, ...],
    options: tuple[str, ...],
) -> int:
    """Read a configuration of Confluent's HDFS or S3 sink, of Hudi's or Iceberg's Kafka Connect sink, or of
    HoodieStreamer, and write a pipeline's file, with a report: what means the same, what differs, what has no
    equal.

    Of HoodieStreamer the options of its command line follow behind --, or the whole spark-submit. Nothing is
    asked of a broker, and nothing is started. Secrets become references; their values are neither written nor
    shown.

    With --adopt-offsets and the pipeline's file, -c: where theirs stands, by its consumer group, its files or
    its table's commits, and what the table's first commit would hold. With --yes it is made; a table that has
    offsets of this pipeline is refused, and so is a sink that still runs.
    """
    if adopting:
        if config_path is None:
            raise ConfigError("--adopt-offsets needs the pipeline's file: -c pipeline.toml")
        given, _ = their_properties(source, worker, options)
        plan = adopt(
            output, given, kind or "", config_path, sets, executing=executing, master=master, confs=confs
        )
        output.document(plan.to_json(executed=executing), lambda: plan.to_text(executed=executing))
        return EXIT_FAILED if plan.refusal else EXIT_WELL
    if config_path is not None or executing:
        raise ConfigError("-c and --yes mean nothing without --adopt-offsets; the pipeline's file is --out")
    report = translated(source, worker, kind, options, sets, str(out or ""))
    if out is not None:
        _write(out, report.toml, force=force)
    output.document(report.to_json(), report.to_text)
    return EXIT_WELL


def their_properties(
    source: Path, worker: Path | None, options: tuple[str, ...]
) -> tuple[dict[str, str], list[str]]:
    """All that they say, the command line's over the file's, and what of the worker's says nothing of it."""
    given = {**read_given(source), **read_options(options)}
    return with_worker(given, read_given(worker)) if worker is not None else (given, [])


def translated(
    source: Path,
    worker: Path | None,
    kind: str | None,
    options: tuple[str, ...],
    sets: tuple[str, ...],
    path: str,
) -> Report:
    """Raises `ConfigError` where it cannot be read, or nobody knows whose it is."""
    given, left = their_properties(source, worker, options)
    known = KINDS[recognised(given, kind or "")]
    sheet = Sheet(given, default_fs=default_file_system(given, os.environ))
    known.translate(sheet)
    if left:
        sheet.note(
            f"Of the worker's file these are Connect's own running, and were "
            f"not looked at: {', '.join(left)}."
        )
    made = document(sheet.settings, sets)
    problems = problems_of(made)
    for one in problems:  # what nobody has said: known by the file's own check
        if one.sentence.startswith("missing"):
            sheet.open.setdefault(one.settings[0], one.sentence.removeprefix("missing; "))
    said = {f"{section}.{name}" for section, values in made.items() for name, _ in flatten(values)}
    said |= {f"{section}.{name}" for section, values in made.items() for name in values}
    missing = {name: what for name, what in sheet.open.items() if name not in said}
    if "record.schema" in missing:
        missing["record.schema"] = f"{missing['record.schema']}; lockstep infer -c … looks at records of JSON"
    return Report(
        what=known.what,
        path=path,
        lines=sheet.lines,
        missing=missing,
        notes=[*sheet.notes, known.twice],
        problems=[one for one in problems if one.settings[0] not in missing],
        toml=to_toml(
            made, missing, [f"Made by lockstep migrate of {source.name}, which is of {known.what}."]
        ),
    )


def _write(out: Path, text: str, *, force: bool) -> None:
    """Only its user may read it: what theirs was may have been so for a reason."""
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if force else os.O_EXCL)
    try:
        with os.fdopen(os.open(out, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError(f"{out} is there: name another with --out, or replace it with --force") from None
    except OSError as error:
        raise ConfigError(f"{out} cannot be written: {error.strerror}; name another with --out") from error
