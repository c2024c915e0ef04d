"""A file of HDFS that is read, wherever one wants to begin."""

from __future__ import annotations

import io

from hdfs_native import FileReader
from typing_extensions import Buffer

from table.store.hdfs.calls import Calls


class HdfsSource(io.RawIOBase):
    """What `io.BufferedReader` reads ahead from."""

    def __init__(self, calls: Calls, reader: FileReader, place: str) -> None:
        self._calls = calls
        self._reader = reader
        self._place = place
        self._size = len(reader)
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError("before the file's begin")
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Buffer, /) -> int:
        view = memoryview(buffer).cast("B")
        wanted = min(len(view), self._size - self._at)
        if wanted <= 0:
            return 0
        at = self._at
        data = self._calls.ask(self._place, lambda: self._reader.read_range(at, wanted))
        view[: len(data)] = data
        self._at += len(data)
        return len(data)
