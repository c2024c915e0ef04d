"""Which table partitions are past their time: by what their paths say, or by a field of their rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Any, Final, Protocol

from table.ages import FileAges
from table.hudi.driver.asking import elements
from table.hudi.driver.session import Session
from table.hudi.upkeep.footers import newest_ms
from table.partition_columns import columns_of
from table.port import TableSpec
from table.retention import expired, told_by

AT_ONCE_MAX: Final = 1_000
"""Table partitions in one instant; the oldest first where their paths say how old they are."""
FILES_AT_ONCE_MAX: Final = 1_000
"""Files in one instant whose names are compared under the table lock, at a third of a millisecond each."""
FOOTERS_AT_ONCE_MAX: Final = 10_000
"""In one look. What is left is for the next one."""
FOOTERS_TOGETHER: Final = 64

Past = Mapping[str, frozenset[str] | None]
"""By their paths, the names of all the files that were looked at; None: whatever it holds may go."""


class Finder(Protocol):
    def find(self, session: Session, paths: Collection[str], busy: Collection[str], now_ms: int) -> Past:
        """Of these table partitions, which are all, those that hold something and are past their time, but
        for the busy ones. Raises `TableError`, and what Py4J raises.
        """


def finder(spec: TableSpec) -> Finder:
    return ByField(spec) if spec.retention_field else ByPath(spec)


class ByPath:
    def __init__(self, spec: TableSpec) -> None:
        self._told = told_by(spec, spec.retention_pattern)
        self._retention_ms = spec.retention_ms

    def find(self, session: Session, paths: Collection[str], busy: Collection[str], now_ms: int) -> Past:
        by_value: dict[str, list[str]] = {}
        for path in paths:
            by_value.setdefault(self._told.value(path), []).append(path)
        past = expired(by_value, self._told.ages, now_ms=now_ms, retention_ms=self._retention_ms)
        view = session.table().getSliceView()
        left = (path for value in past for path in by_value[value] if path not in busy)
        return dict.fromkeys(islice((path for path in left if file_groups(view, path)), AT_ONCE_MAX))


class ByField:
    """The newest value in all files of a table partition counts, as their footers say it."""

    def __init__(self, spec: TableSpec) -> None:
        self._field = spec.retention_field
        self._columns = frozenset(columns_of(spec).names)
        self._ages = FileAges(spec.retention_ms)

    def find(self, session: Session, paths: Collection[str], busy: Collection[str], now_ms: int) -> Past:
        view, files_left = session.table().getSliceView(), FILES_AT_ONCE_MAX
        found: dict[str, frozenset[str] | None] = {}
        budget = iter(range(FOOTERS_AT_ONCE_MAX))
        for path in self._ages.open(paths, now_ms):
            names = base_files(view, path)
            self._learn(session, path, names, now_ms, budget)
            if path in busy or not self._ages.is_past(path, names, now_ms):
                continue
            if found and len(names) > files_left:
                break
            found[path] = names
            files_left -= len(names)
        return found

    def _learn(
        self, session: Session, path: str, names: Collection[str], now_ms: int, budget: Iterator[int]
    ) -> None:
        """Read footers until it is known whether it is past its time, or there were enough."""
        together = 1  # most table partitions have a file that is young, and it is the newest
        while asked := list(self._ages.unread(path, names, now_ms))[:together]:
            asked = [name for name, _ in zip(asked, budget, strict=False)]
            if not asked:
                return
            self._ages.learn(path, newest_ms(session.store, path, asked, self._field, self._columns))
            together = FOOTERS_TOGETHER


def file_groups(view: Any, path: str) -> list[str]:
    """The ids of those that a reader sees in a table partition, as Hudi's own delete-partition finds them."""
    return sorted({str(one.getFileId()) for one in elements(view.getLatestFileSlices(path))})


def base_files(view: Any, path: str) -> frozenset[str]:
    """The names of those that a reader of an insert table sees in a table partition."""
    return frozenset(str(one.getFileName()) for one in elements(view.getLatestBaseFiles(path)))
