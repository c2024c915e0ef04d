"""Which small files are put together now, by what commits said of theirs. Pure.

A table partition is due when its small files fill a file of the target, when commits have added many of them,
or when there are more than stay small for good and one of them, or all of them, have lain for a while, or the
whole table was looked at. What is large beside all that is smaller is left out until that has grown to half
of it, so that what was put together is not written again and again; of what has lain no more than `KEPT` stay
small.

Some files stay as many as they were: copies of other columns each, or too large to be two in one file. What
was copied in vain is rewritten, which gives all files the table's columns; what was rewritten in vain waits
for files of commits. What was rewritten is not copied later: see table/hudi/upkeep/counted.py.

Nothing here is the truth: others may have rewritten a file since, and Hudi's plan looks at what is there. A
table partition of which it plans nothing is forgotten.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

KEPT = 2
"""So many small files of a table partition may stay: else its last rows would be written again with each."""
TIER = 2
"""A file is put together with smaller ones that are half as large as it is."""
ROUND_PARTITIONS_MAX = 200
ROUND_BYTES = 1_000_000_000
"""Of input, or of two files of the target: what is begun is carried out before anything else is looked at."""
TRACKED_FILES_MAX = 200_000
"""Of what is not known here a clustering of the whole table takes care."""
IN_VAIN_MAX = 2
"""Clusterings of a table partition that left as many files as there were; the second has copied none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """What is wanted of a table's files."""

    small_below_bytes: int
    target_bytes: int
    files: int
    """So many of a table partition that no clustering has made are too many."""
    after_s: float
    """More than `KEPT` are too many when one of those is so old, or nothing was added for so long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedFile:
    """A base file by its file group, which is what Hudi puts together."""

    table_partition: str
    file_id: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What is put together next: of these table partitions the files that are smaller."""

    table_partitions: tuple[str, ...]
    below_bytes: int
    mean_bytes: int
    """Of small files there, as far as they are known."""
    is_copied: bool
    """False where copying was in vain, or would be wrong."""


@dataclass(slots=True)
class _Partition:
    """Small files: sizes, and since when each is there; None of those that a clustering has made."""

    files: dict[str, tuple[int, float | None]] = field(default_factory=dict)
    size_bytes: int = 0
    fresh: int = 0
    """Of commits."""
    oldest_s: float | None = None
    """Of those."""
    newest_s: float | None = None
    """When a commit added one that was small."""
    in_vain: int = 0
    """So many clusterings, one after another."""
    rewritten: set[str] = field(default_factory=set)
    """Files that a clustering has made of rows."""
    is_strange: bool = False
    """Whether somebody else has written in it what may not be copied."""
    is_wanted: bool = False
    """Whether the whole table was looked at since it was put together."""

    @property
    def is_copied(self) -> bool:
        return not (self.in_vain or self.rewritten or self.is_strange)

    def put(self, file_id: str, size_bytes: int, at_s: float | None) -> None:
        self.files[file_id] = (size_bytes, at_s)
        self.size_bytes += size_bytes
        if at_s is not None:
            self.fresh += 1
            self.newest_s = at_s
            if self.oldest_s is None:
                self.oldest_s = at_s

    def take(self, file_ids: Iterable[str]) -> int:
        """How many there were of them."""
        file_ids = tuple(file_ids)
        found = [self.files.pop(file_id) for file_id in file_ids if file_id in self.files]
        self.rewritten.difference_update(file_ids)
        self.size_bytes -= sum(size_bytes for size_bytes, _ in found)
        times = [at_s for _, at_s in found if at_s is not None]
        self.fresh -= len(times)
        if self.oldest_s in times:
            left = (since_s for _, since_s in self.files.values() if since_s is not None)
            self.oldest_s = min(left, default=None)
        return len(found)


