"""Rows of inserts on their way from the worker that has read them to the one that writes them.

They travel as an Arrow IPC stream of one batch (https://arrow.apache.org/docs/format/Columnar.html): the
columns of `InsertRows`, the record key unless it is one of them, and the folder.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from table.hudi.files.base_file import PARTITION_PATH, RECORD_KEY
from table.hudi.files.shaping import InsertRows
from table.hudi.files.split import divide, shared

KEY_PLACE = b"key"
"""Metadata of the schema: which column is the record key as well."""
PLACE_DIGITS_MAX = 6


class InsertHanding:
    """See `table.port.Handing`. `names`: the columns of `InsertRows.table`."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)

    def divided(
        self, shaped: InsertRows, home_of: Callable[[str], int], count: int
    ) -> list[InsertRows | None]:
        """See `table.port.Handing`."""
        with _refusing("divided"):
            return self._divided(shaped, home_of, count)

    def packed(self, parts: Sequence[InsertRows], bytes_max: int) -> Iterator[bytes]:
        """See `table.port.Handing`."""
        with _refusing("packed"):
            yield from self._packed(parts, bytes_max)

    def unpacked(self, raw: bytes) -> InsertRows:
        """See `table.port.Handing`."""
        try:
            whole = pa.ipc.open_stream(pa.py_buffer(raw)).read_all()
            whole.validate()
        except (pa.ArrowException, OSError, LookupError) as error:
            raise ValueError(f"{len(raw)} bytes that are no rows: {error}") from error
        place = _place(whole.schema.metadata, len(self._names))
        names = [*self._names, *([] if place is not None else [RECORD_KEY]), PARTITION_PATH]
        if whole.column_names != names or not whole.num_rows:
            raise ValueError(f"{whole.num_rows} rows of the columns {whole.column_names} instead of {names}")
        folders = whole.column(PARTITION_PATH).combine_chunks()
        if not pa.types.is_dictionary(folders.type) or folders.null_count:
            raise ValueError("rows of no table partition")
        return InsertRows(
            table=whole.select(self._names).replace_schema_metadata(None),
            record_key=whole.column(RECORD_KEY if place is None else place),
            table_partition=folders,
        )

    # --- inside -----------------------------------------------------------------------------------

    def _divided(
        self, shaped: InsertRows, home_of: Callable[[str], int], count: int
    ) -> list[InsertRows | None]:
        folders = shaped.table_partition.dictionary.to_pylist()
        homes = np.fromiter((home_of(folder) for folder in folders), dtype=np.int64, count=len(folders))
        codes = homes[shaped.table_partition.indices.to_numpy()]
        rows = shaped.table.append_column(RECORD_KEY, shaped.record_key)
        rows = rows.append_column(PARTITION_PATH, shaped.table_partition)
        found: list[InsertRows | None] = [None] * count
        for code, part in divide(rows, codes, count, rows_least=1).parts:
            found[code] = InsertRows(
                table=part.drop_columns([RECORD_KEY, PARTITION_PATH]),
                record_key=part.column(RECORD_KEY),
                table_partition=_few_folders(part.column(PARTITION_PATH).combine_chunks()),
            )
        return found

    def _packed(self, parts: Sequence[InsertRows], bytes_max: int) -> Iterator[bytes]:
        places = {_key_place(part) for part in parts}
        key_place = places.pop() if len(places) == 1 else None
        tables = []
        for part in parts:
            table = part.table
            if key_place is None:
                table = table.append_column(RECORD_KEY, part.record_key)
            tables.append(table.append_column(PARTITION_PATH, part.table_partition))
        whole = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
        if key_place is not None:
            whole = whole.replace_schema_metadata({KEY_PLACE: str(key_place).encode()})
        for start, rows in _pieces(whole, bytes_max):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, whole.schema) as stream:
                stream.write_table(whole.slice(start, rows))
            yield sink.getvalue().to_pybytes()


def _pieces(rows: pa.Table, bytes_max: int) -> Iterator[tuple[int, int]]:
    """From where on, how many: of about so much memory or one row, though rows be of very different sizes."""
    told = rows.drop_columns([PARTITION_PATH])
    each = max(1, rows.num_rows * bytes_max // max(1, rows.nbytes))
    waiting = [(start, min(each, rows.num_rows - start)) for start in range(0, rows.num_rows, each)][::-1]
    while waiting:
        start, count = waiting.pop()
        if count > 1 and told.slice(start, count).nbytes > 2 * bytes_max:
            half = count // 2
            waiting += [(start + half, count - half), (start, half)]
        else:
            yield start, count


@contextlib.contextmanager
def _refusing(what: str) -> Iterator[None]:
    """Rows that Arrow cannot do this with are a `ValueError`, whatever class it has for that."""
    try:
        yield
    except pa.ArrowException as error:
        raise ValueError(f"rows of this table could not be {what}: {error}") from error


def _place(metadata: Mapping[bytes, bytes] | None, columns: int) -> int | None:
    """Which of so many columns a frame says is the record key as well. Raises `ValueError`."""
    said = (metadata or {}).get(KEY_PLACE)
    if said is None:
        return None
    if not said.isdigit() or len(said) > PLACE_DIGITS_MAX or int(said) >= columns:
        raise ValueError(f"the record key is no column {said[:20]!r}")
    return int(said)


def _key_place(part: InsertRows) -> int | None:
    """Which column the record key shares its memory with; None where it is one of its own."""
    *places, key = shared([*part.table.columns, part.record_key])
    return key if key < len(places) else None


def _few_folders(folders: pa.DictionaryArray) -> pa.DictionaryArray:
    """The same with no other folders beside them: a frame need not tell all of a batch's."""
    used, indices = np.unique(folders.indices.to_numpy(), return_inverse=True)
    return pa.DictionaryArray.from_arrays(
        pa.array(indices.astype(np.int32)), folders.dictionary.take(pa.array(used))
    )
