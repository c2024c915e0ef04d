"""What a clustering has made of files, compared with them before it is completed.

Hudi's copying of whole row groups (`SparkStreamCopyClusteringExecutionStrategy` of 1.2.0) is a fraction of
the work of reading and writing rows, and trusts more. It leaves no markers: what a task has written whose
executor was lost stays beside what was written in its place, and readers that list folders would meet both.
And it takes files whose footers could not be read while it was planned for files of the same columns. So the
footers are read here, of what is to be replaced and of what is to replace it: the same rows, and of copies
the same columns and as many files as were planned.

Nor may all files be copied. Hudi unites what their footers say of record keys, and takes a file that says
nothing of them for one without keys: of a bloom filter that only some files have, those of all others are
missing then, and whoever looks keys up by it (`hoodie.index.type` BLOOM) writes rows of theirs a second time.
Filters of two sizes it cannot unite at all. Our files have the smallest and the largest key and no filter,
and copies of them have; what Hudi itself has written has one, also what it has put together.

Parquet's own bloom filters, of row groups, are lost in copies: files that have some are written again. So are
files of which some have statistics of a column, and others have none, for it holds NaN or long strings: the
hudi reader takes the range of those row groups that have one for the range of the whole file.
"""

from __future__ import annotations

import posixpath
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from table.errors import Refused, Unavailable
from table.hudi.files.base_file import MAX_KEY_FOOTER, MIN_KEY_FOOTER, SPARK_VERSION_FOOTER
from table.store.port import Store

T = TypeVar("T")

AT_ONCE = 8
"""Footers: most of it is waiting, where the store is far."""

COPIED_FOOTERS = frozenset({MIN_KEY_FOOTER, MAX_KEY_FOOTER, SPARK_VERSION_FOOTER, "original.created.by"})
"""Of files whose row groups are copied; the last is what Hudi adds to copies."""
KEY_FOOTERS = frozenset({MIN_KEY_FOOTER, MAX_KEY_FOOTER})

Columns = tuple[tuple[str, str, str, int, int], ...]
"""Of each leaf: path, physical and logical type, the levels that say what may be null or repeat."""


class InputFile(NamedTuple):
    """A base file that is to be replaced. `folder`: its table partition."""

    folder: str
    name: str


class Footer(NamedTuple):
    rows: int
    columns: Columns
    is_copied: bool
    """Whether its row groups may be copied."""
    ranged: frozenset[str]
    unranged: frozenset[str]
    """Columns with, and without, a minimum and a maximum in some row group that holds values of them."""


@dataclass(frozen=True, slots=True)
class Before:
    """What there is to be clustered. `groups`: by table partition, each becomes a file where it is copied."""

    rows: Counter[str]
    groups: Counter[str]
    columns: frozenset[Columns]
    not_copied: frozenset[str]
    """Table partitions with files that may not be copied."""


def count(store: Store, groups: Sequence[Sequence[InputFile]]) -> Before:
    """The files of a plan. Raises `Unavailable`."""
    files = [file for group in groups for file in group]
    rows: Counter[str] = Counter()
    ranged: dict[str, set[str]] = defaultdict(set)
    unranged: dict[str, set[str]] = defaultdict(set)
    found = read(store, files)
    for file, footer in zip(files, found, strict=True):
        rows[file.folder] += footer.rows
        ranged[file.folder] |= footer.ranged
        unranged[file.folder] |= footer.unranged
    return Before(
        rows=rows,
        groups=Counter(group[0].folder for group in groups if group),
        columns=frozenset(footer.columns for footer in found),
        not_copied=frozenset(
            file.folder
            for file, footer in zip(files, found, strict=True)
            if not footer.is_copied or ranged[file.folder] & unranged[file.folder]
        ),
    )


def check(store: Store, before: Before, made: Sequence[InputFile], *, copied: bool) -> None:
    """Raise `Refused` where what was made is not the same again, `Unavailable` where it cannot be read."""
    rows: Counter[str] = Counter()
    found = read(store, made)
    for file, footer in zip(made, found, strict=True):
        rows[file.folder] += footer.rows
    for folder in sorted(before.rows.keys() | rows.keys()):
        if rows[folder] != before.rows[folder]:
            raise Refused(
                f"{_where(folder)} had {before.rows[folder]:,} rows in files that were put together, and has "
                f"{rows[folder]:,} in what was made of them"
            )
    if not copied:
        return
    files = Counter(file.folder for file in made)
    for folder in sorted(before.groups):
        if files[folder] != before.groups[folder]:
            raise Refused(
                f"{_where(folder)} has {files[folder]:,} files that were put together where "
                f"{before.groups[folder]:,} were planned"
            )
    if {footer.columns for footer in found} != before.columns:
        raise Refused("files that were put together have other columns than those that they were made of")


def read(store: Store, files: Iterable[InputFile]) -> list[Footer]:
    """Footers, in the same order. Raises `Unavailable`."""
    return told_by_footers(store, [posixpath.join(file.folder, file.name) for file in files], _footer)


def told_by_footers(store: Store, paths: Sequence[str], told: Callable[[pq.FileMetaData], T]) -> list[T]:
    """Of base files, in the same order. Raises `Unavailable`."""

    def of(path: str) -> T:
        try:
            with store.source(path) as opened:
                metadata = pq.read_metadata(opened)
        except (OSError, pa.ArrowException) as error:
            raise Unavailable(f"the footer of {store.place(path)} could not be read: {error}") from error
        return told(metadata)

    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="footers") as readers:
        return list(readers.map(of, paths))


def _footer(metadata: pq.FileMetaData) -> Footer:
    leaves = (metadata.schema.column(place) for place in range(metadata.num_columns))
    columns = tuple(
        (
            *(leaf.path, leaf.physical_type, str(leaf.logical_type)),
            *(leaf.max_definition_level, leaf.max_repetition_level),
        )
        for leaf in leaves
    )
    said = {name.decode(errors="replace") for name in metadata.metadata or ()}
    is_copied = KEY_FOOTERS <= said <= COPIED_FOOTERS and not _has_filters(metadata)
    ranged, unranged = _ranges(metadata)
    return Footer(
        rows=metadata.num_rows, columns=columns, is_copied=is_copied, ranged=ranged, unranged=unranged
    )


def _ranges(metadata: pq.FileMetaData) -> tuple[frozenset[str], frozenset[str]]:
    ranged, unranged = set(), set()
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for place in range(group.num_columns):
            chunk = group.column(place)
            said = chunk.statistics
            if said is not None and said.has_min_max:
                ranged.add(chunk.path_in_schema)
            elif said is None or not said.has_null_count or said.null_count < group.num_rows:
                unranged.add(chunk.path_in_schema)
    return frozenset(ranged), frozenset(unranged)


def _has_filters(metadata: pq.FileMetaData) -> bool:
    """Whether a row group has a bloom filter of parquet's."""
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    return any(
        group.column(place).bloom_filter_offset for group in groups for place in range(group.num_columns)
    )


def _where(folder: str) -> str:
    return f"table partition {folder!r}" if folder else "the table"
