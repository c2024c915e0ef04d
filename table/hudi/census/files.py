"""Which files of a listing are the table, by what the timeline says. Pure.

As Hudi 1.2's `AbstractTableFileSystemView` has it: a file group is the files of one id in one table
partition; what it holds now is the newest base file whose instant is complete, and the log files that were
completed after that one's time. A group that a complete instant replaced is no more, though its files stay
until they are cleaned. An instant that is older than the active timeline is taken for complete: what was not
was rolled back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from table.census import FilesCensus, Tally
from table.hudi.files.base_file import parse_file_name
from table.hudi.files.log_file import parse_log_file_name
from table.store.port import FileSize

ASKED_EVERY = 1_000
"""Files between two questions whether there is enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the active timeline says. Instants by their requested times."""

    completed: Mapping[str, str]
    """When each was."""
    pending: Collection[str]
    oldest: str
    """Of complete writes; empty where there is none, and then nothing is older."""
    replaced: Collection[tuple[str, str]]
    """Table partition and id of file groups that are taken out."""

    def is_complete(self, instant: str) -> bool:
        if instant in self.completed:
            return True
        return instant not in self.pending and bool(self.oldest) and instant < self.oldest

    def is_later(self, log_instant: str, base_instant: str) -> bool:
        """Whether a log file is on top of a base file, and not within it."""
        return self.completed.get(log_instant, log_instant) > base_instant


def count(
    files: Iterable[FileSize],
    known: Known,
    *,
    small_below_bytes: int,
    files_max: int,
    enough: Callable[[], bool],
) -> FilesCensus:
    """`files`: those of a table partition one after another; no more than so many are asked for."""
    tally = Tally(small_below_bytes)
    taken = _Taken(files, files_max, enough)
    for folder, found in groupby(taken, key=attrgetter("folder")):
        bases, logs = _live(folder, found, known)
        tally.add(folder, list(bases.values()), logs)
    return tally.total(is_whole=taken.is_whole)


class _Taken:
    """The files, up to where there is enough."""

    def __init__(self, files: Iterable[FileSize], files_max: int, enough: Callable[[], bool]) -> None:
        self._files = files
        self._files_max = files_max
        self._enough = enough
        self.is_whole = True

    def __iter__(self) -> Iterator[FileSize]:
        for number, file in enumerate(self._files):
            if number >= self._files_max or (number % ASKED_EVERY == 0 and self._enough()):
                self.is_whole = False
                return
            yield file


def base_files(
    files: Iterable[FileSize],
    known: Known,
    *,
    below_bytes: int,
    files_max: int,
    enough: Callable[[], bool],
) -> tuple[list[tuple[str, str, int]], bool]:
    """Table partition, file group and bytes of each base file that is the table now and is smaller than this;
    whether these are all. Else as `count`.
    """
    taken = _Taken(files, files_max, enough)
    found = [
        (folder, file_id, size_bytes)
        for folder, listed in groupby(taken, key=attrgetter("folder"))
        for file_id, size_bytes in _live(folder, listed, known)[0].items()
        if size_bytes < below_bytes
    ]
    return found, taken.is_whole


def newest_bases(files: Iterable[FileSize], known: Known) -> Iterator[FileSize]:
    """Yield the base files that are the table now. `files`: those of a table partition one after another."""
    for folder, listed in groupby(files, key=attrgetter("folder")):
        yield from (file for _, file in _bases_and_logs(folder, listed, known)[0].values())


def _live(folder: str, found: Iterable[FileSize], known: Known) -> tuple[dict[str, int], list[int]]:
    """Sizes of base files by their groups, and of log files."""
    bases, logs = _bases_and_logs(folder, found, known)
    on_top = [
        size_bytes
        for file_id, instant, size_bytes in logs
        if file_id not in bases or known.is_later(instant, bases[file_id][0])
    ]
    return {file_id: file.size_bytes for file_id, (_, file) in bases.items()}, on_top


def _bases_and_logs(
    folder: str, found: Iterable[FileSize], known: Known
) -> tuple[dict[str, tuple[str, FileSize]], list[tuple[str, str, int]]]:
    """Return each group's newest base file with its instant; of log files their group, instant and bytes."""
    bases: dict[str, tuple[str, FileSize]] = {}
    logs: list[tuple[str, str, int]] = []
    for file in found:
        is_base = (parsed := parse_file_name(file.name)) is not None
        parsed = parsed or parse_log_file_name(file.name)
        if parsed is None:
            continue
        file_id, _, instant = parsed
        if (folder, file_id) in known.replaced or not known.is_complete(instant):
            continue
        if not is_base:
            logs.append((file_id, instant, file.size_bytes))
        elif file_id not in bases or instant >= bases[file_id][0]:
            bases[file_id] = (instant, file)
    return bases, logs
