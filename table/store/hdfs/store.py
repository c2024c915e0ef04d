"""HDFS behind the port of stores.

A call whose answer is lost is asked again by the client, and then meets its own effect: what was created "is
there already", what was renamed "is gone". So nothing is decided by an answer but a plain yes. A file is
written under a name of its own and renamed; whether it was, is seen by whether it is still there, and made so
by renaming it away: of two renames of one file only one can be carried out.
"""

from __future__ import annotations

import contextlib
import errno
import posixpath
import time
import uuid
from collections.abc import Callable, Collection, Iterator
from typing import BinaryIO, TypeVar

from hdfs_native import FileStatus

from table.errors import Refused
from table.store.hdfs.calls import ENDING_AT_ONCE, Calls
from table.store.hdfs.settings import CLIENT_BYTES, HdfsSettings
from table.store.hdfs.sink import HdfsSink
from table.store.hdfs.writing import Writing
from table.store.location import Location, not_yet
from table.store.paths import DRAFT, draft_of, inside
from table.store.port import Capabilities, FileSize, OutcomeUnknown, ShowsAtOnce, Sink, Stat, Store
from table.store.ranges import in_ranges
from table.store.security import SIMPLE, asked_security, no_security
from table.store.settings import StoreSettings

READ_AHEAD_BYTES = 1 << 20
DECIDE_MAX = 3
FOLDER_MODE = 0o755
FORGET_S, SILENT_S = 2.0, 60.0
"""How long whoever gives up files waits for one to be deleted; how long for no other, where it was not."""
T = TypeVar("T")


def hdfs_store(location: Location, settings: StoreSettings | None) -> Store:
    if not isinstance(settings, HdfsSettings):
        raise Refused(not_yet(location.scheme, str(location)))
    if (asked := asked_security(settings)) != SIMPLE:
        raise Refused(no_security(location, asked))
    return HdfsStore(location, settings)


