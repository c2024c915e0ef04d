"""A store on a file system that this machine has mounted."""

from __future__ import annotations

import os
import resource
import shutil
import stat
import tempfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import BinaryIO

from table.store.location import Location
from table.store.objects.settings import ObjectSettings
from table.store.paths import DRAFT, inside
from table.store.port import Capabilities, FileSize, ShowsAtOnce, Sink, Stat, Store

MODE = 0o644
OPEN_MAX = 1_000


def _open_at_once() -> int:
    """A quarter of what the system lets this process have open: others of its parts need files as well."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return OPEN_MAX if allowed == resource.RLIM_INFINITY else min(OPEN_MAX, allowed // 4)


def local_store(location: Location, _settings: ObjectSettings | None) -> Store:
    return LocalStore(location.path)


class LocalStore(ShowsAtOnce):
    """See `table.store.port.Store`. Safe to use from any thread."""

    capabilities = Capabilities(
        dates=True, folders=True, hides=False, remote=False, syncs=True, open_at_once=_open_at_once()
    )

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._root = os.fspath(root)

    def place(self, path: str = "") -> str:
        return os.path.join(self._root, inside(path)) if path else self._root

    def read(self, path: str, *, bytes_max: int) -> bytes:
        with open(self.place(path), "rb") as file:
            return file.read(bytes_max)

    def source(self, path: str) -> BinaryIO:
        return open(self.place(path), "rb")

    def put(self, path: str, data: bytes, *, durable: bool = False) -> None:
        """Written beside it and renamed over it."""
        place = self.place(path)
        folder = os.path.dirname(place)
        descriptor, draft = tempfile.mkstemp(dir=folder, prefix=DRAFT)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                if durable:
                    os.fsync(descriptor)
            os.chmod(draft, MODE)
            os.replace(draft, place)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise
        if durable:
            _fsync(folder)

    def create(self, path: str, data: bytes = b"") -> bool:
        try:
            descriptor = os.open(self.place(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except FileExistsError:
            return False
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        return True

    def sink(self, path: str, *, before: Callable[[], None] | None = None) -> Sink:
        import pyarrow as pa  # heavy, and commands that read a timeline write no rows

        if before is not None:
            before()

        sink: Sink = pa.OSFile(self.place(path), "wb")
        return sink

    def discard(self, sink: Sink) -> None:
        sink.close()

    def held_bytes(self, size_bytes: int) -> int:
        """It is the system's at once."""
        return 0

    def secure(self, path: str) -> int:
        return _fsync(self.place(path))

    def names(self, folder: str = "") -> list[str]:
        return os.listdir(self.place(folder))

    def walk(self, folder: str = "", *, leaving_out: Collection[str] = ()) -> Iterator[tuple[str, list[str]]]:
        refused: list[OSError] = []
        for here, folders, names in os.walk(self.place(folder), onerror=refused.append):
            folders[:] = [name for name in folders if name not in leaving_out]
            below = os.path.relpath(here, self._root)
            yield "" if below == "." else below, names
        for error in refused:
            if not isinstance(error, FileNotFoundError):  # else it went meanwhile, or never was
                raise error

    def sizes(self, folder: str = "", *, leaving_out: Collection[str] = ()) -> Iterator[FileSize]:
        for below, names in self.walk(folder, leaving_out=leaving_out):
            for name in names:
                try:
                    size_bytes = os.stat(os.path.join(self._root, below, name)).st_size
                except FileNotFoundError:  # it went meanwhile
                    continue
                if size_bytes:
                    yield FileSize(below, name, size_bytes)

    def stat(self, path: str) -> Stat | None:
        try:
            found = os.stat(self.place(path))
        except FileNotFoundError:
            return None
        return Stat(
            size_bytes=found.st_size,
            modified_s=found.st_mtime,
            changed_s=max(found.st_mtime, found.st_ctime),  # one renamed late keeps its old content time
            identity=(found.st_ino, found.st_ctime_ns),
            is_folder=stat.S_ISDIR(found.st_mode),
        )

    def make_folder(self, path: str) -> None:
        os.makedirs(self.place(path), exist_ok=True)

    def delete(self, path: str) -> bool:
        try:
            os.unlink(self.place(path))
        except FileNotFoundError:
            return False
        return True

    def delete_folder(self, path: str) -> None:
        shutil.rmtree(self.place(path), ignore_errors=True)

    def date(self, path: str) -> None:
        """Of no time, so that a file server takes its own, as NFS has it."""
        os.utime(self.place(path))


def _fsync(place: str) -> int:
    descriptor = os.open(place, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        return os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)
