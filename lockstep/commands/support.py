"""`lockstep support`: what a colleague would ask for, in one archive."""

from __future__ import annotations

import os
import stat
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.text import Text

from control_topic.spelling import one_line
from lockstep.commands.options import PATH, config_options, standard_options
from lockstep.config import Config
from lockstep.driver.rundir import read_run_file
from lockstep.errors import EXIT_WELL, ConfigError
from lockstep.output import Output, readable_size, table
from lockstep.support.archive import Archive, writing
from lockstep.support.collect import collect
from lockstep.support.parts import log_parts, parts
from lockstep.support.redaction import Redactor, secrets_of

LOGS_MAX = 4
LOOK_THROUGH = "Look through it before you send it."


@click.command("support")
@config_options(with_schema=False)
@click.option("-o", "--file", "path", type=PATH, help="Where to. Default: lockstep-support-… in this folder.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@click.option(
    "--log",
    "logs",
    type=PATH,
    multiple=True,
    help=f"A log of the run, its last 20 MB; may be repeated, {LOGS_MAX} times at most.",
)
@standard_options
def command(output: Output, config: Config, path: Path | None, force: bool, logs: tuple[Path, ...]) -> int:
    """Put what a colleague would ask for into one archive: configuration, status, offsets, control topic,
    timeline, versions, and logs.

    Secrets of the configuration are in none of it. What cannot be had is listed, with why: a broker that is
    away costs half a minute or so, a table a minute.
    """
    if len(logs) > LOGS_MAX:
        raise ConfigError(f"--log is given {len(logs)} times, at most {LOGS_MAX} are taken")
    now = datetime.now(UTC)
    path = path or Path(f"lockstep-support-{config.pipeline.id[:60]}-{now:%Y%m%dT%H%M%SZ}.zip")
    if force and path.exists() and not stat.S_ISREG(path.stat().st_mode):
        raise ConfigError(f"{path} is no file: name another with -o")
    run = read_run_file(config.pipeline.id)
    secrets = secrets_of(config, os.environ, more=(run.token,) if run is not None else ())
    with writing(path, force=force) as file:
        archive = Archive(file, Redactor(secrets))
        collect(archive, parts(config), log_parts(logs), secrets)
        archive.finish(
            f"Lockstep {version('lockstep')}, pipeline {config.pipeline.id}, {now:%Y-%m-%d %H:%M:%S} UTC"
        )
    output.document(_document(path, archive), lambda: _text(path, archive))
    return EXIT_WELL


def _document(path: Path, archive: Archive) -> dict[str, Any]:
    return {
        "file": str(path),
        "size_bytes": path.stat().st_size,
        "members": [asdict(one) for one in archive.members],
        "missing": [asdict(one) for one in archive.absent],
    }


def _text(path: Path, archive: Archive) -> RenderableType:
    members = table(
        ("member", "size", "what"),
        [(one.name, readable_size(one.size_bytes), one.what) for one in archive.members],
        right=("size",),
    )
    lines: list[RenderableType] = [members, ""]
    if archive.absent:
        lines += [Text("Could not be had, or not whole:", style="bold")]
        lines += [Text(one_line(f"  {one.name}: {one.why}")) for one in archive.absent]
        lines += [""]
    lines += [Text(f"{path}, {readable_size(path.stat().st_size)}. {LOOK_THROUGH}", style="bold")]
    return Group(*lines)
