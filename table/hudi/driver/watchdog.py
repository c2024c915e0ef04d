"""Ends this process and its JVM when the JVM may hold the table lock and Python does not answer, or when it
holds that lock for nearly as long as the lock lives.

Hudi calls back into Python inside the table lock. Were Python stopped there (SIGSTOP, a frozen container, a
hang), the lock would be held for as long as it lasts. Were the JVM stopped behind the check (SIGSTOP, a long
garbage collection, swap, storage that does not answer), the lock would expire under it, somebody else would
go on from there, and what the JVM then still writes to the metadata table would be of an instant that is no
more. A guardian, which is a process of its own and no part of the terminal's job, hears of it over a pipe and
kills both. The pipe's alphabet, one byte each: `a` armed, `h` the lock is held, `e` inside the callback (and
so is it), `l` out of it, `d` disarmed, `.` alive. The end of the pipe ends the guardian.

The lock is given back before Hudi's call ends, which may clean or cluster for long after it: so the guardian
looks at the lock file itself, too.

For silence and the callback the guardian counts its own seconds, not the clock's, so that a suspended machine
wakes up unharmed. How long the lock is held it measures with a clock that goes on meanwhile: a suspension
that is longer than the lock lives has lost it to the others, and only who holds no lock sleeps through one.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

EXPIRE = "hoodie.write.lock.filesystem.expire"
CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
TICK_S = 1.0
BEAT_S = 0.5
SILENCE_S = 20
CALLBACK_S = 30
LOCK_MARGIN_S = 20
"""So long before the lock expires nobody of ours holds it any more: the guardian hears of it a little later
than it was taken, looks once a second, and who is killed may have a last write under way."""
LAST_WORDS = "LOCKSTEP_LAST_WORDS"
"""The variable of the environment that names a file for what the guardian says."""
STANDS = "the JVM was stopped, or storage is too slow"
SUSPENDED_S = 5
"""Between two looks, of a second each: what has become of the lock meanwhile nobody knows."""


def held_s(expire_s: int) -> int:
    """How long a lock may be held that expires after so many seconds; 0: for ever, as it never expires."""
    return max(expire_s - LOCK_MARGIN_S, 0)


class Watchdog:
    """`silence_s`: how long Python may be mute while armed; `callback_s`: how long the callback may take.

    `held_s`: how long the lock may be held; 0: for ever. `lock`: its file, empty where it is held until the
    watchdog is disarmed.
    """

    def __init__(
        self,
        jvm_pid: int,
        *,
        silence_s: int = SILENCE_S,
        callback_s: int = CALLBACK_S,
        held_s: int = 0,
        lock: str = "",
    ) -> None:
        self._told = (jvm_pid, silence_s, callback_s)
        self._bound = (held_s, lock)
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

    def bound(self, held_s: int, lock: str) -> None:
        """Change how long the lock may be held, and which file it is. Not while armed."""
        if (held_s, lock) != self._bound:
            self._bound = (held_s, lock)
            self._end_guardian()

    def holding(self) -> None:
        """The JVM holds the table lock by now, and until it is disarmed."""
        self._tell(b"h")

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
        self._end_guardian()

    def _end_guardian(self) -> None:
        guardian, self._guardian = self._guardian, None
        if guardian is not None and guardian.stdin is not None:
            guardian.stdin.close()
            guardian.wait()

    def _ensure_guardian(self) -> None:
        if self._guardian is not None and self._guardian.poll() is None:
            return
        root = str(Path(__file__).resolve().parents[3])
        self._guardian = subprocess.Popen(
            [sys.executable, "-m", __name__, str(os.getpid()), *map(str, (*self._told, *self._bound))],
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


class Watch:
    """What the guardian knows. Pure: seconds and bytes come in, a reason to kill comes out.

    `held_s` 0: the lock may be held for ever.
    """

    def __init__(self, silence_s: int, callback_s: int, held_s: int) -> None:
        self._limits_s = (silence_s, callback_s, held_s)
        self._armed = self._inside = False
        self._silent_s = self._inside_s = self._heard_s = 0.0
        self._held_since_s: float | None = None

    @property
    def held_since_s(self) -> float | None:
        """None where the lock is not held."""
        return self._held_since_s

    def hear(self, told: str, now_s: float, *, released: bool = False) -> str:
        """`told`: since the last time, within a second; empty where nothing was. Why to kill, or empty.

        `now_s`: of a clock that goes on while the machine is suspended. `released`: whether the lock file of
        this holder is gone.
        """
        suspended = now_s - self._heard_s > SUSPENDED_S
        self._heard_s = now_s
        if released and not suspended:
            self._held_since_s = None
        self._silent_s = 0.0 if told else self._silent_s + TICK_S
        self._inside_s += (
            BEAT_S if told else TICK_S
        )  # while Python beats, that is how often something is told
        for byte in told:
            self._hear(byte, now_s)
        silence_s, callback_s, held_s = self._limits_s
        if not self._armed:
            return ""
        if self._silent_s >= silence_s:
            return "Python does not answer while the JVM may hold the table lock"
        if self._inside and self._inside_s >= callback_s:
            return f"a look under the table lock has not ended for {callback_s} s: {STANDS}"
        if held_s and self._held_since_s is not None and now_s - self._held_since_s >= held_s:
            held = f"the JVM has held the table lock for {now_s - self._held_since_s:.0f} s"
            return f"{held}, and soon others may take it: {STANDS}"
        return ""

    def _hear(self, byte: str, now_s: float) -> None:
        if byte in "ad":
            self._armed, self._inside, self._held_since_s = byte == "a", False, None
        if byte in "el":
            self._inside, self._inside_s = byte == "e", 0.0
        if byte in "eh" and self._held_since_s is None:
            self._held_since_s = now_s


class LockFile:
    """Whether the lock file is still the one that was found first. A thread looks, for storage may hang."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._ended = threading.Event()
        self.released = False
        if path:
            threading.Thread(target=self._look, daemon=True).start()

    def end(self) -> None:
        self._ended.set()

    def _look(self) -> None:
        first = found = self._identity()
        while found is not None and found == first:
            if self._ended.wait(TICK_S):
                return
            found = self._identity()
        self.released = True

    def _identity(self) -> tuple[int, int] | None:
        try:
            stat = os.stat(self._path)
        except FileNotFoundError:
            return None
        except OSError:
            return (0, 0)  # not known: it is not said to be released
        return stat.st_ino, stat.st_ctime_ns


