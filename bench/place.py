"""Where a bench works, and that it ends what it started however it ends."""

from __future__ import annotations

import contextlib
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import Console

from control_topic.quiet import quiet_kafka_clients
from lockstep.errors import Failed, LockstepError, sentence


def prepare() -> None:
    """SIGTERM ends this process as Ctrl-C does: through everybody's `finally`."""
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    quiet_kafka_clients()


def wide_console() -> Console:
    """Standard output; wide enough for the tables where it is no terminal."""
    return Console(width=None if sys.stdout.isatty() else 160)


def typed(module: str) -> str:
    """What was typed, for the evidence."""
    return f"python -m {module} {' '.join(sys.argv[1:])}".strip()


@contextlib.contextmanager
def sentences() -> Iterator[None]:
    """What goes wrong inside is said as the command line says it, without a stack trace."""
    try:
        yield
    except LockstepError as error:
        raise click.ClickException(sentence(error)) from error
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@contextlib.contextmanager
def working_folder(given: Path | None) -> Iterator[Path]:
    """The folder that was given, which must be empty and stays, or a temporary one.

    A temporary one is removed after work that went well; else it stays with its logs, which errors name.
    """
    if given is not None:
        if given.exists() and any(given.iterdir()):
            raise Failed(f"The folder {given} is not empty: give another as --folder.")
        given.mkdir(parents=True, exist_ok=True)
        yield given.resolve()
        return
    made = Path(tempfile.mkdtemp(prefix="lockstep-bench-"))
    yield made
    shutil.rmtree(made, ignore_errors=True)
