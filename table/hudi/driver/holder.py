"""Taking over a table lock whose holder is proved dead, instead of waiting until it expires.

Hudi's file lock lives on for a minute after its holder was killed. So the class that takes it here has it
say which process holds it, in the field where Hudi has the thread's name (jvm/OneHolderLockProvider.java). A
later driver on the same machine that finds that process gone removes the file. Everything else (another
machine or container, a foreign writer's lock, a holder that is merely stopped) is left to its expiry.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from table.errors import Unavailable
from table.store.port import Store

LOCK = "lock"
LOCK_BYTES_MAX = 256 * 1024
"""Hudi writes into it from where in its code it was taken."""
HELD_BY = "lockstep "
"""Before the name of the process, in the lock file."""
WORDS = ("boot", "namespace", "pid", "started")
"""Of the name, and one more that no two takings have in common."""
FREED = ".lockstep_freed_"
"""By whom a dead holder's lock is removed: who creates this file. Behind it stands what tells the lock."""
FREED_LIVES_S = 3_600.0
FREE_MARGIN_S = 10.0
"""A lock that is about to expire is left alone: somebody else may take it at any moment."""
UNSAID_S = 10.0
"""Between Hudi's taking the lock and its saying so: milliseconds. With what a guardian lets it be held after
that (`table.hudi.driver.watchdog.held_s`) it is less than a lock lives."""

log = logging.getLogger(__name__)


class LockHolder:
    """`locks`: where Hudi keeps its lock file. `jvm_pid`: the process that holds the lock for us. `expire_s`:
    how long the file is good for; 0: for ever. `held_s`: how long we have held it, negative where we do not;
    None where that does not matter. `clock_s`: Unix epoch.
    """

    def __init__(
        self,
        locks: Store,
        jvm_pid: int,
        *,
        expire_s: float = 0,
        held_s: Callable[[], float] | None = None,
        clock_s: Callable[[], float] = time.time,
    ) -> None:
        self._locks = locks
        self._expire_s = expire_s
        self._held_s = held_s
        self._clock_s = clock_s
        self.lock = locks.place(LOCK)
        self._process = process_of(jvm_pid)

    def check(self) -> None:
        """Hudi says only now that it holds the lock: had it stood still in between, others might have it.

        Raises `Unavailable` where it was taken so long ago that it may soon be another's, or is already.
        """
        if self._held_s is None:
            return
        held_s = self._held_s()
        if not 0 <= held_s <= UNSAID_S:
            said = f"was taken {held_s:.0f} s ago" if held_s > 0 else "is not held any more"
            raise Unavailable(
                f"the table lock {self.lock} {said} and others may have it by now: the JVM was stopped, or "
                "storage is too slow. Nothing is written under it; it is taken again"
            )

    def free_if_dead(self) -> bool:
        """Remove the lock where its holder is proved dead; whether it was."""
        if self._process is None:
            return False
        try:
            said = said_by(self._read())
            held_by = process_said(said)
            if held_by is None or not is_dead(held_by, self._process) or self._expires_soon():
                return False
            freed = f"{FREED}{sha256(said.encode()).hexdigest()[:16]}"
            # Of several that find it dead one removes it, once: what is there later is somebody else's.
            if not self._locks.create(freed) or said_by(self._read()) != said or not self._locks.delete(LOCK):
                return False
        except OSError:
            return False  # it expires by itself
        log.warning("the table lock was held by process %s, which is dead: it is free again", held_by["pid"])
        self._tidy(freed)
        return True

    def _read(self) -> bytes:
        return self._locks.read(LOCK, bytes_max=LOCK_BYTES_MAX)

    def _expires_soon(self) -> bool:
        found = self._locks.stat(LOCK)
        if found is None:
            return True
        return 0 < self._expire_s < self._clock_s() - found.modified_s + FREE_MARGIN_S

    def _tidy(self, freed: str) -> None:
        """Whoever was to remove a lock that is long gone is not here any more."""
        with contextlib.suppress(OSError):
            made = self._locks.stat(freed)
            for name in self._locks.names():
                old = self._locks.stat(name) if name.startswith(FREED) else None
                if made and old and made.modified_s - old.modified_s > FREED_LIVES_S:
                    self._locks.delete(name)


def said_by(lock: bytes) -> str:
    """What a lock file says of who made it, in Hudi's form; empty where it is damaged, or not written yet."""
    try:
        said = json.loads(lock)["lockThreadName"]
    except (ValueError, KeyError, TypeError):
        return ""
    return said if isinstance(said, str) else ""


def process_said(said: str) -> dict[str, str] | None:
    """The process in it, as `process_of` has it; None where none of ours is named."""
    words = said.removeprefix(HELD_BY).split(" ")
    if not said.startswith(HELD_BY) or len(words) != len(WORDS) + 1:
        return None
    return dict(zip(WORDS, words, strict=False))


def process_of(pid: int) -> dict[str, str] | None:
    """What tells a process from every other one, before and after it; None where the system cannot say."""
    started = started_at(pid)
    if started is None:
        return None
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return {
            "pid": str(pid),
            "started": started,
            "boot": boot,
            "namespace": os.readlink("/proc/self/ns/pid"),
        }
    except OSError:
        return None


def is_dead(process: dict[str, str], here: dict[str, str]) -> bool:
    """Whether a process is proved gone. One of another boot or container cannot be judged from here."""
    if any(process.get(name) != here[name] for name in ("boot", "namespace")):
        return False
    pid = process.get("pid", "")
    return pid.isdecimal() and started_at(int(pid)) != process.get("started")


def started_at(pid: int) -> str | None:
    """When a process was started, in ticks since boot; None where it is gone.

    Source: proc(5). A process that was killed counts as long as one of its threads may still write.
    """
    folder = Path(f"/proc/{pid}")
    try:
        after_name = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
        state, ticks = after_name.split()[0], after_name.split()[19]
        if state in "ZX" and len(os.listdir(folder / "task")) <= 1:
            return None
    except OSError:
        return None
    return ticks