def guard(python_pid: int, jvm_pid: int, limits_s: tuple[int, int, int], lock: str) -> None:
    """The guardian's life: read the pipe on stdin, count seconds, kill once, exit when the pipe ends."""
    watch, file = Watch(*limits_s), LockFile("")
    while True:
        readable, _, _ = select.select([0], [], [], TICK_S)
        told = os.read(0, 4096) if readable else None
        if told == b"":
            return
        held = watch.held_since_s
        why = watch.hear((told or b"").decode("ascii"), time.clock_gettime(CLOCK), released=file.released)
        if why:
            _kill(python_pid, jvm_pid, why)
            return
        if watch.held_since_s != held:
            file.end()
            file = LockFile("" if watch.held_since_s is None else lock)


def _kill(python_pid: int, jvm_pid: int, why: str) -> None:
    """The JVM first: it holds the lock. Nobody is killed whose place another process has taken."""
    if os.getppid() != python_pid:
        return
    killed = f"Python ({python_pid}) and JVM ({jvm_pid}) are killed; nothing is lost, start again"
    _say(jvm_pid, f"{why}: {killed}")
    for pid in (jvm_pid, python_pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _say(jvm_pid: int, sentence: str) -> None:
    """To whoever has named a file for it (`LAST_WORDS`), or else on the JVM's own stderr.

    Python's leads through the JVM, which may stand still: nobody would read it, and a pipe that is full would
    hold the guardian up. So it waits for neither: the log is the lesser loss.
    """
    if file := os.environ.get(LAST_WORDS):
        with contextlib.suppress(OSError):  # its folder is gone
            Path(file).write_text(sentence, encoding="utf-8")
            return
    line = f"lockstep: {sentence}\n".encode()
    with contextlib.suppress(OSError):  # no such file (another system), or a socket: then on our own
        stderr = os.open(f"/proc/{jvm_pid}/fd/2", os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY)
        os.write(stderr, line)
        os.close(stderr)
        return
    with contextlib.suppress(OSError):
        os.set_blocking(sys.stderr.fileno(), False)
        os.write(sys.stderr.fileno(), line)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    python, jvm, silence, callback, held = (int(argument) for argument in sys.argv[1:6])
    guard(python, jvm, (silence, callback, held), sys.argv[6])
