"""The reference store, in memory. tests/conformance/test_store.py proves that it does as the local one."""

from __future__ import annotations

import io
import itertools
import threading
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import BinaryIO

from table.store.paths import inside
from table.store.port import Capabilities, Data, FileSize, ShowsAtOnce, Sink, Stat


@dataclass(slots=True)
class _File:
    number: int
    modified_s: float
    data: bytes = b""


@dataclass(slots=True)
class _Folder:
    number: int
    modified_s: float


@dataclass(slots=True)
class MemoryStore(ShowsAtOnce):
    """See `table.store.port.Store`."""

    clock_s: Callable[[], float] = field(default_factory=lambda: iter(itertools.count(1.0)).__next__)
    """The store's own clock, which goes on with every change."""
    capabilities: Capabilities = field(
        default_factory=lambda: Capabilities(dates=True, folders=True, hides=False, remote=False, syncs=True)
    )
    _entries: dict[str, _File | _Folder] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self._entries[""] = _Folder(0, self.clock_s())

    def place(self, path: str = "") -> str:
        return f"memory:/{path}"

    def read(self, path: str, *, bytes_max: int) -> bytes:
        return self._file(path).data[:bytes_max]

    def source(self, path: str) -> BinaryIO:
        return io.BytesIO(self._file(path).data)

    def put(self, path: str, data: bytes, *, durable: bool = False) -> None:
        with self._lock:
            self._folder(_parent(path))
            if isinstance(self._entries.get(path), _Folder):
                raise IsADirectoryError(path)
            self._entries[path] = self._made(data)

    def create(self, path: str, data: bytes = b"") -> bool:
        with self._lock:
            self._folder(_parent(path))
            if path in self._entries:
                return False
            self._entries[path] = self._made(data)
            return True

    def sink(self, path: str, *, before: Callable[[], None] | None = None) -> Sink:
        if before is not None:
            before()
        self._folder(_parent(path))
        made = self._entries[path] = self._made(b"")
        return _Sink(made)

    def discard(self, sink: Sink) -> None:
        sink.close()

    def held_bytes(self, size_bytes: int) -> int:
        """The store's own memory stands for a disk."""
        return 0

    def secure(self, path: str) -> int:
        entry = self._entry(path)
        return len(entry.data) if isinstance(entry, _File) else 0

    def names(self, folder: str = "") -> list[str]:
        self._folder(folder)
        return [PurePosixPath(path).name for path in self._entries if path and _parent(path) == folder]

    def walk(self, folder: str = "", *, leaving_out: Collection[str] = ()) -> Iterator[tuple[str, list[str]]]:
        if not isinstance(self._entries.get(folder), _Folder):
            return
        below = {name: self._entries.get(_joined(folder, name)) for name in self.names(folder)}
        yield folder, [name for name, entry in below.items() if isinstance(entry, _File)]
        for name, entry in below.items():
            if isinstance(entry, _Folder) and name not in leaving_out:
                yield from self.walk(_joined(folder, name), leaving_out=leaving_out)

    def sizes(self, folder: str = "", *, leaving_out: Collection[str] = ()) -> Iterator[FileSize]:
        for below, names in self.walk(folder, leaving_out=leaving_out):
            for name in names:
                if size_bytes := len(self._file(_joined(below, name)).data):
                    yield FileSize(below, name, size_bytes)

    def stat(self, path: str) -> Stat | None:
        entry = self._entries.get(inside(path))
        if entry is None:
            return None
        is_folder = isinstance(entry, _Folder)
        return Stat(
            size_bytes=len(entry.data) if isinstance(entry, _File) else 0,
            modified_s=entry.modified_s,
            changed_s=entry.modified_s,
            identity=(entry.number,),
            is_folder=is_folder,
        )

    def make_folder(self, path: str) -> None:
        for folder in [*reversed(PurePosixPath(path).parents), PurePosixPath(path)]:
            name = "" if str(folder) == "." else str(folder)
            found = self._entries.setdefault(name, _Folder(next(self._numbers), self.clock_s()))
            if isinstance(found, _File):
                raise FileExistsError(name) if name == path else NotADirectoryError(name)

    def delete(self, path: str) -> bool:
        if isinstance(self._entries.get(inside(path)), _Folder):
            raise IsADirectoryError(path)
        return self._entries.pop(path, None) is not None

    def delete_folder(self, path: str) -> None:
        for one in [one for one in self._entries if one == path or one.startswith(f"{path}/")]:
            del self._entries[one]

    def date(self, path: str) -> None:
        self._entry(path).modified_s = self.clock_s()

    def _made(self, data: bytes) -> _File:
        return _File(next(self._numbers) + 1, self.clock_s(), bytes(data))

    def _entry(self, path: str) -> _File | _Folder:
        if inside(path) not in self._entries:
            raise FileNotFoundError(2, "No such file or directory", path)
        return self._entries[path]

    def _file(self, path: str) -> _File:
        entry = self._entry(path)
        if isinstance(entry, _Folder):
            raise IsADirectoryError(path)
        return entry

    def _folder(self, path: str) -> None:
        if not isinstance(self._entry(path), _Folder):
            raise NotADirectoryError(path)


@dataclass(slots=True)
class _Sink:
    file: _File
    closed: bool = False

    def write(self, data: Data) -> int:
        self.file.data += bytes(data)
        return len(bytes(data))

    def tell(self) -> int:
        return len(self.file.data)

    def flush(self) -> None:
        return None

    def close(self) -> None:
        self.closed = True


def _parent(path: str) -> str:
    parent = str(PurePosixPath(inside(path)).parent)
    return "" if parent == "." else parent


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
