"""Table partitions by `now()`: what rows say that were shaped before their transaction's instant was known.

The instant is the transaction's in all of its workers, and no clock of theirs. A transaction that is aborted
and redone has another instant: all of its rows are where that one says.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa

from table.columns import constant
from table.hudi.files.keys import partition_path
from table.hudi.files.shaping import InsertRows
from table.hudi.layout import HudiLayout
from table.partitioners.expressions import made_terms
from table.partitioners.making import MARK, at, mark


class Dated:
    """Of one transaction. `instant`: in UTC, as `table.hudi.definition` sees to."""

    def __init__(self, layout: HudiLayout, instant: str) -> None:
        terms = [term for term in made_terms(layout) if term.source.is_now]
        when = datetime.strptime(instant, "%Y%m%d%H%M%S%f").replace(tzinfo=UTC) if terms else None
        self._texts = {term.column: at(term, when) for term in terms if when is not None}
        self._folders = {
            mark(term): partition_path(
                self._texts[term.column], term.column, hive_style=False, url_encode=layout.url_encode
            )
            for term in terms
        }

    def rows(self, shaped: InsertRows) -> InsertRows:
        """With the text in the columns, and in the folders, where its mark was."""
        table = shaped.table
        for column, text in self._texts.items():
            place = table.schema.get_field_index(column)
            table = table.set_column(place, column, constant(text, table.num_rows))
        if not self._folders:
            return shaped
        folders = shaped.table_partition
        named = pa.array([self._named(folder) for folder in folders.dictionary.to_pylist()], pa.string())
        dated = pa.DictionaryArray.from_arrays(folders.indices, named)
        return replace(shaped, table=table, table_partition=dated)

    def _named(self, folder: str) -> str:
        if MARK in folder:
            for sign, text in self._folders.items():
                folder = folder.replace(sign, text)
        return folder
