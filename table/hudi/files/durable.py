"""What writers of base files and of log files share: durable files, errors that name them, clearing up."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import posixpath
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import pyarrow as pa

from table.errors import FilesGone, StorageError
from table.hudi.files import base_file
from table.hudi.layout import META_FOLDER, PROPERTIES
from table.port import Tell, Written
from table.store.port import Sink, Store

T = TypeVar("T")

log = logging.getLogger("lockstep.writer")


class Files:
    """The files that one writer makes for one instant, and the time that storage takes for them.

    Paths are relative to the store's root. `tell`: called with every step of the writing. Not for several
    threads, but for what is given to `meanwhile`.
    """

    def __init__(self, store: Store, instant: str, tell: Tell | None = None) -> None:
        self.store = store
        self._instant = instant
        self._tell = tell
        self._pool: ThreadPoolExecutor | None = None
        self._table: Callable[[], None] | None = None
        self._partitions: dict[str, Callable[[], None]] = {}
        self.written = Written()
        self.created: dict[str, None] = {}
        """Those that others may see by now, each once and in order."""
        self.upload_s = 0.0
        """Spent so far on making, ending and securing files; all else that a writer does is encoding."""

    # --- errors and figures -----------------------------------------------------------------------

    @contextlib.contextmanager
    def storing(self, path: str) -> Iterator[None]:
        """Raise what goes wrong here with the file as a `StorageError`; as `FilesGone` where it was made
        here and is not there any more, though the table is.
        """
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            made = path in self.created or self.store.capabilities.hides
            if isinstance(error, FileNotFoundError) and made and self._table_is_there():
                raise self.gone(path) from error
            raise StorageError(
                f"{self.store.place(path)} of instant {self._instant} could not be written: {_why(error)}. "
                "The transaction is aborted and tried again; see to the storage"
            ) from error

    def gone(self, path: str) -> FilesGone:
        return FilesGone(
            f"{self.store.place(path)} of instant {self._instant} was taken away while it was being written, "
            "as the rollback of its transaction does"
        )

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

    # --- one file ---------------------------------------------------------------------------------

    def meanwhile(self, work: Callable[[], T]) -> Future[T]:
        """Let storage do it while something else is done here."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(
                self.store.capabilities.ending_at_once, thread_name_prefix="storing"
            )
        return self._pool.submit(work)

    def open(self, path: str) -> Sink:
        """Begin a file. Its marker, and its table partition where that is new, are there before anybody may
        see it.
        """
        if not self.store.capabilities.hides:
            self.make_ready(path)
            self.shows(path)
            return self.store.sink(path)
        return self.store.sink(path, before=self._announced(path))

    def _announced(self, path: str) -> Callable[[], None]:
        """What returns once they are there. The requests for all files are on their way at once."""
        store, instant, (folder, name) = self.store, self._instant, posixpath.split(path)
        if self._table is None:
            self._table = self.meanwhile(self._refuse_no_table).result
        if folder not in self._partitions:
            create = partial(base_file.create_partition, store, instant, folder)
            self._partitions[folder] = self.meanwhile(create).result
        table, partition = self._table, self._partitions[folder]

        def mark() -> None:
            table()
            base_file.create_marker(store, instant, folder, name)

        marked = self.meanwhile(mark).result

        def ready() -> None:
            marked()
            partition()

        return ready

    def make_ready(self, path: str) -> None:
        """Make its marker, and its table partition where that is new. In any thread."""
        folder, name = posixpath.split(path)
        self._refuse_no_table()
        base_file.create_marker(self.store, self._instant, folder, name)
        base_file.create_partition(self.store, self._instant, folder)

    def shows(self, path: str) -> None:
        """From here on others may see the file, so that it is to be removed where it is not to be."""
        self.created[path] = None

    def ended(self, path: str, sink: Sink) -> int:
        """Close a file, durably; its size, bytes. In any thread."""
        size_bytes = sink.tell()
        sink.close()
        return self.store.secure(path) if self.store.capabilities.syncs else size_bytes

    def _refuse_no_table(self) -> None:
        if not self._table_is_there():
            place = self.store.place(META_FOLDER)
            raise FileNotFoundError(
                errno.ENOENT, f"{place} is missing: there is no table here any more", place
            )

    def _table_is_there(self) -> bool:
        """Where a folder is a part of names, one that is gone comes back with any file: what makes it a table
        is looked for.
        """
        try:
            if self.store.capabilities.folders:
                found = self.store.stat(META_FOLDER)
                return found is not None and found.is_folder
            return any(self.store.stat(posixpath.join(META_FOLDER, name)) for name in PROPERTIES)
        except OSError:
            return False

    # --- the end of all ---------------------------------------------------------------------------

    def securing(self) -> list[tuple[str, Future[int]]]:
        """Begin to make the files' names durable: their folders."""
        if not self.store.capabilities.syncs:
            return []
        folders = {posixpath.dirname(path) for path in self.created}
        # side by side, as files are: of a thousand folders each may wait for the disk
        return [(folder, self.meanwhile(partial(self.store.secure, folder))) for folder in folders]

    def remove(self) -> None:
        """Remove every file; what cannot be removed is left to the rollback."""
        left: list[tuple[str, OSError]] = []
        waiting = [(path, self.meanwhile(partial(self.store.delete, path))) for path in self.created]
        for path, removed in waiting:
            try:
                removed.result()
            except OSError as error:
                left.append((path, error))
        self.created.clear()
        if left:
            log.warning(
                "%d files of instant %s were not removed, which the rollback will do; the first: %s (%s)",
                *(len(left), self._instant, self.store.place(left[0][0]), left[0][1]),
                extra={"instant": self._instant},
            )

    def rest(self) -> None:
        """Nothing more is to be done."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None


def _why(error: OSError | pa.ArrowException) -> str:
    """The store's own sentence. Arrow wraps the system's words in its own: of its errors, those words."""
    number, said = getattr(error, "errno", None), getattr(error, "strerror", None)
    if said and "[errno " not in said:
        return str(said)
    return os.strerror(number) if number else str(error)
