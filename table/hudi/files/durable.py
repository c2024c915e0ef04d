"""What writers of base files and of log files share: durable files, errors that name them, clearing up."""

from __future__ import annotations

import contextlib
import logging
import os
import posixpath
import time
from collections.abc import Iterator

import pyarrow as pa

from table.errors import FilesGone, StorageError
from table.hudi.layout import META_FOLDER
from table.port import Tell, Written
from table.store.port import Store

log = logging.getLogger("lockstep.writer")


class Files:
    """The files that one writer makes for one instant, and the time that storage takes for them.

    Paths are relative to the store's root. `tell`: called with every step of the writing.
    """

    def __init__(self, store: Store, instant: str, tell: Tell | None = None) -> None:
        self.store = store
        self._instant = instant
        self._tell = tell
        self.written = Written()
        self.created: list[str] = []
        self.upload_s = 0.0
        """Spent so far on making, ending and securing files; all else that a writer does is encoding."""

    @contextlib.contextmanager
    def storing(self, path: str) -> Iterator[None]:
        """Raise what goes wrong here with the file as a `StorageError`; as `FilesGone` where it was made
        here and is not there any more, though the table is.
        """
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            if isinstance(error, FileNotFoundError) and path in self.created and self._table_is_there():
                raise self.gone(path) from error
            # Arrow wraps the system's own words in its own.
            number = getattr(error, "errno", None)
            why = os.strerror(number) if number else str(error)
            raise StorageError(
                f"{self.store.place(path)} of instant {self._instant} could not be written: {why}. The "
                "transaction is aborted and tried again; see to the storage"
            ) from error

    def gone(self, path: str) -> FilesGone:
        return FilesGone(
            f"{self.store.place(path)} of instant {self._instant} was taken away while it was being written, "
            "as the rollback of its transaction does"
        )

    def _table_is_there(self) -> bool:
        try:
            return self.store.stat(META_FOLDER) is not None
        except OSError:
            return False

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
        for folder in {posixpath.dirname(path) for path in self.created}:
            with self.storing(folder), self.uploading():
                self.store.secure(folder)
            self.stepped()

    def remove(self) -> None:
        """Remove every file; what cannot be removed is left to the rollback."""
        left: list[tuple[str, OSError]] = []
        for path in self.created:
            try:
                self.store.delete(path)
            except OSError as error:
                left.append((path, error))
        self.created.clear()
        if left:
            log.warning(
                "%d files of instant %s were not removed, which the rollback will do; the first: %s (%s)",
                *(len(left), self._instant, self.store.place(left[0][0]), left[0][1]),
            )
