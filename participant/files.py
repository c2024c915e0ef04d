"""What writers of base files and of log files share: durable files, errors that name them, clearing up."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from participant.errors import StorageError

log = logging.getLogger("lockstep.writer")


class Files:
    """The files that one writer makes for one instant, and the time that storage takes for them."""

    def __init__(self, instant: str) -> None:
        self._instant = instant
        self.created: list[Path] = []
        self.upload_s = 0.0
        """Spent so far on making, ending and securing files; all else that a writer does is encoding."""

    @contextlib.contextmanager
    def storing(self, path: Path) -> Iterator[None]:
        """Raise what goes wrong here with the file as a `StorageError`."""
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            # Arrow wraps the system's own words in its own.
            number = getattr(error, "errno", None)
            why = os.strerror(number) if number else str(error)
            raise StorageError(
                f"{path} of instant {self._instant} could not be written: {why}. The transaction is "
                "aborted and tried again; see to the storage"
            ) from error

    @contextlib.contextmanager
    def uploading(self) -> Iterator[None]:
        """Count the time within as storage's."""
        began = time.monotonic()
        yield
        self.upload_s += time.monotonic() - began

    def secure_folders(self) -> None:
        """Make the files' names durable. Raises `StorageError`."""
        for folder in {path.parent for path in self.created}:
            with self.storing(folder), self.uploading():
                fsync(folder)

    def remove(self) -> None:
        """Remove every file; what cannot be removed is left to the rollback."""
        for path in self.created:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                log.warning("%s was not removed (%s); the rollback will", path, error)
        self.created.clear()


def fsync(path: Path) -> int:
    """Make a file or folder durable; its size."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        return os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)
