"""Wall clocks of the driver's and of the workers' processes, set apart while they run.

A clock is a file that says by how much it is off; whoever was started with it sees the change at once,
through a small library that is built here (clock_shift.c; it needs a C compiler). libfaketime was tried: it
reads its file into one buffer for all threads, and a JVM has many.
"""

from __future__ import annotations

import os
import struct
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("clock_shift.c")
FORMAT = "=qq"
"""By how much it is off and since when, nanoseconds."""
ONE_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Clock:
    """`file`: what the processes look at; `library`: what makes them look."""

    file: Path
    library: Path

    def off_by(self, seconds: float) -> None:
        """From now on it is off by so much from this machine's clock."""
        with self.file.open("r+b") as file:
            file.write(struct.pack(FORMAT, round(seconds * ONE_S), time.time_ns()))

    def environment(self) -> dict[str, str]:
        """What a process is started with to see it."""
        return {"LD_PRELOAD": str(self.library), **self.variable()}

    def variable(self) -> dict[str, str]:
        """What tells clocks apart."""
        return {"CLOCK_SHIFT_FILE": str(self.file)}


def make_clock(file: Path, *, seconds: float = 0.0) -> Clock:
    """A clock in a new file, which is proved to be one: a process sees that it is off by ten minutes."""
    library = file.with_name("clock_shift.so")
    if not library.exists():
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-O2", "-Wall", "-o", str(library), str(SOURCE), "-ldl", "-lpthread"],
            check=True,
        )
    file.write_bytes(struct.pack(FORMAT, 0, 0))
    clock = Clock(file, library)
    clock.off_by(-600)
    command = ["date", "+%s"]
    shown = subprocess.run(
        command, env={**os.environ, **clock.environment()}, capture_output=True, check=True, text=True
    )
    here = subprocess.run(command, capture_output=True, check=True, text=True)
    assert 550 < int(here.stdout) - int(shown.stdout) < 650, "clocks cannot be set apart on this machine"
    clock.off_by(seconds)
    return clock
