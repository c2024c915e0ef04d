"""Wall clocks of the driver's and of the workers' processes, set apart while they run.

A clock is a file that says by how much it is off, and was at what times; whoever was started with it sees the
change at once, through a small library that is built here (clock_shift.c; it needs a C compiler). libfaketime
was tried: it reads its file into one buffer for all threads, and a JVM has many.

Files are as old as the clock that was in force when they were written, as on any one machine; or, with
`files_apart`, as this machine's clock says, as on a file server's.
"""

from __future__ import annotations

import os
import struct
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("clock_shift.c")
HEADER = struct.Struct("=qq")
"""How many entries there are, and whether files keep this machine's clock."""
ENTRY = struct.Struct("=qq")
"""Since when it is off, by this machine's clock, and by how much; nanoseconds."""
ENTRIES_MAX = 255
ONE_S = 1_000_000_000
COARSE = 5
"""CLOCK_REALTIME_COARSE, by which the kernel dates most files; it goes on every few milliseconds."""


@dataclass(frozen=True, slots=True)
class Clock:
    """`file`: what the processes look at; `library`: what makes them look."""

    file: Path
    library: Path

    def off_by(self, seconds: float) -> None:
        """From now on it is off by so much from this machine's clock."""
        since_ns = _between_dates_ns()
        with self.file.open("r+b", buffering=0) as file:
            known, apart = HEADER.unpack(file.read(HEADER.size))
            if known >= ENTRIES_MAX:
                raise ValueError(f"clock {self.file} was set {known} times, and has no room for more")
            file.seek(HEADER.size + known * ENTRY.size)
            file.write(ENTRY.pack(since_ns, round(seconds * ONE_S)))
            file.seek(0)
            file.write(HEADER.pack(known + 1, apart))

    def environment(self) -> dict[str, str]:
        """What a process is started with to see it."""
        return {"LD_PRELOAD": str(self.library), **self.variable()}

    def variable(self) -> dict[str, str]:
        """What tells clocks apart."""
        return {"CLOCK_SHIFT_FILE": str(self.file)}


def make_clock(file: Path, *, seconds: float = 0.0, files_apart: bool = False) -> Clock:
    """A clock in a new file, which is proved to be one: a process sees that it is off by ten minutes.

    `files_apart`: files are dated by this machine's clock, whatever this one says.
    """
    library = file.with_name("clock_shift.so")
    if not library.exists():
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-O2", "-Wall", "-o", str(library), str(SOURCE), "-ldl", "-lpthread"],
            check=True,
        )
    clock = Clock(file, library)
    _begin(clock, files_apart=files_apart)
    clock.off_by(-600)
    command = ["date", "+%s"]
    shown = subprocess.run(
        command, env={**os.environ, **clock.environment()}, capture_output=True, check=True, text=True
    )
    here = subprocess.run(command, capture_output=True, check=True, text=True)
    assert 550 < int(here.stdout) - int(shown.stdout) < 650, "clocks cannot be set apart on this machine"
    _begin(clock, files_apart=files_apart)
    clock.off_by(seconds)
    return clock


def _begin(clock: Clock, *, files_apart: bool) -> None:
    """As if it had never been off."""
    empty = bytes(ENTRIES_MAX * ENTRY.size)
    clock.file.write_bytes(HEADER.pack(0, files_apart) + empty)


def _between_dates_ns() -> int:
    """A time later than the date of any file written until now, and than that of none written hereafter.

    The kernel dates some files exactly, and most by a clock that lags behind: that one is waited for.
    """
    now_ns = time.time_ns()
    while time.clock_gettime_ns(COARSE) < now_ns:
        pass
    return now_ns
