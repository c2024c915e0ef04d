"""A table on a store that the independent reader does not know, as it would be in a folder of this machine.

Hudi's own files are copied there. Of data files only the name and the size are, and their content while they
are read: the folder never holds more than one file slice.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from table.hudi.layout import META_FOLDER
from table.store.port import Store

PARTITION_FILE = ".hoodie_partition_metadata"
COPY_BYTES = 1 << 20


class Mirror:
    """Of the table that a store is; it goes when nobody holds it any more. Raises `OSError`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._made = TemporaryDirectory(prefix="lockstep-")
        self._root = Path(self._made.name)
        self.files: list[str] = []  # of data
        for below, names in self._store.walk():
            (self._root / below).mkdir(parents=True, exist_ok=True)
            for name in names:
                path = os.path.join(below, name)
                if below.partition("/")[0] == META_FOLDER or name == PARTITION_FILE:
                    with contextlib.suppress(FileNotFoundError):  # it went meanwhile
                        self._copy(path)
                elif (found := self._store.stat(path)) is not None:
                    self._empty(path, found.size_bytes)
                    self.files.append(path)

    @property
    def folder(self) -> str:
        return self._made.name

    @contextlib.contextmanager
    def held(self, paths: Iterable[str]) -> Iterator[None]:
        """These files are here, whole, as long as the context lasts."""
        sizes = {path: self._copy(path) for path in paths}
        yield
        for path, size_bytes in sizes.items():
            self._empty(path, size_bytes)

    def _copy(self, path: str) -> int:
        with self._store.source(path) as source, (self._root / path).open("wb") as target:
            shutil.copyfileobj(source, target, COPY_BYTES)
            return target.tell()

    def _empty(self, path: str, size_bytes: int) -> None:
        """It takes no room, whatever its size is."""
        with (self._root / path).open("wb") as file:
            file.truncate(size_bytes)
