"""How much memory this process has, and how much before the system ends it. Of Linux; 0 where unknown.

Sources: proc(5), cgroups(7), and the kernel's documentation of cgroup v1's and v2's memory controllers.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from functools import cache

PROC_BYTES_MAX = 65_536
DEPTH_MAX = 32
_NOTHING = 0


def resident_bytes() -> int:
    """Of this process: pages that are in memory."""
    fields = _read("/proc/self/statm").split()
    return int(fields[1]) * resource.getpagesize() if len(fields) > 1 else _NOTHING


@cache
def memory_max_bytes() -> int:
    """The smallest limit of the control groups that it is in, else the machine's memory.

    A limit is shared by all that runs in the group, as in a container beside the JVM.
    """
    machine_bytes = _machine_bytes()
    limits = [limit for limit in _limits() if not machine_bytes or limit < machine_bytes]
    return min(limits, default=machine_bytes)


def _limits() -> Iterator[int]:
    for line in _read("/proc/self/cgroup").splitlines():
        number, controllers, path = (*line.split(":", 2), "", "")[:3]
        if number == "0" and not controllers:
            root, name = "/sys/fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            root, name = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        parts = [part for part in path.split("/") if part][:DEPTH_MAX]
        for depth in range(len(parts) + 1):
            said = _read("/".join((root, *parts[:depth], name))).strip()
            if said.isdecimal():
                yield int(said)


def _machine_bytes() -> int:
    for line in _read("/proc/meminfo").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1_024
    return _NOTHING


def _read(path: str) -> str:
    """Empty where there is no such file, as in a container that shows only its own group."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read(PROC_BYTES_MAX)
    except OSError:
        return ""
