"""The folder of each row's table partition, spelled as Hudi's key generators spell it.

Of one field that is its value, of several a folder within a folder for each, in the order of the fields:
`eu/2026-12-31`, or hive-style `region=eu/day=2026-12-31`. As `KeyGenUtils.getRecordPartitionPath` has it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from table.columns import constant
from table.hudi.files import keys as hudi_keys
from table.hudi.files.keys import UnsafePartition, escaped, partition_path
from table.hudi.files.timed import Timed, folders_of_times
from table.hudi.layout import HudiLayout
from table.partitioners.expressions import made_terms
from table.partitioners.making import codes
from table.store.location import why_no_folder

PATH_BYTES_MAX = 600
"""Of all folders of a table partition. A key in an object store has 1,024 bytes, the table's own path and the
file's name included."""

Codes = npt.NDArray[np.int64]


class Folders:
    """Of one table. No state: any thread may use it."""

    def __init__(self, layout: HudiLayout) -> None:
        self._layout = layout
        self._fields = layout.partition_fields
        self._marked = {term.column for term in made_terms(layout) if term.source.is_now}
        self._timed = Timed.of(layout.timed) if layout.timed else None

    def of(self, table: pa.Table) -> tuple[pa.DictionaryArray, dict[int, str]]:
        """The folder per row, each folder with one code, and why rows cannot have one, by row."""
        if not self._fields:
            return constant("", table.num_rows), {}
        unmade: dict[int, str] = {}
        columns, found = _together([self._values(name, table.column(name), unmade) for name in self._fields])
        folders: list[str] = []
        bad: dict[int, str] = {}
        for code, values in enumerate(zip(*columns, strict=True)):
            try:
                folders.append(self._folder(values))
            except UnsafePartition as unsafe:
                folders.append("")
                bad[code] = str(unsafe)
        reasons = {row: bad[code] for code in bad for row in np.flatnonzero(found == code).tolist()}
        # two values may share a folder (null and empty do): give each folder one code
        names = {folder: code for code, folder in enumerate(dict.fromkeys(folders))}
        code_of = np.array([names[folder] for folder in folders] or [0], dtype=np.int32)
        return pa.DictionaryArray.from_arrays(
            pa.array(code_of[found]), pa.array(list(names), pa.string())
        ), reasons | unmade

    def _values(self, name: str, column: pa.ChunkedArray, unmade: dict[int, str]) -> pa.DictionaryArray:
        """Of a field; of one that is a time what its folder shows, and in `unmade` which rows show none."""
        if self._timed is None or name not in self._timed.fields:
            return codes(column)
        made = folders_of_times(self._timed, name, column)
        unmade |= made.bad
        return made.values

    def _folder(self, values: Sequence[str | None]) -> str:
        """Raises `UnsafePartition`."""
        layout = self._layout
        levels = [self._level(value, name) for value, name in zip(values, self._fields, strict=True)]
        path = "/".join(levels)
        for level, name in zip(levels, self._fields, strict=True):
            for folder in level.split("/"):  # a time may have several
                if why_not := why_no_folder(self._layout.path, folder):
                    raise UnsafePartition(f"field {name}: {why_not}")
        if len(path.encode()) > PATH_BYTES_MAX:
            fields = ", ".join(layout.partition_fields)
            raise UnsafePartition(
                f"fields {fields}: values of more than {PATH_BYTES_MAX} bytes in all name no folder"
            )
        return path

    def _level(self, value: str | None, name: str) -> str:
        """A mark stays as it is: see `table.hudi.files.dated`. What records say is none, whatever it is."""
        layout = self._layout
        if name in self._marked and value is not None:
            return f"{name}={value}" if layout.hive_style else value
        if self._timed is not None and name in self._timed.fields and value is not None:
            folder = escaped(value) if layout.url_encode else value
            return f"{name}={folder}" if layout.hive_style else folder
        return partition_path(value, name, hive_style=layout.hive_style, url_encode=layout.url_encode)


def _together(found: Sequence[pa.DictionaryArray]) -> tuple[list[list[str | None]], Codes]:
    """Per field the values of each combination that there is, spelled, and per row which one it has."""
    spelled = [hudi_keys.spelled(one.dictionary).to_pylist() for one in found]
    codes = found[0].indices.to_numpy().astype(np.int64, copy=False)
    columns = [spelled[0]]
    for one, values in zip(found[1:], spelled[1:], strict=True):
        both = codes * len(values) + one.indices.to_numpy()
        there, codes = _compact(both, len(columns[0]) * len(values))
        columns = [[column[at] for at in there // max(len(values), 1)] for column in columns]
        columns.append([values[at] for at in there % max(len(values), 1)])
    return columns, codes


def _compact(codes: Codes, count: int) -> tuple[Codes, Codes]:
    """Those of `count` codes that there are, ascending, and each code's place among them."""
    if count > 4 * len(codes) + 1_000:  # too many to count each
        there, places = np.unique(codes, return_inverse=True)
        return there, places
    seen = np.zeros(count, dtype=np.bool_)
    seen[codes] = True
    return np.flatnonzero(seen), (np.cumsum(seen) - 1)[codes]
