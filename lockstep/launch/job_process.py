"""Runs spark-submit as a child: signals reach it exactly once, and its exit code is the job's.

The child has a process group of its own, so that a Ctrl-C in the terminal reaches only this process, which
passes it on to the JVM. The first signal asks the job to commit and leave, the second to leave at once;
after that it has `FORCED_AFTER_S`.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from lockstep.errors import EXIT_INTERRUPTED, EXIT_MEANINGS, Failed
from table.hudi.driver.watchdog import LAST_WORDS

FORCED_AFTER_S = 15.0
POLL_S = 0.2
STDERR = 2
"""spark-submit writes what the Python driver logs to its stdout, which is for results."""

PR_SET_PDEATHSIG = 1
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def launch(command: Callable[[Path], Sequence[str]], environment: Mapping[str, str]) -> int:
    """Run what `command` composes for an exit-code file; the job's exit code. Only from the main thread.

    A JVM that was sent a signal ends with a code of its own, so the job leaves its code in that file.
    Raises `Failed` where spark-submit ended without the job having said how, with the last words of its
    guardian (`table.hudi.driver.watchdog`) where that ended it.
    """
    with tempfile.TemporaryDirectory(prefix="lockstep-run-") as folder:
        exit_code_file, last_words = Path(folder) / "exit-code", Path(folder) / "last-words"
        environment = {**environment, LAST_WORDS: str(last_words)}
        status, signalled = _supervise(command(exit_code_file), environment)
        left, why = left_in(exit_code_file), left_in(last_words)
    if left.isdecimal() and int(left) in EXIT_MEANINGS:
        return int(left)
    if signalled:
        return EXIT_INTERRUPTED
    if status in EXIT_MEANINGS and status > 1:
        return status
    if why:
        raise Failed(f"spark-submit ended with {status}: {why}")
    raise Failed(
        f"spark-submit ended with {status} before the job could say how it went: "
        "what it wrote above says why; -v and --debug show more"
    )


def left_in(file: Path) -> str:
    """What a job has left there; empty where it left nothing."""
    return file.read_text(encoding="utf-8").strip() if file.exists() else ""


def _supervise(command: Sequence[str], environment: Mapping[str, str]) -> tuple[int, bool]:
    """The child's status, 128 + n where signal n ended it, and whether it was asked to end."""
    received: list[float] = []
    early: list[int] = []
    process: subprocess.Popen[bytes] | None = None

    def pass_on(number: int, _frame: FrameType | None) -> None:
        received.append(time.monotonic())
        wanted = signal.SIGTERM if number == signal.SIGHUP else number
        if process is None:
            early.append(wanted)
        else:
            _ask(process, wanted)

    with _handling(pass_on):
        process = subprocess.Popen(
            command,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=STDERR,
            process_group=0,
            preexec_fn=_end_with_parent(),
        )
        for (
            number
        ) in early:  # while there was no process to ask: the job may be ready by now, and once is once
            _ask(process, number)
        while True:
            try:
                status = process.wait(POLL_S)
                break
            except subprocess.TimeoutExpired:
                late = len(received) > 1 and time.monotonic() - received[1] > FORCED_AFTER_S
                if late or len(received) > 2:
                    _signal_group(process, signal.SIGKILL)
    if received:  # a JVM that had not heard of the job's handlers yet may leave its Python behind
        _signal_group(process, signal.SIGTERM)
    return (status if status >= 0 else 128 - status), bool(received)


def _ask(process: subprocess.Popen[bytes], number: int) -> None:
    """Signal the JVM alone, which tells Python.

    Hadoop without its native library runs `chmod` for every file that it makes. Such a child, killed in the
    middle by a signal to the whole group, leaves an empty lock file, which is waited for until it expires.
    """
    try:
        os.kill(process.pid, number)
    except ProcessLookupError:
        return  # it has just ended


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return  # it has just ended


@contextmanager
def _handling(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    previous = {number: signal.signal(number, handler) for number in SIGNALS}
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before)


def _end_with_parent() -> Callable[[], None] | None:
    """Where this process is killed, Linux asks spark-submit to end: the job commits and leaves."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)

    def request() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)

    return request
