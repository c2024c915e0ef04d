"""Whether a store can be used as a table needs it: all that a table asks of it, on a file of one's own."""

from __future__ import annotations

import contextlib
import posixpath
import uuid
from collections.abc import Callable, Iterator
from typing import NamedTuple

from table.store.location import FILE, HDFS, Location, store_at
from table.store.port import Store
from table.store.settings import StoreSettings

PREFIX = ".lockstep-validate-"
CONTENT = b"lockstep"


class Probed(NamedTuple):
    """`why_not`: empty where it could be done."""

    what: str
    why_not: str


def probe(path: str, storage: StoreSettings | None) -> Iterator[Probed]:
    """Of the place where a table is, or is to be: nothing of it is left. Raises `Refused` for no such place.

    Where folders are missing, the nearest one that is there is tried: whoever may write there may make them.
    """
    location = Location.parse(path)
    if location.scheme in (FILE, HDFS):
        location = _nearest(location, storage)
    store = store_at(str(location), settings=storage)
    name, other = (f"{PREFIX}{uuid.uuid4().hex}" for _ in range(2))
    missing = location.scheme == HDFS and store.stat("") is None  # its parent is the root, which none is told
    try:
        if missing:
            store.make_folder("")
        yield from (Probed(what, _tried(ask)) for what, ask in _steps(store, name, other))
    finally:
        for one in (name, other):
            with contextlib.suppress(OSError):
                store.delete(one)
        if missing:
            store.delete_folder("")


def _steps(store: Store, name: str, other: str) -> Iterator[tuple[str, Callable[[], str]]]:
    yield "write a file", lambda: _puts(store, name)
    yield "read it", lambda: _differs(store.read(name, bytes_max=100))
    yield "list it", lambda: "" if name in store.names() else "it was written and is not listed"
    yield "put a file only where there is none", lambda: _conditions(store, name, other)
    yield "delete it", lambda: "" if store.delete(name) else "it was written and is not there to be deleted"
    yield "list unfinished uploads", lambda: _lists_uploads(store)


def _tried(ask: Callable[[], str]) -> str:
    try:
        return ask()
    except OSError as error:
        return error.strerror or repr(error)


def _puts(store: Store, name: str) -> str:
    store.put(name, CONTENT, durable=True)
    return ""


def _lists_uploads(store: Store) -> str:
    """By the sweep, of workers that were killed."""
    next(store.uploads(), None)
    return ""


def _differs(content: bytes) -> str:
    return "" if content == CONTENT else "it does not hold what was written"


def _conditions(store: Store, taken: str, free: str) -> str:
    """A server that does not know conditions puts all the same."""
    made = store.create(free, CONTENT)
    if made and not store.create(taken, b"another"):
        return ""
    return (
        "the store does not keep conditions on puts (If-None-Match), without which no table is safe in it: "
        "use one that does"
    )


def _nearest(location: Location, storage: StoreSettings | None) -> Location:
    def is_missing() -> bool:
        return store_at(str(location), settings=storage).stat("") is None

    while posixpath.dirname(location.path) != "/" and is_missing():
        location = Location(location.scheme, location.authority, posixpath.dirname(location.path))
    return location
