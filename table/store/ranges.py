"""A file that is read here and there by requests for stretches of it, as Python's own files are read."""

from __future__ import annotations

import errno
import io
from collections.abc import Callable
from typing import BinaryIO, cast

Fetch = Callable[[int, int], bytes]
"""Begin and end of a stretch, within the file -> its bytes, no fewer. Raises `OSError`."""


def in_ranges(fetch: Fetch, *, size_bytes: int, place: str, read_ahead_bytes: int) -> BinaryIO:
    """No request before something is read; then at least so many bytes, where there are. `place`: of the
    file, for people.
    """
    return cast(BinaryIO, io.BufferedReader(_Ranges(fetch, size_bytes, place), read_ahead_bytes))


class _Ranges(io.RawIOBase):
    """Each read is one request."""

    def __init__(self, fetch: Fetch, size_bytes: int, place: str) -> None:
        super().__init__()
        self._fetch = fetch
        self._size_bytes = size_bytes
        self._place = place
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size_bytes}[whence]
        if begin + offset < 0:
            raise OSError(errno.EINVAL, "before the file's first byte", self._place)
        self._at = begin + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        data = self._read(self._at + len(view))
        view[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        return self._read(self._size_bytes)

    def _read(self, end: int) -> bytes:
        end = min(end, self._size_bytes)
        if end <= self._at:
            return b""
        data = self._fetch(self._at, end)
        self._at += len(data)
        return data
