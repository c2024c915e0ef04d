"""Busy loops: other work on the machine, which a run of the tests has to endure. `make test BUSY=8`."""

from __future__ import annotations

import os
import subprocess
import sys

LOOP = "while True: pass"


class BusyLoops:
    """`count` processes that compute until `close`."""

    def __init__(self, count: int) -> None:
        self._processes = [subprocess.Popen([sys.executable, "-S", "-c", LOOP]) for _ in range(count)]

    def close(self) -> float:
        """End them. Returns the CPU time that they used, in seconds."""
        used_s = 0.0
        for process in self._processes:
            process.kill()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            used_s += usage.ru_utime + usage.ru_stime
        self._processes.clear()
        return used_s
