"""What a rival's processes cost: CPU seconds of the whole tree, ended children included, and memory.

A sample is the tree as it is now. A process that has ended is in its parent's account once the parent has
waited for it; where that did not happen, what it had used when it was last seen is kept here.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from bench.figures import interpolate

PERIOD_S = 0.5
"""To look costs some milliseconds, most of them to list the machine's processes."""
STOP_S = 5.0

Key = tuple[int, float]
"""A pid and when it was started: pids come again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One process in one sample. `own_s`, `children_s`: CPU of its own, and of children it waited for."""

    parent: Key | None
    own_s: float
    children_s: float
    rss_bytes: int = 0


@dataclass(slots=True)
class Account:
    """CPU of a tree over its samples; never less than before."""

    before: Mapping[Key, Seen] = field(default_factory=dict)
    lost_s: float = 0.0
    total_s: float = 0.0

    def take(self, now: Mapping[Key, Seen]) -> float:
        """The next sample; CPU seconds used until then."""
        gone: dict[Key | None, float] = {}
        for key, seen in self.before.items():
            if key not in now:
                heir = self._living_ancestor(seen.parent, now)
                gone[heir] = gone.get(heir, 0.0) + seen.own_s + seen.children_s
        for heir, used_s in gone.items():
            absorbed_s = 0.0
            if heir is not None and heir in self.before:
                absorbed_s = now[heir].children_s - self.before[heir].children_s
            self.lost_s += max(0.0, used_s - absorbed_s)
        self.before = dict(now)
        used = sum(seen.own_s + seen.children_s for seen in now.values()) + self.lost_s
        self.total_s = max(self.total_s, used)
        return self.total_s

    def _living_ancestor(self, key: Key | None, now: Mapping[Key, Seen]) -> Key | None:
        while key is not None and key not in now:
            seen = self.before.get(key)
            key = seen.parent if seen is not None else None
        return key


class Sampler:
    """Watches processes and all their descendants from a thread of its own, until `stop`.

    Descendants are known from when they were first seen: one that is adopted by another process stays.
    """

    def __init__(self, *pids: int) -> None:
        self._roots = [psutil.Process(pid) for pid in pids]
        self._known: dict[Key, psutil.Process] = {}
        self._account = Account()
        self._cpu: list[tuple[float, float]] = []
        self._peaks: dict[int, int] = {}
        self._peak_bytes = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def __enter__(self) -> Sampler:
        self._sample()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """A last sample, while the processes are still there if they can be."""
        if not self._stopping.is_set():
            self._stopping.set()
            self._thread.join(STOP_S)
            self._sample()

    def cpu_s(self, start_ms: float, end_ms: float) -> float:
        """CPU seconds used between two moments (Unix epoch), to within a sample."""
        points = list(self._cpu)
        return interpolate(points, end_ms) - interpolate(points, start_ms)

    @property
    def peak_bytes(self) -> int:
        """Resident memory of all together, at its highest; shared memory counts for each who shares it."""
        return self._peak_bytes

    def largest_bytes(self, pids: Collection[int]) -> int:
        """The highest resident memory that one of these processes had."""
        return max((self._peaks.get(pid, 0) for pid in pids), default=0)

    def _run(self) -> None:
        while not self._stopping.wait(PERIOD_S):
            self._sample()

    def _sample(self) -> None:
        self._find()
        now = {key: seen for key, process in self._known.items() if (seen := _look(process)) is not None}
        self._known = {key: self._known[key] for key in now}
        self._cpu.append((time.time() * 1_000, self._account.take(now)))
        self._peak_bytes = max(self._peak_bytes, sum(seen.rss_bytes for seen in now.values()))
        for pid, _ in now:
            self._peaks[pid] = max(self._peaks.get(pid, 0), _peak_bytes(pid))

    def _find(self) -> None:
        for root in self._roots:
            with contextlib.suppress(psutil.Error):
                for process in (root, *root.children(recursive=True)):
                    self._known.setdefault((process.pid, process.create_time()), process)


def _look(process: psutil.Process) -> Seen | None:
    """None where it has ended."""
    try:
        with process.oneshot():
            times = process.cpu_times()
            parent = process.parent()
            return Seen(
                parent=(parent.pid, parent.create_time()) if parent is not None else None,
                own_s=times.user + times.system,
                children_s=times.children_user + times.children_system,
                rss_bytes=process.memory_info().rss,
            )
    except psutil.Error:
        return None


def _peak_bytes(pid: int) -> int:
    """The kernel's own record of the process' highest resident memory (Linux); 0 where there is none."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    line = next((line for line in status.splitlines() if line.startswith("VmHWM:")), "")
    return int(line.split()[1]) * 1_024 if line else 0
