"""Ends this process and its JVM when the JVM may hold the table lock and Python does not answer.

Hudi calls back into Python inside the table lock. Were Python stopped there (SIGSTOP, a frozen container, a
hang), the lock would be held for as long as it lasts. A guardian, which is a process of its own and no part
of the terminal's job, hears of it over a pipe and kills both. The pipe's alphabet, one byte each: `a` armed,
`d` disarmed, `e` inside the callback, `l` out of it, `.` alive. The end of the pipe ends the guardian.

The guardian counts its own seconds, not the clock's, so that a suspended machine wakes up unharmed.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

TICK_S = 1.0
BEAT_S = 0.5
SILENCE_S = 20
CALLBACK_S = 30


class Watchdog:
    """`silence_s`: how long Python may be mute while armed; `callback_s`: how long the callback may take."""

    def __init__(self, jvm_pid: int, *, silence_s: int = SILENCE_S, callback_s: int = CALLBACK_S) -> None:
        self._limits = (jvm_pid, silence_s, callback_s)
        self._guardian: subprocess.Popen[bytes] | None = None
        self._armed = threading.Event()
        self._closed = False
        threading.Thread(target=self._beat, name="watchdog", daemon=True).start()

    @contextlib.contextmanager
    def armed(self) -> Iterator[None]:
        """While the JVM may take the table lock. Starts a guardian where there is none."""
        self._ensure_guardian()
        self._tell(b"a")
        self._armed.set()
        try:
            yield
        finally:
            self._armed.clear()
            self._tell(b"d")

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """While Python answers the callback. Takes no lock."""
        self._tell(b"e")
        try:
            yield
        finally:
            self._tell(b"l")

    def close(self) -> None:
        """End the guardian."""
        self._closed = True
        self._armed.set()
        guardian, self._guardian = self._guardian, None
        if guardian is not None and guardian.stdin is not None:
            guardian.stdin.close()
            guardian.wait()

    def _ensure_guardian(self) -> None:
        if self._guardian is not None and self._guardian.poll() is None:
            return
        root = str(Path(__file__).resolve().parents[2])
        self._guardian = subprocess.Popen(
            [sys.executable, "-m", __name__, str(os.getpid()), *(str(limit) for limit in self._limits)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,  # whoever reads our output to its end must not wait for a guardian
            bufsize=0,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([root, *filter(None, sys.path)])},
        )
        assert self._guardian.stdin is not None
        os.set_blocking(self._guardian.stdin.fileno(), False)  # a stopped guardian must not stop us

    def _tell(self, byte: bytes) -> None:
        guardian = self._guardian
        if guardian is None or guardian.stdin is None:
            return
        # A guardian that died is replaced before the next commit; this one goes on without it.
        with contextlib.suppress(OSError, ValueError):
            guardian.stdin.write(byte)

    def _beat(self) -> None:
        pause = threading.Event()
        while not self._closed:
            self._armed.wait()
            self._tell(b".")
            pause.wait(BEAT_S)


def guard(python_pid: int, jvm_pid: int, silence_s: int, callback_s: int) -> None:
    """The guardian's life: read the pipe on stdin, count seconds, kill once, exit when the pipe ends."""
    armed = inside = False
    silent_s = inside_s = 0.0
    while True:
        readable, _, _ = select.select([0], [], [], TICK_S)
        told = os.read(0, 4096) if readable else None
        if told == b"":
            return
        silent_s = 0.0 if told else silent_s + TICK_S
        inside_s += BEAT_S if told else TICK_S  # while Python beats, that is how often something is told
        for byte in (told or b"").decode("ascii"):
            armed = byte == "a" or (armed and byte != "d")
            if byte in "el":
                inside, inside_s = byte == "e", 0.0
        if armed and (silent_s >= silence_s or (inside and inside_s >= callback_s)):
            _kill(python_pid, jvm_pid)
            return


def _kill(python_pid: int, jvm_pid: int) -> None:
    """The JVM first: it holds the lock. Nobody is killed whose place another process has taken."""
    if os.getppid() != python_pid:
        return
    sys.stderr.write(
        f"lockstep: Python ({python_pid}) does not answer while the JVM ({jvm_pid}) may hold the table lock: "
        "both are killed; nothing is lost, start again\n"
    )
    for pid in (jvm_pid, python_pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    guard(*(int(argument) for argument in sys.argv[1:5]))