class SmallFiles:
    """Those of one table, as far as they were told. Times are of one clock that does not go back."""

    def __init__(self, sizing: Sizing) -> None:
        self._sizing = sizing
        self._partitions: dict[str, _Partition] = {}
        self._tracked = 0

    @property
    def count(self) -> int:
        return self._tracked

    def added(self, files: Iterable[SizedFile], at_s: float | None) -> None:
        """Files of a commit, or of a clustering, whose `at_s` is None. One told again counts once."""
        for file in files:
            self._take(file.table_partition, (file.file_id,))
            if file.size_bytes < self._sizing.small_below_bytes and self._tracked < TRACKED_FILES_MAX:
                partition = self._partitions.setdefault(file.table_partition, _Partition())
                partition.put(file.file_id, file.size_bytes, at_s)
                self._tracked += 1

    def looked(self, files: Iterable[SizedFile]) -> None:
        """Files that are there, whoever has written them: more than `KEPT` in one place are due now."""
        for file in files:
            partition = self._partitions.get(file.table_partition)
            if partition is None or file.file_id not in partition.files:
                self.added((file,), None)
        for one in self._partitions.values():
            one.is_wanted = len(one.files) > KEPT

    def replaced(self, table_partition: str, file_ids: Iterable[str]) -> None:
        """File groups that are no more."""
        self._take(table_partition, file_ids)

    def clustered(
        self, made: Collection[SizedFile], gone: Mapping[str, Collection[str]], *, copied: bool
    ) -> None:
        """What a clustering has made, and by table partition the file groups that it has made it of."""
        self.added(made, None)
        by_partition: dict[str, list[str]] = {}
        for file in made:
            by_partition.setdefault(file.table_partition, []).append(file.file_id)
        for table_partition, file_ids in gone.items():
            self.replaced(table_partition, file_ids)
            partition = self._partitions.get(table_partition)
            if partition is None:
                continue
            ids = by_partition.get(table_partition, [])
            partition.is_wanted = False
            in_vain = len(ids) >= len(file_ids)
            partition.in_vain = min(partition.in_vain + 1, IN_VAIN_MAX) if in_vain else 0
            if not copied:
                partition.is_strange = False
                partition.rewritten.update(partition.files.keys() & set(ids))

    def not_copied(self, table_partitions: Iterable[str]) -> None:
        """What is in these may not be copied before it was rewritten."""
        for table_partition in table_partitions:
            if table_partition in self._partitions:
                self._partitions[table_partition].is_strange = True

    def forget(self, table_partitions: Collection[str]) -> None:
        for table_partition in table_partitions:
            gone = self._partitions.pop(table_partition, _Partition())
            self._tracked -= len(gone.files)

    def due_in_s(self, now_s: float) -> float | None:
        """0: now; None: not before more is told."""
        waits = (self._wait_s(one, now_s) for one in self._partitions.values())
        return min((wait_s for wait_s in waits if wait_s is not None), default=None)

    def due(self, now_s: float) -> Round | None:
        """The table partitions with the most small files first, as much as a round takes; one at least."""
        found = [(name, one) for name, one in self._partitions.items() if self._wait_s(one, now_s) == 0]
        found.sort(key=lambda pair: (-len(pair[1].files), pair[0]))
        is_copied = bool(found) and found[0][1].is_copied
        found = [(name, one) for name, one in found if one.is_copied == is_copied]
        most_bytes = max(ROUND_BYTES, 2 * self._sizing.target_bytes)
        chosen: list[str] = []
        below_bytes = taken_bytes = files = 0
        for name, one in found[:ROUND_PARTITIONS_MAX]:
            if chosen and taken_bytes + one.size_bytes > most_bytes:
                continue
            chosen.append(name)
            taken_bytes += one.size_bytes
            files += len(one.files)
            below_bytes = max(below_bytes, self._below_bytes(one, now_s))
        if not chosen:
            return None
        return Round(
            table_partitions=tuple(chosen),
            below_bytes=below_bytes,
            mean_bytes=taken_bytes // files,
            is_copied=is_copied,
        )

    def _take(self, table_partition: str, file_ids: Iterable[str]) -> None:
        partition = self._partitions.get(table_partition)
        if partition is None:
            return
        self._tracked -= partition.take(file_ids)
        if not partition.files:
            del self._partitions[table_partition]

    def _wait_s(self, one: _Partition, now_s: float) -> float | None:
        sizing, count = self._sizing, len(one.files)
        is_settled = one.in_vain >= IN_VAIN_MAX
        is_enough = one.size_bytes >= sizing.target_bytes and not is_settled
        if (one.is_wanted and not is_settled) or (count > 1 and (is_enough or one.fresh >= sizing.files)):
            return 0
        since_s = one.oldest_s if one.oldest_s is not None or is_settled else one.newest_s
        if count > KEPT and since_s is not None:
            return max(0.0, since_s + sizing.after_s - now_s)
        return None

    def _below_bytes(self, one: _Partition, now_s: float) -> int:
        """What is smaller is taken. Larger ones are left out where they are few, or where more are coming."""
        sizing = self._sizing
        is_coming = one.newest_s is not None and now_s - one.newest_s < sizing.after_s
        if one.size_bytes >= sizing.target_bytes:
            return sizing.small_below_bytes
        sizes = sorted(size_bytes for size_bytes, _ in one.files.values())
        smaller_bytes = 0
        for number, size_bytes in enumerate(sizes):
            if number > 1 and size_bytes > TIER * smaller_bytes:
                left = len(sizes) - number
                return size_bytes if left < KEPT or is_coming else sizing.small_below_bytes
            smaller_bytes += size_bytes
        return sizing.small_below_bytes
