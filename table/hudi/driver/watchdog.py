"""Ends this process and its JVM when the JVM may hold the table lock and Python does not answer, or when it
holds that lock for nearly as long as the lock lives.

Hudi calls back into Python inside the table lock. Were Python stopped there (SIGSTOP, a frozen container, a
hang), the lock would be held for as long as it lasts. Were the JVM stopped behind the check (SIGSTOP, a long
garbage collection, swap, storage that does not answer), the lock would expire under it, somebody else would
go on from there, and what the JVM then still writes to the metadata table would be of an instant that is no
more. A guardian, which is a process of its own and no part of the terminal's job, hears of it over a pipe and
kills both. The pipe's alphabet, one byte each: `a` armed, `e` inside the callback, `l` out of it, `d`
disarmed, `.` alive. The end of the pipe ends the guardian.

That the lock is held it learns from the JVM, on a page of memory (table/hudi/driver/held.py): Hudi takes it
at places that Python does not know, as when it plans, cleans, archives or ends a rollback.

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
from collections.abc import Iterator, Sequence
from pathlib import Path

from table.hudi.driver.held import Held, Page, PageFile, page_file, remove_page

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


def held_s(lives_s: float) -> float:
    """How long a lock may be held that expires after so many seconds; 0: for ever, as it never expires."""
    return max(lives_s - LOCK_MARGIN_S, 0)


class Watchdog:
    """`silence_s`: how long Python may be mute while armed; `callback_s`: how long the callback may take."""

    def __init__(self, jvm_pid: int, *, silence_s: int = SILENCE_S, callback_s: int = CALLBACK_S) -> None:
        self._told = (jvm_pid, silence_s, callback_s)
        self._guardian: subprocess.Popen[bytes] | None = None
        self._armed = threading.Event()
        self._closed = False
        threading.Thread(target=self._beat, name="watchdog", daemon=True).start()

    def start(self) -> None:
        """Have a guardian. It looks after the locks that the JVM shows from here on."""
        if self._guardian is not None and self._guardian.poll() is None:
            return
        root = str(Path(__file__).resolve().parents[3])
        page = page_file()
        self._guardian = subprocess.Popen(
            [sys.executable, "-m", __name__, *map(str, (os.getpid(), *self._told, *page))],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,  # whoever reads our output to its end must not wait for a guardian
            bufsize=0,
            pass_fds=(page.number,),
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([root, *filter(None, sys.path)])},
        )
        assert self._guardian.stdin is not None
        os.set_blocking(self._guardian.stdin.fileno(), False)  # a stopped guardian must not stop us

    @contextlib.contextmanager
    def armed(self) -> Iterator[None]:
        """While the JVM may take the table lock. Starts a guardian where there is none."""
        self.start()
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
    """What the guardian knows. Pure: seconds and bytes come in, a reason to kill comes out."""

    def __init__(self, silence_s: int, callback_s: int) -> None:
        self._limits_s = (silence_s, callback_s)
        self._armed = self._inside = False
        self._silent_s = self._inside_s = 0.0
        self._looked_s: float | None = None
        self._since_s: dict[Held, float] = {}

    def hear(self, told: str, now_s: float, held: Sequence[Held] = ()) -> str:
        """`told`: since the last time, within a second; empty where nothing was. Why to kill, or empty.

        `now_s`: of a clock that goes on while the machine is suspended. `held`: the locks that the JVM shows.
        """
        self._silent_s = 0.0 if told else self._silent_s + TICK_S
        self._inside_s += (
            BEAT_S if told else TICK_S
        )  # while Python beats, that is how often something is told
        for byte in told:
            self._hear(byte)
        self._note(held, now_s)
        for one, since_s in self._since_s.items():
            age_s, most_s = now_s - since_s, held_s(one.lives_s)
            if most_s and age_s >= most_s:
                held_for = f"the JVM has held the table lock for {age_s:.0f} s"
                return f"{held_for}, and soon others may take it: {STANDS}"
        silence_s, callback_s = self._limits_s
        if not self._armed:
            return ""
        if self._silent_s >= silence_s:
            return "Python does not answer while the JVM may hold the table lock"
        if self._inside and self._inside_s >= callback_s:
            return f"a look under the table lock has not ended for {callback_s} s: {STANDS}"
        return ""

    def _note(self, held: Sequence[Held], now_s: float) -> None:
        """Since when each is held. The JVM's clock counts only for the time between two looks, in which the
        machine may have been suspended: in a container its uptime may be another one than ours.
        """
        looked_s = now_s if self._looked_s is None else self._looked_s
        seen = self._since_s
        self._since_s = {one: seen.get(one, min(max(one.since_s, looked_s), now_s)) for one in held}
        self._looked_s = now_s

    def _hear(self, byte: str) -> None:
        if byte in "ad":
            self._armed, self._inside = byte == "a", False
        if byte in "el":
            self._inside, self._inside_s = byte == "e", 0.0


def guard(python_pid: int, jvm_pid: int, limits_s: tuple[int, int], file: PageFile) -> None:
    """The guardian's life: read the pipe on stdin, look at the page, count seconds, kill once, exit when the
    pipe ends.
    """
    watch, page = Watch(*limits_s), Page(file.number)
    while True:
        readable, _, _ = select.select([0], [], [], TICK_S)
        told = os.read(0, 4096) if readable else None
        if told == b"":
            break
        why = watch.hear((told or b"").decode("ascii"), time.clock_gettime(CLOCK), page.held())
        if why:
            _kill(python_pid, jvm_pid, why)
            break
    if os.getppid() != python_pid:  # it was killed, and tidies up nothing
        remove_page(file.path)


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
    python, jvm, silence, callback, number = (int(argument) for argument in sys.argv[1:6])
    guard(python, jvm, (silence, callback), PageFile(number, sys.argv[6]))
