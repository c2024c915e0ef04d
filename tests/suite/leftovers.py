"""Processes that a run of the tests has left behind: found by a mark in the environment that all inherit."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

MARK = "LOCKSTEP_TESTS_RUN"
POLL_S = 0.1
KILLED_MAX_S = 10.0


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    command: str


def marked(run: str) -> list[Process]:
    """Living processes of this run, without this one."""
    wanted = f"{MARK}={run}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted not in (folder / "environ").read_bytes().split(b"\0"):
                continue
            state = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (OSError, IndexError):  # it has ended, or is another user's
            continue
        if int(folder.name) != os.getpid() and state not in "ZX":
            found.append(Process(pid=int(folder.name), command=command.strip()))
    return found


def sweep(run: str, *, patience_s: float) -> list[Process]:
    """Those that do not end by themselves within `patience_s`; they are killed."""
    until = time.monotonic() + patience_s
    while (left := marked(run)) and time.monotonic() < until:
        time.sleep(POLL_S)
    for process in left:
        try:
            os.kill(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    until = time.monotonic() + KILLED_MAX_S
    while left and marked(run) and time.monotonic() < until:
        time.sleep(POLL_S)
    return left
