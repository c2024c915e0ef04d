"""Why a folder cannot be written, asked of the file system itself.

Hudi's file lock says the same of a lock that somebody holds and of a disk that is full or read-only.
"""

from __future__ import annotations

import contextlib
import os
import uuid

PROBE_BYTES = 8 * 1024


def unwritable(folder: str) -> str:
    """Why not, as a sentence's end; empty where a file was written and removed."""
    probe = os.path.join(folder, f".lockstep-probe-{uuid.uuid4().hex}")
    try:
        file = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            os.write(file, bytes(PROBE_BYTES))
            os.fsync(file)
        finally:
            os.close(file)
    except OSError as error:
        return f"{folder} cannot be written: {error.strerror}"
    finally:
        with contextlib.suppress(OSError):
            os.unlink(probe)
    return ""
