"""Whether a store can be used as a table needs it: all that a table asks of it, on a file of one's own."""

from __future__ import annotations

import contextlib
import errno
import posixpath
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from table.store.hdfs.settings import HdfsSettings
from table.store.location import FILE, GOOGLE, HDFS, S3, Location, store_at
from table.store.objects.settings import ObjectSettings
from table.store.port import Store, Upload
from table.store.settings import StoreSettings

PREFIX = ".lockstep-validate-"
CONTENT = b"lockstep"
PATIENCE_S = 2.0
"""Who asks whether it would work wants to hear it soon, and no outage is waited out."""
CONNECT_S = 3.0
REQUEST_S = 6.0
NAME_NODE_S = 10.0
"""HDFS's first answers take longer than an object store's. What it is asked first ends it."""
PART_BYTES = 1_024
"""Less than a server puts together, and nothing is put together."""
NOBODY_BEGAN = "lockstep"
"""The number of an upload that nobody has begun: to abort it needs the permission, and nothing is left."""


class Probed(NamedTuple):
    """`why_not`: empty where it could be done."""

    what: str
    why_not: str


def probe(path: str, storage: StoreSettings | None) -> Iterator[Probed]:
    """Of the place where a table is, or is to be: nothing of it is left. Raises `Refused` for no such place.

    Where folders are missing, the nearest one that is there is tried: whoever may write there may make them.
    What fails for another reason than a permission would fail for all that follows: it is the last.
    """
    location = Location.parse(path)
    settings = hasty(storage)
    if location.scheme in (FILE, HDFS):
        location = nearest(location, settings)
    store = store_at(str(location), settings=settings)
    parts = None
    if location.scheme == GOOGLE and isinstance(settings, ObjectSettings):
        parts = store_at(str(location), settings=replace(settings, part_bytes=PART_BYTES))
    missing = location.scheme == HDFS and store.stat("") is None  # its parent is the root, which none is told
    one = _Probe(store, uploads=location.scheme == S3, parts=parts)
    try:
        if missing:
            store.make_folder("")
        for what, ask in one.steps():
            try:
                yield Probed(what, ask())
            except OSError as error:
                yield Probed(what, error.strerror or repr(error))
                if error.errno != errno.EACCES:
                    return
    finally:
        one.clear()
        if missing:
            with contextlib.suppress(OSError):
                store.delete_folder("")


def hasty(storage: StoreSettings | None) -> StoreSettings | None:
    """The same store, which is soon said not to answer."""
    if isinstance(storage, HdfsSettings):
        return replace(storage, patience_s=min(NAME_NODE_S, storage.patience_s))
    if not isinstance(storage, ObjectSettings):
        return storage
    return replace(
        storage,
        patience_s=min(PATIENCE_S, storage.patience_s),
        connect_timeout_s=min(CONNECT_S, storage.connect_timeout_s),
        request_timeout_s=min(REQUEST_S, storage.request_timeout_s),
    )


class _Probe:
    """`uploads`: whether files that were begun have to be looked for, and whether the store's tags count.

    `parts`: the same store with small parts, where to upload such is another permission than to put.
    """

    def __init__(self, store: Store, *, uploads: bool, parts: Store | None = None) -> None:
        self._store = store
        self._uploads = uploads
        self._parts = parts
        self._name, self._other = (f"{PREFIX}{uuid.uuid4().hex}" for _ in range(2))
        self._written = False

    def steps(self) -> Iterator[tuple[str, Callable[[], str]]]:
        yield "write a file", self._write
        yield "read it", self._read
        yield "list it", self._list
        if self._written:
            yield "put a file only where there is none", self._create
            if self._uploads:
                yield "replace it only where it is still the same", self._replace
            if self._parts is not None:
                yield "begin a file of several parts", self._begin
            yield "delete it", self._delete
        yield "list unfinished uploads", self._list_uploads
        if self._uploads:
            yield "abort an unfinished upload", self._abort

    def clear(self) -> None:
        if self._written:
            for one in (self._name, self._other):
                with contextlib.suppress(OSError):
                    self._store.delete(one)

    def _write(self) -> str:
        self._store.put(self._name, CONTENT, durable=True)
        self._written = True
        return ""

    def _read(self) -> str:
        try:
            content = self._store.read(self._name, bytes_max=100)
        except FileNotFoundError:
            return "it was written and is not there" if self._written else ""
        return "" if content == CONTENT else "it does not hold what was written"

    def _list(self) -> str:
        listed = self._name in self._store.names()
        return "" if listed or not self._written else "it was written and is not listed"

    def _create(self) -> str:
        """A server that does not know conditions puts all the same."""
        made = self._store.create(self._other, CONTENT)
        if made and not self._store.create(self._name, b"another"):
            return ""
        return (
            "the store does not keep conditions on puts (If-None-Match), without which no table is safe in "
            "it: use one that does"
        )

    def _replace(self) -> str:
        """By the tag that its answers give, which something between may change or take away."""
        before = self._store.stat(self._name)
        try:
            self._store.date(self._name)
        except OSError as error:
            if error.errno not in (errno.EBUSY, errno.EOPNOTSUPP):
                raise
            return (
                "a put on condition of the ETag that the store gave is refused: see whether a proxy between "
                "changes or drops ETags (it compresses, or caches), and take it out"
            )
        after = self._store.stat(self._name)
        same = before is not None and after is not None and before.identity[2:] == after.identity[2:]
        return "it was replaced and is still the same" if same else ""

    def _begin(self) -> str:
        """And give it up, which leaves nothing."""
        assert self._parts is not None
        sink = self._parts.sink(self._other)
        try:
            for _ in range(2):
                sink.write(bytes(PART_BYTES))
        finally:
            self._parts.discard(sink)
        return ""

    def _delete(self) -> str:
        return "" if self._store.delete(self._name) else "it was written and is not there to be deleted"

    def _list_uploads(self) -> str:
        """By the sweep, of workers that were killed."""
        next(self._store.uploads(), None)
        return ""

    def _abort(self) -> str:
        self._store.abort(Upload(path=self._other, number=NOBODY_BEGAN, begun=datetime.now(UTC)))
        return ""


def nearest(location: Location, storage: StoreSettings | None) -> Location:
    """The folder itself, or the one above it that is there."""

    def is_missing() -> bool:
        return store_at(str(location), settings=storage).stat("") is None

    while posixpath.dirname(location.path) != "/" and is_missing():
        location = Location(location.scheme, location.authority, posixpath.dirname(location.path))
    return location
