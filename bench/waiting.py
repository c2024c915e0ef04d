"""Bounded waits, and the end of processes that the bench started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from lockstep.errors import Failed

T = TypeVar("T")

POLL_S = 0.1
END_S = 30.0
KILL_S = 10.0
TAIL_CHARACTERS = 3_000


def await_that(
    what: str,
    probe: Callable[[], T | None],
    *,
    timeout_s: float,
    poll_s: float = POLL_S,
    process: subprocess.Popen[bytes] | None = None,
    log: Path | None = None,
) -> T:
    """Ask until the probe answers something. Raises `Failed`, with the log's end, when time is up.

    `process`: whose end, before there is an answer, is a failure.
    """
    until = time.monotonic() + timeout_s
    while True:
        answer = probe()
        if answer:
            return answer
        if process is not None and process.poll() is not None:
            raise Failed(f"There was no {what}: its process ended with {process.returncode}.{tail(log)}")
        if time.monotonic() > until:
            raise Failed(f"There was no {what} within {timeout_s:.0f} s.{tail(log)}")
        time.sleep(poll_s)


def finish(what: str, process: subprocess.Popen[bytes], *, timeout_s: float, log: Path) -> None:
    """Wait for it to end well. Raises `Failed`, with the log's end, where it does not."""
    try:
        status = process.wait(timeout_s)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{what} did not end within {timeout_s:.0f} s.{tail(log)}") from error
    if status != 0:
        raise Failed(f"{what} ended with {status}.{tail(log)}")


def end(process: subprocess.Popen[bytes], *, timeout_s: float = END_S) -> None:
    """Ask it to end (SIGTERM), by force where that takes longer. Nothing where it has ended."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            _kill_tree(process)


def _kill_tree(process: subprocess.Popen[bytes]) -> None:
    import psutil

    victims = []
    with contextlib.suppress(psutil.Error):
        victims = psutil.Process(process.pid).children(recursive=True)
    for victim in victims:
        with contextlib.suppress(psutil.Error):
            victim.kill()
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGKILL)
    process.wait(KILL_S)


def tail(log: Path | None) -> str:
    """The end of a log, as more lines of an error."""
    if log is None or not log.exists():
        return ""
    return f" {log} ends with:\n{log.read_text(encoding='utf-8', errors='replace')[-TAIL_CHARACTERS:]}"
