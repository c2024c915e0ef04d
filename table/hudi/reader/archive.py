"""The archived timeline of a Hudi table with timeline layout 2, read without a JVM.

Folder `history` is a log-structured merge tree, as hudi-spark 1.2.0 writes it: `_version_` names the newest
`manifest_<version>` (JSON), which lists Parquet files `<first>_<last>_<level>.parquet`. Their columns are
instantTime, completionTime, action and metadata (the bytes of the active timeline's file).
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple

import pyarrow.parquet as pq

from table.errors import Unavailable
from table.hudi.reader.stored import UNREADABLE, read_bytes, unavailable
from table.store.port import Store

METADATA_ACTIONS = frozenset({"commit", "deltacommit", "replacecommit"})
"""Actions whose metadata is a commit's. The others (clean, rollback, savepoint …) are listed without it."""
ATTEMPTS = 5
ROWS_PER_BATCH = 64
_MANIFEST = re.compile(r"manifest_(\d+)", re.ASCII)
COLUMNS = ("instantTime", "completionTime", "action", "metadata")


class ArchivedInstant(NamedTuple):
    """A completed instant. `metadata`: the bytes of its file, empty where none were asked for."""

    requested: str
    completed: str
    action: str
    metadata: bytes


class ArchivedTimeline:
    """The archived timeline in `folder`. Every call reads it again.

    Raises `Unavailable` where storage does not serve, or Hudi merges files faster than they are read.
    """

    def __init__(self, store: Store, folder: str) -> None:
        self._store = store
        self._folder = folder

    def newest_first(self, *, until: Callable[[], str] = lambda: "") -> Iterator[ArchivedInstant]:
        """Iterate over all instants, with the metadata of commits.

        Files that end before the requested time `until()` are not read.
        """
        return self._each(lambda name: _last_of(name) >= until(), self._entries)

    def find(self, instants: Collection[str]) -> dict[str, ArchivedInstant]:
        """Return those of `instants` that the archived timeline holds, by requested time."""
        return {one.requested: one for one in self._among(instants, with_metadata=True)}

    def requested(self, instants: Collection[str]) -> set[str]:
        """Return those of `instants` that the archived timeline holds; their metadata is not read."""
        return {one.requested for one in self._among(instants, with_metadata=False)}

    def _among(self, instants: Collection[str], *, with_metadata: bool) -> Iterable[ArchivedInstant]:
        if not instants:
            return ()
        first, last, filters = min(instants), max(instants), [("instantTime", "in", sorted(instants))]
        return self._each(
            lambda name: _first_of(name) <= last and first <= _last_of(name),
            lambda name: self._matching(name, filters, with_metadata=with_metadata),
        )

    def rollbacks(self, since: str) -> Iterator[ArchivedInstant]:
        """Iterate over completed rollbacks requested at `since` or later, with their metadata."""
        return self._each(
            lambda name: _last_of(name) >= since,
            lambda name: self._matching(name, [("action", "==", "rollback"), ("instantTime", ">=", since)]),
        )

    def _each(
        self, is_wanted: Callable[[str], bool], read: Callable[[str], Iterable[ArchivedInstant]]
    ) -> Iterator[ArchivedInstant]:
        """Iterate over what `read` returns of the wanted files, newest file first, each instant once.

        Hudi merges files while they are read: a file that is gone was merged into another one, which the
        newest manifest names.
        """
        given: set[str] = set()
        for _ in range(ATTEMPTS):
            try:
                for name in self._files():
                    if not is_wanted(name):
                        continue
                    for entry in read(name):
                        if entry.requested not in given:
                            given.add(entry.requested)
                            yield entry
            except FileNotFoundError:
                continue
            return
        raise Unavailable(
            f"Table {self._store.place()}: the archived timeline changed {ATTEMPTS} times while it was read."
            " Try again."
        )

    def _files(self) -> list[str]:
        """Return the file names of the newest manifest, the file with the newest instant first."""
        manifest = self._manifest()
        if not manifest:
            return []
        try:
            listed = json.loads(self._read(manifest))["files"]
            return sorted((str(entry["fileName"]) for entry in listed), key=_last_of, reverse=True)
        except FileNotFoundError:
            raise
        except UNREADABLE as error:
            raise unavailable(self._store, posixpath.join(self._folder, manifest), error) from error

    def _manifest(self) -> str:
        """Return the name of the newest manifest, empty if nothing has been archived.

        Without `_version_`, or with an empty one, it is the manifest of the highest version, as for Hudi
        (`LSMTimeline.latestSnapshotVersion`).
        """
        try:
            version = self._read("_version_").decode("ascii").strip()
        except FileNotFoundError:
            version = ""
        except ValueError as error:
            raise unavailable(self._store, self._folder, error) from error
        if version:
            return f"manifest_{version}"
        try:
            names = self._store.names(self._folder)
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise unavailable(self._store, self._folder, error) from error
        versions = [int(match[1]) for name in names if (match := _MANIFEST.fullmatch(name))]
        return f"manifest_{max(versions)}" if versions else ""

    def _entries(self, name: str) -> list[ArchivedInstant]:
        entries: list[ArchivedInstant] = []
        with self._opened(name) as source, pq.ParquetFile(source) as file:
            for batch in file.iter_batches(batch_size=ROWS_PER_BATCH, columns=[*COLUMNS]):
                entries += (
                    _entry(row, with_metadata=row["action"] in METADATA_ACTIONS) for row in batch.to_pylist()
                )
        return sorted(entries, key=lambda entry: (entry.completed, entry.requested), reverse=True)

    def _matching(
        self, name: str, filters: list[tuple[str, str, Any]], *, with_metadata: bool = True
    ) -> list[ArchivedInstant]:
        columns = [*COLUMNS] if with_metadata else [*COLUMNS[:-1]]
        with self._opened(name) as source:
            rows = pq.read_table(source, columns=columns, filters=filters, partitioning=None).to_pylist()
        return [_entry(row, with_metadata=with_metadata) for row in rows]

    @contextmanager
    def _opened(self, name: str) -> Iterator[BinaryIO]:
        """Open a file of the archive. Raises `FileNotFoundError` as it is, other damage as `Unavailable`."""
        path = posixpath.join(self._folder, name)
        try:
            with self._store.source(path) as source:
                yield source
        except FileNotFoundError:
            raise
        except UNREADABLE as error:
            raise unavailable(self._store, path, error) from error

    def _read(self, name: str) -> bytes:
        return read_bytes(self._store, posixpath.join(self._folder, name))


def _entry(row: dict[str, Any], *, with_metadata: bool) -> ArchivedInstant:
    metadata = row["metadata"] if with_metadata else b""
    return ArchivedInstant(row["instantTime"], row["completionTime"], row["action"], metadata or b"")


def _first_of(archive_file: str) -> str:
    """Return the least requested time in a file of the archived timeline, by its name."""
    return archive_file.split("_")[0]


def _last_of(archive_file: str) -> str:
    """Return the greatest requested time in a file of the archived timeline, by its name."""
    return archive_file.split("_")[1]
