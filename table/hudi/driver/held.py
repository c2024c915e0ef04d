"""The page of memory on which a driver's JVM shows which table locks it holds, and its guardian reads it.

A file of 64 slots of 16 bytes, in the machine's byte order: since when the lock may be held, in milliseconds
of a clock that goes on while the machine is suspended; and how many milliseconds it lives that nobody renews,
0 where the slot is free. The JVM writes it (jvm/HeldLocks.java).
"""

from __future__ import annotations

import atexit
import contextlib
import mmap
import os
import struct
import tempfile
from functools import cache
from typing import NamedTuple

from table.errors import Unavailable

SLOT = struct.Struct("=qq")
SLOTS = 64
PAGE_BYTES = SLOTS * SLOT.size


class Held(NamedTuple):
    """A lock that the JVM holds, or asks for."""

    since_s: float
    """Of the JVM's clock: the machine's uptime, also that in which it was suspended."""
    lives_s: float


class PageFile(NamedTuple):
    number: int
    """The open file, which guardians inherit: who tidies up temporary files takes its name only."""
    path: str


@cache
def page_file() -> PageFile:
    """This process's page, made where there is none; removed when the process ends, or by its guardian."""
    try:
        number, path = tempfile.mkstemp(prefix="lockstep-locks-")
        os.write(number, bytes(PAGE_BYTES))
    except OSError as error:
        raise Unavailable(
            f"no file can be made in {tempfile.gettempdir()}, for the driver's guardian to see what locks it "
            f"holds: {error.strerror}"
        ) from error
    atexit.register(_remove_of, os.getpid(), path)
    return PageFile(number, path)


def _remove_of(pid: int, path: str) -> None:
    if os.getpid() == pid:  # and not a child, which ends sooner
        remove_page(path)


def remove_page(path: str) -> None:
    with contextlib.suppress(OSError):  # somebody has tidied up
        os.unlink(path)


class Page:
    """What a guardian reads. `number`: of the file, open for reading."""

    def __init__(self, number: int) -> None:
        self._memory = mmap.mmap(number, PAGE_BYTES, access=mmap.ACCESS_READ)

    def held(self) -> list[Held]:
        """All that is held now. It is written meanwhile: what is not read twice alike is read again."""
        read = self._memory[:]
        while read != (again := self._memory[:]):
            read = again
        slots = SLOT.iter_unpack(read)
        return [Held(since_ms / 1_000, lives_ms / 1_000) for since_ms, lives_ms in slots if lives_ms]