class HdfsStore(ShowsAtOnce):
    """See `table.store.port.Store`. Safe to use from any thread."""

    capabilities = Capabilities(
        dates=True, folders=True, hides=True, remote=True, syncs=False, ending_at_once=ENDING_AT_ONCE
    )

    def __init__(self, location: Location, settings: HdfsSettings) -> None:
        self.location = location
        self._url = f"{location.scheme}://{location.authority}"
        self._root = location.path
        self._settings = settings
        self._calls = Calls(self._url, settings)
        self._silent_until_s = 0.0

    def place(self, path: str = "") -> str:
        return self._url + self._full(path)

    def read(self, path: str, *, bytes_max: int) -> bytes:
        full = self._full(path)
        return self._ask(path, lambda: self._calls.client().read(full).read(bytes_max))

    def source(self, path: str) -> BinaryIO:
        full = self._full(path)
        reader = self._ask(path, lambda: self._calls.client().read(full))
        return in_ranges(
            lambda begin, end: self._ask(path, lambda: reader.read_range(begin, end - begin)),
            size_bytes=len(reader),
            place=self.place(path),
            read_ahead_bytes=READ_AHEAD_BYTES,
        )

    def put(self, path: str, data: bytes, *, durable: bool = False) -> None:
        """Written beside it and renamed over it. All is durable here."""
        full = self._full(path)
        for is_last in (False, True):
            draft = self._draft(path, data)
            try:
                return self._rename(path, draft, full, over=True)
            except FileNotFoundError:  # asked twice, and renamed the first time; or the draft was swept
                if is_last:
                    raise
            except OSError:
                self._drop(draft)
                raise

    def create(self, path: str, data: bytes = b"") -> bool:
        draft = self._draft(path, data)
        full = self._full(path)
        try:
            self._rename(path, draft, full)
        except OSError as error:
            was_renamed = self._decide(path, draft, data, error)
            if not was_renamed and not isinstance(error, FileExistsError | FileNotFoundError):
                raise
            return was_renamed
        return True

    def sink(self, path: str, *, before: Callable[[], None] | None = None) -> Sink:
        """A draft, begun with the first piece that goes out, or with its end, and renamed once it is whole.

        `before` may make its folder. Where nobody ends it, it stays for whoever sweeps.
        """
        folder, name = posixpath.split(self._full(path))
        draft = posixpath.join(folder, draft_of(name))

        def begin() -> Writing:
            if before is not None:
                before()
            return self._written(path, draft)

        return HdfsSink(
            begin,
            lambda size_bytes: self._show(path, draft, size_bytes),
            lambda: self._forget(draft),
            write_bytes=self._settings.write_bytes,
        )

    def _show(self, path: str, draft: str, size_bytes: int) -> None:
        """Nobody else writes at this path: what is there is the draft."""
        try:
            self._rename(path, draft, self._full(path), over=True)
        except FileNotFoundError:
            found = self.stat(path)
            if found is None or found.size_bytes != size_bytes:
                raise
            # asked twice: the first time it was renamed

    def held_bytes(self, size_bytes: int) -> int:
        return min(size_bytes, self._settings.write_bytes + CLIENT_BYTES)

    def discard(self, sink: Sink) -> None:
        assert isinstance(sink, HdfsSink)
        sink.let_go()

    def secure(self, path: str) -> int:
        """Whatever was closed is on disks, and names are as soon as the name node has answered."""
        found = self._status(path)
        if found is None:
            raise self._missing(path)
        return 0 if found.isdir else found.length

    def names(self, folder: str = "") -> list[str]:
        return [posixpath.basename(one.path) for one in self._listed(folder)]

    def walk(self, folder: str = "", *, leaving_out: Collection[str] = ()) -> Iterator[tuple[str, list[str]]]:
        for here, files in self._walk(folder, leaving_out):
            yield here, [posixpath.basename(one.path) for one in files]

    def sizes(self, folder: str = "", *, leaving_out: Collection[str] = ()) -> Iterator[FileSize]:
        for here, files in self._walk(folder, leaving_out):
            for one in files:
                if one.length:
                    yield FileSize(here, posixpath.basename(one.path), one.length)

    def stat(self, path: str) -> Stat | None:
        found = self._status(path)
        if found is None:
            return None
        modified_s = found.modification_time / 1_000
        return Stat(
            size_bytes=found.length,
            modified_s=modified_s,
            changed_s=modified_s,
            identity=(found.modification_time, found.length, found.owner),
            is_folder=found.isdir,
        )

    def make_folder(self, path: str) -> None:
        full = self._full(path)
        self._ask(path, lambda: self._calls.client().mkdirs(full, FOLDER_MODE, True))

    def delete(self, path: str) -> bool:
        """Where an answer was lost, and it was asked for again, the file is gone and False is said."""
        found = self._status(path)
        if found is None:
            return False
        if found.isdir:
            raise IsADirectoryError(errno.EISDIR, "Is a directory", self.place(path))
        full = self._full(path)
        return self._ask(path, lambda: self._calls.client().delete(full, False))

    def delete_folder(self, path: str) -> None:
        full = self._full(path)
        with contextlib.suppress(OSError):
            self._ask(path, lambda: self._calls.client().delete(full, True))

    def date(self, path: str) -> None:
        """Opened to be appended to, and closed: the name node dates it."""
        full = self._full(path)
        writer = self._ask(path, lambda: self._calls.client().inner.append(full))
        self._ask(path, writer.close)

    # --- files under names of their own ---------------------------------------------------------------

    def _draft(self, path: str, data: bytes) -> str:
        """Its whole path. Beside what it shall be."""
        draft = self._beside(path)
        file = self._written(path, draft)
        try:
            file.end(data)
        except OSError:
            self._drop(draft)
            raise
        return draft

    def _decide(self, path: str, draft: str, data: bytes, error: OSError) -> bool:
        """Whether the draft was renamed to what it shall be; from here on it is not, where it was not.

        Raises `OutcomeUnknown` where that cannot be found out, `FileNotFoundError` where neither is there.
        """
        grave = self._beside(path)
        for _ in range(DECIDE_MAX):
            try:
                self._rename(path, draft, grave)
            except (FileNotFoundError, FileExistsError):
                pass  # of an answer that was lost, too: what is there says it
            except OSError:
                continue
            try:
                if self._is_there(path, grave):
                    self._drop(grave)
                    return False
                if not self._is_there(path, draft):
                    return self._holds(path, data)
            except FileNotFoundError:
                raise
            except OSError:
                continue
        raise OutcomeUnknown(
            errno.ETIMEDOUT,
            f"HDFS does not say whether the file was created ({error.strerror})",
            self.place(path),
        ) from error

    def _holds(self, path: str, data: bytes) -> bool:
        """Asked where a draft is gone: it may have been swept, of one who stood still for a day, or have gone
        with its folder.
        """
        return self.read(path, bytes_max=len(data) + 1) == data

    def _rename(self, path: str, source: str, target: str, *, over: bool = False) -> None:
        self._ask(path, lambda: self._calls.client().rename(source, target, over))

    def _written(self, path: str, full: str) -> Writing:
        """A file that is open to be written, over whatever is there."""
        return Writing(self._calls, full, self.place(path))

    def _drop(self, full: str) -> None:
        """A draft that stays is nobody's file, and hidden."""
        with contextlib.suppress(OSError):
            self._calls.ask(full, lambda: self._calls.client().delete(full, False))

    def _forget(self, draft: str) -> None:
        """The same, of one that a sweep finds: a name node that is silent is asked about no others."""
        if time.monotonic() < self._silent_until_s:
            return
        try:
            self._calls.ask(draft, lambda: self._calls.client().delete(draft, False), patience_s=FORGET_S)
        except OutcomeUnknown:
            self._silent_until_s = time.monotonic() + SILENT_S
        except OSError:
            return

    def _beside(self, path: str) -> str:
        return posixpath.join(posixpath.dirname(self._full(path)), f"{DRAFT}{uuid.uuid4().hex}")

    # --- what is there --------------------------------------------------------------------------------

    def _listed(self, folder: str) -> list[FileStatus]:
        full = self._full(folder)
        listed = self._ask(folder, lambda: list(self._calls.client().list_status(full, False)))
        if len(listed) == 1 and not listed[0].isdir and listed[0].path == full:
            raise NotADirectoryError(errno.ENOTDIR, "Not a directory", self.place(folder))
        return [one for one in listed if one.path != full]

    def _walk(self, folder: str, leaving_out: Collection[str]) -> Iterator[tuple[str, list[FileStatus]]]:
        refused: list[OSError] = []
        waiting = [folder]
        while waiting:
            here = waiting.pop()
            try:
                listed = self._listed(here)
            except FileNotFoundError:  # it went meanwhile, or never was
                continue
            except OSError as error:
                refused.append(error)
                continue
            folders = [posixpath.basename(one.path) for one in listed if one.isdir]
            below = sorted((name for name in folders if name not in leaving_out), reverse=True)
            waiting += [posixpath.join(here, name) for name in below]
            yield here, [one for one in listed if not one.isdir]
        if refused:
            raise refused[0]

    def _status(self, path: str) -> FileStatus | None:
        return self._found(path, self._full(path))

    def _is_there(self, path: str, full: str) -> bool:
        return self._found(path, full) is not None

    def _found(self, path: str, full: str) -> FileStatus | None:
        try:
            return self._ask(path, lambda: self._calls.client().get_file_info(full))
        except FileNotFoundError:
            return None

    def _full(self, path: str) -> str:
        return f"{self._root}/{inside(path)}" if path else self._root

    def _missing(self, path: str) -> OSError:
        return FileNotFoundError(errno.ENOENT, "No such file or directory", self.place(path))

    def _ask(self, path: str, call: Callable[[], T]) -> T:
        return self._calls.ask(self.place(path), call)
