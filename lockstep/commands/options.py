"""What commands have in common: `--output`, the log level, and the configuration."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from control_topic.logs import held_lines, say
from control_topic.quiet import plain_logs, quiet_kafka_clients
from lockstep.config import Config, load
from lockstep.output import OUTPUTS

Function = TypeVar("Function", bound=Callable[..., Any])

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
LOG_TIME_FORMAT = "%H:%M:%S"
VERBOSITY = "lockstep.verbosity"
LEVELS = {-1: logging.ERROR, 0: logging.WARNING, 1: logging.INFO, 2: logging.DEBUG}


def standard_options(function: Function) -> Function:
    """`--output`, `-v`, `-q`, `--debug`. The command is given `output: Output`."""

    @click.option(
        "--output",
        "output_form",
        type=click.Choice(list(OUTPUTS)),
        default="text",
        show_default=True,
        help="Results for people or for programs.",
    )
    @click.option("-v", "--verbose", count=True, help="More log lines on stderr; twice for all.")
    @click.option("-q", "--quiet", is_flag=True, help="Only errors on stderr.")
    @click.option("--debug", is_flag=True, help="All log lines, and stack traces of errors.")
    @functools.wraps(function)
    def wrapped(*, output_form: str, verbose: int, quiet: bool, debug: bool, **arguments: Any) -> Any:
        level = 2 if debug else -1 if quiet else min(verbose, 2)
        click.get_current_context().meta[VERBOSITY] = level
        configure_logging(level)
        return function(output=OUTPUTS[output_form](), **arguments)

    return wrapped  # type: ignore[return-value]


def local_server_options(port: int) -> Callable[[Function], Function]:
    """`--port`, this one where nobody says another, and `--data`: of a server that is run for trying out."""

    def decorate(function: Function) -> Function:
        at = click.option(
            "--port", type=click.IntRange(1, 65_535), default=port, show_default=True, help="On loopback."
        )
        folder = click.option(
            "--data",
            type=PATH,
            default=None,
            help="Folder of its data; kept. Default: below Lockstep's cache.",
        )
        return at(folder(function))

    return decorate


def config_options(*, with_schema: bool = True) -> Callable[[Function], Function]:
    """`-c` and `--set`. The command is given `config: Config`.

    `with_schema=False`: the schema is not parsed, for commands that never touch the table.
    """

    def decorate(function: Function) -> Function:
        @click.option(
            "-c", "--config", "config_path", type=PATH, required=True, help="The pipeline's TOML file."
        )
        @click.option("--set", "sets", multiple=True, metavar="SETTING=VALUE", help=SET_HELP)
        @functools.wraps(function)
        def wrapped(*, config_path: Path, sets: tuple[str, ...], **arguments: Any) -> Any:
            config: Config = load(config_path, sets=sets, with_schema=with_schema)
            return function(config=config, **arguments)

        return wrapped  # type: ignore[return-value]

    return decorate


PATH = click.Path(path_type=Path)
SET_HELP = "Overrides the file and the environment: --set transaction.interval=5s. May be repeated."


def verbosity() -> int:
    """What `-v`, `-q` and `--debug` of the running command amount to: from -1 to 2."""
    level: int = click.get_current_context().meta[VERBOSITY]
    return level


def configure_logging(verbosity: int) -> None:
    """Log lines to stderr: errors (-1), warnings (0), what our own packages say (1), everything (2).

    Those that have waited come first.
    """
    waiting = held_lines()
    logging.basicConfig(level=logging.WARNING, format=LOG_FORMAT, datefmt=LOG_TIME_FORMAT, force=True)
    plain_logs()
    quiet_kafka_clients()
    level = LEVELS[verbosity]
    for name in ("lockstep", "table", "control_topic", "coordinator", "participant"):
        logging.getLogger(name).setLevel(level)
    logging.getLogger().setLevel(logging.DEBUG if verbosity == 2 else max(level, logging.WARNING))
    # py4j logs every call of the JVM.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    say(waiting)
