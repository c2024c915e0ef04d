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
from typing import Any, NamedTuple

from table.hudi.driver.compiled import java_class

NAME = "lockstep.hudi.HeldLocks"
SOURCE = "HeldLocks.java"
SLOT = struct.Struct("=qq")
SLOTS = 64
PAGE_BYTES = SLOTS * SLOT.size


class Held(NamedTuple):
    """A lock that the JVM holds, or asks for."""

    since_s: float
    """Of CLOCK_BOOTTIME."""
    lives_s: float


@cache
def page_path() -> str:
    """This process's page, made where there is none; removed when the process ends, or by its guardian."""
    number, path = tempfile.mkstemp(prefix="lockstep-locks-")
    os.write(number, bytes(PAGE_BYTES))
    os.close(number)
    atexit.register(remove_page, path)
    return path


def remove_page(path: str) -> None:
    with contextlib.suppress(OSError):  # somebody has tidied up
        os.unlink(path)


def show_held(jvm: Any, gateway: Any, *, beside: str, misfit: str, advice: str = "") -> None:
    """Have the JVM's lock classes say on this process's page what they hold.

    `beside`, `misfit`, `advice`: see `table.hudi.driver.compiled`. To be called before they are compiled.
    """
    java_class(jvm, gateway, name=NAME, source=SOURCE, beside=beside, misfit=misfit, advice=advice)
    jvm.lockstep.hudi.HeldLocks.show(page_path())


class Page:
    """What a guardian reads. A page that is not there shows nothing: then nobody has been told to use it."""

    def __init__(self, path: str) -> None:
        self._memory: mmap.mmap | None = None
        with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
            self._memory = mmap.mmap(file.fileno(), PAGE_BYTES, access=mmap.ACCESS_READ)

    def held(self) -> list[Held]:
        """All that is held now. It is written meanwhile: what is not read twice alike is read again."""
        if self._memory is None:
            return []
        read = self._memory[:]
        while read != (again := self._memory[:]):
            read = again
        slots = SLOT.iter_unpack(read)
        return [Held(since_ms / 1_000, lives_ms / 1_000) for since_ms, lives_ms in slots if lives_ms]
