"""What a store of files is asked itself: why a folder cannot be written, and whether other machines see it.

Hudi's file lock says the same of a lock that somebody holds and of a disk that is full or read-only.
"""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from pathlib import Path

from table.store.paths import DRAFT
from table.store.port import Store

PROBE_BYTES = 8 * 1024
MOUNTS = Path("/proc/self/mounts")
OF_ONE_MACHINE = frozenset(
    ("btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "ramfs", "tmpfs", "xfs", "zfs")
)
"""File systems that no other machine writes to, exports aside."""


def unwritable(folder: Store) -> str:
    """Why not, as a sentence's end; empty where a file was written and removed."""
    probe = f"{DRAFT}{uuid.uuid4().hex}"  # what stays of one that dies here is swept
    try:
        folder.put(probe, bytes(PROBE_BYTES), durable=True)
    except OSError as error:
        return f"{folder.place()} cannot be written: {error.strerror}"
    finally:
        with contextlib.suppress(OSError):
            folder.delete(probe)
    return ""


def is_of_one_machine(path: str) -> bool:
    """Whether only this machine writes under `path`, as far as its file system tells; False where unknown."""
    try:
        mounts = MOUNTS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return file_system(mounts, os.path.realpath(path)) in OF_ONE_MACHINE


def file_system(mounts: str, path: str) -> str:
    """The type of the file system that holds `path`, by the text of /proc/mounts; empty where none does.

    Of mounts on the same folder the last one counts. Blanks in a folder are written as octal escapes.
    """
    kind, longest = "", 0
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        folder = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[1])
        inside = path == folder or path.startswith(folder.rstrip("/") + "/")
        if inside and len(folder) >= longest:
            kind, longest = fields[2], len(folder)
    return kind
