"""A file of HDFS that is being written."""

from __future__ import annotations

import errno
from collections.abc import Callable

from table.store.hdfs.writing import Writing
from table.store.port import Data


class HdfsSink:
    """See `table.store.port.Sink`. What it holds goes out in large pieces, with the first of which it begins.

    `show`: called with its size, bytes, once it is whole. `drop`: called where it was begun and is not to be.
    """

    def __init__(
        self,
        begin: Callable[[], Writing],
        show: Callable[[int], None],
        drop: Callable[[], None],
        *,
        write_bytes: int,
    ) -> None:
        self._begin = begin
        self._show = show
        self._drop = drop
        self._file: Writing | None = None
        self._closed = self._broken = False
        self._write_bytes = write_bytes
        self._held = bytearray()
        self._size = 0

    @property
    def closed(self) -> bool:
        return self._closed

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def write(self, data: Data) -> int:
        view = memoryview(data).cast("B")
        if self._closed:
            raise ValueError("the file is closed")
        self._size += len(view)
        self._held += view
        if len(self._held) >= self._write_bytes:
            try:
                self._begun().write(self._taken())
            except OSError:
                self._broken = True
                raise
        return len(view)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        """Nothing: nobody takes the file for whole before it is closed."""

    def close(self) -> None:
        """Raises `OSError`; then the file is not whole."""
        if self._closed:
            return
        self._closed = True
        if self._broken:
            raise OSError(errno.EIO, "a piece of the file could not be written before")
        self._begun().end(self._taken())
        self._show(self._size)

    def let_go(self) -> None:
        """The name node forgets it with its deletion, or closes it once its lease has run out."""
        self._closed = True
        self._held.clear()
        if self._file is not None:
            self._file = None
            self._drop()

    def _begun(self) -> Writing:
        if self._file is None:
            self._file = self._begin()
        return self._file

    def _taken(self) -> bytes:
        piece, self._held = bytes(self._held), bytearray()
        return piece
