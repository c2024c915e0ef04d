"""What writers of base files and of log files share: durable files, errors that name them, clearing up."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from table.errors import StorageError
from table.port import Tell, Written

log = logging.getLogger("lockstep.writer")


class Files:
    """The files that one writer makes for one instant, and the time that storage takes for them.

    `tell`: called with every step of the writing.
    """

    def __init__(self, instant: str, tell: Tell | None = None) -> None:
        self._instant = instant
        self._tell = tell
        self.written = Written()
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

    def stepped(self, *, files: int = 0, size_bytes: int = 0) -> None:
        """So much more is finished or encoded."""
        self.written = Written(
            files=self.written.files + files,
            size_bytes=self.written.size_bytes + size_bytes,
            steps=self.written.steps + 1,
        )
        if self._tell is not None:
            self._tell(self.written)

    def secure_folders(self) -> None:
        """Make the files' names durable. Raises `StorageError`."""
        for folder in {path.parent for path in self.created}:
            with self.storing(folder), self.uploading():
                fsync(folder)
            self.stepped()

    def remove(self) -> None:
        """Remove every file; what cannot be removed is left to the rollback."""
        left: list[tuple[Path, OSError]] = []
        for path in self.created:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                left.append((path, error))
        self.created.clear()
        if left:
            log.warning(
                "%d files of instant %s were not removed, which the rollback will do; the first: %s (%s)",
                *(len(left), self._instant, *left[0]),
            )


def fsync(path: Path) -> int:
    """Make a file or folder durable; its size."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        return os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)
