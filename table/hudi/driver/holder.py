"""Taking over a table lock whose holder is proved dead, instead of waiting until it expires.

Hudi's file lock is a file that says nothing of who made it, and lives on for a minute after its holder was
killed. So whoever holds it here leaves a note beside it: which lock file it holds (what the store tells it
by), and which process it is. A later driver on the same machine that finds this very lock file, and that
process gone, removes it. Everything else (another machine or container, a foreign writer's lock, a holder
that is merely stopped) is left to the lock's expiry.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Callable
from pathlib import Path

from table.errors import Unavailable
from table.store.port import Claim, Store

NOTE = ".lockstep_lock_holder"
NOTE_BYTES_MAX = 4_096
LOCK = "lock"
UNSAID_S = 10.0
"""Between Hudi's taking the lock and its saying so: milliseconds. With what a guardian lets it be held after
that (`table.hudi.driver.watchdog.held_s`) it is less than a lock lives."""

log = logging.getLogger(__name__)


class LockHolder:
    """`locks`: where Hudi keeps its lock file. `jvm_pid`: the process that holds the lock for us. `held_s`:
    how long it has, negative where it does not; None where that does not matter.
    """

    def __init__(self, locks: Store, jvm_pid: int, *, held_s: Callable[[], float] | None = None) -> None:
        self._locks = locks
        self._held_s = held_s
        self.lock = locks.place(LOCK)
        self._process = process_of(jvm_pid)

    def note(self) -> None:
        """Say that this process holds the lock. To be called while it does.

        A note that cannot be written costs the next driver the lock's expiry, never more. Raises
        `Unavailable` where the lock was taken so long ago that it may soon be another's, or is already.
        """
        self._check_age()
        lock = self._identity()
        if lock is None or self._process is None:
            return
        with contextlib.suppress(OSError), self._locks.claimed(NOTE) as note:
            note.write(json.dumps({"lock": lock, "process": self._process}).encode())

    def _check_age(self) -> None:
        """Hudi says only now that it holds the lock: had it stood still in between, no guardian had known."""
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
        if self._process is None or self._identity() is None:
            return False
        try:
            with self._locks.claimed(NOTE) as note:  # of two that find a dead holder one removes the lock
                held_by = self._said(note)
                if held_by is None or not is_dead(held_by, self._process) or not self._locks.delete(LOCK):
                    return False
        except OSError:
            return False  # somebody else was quicker, or it expires by itself
        log.warning("the table lock was held by process %s, which is dead: it is free again", held_by["pid"])
        return True

    def _said(self, note: Claim) -> dict[str, str] | None:
        """Who holds the lock file that is there now, as far as the note knows."""
        try:
            said = json.loads(note.read(NOTE_BYTES_MAX))
            lock, process = said["lock"], said["process"]
        except (ValueError, KeyError, TypeError):
            return None
        if lock != self._identity() or not isinstance(process, dict):
            return None
        return {str(name): str(value) for name, value in process.items()}

    def _identity(self) -> list[int | str] | None:
        """Which lock file is there, as the store tells it from all others; None where there is none."""
        try:
            found = self._locks.stat(LOCK)
        except OSError:
            return None
        return None if found is None else list(found.identity)


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
