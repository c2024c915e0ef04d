"""The rows of a table's base files, which Parquet reads by itself: of insert tables these are all rows.

For tables that the `hudi` package of PyPI does not open: a TIMESTAMP_NTZ or MAP column, at any depth, can
end its version 0.5 in a panic. The timeline and a listing say which files are the table, as in
`table.hudi.census.files`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from table.errors import Unavailable
from table.hudi.census.census import REPLACING, known_of, replaced_groups
from table.hudi.census.files import newest_bases
from table.hudi.files.base_file import parse_file_name
from table.hudi.layout import META_FOLDER
from table.hudi.reader.reader import BATCH_ROWS, COMMIT_TIME, KAFKA_COLUMNS, HudiReader
from table.hudi.reader.timeline import Timeline
from table.port import INSTANT, FileRows, TableRows
from table.schema import SchemaError
from table.store.port import FileSize, Store

if TYPE_CHECKING:
    import pyarrow as pa


class WholeReader(HudiReader):
    """A reader of tables with any columns."""

    def rows(self) -> TableRows:
        """Return all rows, file by file. Raises `Unavailable` where the table cannot be opened."""
        names = self._names_unknown_to_rust()
        if names is None:
            return super().rows()
        has_them = set(KAFKA_COLUMNS) <= set(names)
        return base_file_rows(self, KAFKA_COLUMNS if has_them else ())

    def _names_unknown_to_rust(self) -> list[str] | None:
        """Return the table's columns if the package does not know the type of one, else None."""
        try:
            columns = self.columns()
        except SchemaError:  # of another writer's: the package may know it
            return None
        return columns.names if any(map(_is_unknown_to_rust, columns.types)) else None


def _is_unknown_to_rust(kind: pa.DataType) -> bool:
    import pyarrow as pa

    if pa.types.is_map(kind):
        return True
    if pa.types.is_timestamp(kind):
        return kind.tz is None
    return any(_is_unknown_to_rust(kind.field(at).type) for at in range(kind.num_fields))


def base_file_rows(timeline: Timeline, kafka_columns: Sequence[str]) -> TableRows:
    """Return all rows of an insert table, file by file, with their instants and these Kafka columns.

    Raises `Unavailable` where storage does not serve.
    """
    finished, pending = timeline.active()
    replaced: frozenset[tuple[str, str]] = frozenset()
    listed: dict[str, frozenset[str]] = {}
    for one, metadata in timeline.metadata_of(finished):
        with timeline.decoding(one.requested, one.action):
            listed[one.requested] = _listed(metadata)
            if one.action == REPLACING:
                replaced |= replaced_groups(metadata)
    known = known_of(finished, pending, replaced)
    try:
        there = timeline.store.sizes(leaving_out=(META_FOLDER,))
        whose = (file for file in there if _is_listed(file, listed))
        paths = [posixpath.join(file.folder, file.name) for file in newest_bases(whose, known)]
    except OSError as error:
        raise Unavailable(f"The table's files cannot be listed: {error}") from error
    files = (FileRows(name=path, batches=_batches(timeline.store, path, kafka_columns)) for path in paths)
    return TableRows(kafka_columns=bool(kafka_columns), files=files)


def _listed(metadata: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the files that a commit lists."""
    stats = (metadata.get("partitionToWriteStats") or {}).values()
    return frozenset(posixpath.basename(str(one["path"])) for some in stats for one in some or ())


def _is_listed(file: FileSize, listed: Mapping[str, frozenset[str]]) -> bool:
    """Return whether a file's commit lists it; of an archived commit a file was swept long ago if not."""
    parsed = parse_file_name(file.name)
    return parsed is None or parsed[2] not in listed or file.name in listed[parsed[2]]


def _batches(store: Store, path: str, kafka_columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns, names = [COMMIT_TIME, *kafka_columns], [INSTANT, *kafka_columns]
    try:
        with store.source(path) as source, pq.ParquetFile(source) as file:
            for batch in file.iter_batches(BATCH_ROWS, columns=columns):
                yield batch.select(columns).rename_columns(names)
    except (OSError, pa.ArrowException) as error:
        raise Unavailable(f"{path}: {error}") from error
