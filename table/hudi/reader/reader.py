"""What a Hudi table tells without Spark: its history by its timeline, its rows by the PyPI `hudi` reader.

That reader shares no code with what wrote them. Read file slice by file slice, so that one file that cannot
be read does not hide the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from table.errors import Unavailable
from table.hudi.modes import MODES
from table.hudi.reader.mirror import Mirror
from table.hudi.reader.timeline import Timeline, schema_in
from table.hudi.reader.torn import Torn, why
from table.port import INSERT, INSTANT, UPSERT, FileRows, TableRows
from table.schema import KAFKA_PREFIX
from table.store.location import known_to_rust, store_at
from table.store.settings import rust_options

if TYPE_CHECKING:
    import pyarrow as pa

COMMIT_TIME = "_hoodie_commit_time"
KAFKA_COLUMNS = tuple(f"{KAFKA_PREFIX}{name}" for name in ("topic", "partition", "offset"))
BATCH_ROWS = 65_536
NO_COLUMNS = '{"fields": []}'


class HudiReader(Timeline):
    """See `table.port.TableReader`. `path`: plain, or an address."""

    @property
    def mode(self) -> str:
        has = self.properties.get("hoodie.table.type", MODES[INSERT].table_type)
        return INSERT if has == MODES[INSERT].table_type else UPSERT

    def columns(self) -> pa.Schema:
        """By the newest commit of a writer of rows."""
        from table.hudi.avro_columns import from_avro

        for one, metadata in self.metadata_of(self.active()[0]):
            with self.decoding(one.requested, one.action):
                schema = schema_in(metadata)
            if schema:
                return from_avro(schema)
        return from_avro(NO_COLUMNS)

    def damage(self) -> str:
        """Where the metadata table, by which readers find files, contradicts the timeline."""
        return why(self.place, Torn(self.place, self._storage).look())

    def rows(self) -> TableRows:
        """Raises `Unavailable` where the table as a whole cannot be opened.

        That reader knows neither HDFS nor a server of Google's API other than Google's: what is there is read
        in a folder, file slice by file slice.
        """
        from hudi import HudiReadOptions, HudiTable

        mirror = None if known_to_rust(self.place) else self._mirror()
        try:
            if mirror is not None:
                table = HudiTable(mirror.folder)
            else:
                table = HudiTable(self.place, rust_options(self._storage) if self._storage else None)
            names = table.get_schema_with_meta_fields().names
            kafka_columns = set(KAFKA_COLUMNS) <= set(names)
            columns = [COMMIT_TIME, *(KAFKA_COLUMNS if kafka_columns else ())]
            options = HudiReadOptions(projection=columns).with_batch_size(BATCH_ROWS)
            reader = table.create_file_group_reader_with_options(options)
            slices = table.get_file_slices()
        except Exception as error:
            raise Unavailable(f"The table cannot be opened with the hudi reader: {error}") from error
        files = (FileRows(name=_name(one), batches=_batches(reader, one, options, mirror)) for one in slices)
        return TableRows(kafka_columns=kafka_columns, files=files)

    def _mirror(self) -> Mirror:
        try:
            return Mirror(store_at(self.place, settings=self._storage))
        except OSError as error:
            raise Unavailable(f"The table cannot be copied to be read: {error}") from error


def _batches(reader: Any, file_slice: Any, options: Any, mirror: Mirror | None) -> Iterator[pa.RecordBatch]:
    try:
        with mirror.held(_paths(file_slice)) if mirror is not None else nullcontext():
            for batch in reader.read_file_slice_stream(file_slice, options):
                yield batch.rename_columns(
                    [INSTANT if name == COMMIT_TIME else name for name in batch.schema.names]
                )
    except Exception as error:
        raise Unavailable(_first_line(error)) from error


def _paths(file_slice: Any) -> list[str]:
    base = file_slice.base_file_relative_path()
    return [str(path) for path in (*([base] if base else ()), *file_slice.log_files_relative_paths())]


def _name(file_slice: Any) -> str:
    return str(file_slice.base_file_relative_path() or file_slice.file_id)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
