"""Folders where there are none: what lies below a prefix, read from listings that come in pages.

Other clients make objects that stand for folders: Hadoop's a key that ends with `/`, older ones a name that
ends with `_$folder$`. They are never files here. obstore takes the `/` off a key, so that of an object
without content it cannot be told at once which it is: where something is below it, it is a folder; else a
listing of its own folder tells, which has folders apart.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import obstore
from obstore.exceptions import BaseError

from table.store.objects.bucket import PAGE, Bucket
from table.store.objects.errors import Act, RequestAnswer
from table.store.objects.requests import Request
from table.store.port import FileSize

FOLDER_SUFFIX = "_$folder$"
LAST = "\U0010fffd"
"""Comes after all characters of keys."""


class Entry(NamedTuple):
    key: str
    size_bytes: int


@dataclass(slots=True)
class Listed:
    """What is directly in a folder."""

    folders: set[str] = field(default_factory=set)
    files: list[str] = field(default_factory=list)
    is_there: bool = False
    """Also where nothing is in it but an object stands for it."""


def pages(bucket: Bucket, prefix: str, *, after: str = "") -> Iterator[list[Entry]]:
    """All objects below a folder, in the order of their keys, a request each."""

    def first() -> tuple[Any, Any]:
        stream = obstore.list(bucket.client, prefix or None, offset=after or None, chunk_size=PAGE)
        return stream, next(stream, None)

    with bucket.asking(Act.LIST, prefix):
        bucket.requests.add(Request.LIST)
        stream, page = bucket.ask(first)
    while page is not None:
        yield [Entry(meta["path"], meta["size"]) for meta in page]
        if len(page) < PAGE:
            return
        after = page[-1]["path"]
        bucket.requests.add(Request.LIST)
        with bucket.asking(Act.LIST, prefix):
            try:
                page = next(stream, None)
            except BaseError as error:
                if not RequestAnswer.of(error).is_of_credentials:
                    raise
                stream, page = bucket.ask(first)


def listed(bucket: Bucket, prefix: str) -> Listed:
    """Of one folder, by its key."""
    with bucket.asking(Act.LIST, prefix):
        found = bucket.ask(lambda: obstore.list_with_delimiter(bucket.client, prefix or None))
    objects, prefixes = found["objects"], found["common_prefixes"]
    bucket.requests.add(Request.LIST, max(1, -(-(len(objects) + len(prefixes)) // PAGE)))
    answer = Listed(is_there=bool(objects or prefixes))
    answer.folders = {one.rsplit("/", 1)[-1] for one in prefixes}
    for meta in objects:
        if meta["path"] == prefix:  # it stands for the folder itself
            continue
        name = meta["path"].rsplit("/", 1)[-1]
        if name.endswith(FOLDER_SUFFIX):
            answer.folders.add(name.removesuffix(FOLDER_SUFFIX))
        else:
            answer.files.append(name)
    return answer


def is_folder(bucket: Bucket, prefix: str) -> bool:
    """Whether anything is below it, or stands for it: one request, whatever is in it."""
    return bool(next(pages(bucket, prefix), None))


@dataclass(slots=True)
class _Open:
    """A folder whose files are being listed."""

    path: str
    files: list[str] = field(default_factory=list)
    unsure: set[str] = field(default_factory=set)
    """Names of objects without content."""


class Walk:
    """A folder and all below it: (folder, names of its files), each folder once, those below it first.

    Paths are relative to `root`, the key of the store's root; `folder` is one of them. Memory holds a page,
    and the names in the folders that lead to it.
    """

    def __init__(self, bucket: Bucket, root: str, folder: str, leaving_out: Collection[str]) -> None:
        self._bucket = bucket
        self._root = root
        self._folder = folder
        self._leaving_out = frozenset(leaving_out)
        self._open: list[_Open] = []

    def __iter__(self) -> Iterator[tuple[str, list[str]]]:
        prefix = _joined(self._root, self._folder)
        for entry in self.entries():
            yield from self._take(entry, prefix)
        yield from self._close(0)

    def entries(self) -> Iterator[Entry]:
        """The objects, by their whole keys, those that stand for folders among them."""
        prefix = _joined(self._root, self._folder)
        after = ""
        while True:
            left_out = ""
            for page in pages(self._bucket, prefix, after=after):
                for entry in page:
                    left_out = self._left_out(entry.key, prefix)
                    if not left_out:
                        yield entry
                if left_out:  # to the page's end, and who knows how far beyond: it is stepped over
                    break
            else:
                return
            after = f"{left_out}/{LAST}"

    def sizes(self) -> Iterator[FileSize]:
        """Of all objects with something in them, which stand for no folder."""
        for entry in self.entries():
            if entry.size_bytes:
                folder, _, name = entry.key[len(self._root) + 1 if self._root else 0 :].rpartition("/")
                yield FileSize(folder, name, entry.size_bytes)

    def _left_out(self, key: str, prefix: str) -> str:
        """The key of the folder that is left out and holds it; empty where none does."""
        below = key[len(prefix) + 1 if prefix else 0 :]
        parts = below.split("/")
        for depth, name in enumerate(parts[:-1]):
            if name in self._leaving_out:
                return _joined(prefix, "/".join(parts[: depth + 1]))
        return ""

    def _take(self, entry: Entry, prefix: str) -> Iterator[tuple[str, list[str]]]:
        if not self._open:
            self._open.append(_Open(self._folder))
        if entry.key == prefix:
            return
        below = entry.key[len(prefix) + 1 if prefix else 0 :]
        folder, _, name = below.rpartition("/")
        yield from self._go_to(folder.split("/") if folder else [])
        if name.endswith(FOLDER_SUFFIX):
            return
        here = self._open[-1]
        here.files.append(name)
        if not entry.size_bytes:
            here.unsure.add(name)

    def _go_to(self, parts: list[str]) -> Iterator[tuple[str, list[str]]]:
        """Close the folders that do not lead there; open those that do."""
        common = 0
        for known, part in zip(self._open[1:], parts, strict=False):
            if known.path.rsplit("/", 1)[-1] != part:
                break
            common += 1
        yield from self._close(common + 1)
        for part in parts[common:]:
            above = self._open[-1]
            if part in above.unsure:  # a folder is below it: it stands for that one
                above.unsure.discard(part)
                above.files.remove(part)
            self._open.append(_Open(_joined(above.path, part)))

    def _close(self, depth: int) -> Iterator[tuple[str, list[str]]]:
        while len(self._open) > depth:
            here = self._open.pop()
            if here.unsure:
                found = listed(self._bucket, _joined(self._root, here.path))
                empty = here.unsure - set(found.files)
                here.files = [name for name in here.files if name not in empty]
                yield from ((_joined(here.path, name), []) for name in sorted(empty & found.folders))
            yield here.path, here.files


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder and name else folder or name
