"""What a table is made of at one moment, whatever its kind: files, sizes, columns. Pure.

Times are milliseconds of the Unix epoch.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

WORST_MAX = 10
"""So many table partitions are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionCensus:
    """One table partition."""

    path: str
    """Relative to the table's base path; empty where the table is not partitioned."""
    files: int
    small_files: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesCensus:
    """Files that a reader of the table as it is now would meet, and no others."""

    files: int
    """Log files aside."""
    size_bytes: int
    small_files: int
    small_below_bytes: int
    """What is smaller is small."""
    log_files: int
    log_bytes: int
    table_partitions: int
    """Those with files."""
    worst: tuple[PartitionCensus, ...]
    """Those with the most small files, and with any."""
    is_whole: bool
    """Else there were too many to look at all of them, and every figure is a least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """`kind`: its type, as Spark DDL has it."""

    name: str
    kind: str
    nullable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnChange:
    """A column, or a field inside one, by its path. A type is empty where it was not, or is not, there."""

    name: str
    was: str
    now: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaChange:
    """What an instant's schema has that the one before it had not."""

    instant: str
    completed_ms: int
    changes: tuple[ColumnChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaCensus:
    """The columns now, in their order, and how they became so, the newest change first."""

    columns: tuple[Column, ...] = ()
    changes: tuple[SchemaChange, ...] = ()
    since: str = ""
    """The oldest instant whose schema was read: of changes before it nothing is known. Empty: none was."""
    since_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """`as_of`: what the newest of the table's history was; while that is the same, so is all else."""

    as_of: str
    files: FilesCensus
    schema: SchemaCensus


class TableCensus(Protocol):
    """Who counts one table, now and again; what is kept is what cannot change. Not for several threads."""

    def take(self, *, unless: str | None, files_max: int, enough: Callable[[], bool]) -> Census | None:
        """None where the table's history still ends with `unless`, which costs a look at its names.

        Else its files are listed: `files_max` of them at most, and no more once there is `enough`, which is
        asked now and then. Raises as `table.port.TableReader` does.
        """


class Tally:
    """Adds up files, table partition by table partition."""

    def __init__(self, small_below_bytes: int) -> None:
        self._small_below_bytes = small_below_bytes
        self._files = self._size_bytes = self._small = 0
        self._log_files = self._log_bytes = 0
        self._partitions = 0
        self._worst: list[tuple[int, int, str, int]] = []

    def add(self, path: str, sizes: Sequence[int], log_sizes: Sequence[int] = ()) -> None:
        """One table partition's; bytes each."""
        if not sizes and not log_sizes:
            return
        small = sum(size < self._small_below_bytes for size in sizes)
        size_bytes = sum(sizes)
        self._partitions += 1
        self._files += len(sizes)
        self._small += small
        self._size_bytes += size_bytes
        self._log_files += len(log_sizes)
        self._log_bytes += sum(log_sizes)
        if small:
            heapq.heappush(self._worst, (small, len(sizes), path, size_bytes))
            if len(self._worst) > WORST_MAX:
                heapq.heappop(self._worst)

    def total(self, *, is_whole: bool) -> FilesCensus:
        return FilesCensus(
            files=self._files,
            size_bytes=self._size_bytes,
            small_files=self._small,
            small_below_bytes=self._small_below_bytes,
            log_files=self._log_files,
            log_bytes=self._log_bytes,
            table_partitions=self._partitions,
            worst=tuple(
                PartitionCensus(path=path, files=files, small_files=small, size_bytes=size_bytes)
                for small, files, path, size_bytes in sorted(self._worst, reverse=True)
            ),
            is_whole=is_whole,
        )
