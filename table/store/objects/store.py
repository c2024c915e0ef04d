"""A store of objects: S3 and its kin, Google's, Azure's, by one library without a JVM (obstore)."""

from __future__ import annotations

import errno
import logging
import math
from collections.abc import Callable, Collection, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, BinaryIO

from table.store.location import Location
from table.store.objects import listing
from table.store.objects.bucket import PAGE, Bucket, Head, new_mark
from table.store.objects.clients import client_of
from table.store.objects.conditional import put_if
from table.store.objects.requests import Requests
from table.store.objects.settings import ObjectSettings
from table.store.objects.sink import ObjectSink
from table.store.paths import inside, key_of
from table.store.port import Capabilities, FileSize, Sink, Stat, Store, Upload
from table.store.ranges import in_ranges

if TYPE_CHECKING:
    from table.store.objects.unfinished import Unfinished

DATED_BYTES_MAX = 1024 * 1024
DATED_TRIES_MAX = 5

log = logging.getLogger("lockstep.store")


def object_store(location: Location, settings: ObjectSettings) -> Store:
    return ObjectStore(location.scheme, location.authority, location.path.strip("/"), settings)


class ObjectStore:
    """See `table.store.port.Store`. Safe to use from any thread; made in the process that uses it.

    `scheme`: `s3a`, `gs` or `abfss`; `authority`: the bucket; `prefix`: the key of the root, without a `/` at
    either end. A file's date is what the server says when it has put it, in whole seconds; of one that came
    in parts that is the upload's begin, on some. `identity`: the server's tag and version, and the mark of
    the put.
    """

    capabilities = Capabilities(dates=True, folders=False, hides=True, remote=True, syncs=False)

    def __init__(self, scheme: str, authority: str, prefix: str, settings: ObjectSettings) -> None:
        self.requests = Requests()
        self._root = key_of("", prefix)
        self._settings = settings
        client, renewed = client_of(scheme, authority, settings)
        self._bucket = Bucket(client, scheme=scheme, name=authority, requests=self.requests, renewed=renewed)

    @cached_property
    def unfinished(self) -> Unfinished:
        """Uploads that were begun and neither completed nor aborted. Of S3 only."""
        from table.store.objects.unfinished import Unfinished

        return Unfinished(self._bucket, self._root, self._settings)

    def place(self, path: str = "") -> str:
        inside(path)
        return self._bucket.place("/".join(part for part in (self._root, path) if part))

    def read(self, path: str, *, bytes_max: int) -> bytes:
        key = self._key(path)
        if bytes_max <= 0:
            self._head(path)
            return b""
        return self._bucket.get(key, 0, bytes_max) or b""

    def source(self, path: str) -> BinaryIO:
        """One object, or an error: never parts of two."""
        head, key = self._head(path), self._key(path)

        def fetch(begin: int, end: int) -> bytes:
            data = self._bucket.get(key, begin, end, e_tag=head.e_tag)
            if data is None:
                why = "it was replaced while it was read: open it anew"
                raise OSError(errno.ESTALE, why, self.place(path))
            return data

        return in_ranges(
            fetch,
            size_bytes=head.size_bytes,
            place=self.place(path),
            read_ahead_bytes=self._settings.read_ahead_bytes,
        )

    def put(self, path: str, data: bytes, *, durable: bool = False) -> None:
        """An object is there whole or not at all, and what was answered is durable."""
        self._bucket.put(self._key(path), data, new_mark())

    def create(self, path: str, data: bytes = b"") -> bool:
        """A put on condition that nothing is there; of an answer that is lost the object itself tells."""
        return put_if(self._bucket, self._key(path), data, None, patience_s=self._settings.patience_s)

    def sink(self, path: str, *, before: Callable[[], None] | None = None) -> Sink:
        return ObjectSink(
            self._bucket,
            self._key(path),
            part_bytes=self._settings.part_bytes,
            parts_at_once=self._settings.parts_at_once,
            forget=self._forget,
            before=before,
        )

    def discard(self, sink: Sink) -> None:
        assert isinstance(sink, ObjectSink)
        sink.discard()

    def held_bytes(self, size_bytes: int) -> int:
        """What waits to be a part, and the parts that are on their way."""
        return min(size_bytes, self._settings.sink_bytes_max)

    def uploads(self, folder: str = "") -> Iterator[Upload]:
        """Of S3. Azure forgets within a week what was not ended, Google by a rule of the bucket's alone."""
        self._key(folder)
        return self.unfinished.uploads(folder) if self._bucket.scheme == "s3a" else iter(())

    def abort(self, upload: Upload) -> None:
        self.unfinished.abort(upload)

    def secure(self, path: str) -> int:
        """What was put is durable. The size of an object that is there; of a folder nothing is known."""
        head = self._bucket.head(self._key(path))
        if head is not None:
            return head.size_bytes
        if not listing.is_folder(self._bucket, self._key(path)):
            raise self._missing(path)
        return 0

    def names(self, folder: str = "") -> list[str]:
        key = self._key(folder)
        found = listing.listed(self._bucket, key)
        if not found.is_there and folder:
            if self._bucket.head(key) is not None:
                raise NotADirectoryError(errno.ENOTDIR, "Not a directory", self.place(folder))
            raise self._missing(folder)
        return sorted(found.folders.union(found.files))

    def walk(self, folder: str = "", *, leaving_out: Collection[str] = ()) -> Iterator[tuple[str, list[str]]]:
        self._key(folder)
        return iter(listing.Walk(self._bucket, self._root, folder, leaving_out))

    def sizes(self, folder: str = "", *, leaving_out: Collection[str] = ()) -> Iterator[FileSize]:
        self._key(folder)
        return listing.Walk(self._bucket, self._root, folder, leaving_out).sizes()

    def stat(self, path: str) -> Stat | None:
        """Two requests where no file is there: a folder is what something is below."""
        key = self._key(path)
        head = self._bucket.head(key) if key else None
        if head is not None:
            return _stat(head)
        if not listing.is_folder(self._bucket, key):
            return None
        return Stat(size_bytes=0, modified_s=math.inf, changed_s=math.inf, identity=(), is_folder=True)

    def make_folder(self, path: str) -> None:
        """Nothing to be done: it is there with the first file in it."""
        self._key(path)

    def delete(self, path: str) -> bool:
        """S3 does not say whether it was there, so it is asked before: of two that delete a file at once both
        may be told so.
        """
        key = self._key(path)
        if self._bucket.scheme == "s3a" and self._bucket.head(key) is None:
            return False
        return self._bucket.delete(key)

    def delete_folder(self, path: str) -> None:
        key = self._key(path)
        try:
            if self._bucket.scheme == "s3a":
                self.unfinished.delete_below(key)
                return
            for page in listing.pages(self._bucket, key):
                self._bucket.delete_many([entry.key for entry in page][:PAGE])
        except OSError as error:
            log.warning("not all of folder %s was removed: %s", self.place(path), error.strerror)

    def date(self, path: str) -> None:
        """Its own content is put again, on condition that it is still there as it was."""
        key = self._key(path)
        for _ in range(DATED_TRIES_MAX):
            head = self._head(path)
            if head.size_bytes > DATED_BYTES_MAX:
                raise OSError(errno.EFBIG, "too large to be dated", self.place(path))
            if not head.condition:
                why = "the store's answer has no ETag: something between drops it"
                raise OSError(errno.EOPNOTSUPP, why, self.place(path))
            data = self._bucket.get(key, 0, DATED_BYTES_MAX, e_tag=head.e_tag) if head.size_bytes else b""
            if data is not None and put_if(
                self._bucket, key, data, head.condition, patience_s=self._settings.patience_s
            ):
                return
        raise OSError(errno.EBUSY, "others go on writing to it", self.place(path))

    def _key(self, path: str) -> str:
        return key_of(self._root, path)

    def _head(self, path: str) -> Head:
        head = self._bucket.head(self._key(path))
        if head is None:
            raise self._missing(path)
        return head

    def _missing(self, path: str) -> FileNotFoundError:
        return FileNotFoundError(errno.ENOENT, "No such file or directory", self.place(path))

    def _forget(self, key: str) -> None:
        if self._bucket.scheme == "s3a":
            self.unfinished.abort_of(key)


def _stat(head: Head) -> Stat:
    modified_s = head.modified.timestamp()
    return Stat(
        size_bytes=head.size_bytes,
        modified_s=modified_s,
        changed_s=modified_s,
        identity=(head.e_tag, head.version, head.mark, int(modified_s)),
    )
