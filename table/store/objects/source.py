"""An object that is read here and there, as a file is."""

from __future__ import annotations

import errno
import io
from typing import BinaryIO, cast

from table.store.objects.bucket import Bucket, Head


def source(bucket: Bucket, key: str, head: Head, read_ahead_bytes: int) -> BinaryIO:
    """No request before something is read; then at least so many bytes, where there are."""
    return cast(BinaryIO, io.BufferedReader(_Ranges(bucket, key, head), read_ahead_bytes))


class _Ranges(io.RawIOBase):
    """Each read is one request. One object, or an error: never parts of two."""

    def __init__(self, bucket: Bucket, key: str, head: Head) -> None:
        super().__init__()
        self._bucket = bucket
        self._key = key
        self._head = head
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._head.size_bytes}[whence]
        if begin + offset < 0:
            raise OSError(errno.EINVAL, "before the file's first byte", self._bucket.place(self._key))
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
        return self._read(self._head.size_bytes)

    def _read(self, end: int) -> bytes:
        end = min(end, self._head.size_bytes)
        if end <= self._at:
            return b""
        data = self._bucket.get(self._key, self._at, end, e_tag=self._head.e_tag)
        if data is None:
            raise OSError(
                errno.ESTALE, "it was replaced while it was read: open it anew", self._bucket.place(self._key)
            )
        self._at += len(data)
        return data
