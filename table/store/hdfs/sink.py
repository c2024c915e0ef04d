"""A file of HDFS that is being written."""

from __future__ import annotations

from typing import Protocol

from table.store.hdfs.calls import Calls
from table.store.port import Data


class Writer(Protocol):
    """The client's own, and not the file that Python makes of it: that one closes itself when nobody holds it
    any more, which asks the name node, without patience, in whatever thread collects garbage.
    """

    def write(self, data: bytes, /) -> int: ...

    def hsync(self) -> None: ...

    def close(self) -> None: ...


class HdfsSink:
    """See `table.store.port.Sink`. What it holds goes out in large pieces.

    It is on disks when it is closed: HDFS's own close leaves data in the memory of its data nodes, `hsync`
    before it does not. That is of the file's last block; earlier ones are written when they are full.
    """

    def __init__(self, calls: Calls, writer: Writer, place: str, *, write_bytes: int) -> None:
        self._calls = calls
        self._writer: Writer | None = writer
        self._place = place
        self._write_bytes = write_bytes
        self._held = bytearray()
        self._size = 0

    @property
    def closed(self) -> bool:
        return self._writer is None

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def write(self, data: Data) -> int:
        view = memoryview(data).cast("B")
        if self._writer is None:
            raise ValueError("the file is closed")
        self._size += len(view)
        self._held += view
        if len(self._held) >= self._write_bytes:
            self._hand_over(self._writer)
        return len(view)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        """Nothing: nobody takes the file for whole before it is closed."""

    def close(self) -> None:
        """Raises `OSError`; then the file is not whole."""
        writer, self._writer = self._writer, None
        if writer is None:
            return
        if self._held:
            self._hand_over(writer)
        if self._size:
            self._calls.ask(self._place, writer.hsync)
        self._calls.ask(self._place, writer.close)

    def let_go(self) -> None:
        """The name node closes it once its lease has run out, or forgets it with its deletion."""
        self._writer = None
        self._held.clear()

    def _hand_over(self, writer: Writer) -> None:
        piece, self._held = bytes(self._held), bytearray()
        self._calls.ask(self._place, lambda: writer.write(piece))
