"""A table's columns as a whole, and those of them that are made for its partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from table.partitioners.bounds import Bounds
from table.partitioners.expressions import Partitioned, Term, TermError, made_terms
from table.partitioners.making import made, type_of
from table.schema import SchemaError, parse_ddl, table_schema


class Columned(Partitioned, Protocol):
    """A table's specification, or its layout: see `table.port`."""

    @property
    def ddl(self) -> str: ...
    @property
    def kafka_columns(self) -> bool: ...
    @property
    def source_position(self) -> bool: ...


def columns_of(table: Columned) -> pa.Schema:
    """The columns of the table, Hudi's meta columns aside. Raises `SchemaError`."""
    terms = made_terms(table)
    return table_schema(
        table.ddl,
        table.kafka_columns,
        source_position=table.source_position,
        made=made_fields(terms, parse_ddl(table.ddl)) if terms else (),
    )


def made_fields(terms: Sequence[Term], record: pa.Schema) -> list[pa.Field]:
    """The columns that terms make of a record's. Raises `SchemaError`."""
    fields = []
    for term in terms:
        name = term.source.field
        if term.source.is_of_records and name not in record.names:
            raise SchemaError(f"table.partition_by: {term.function}({name}): there is no field {name}")
        if term.column.lower() in map(str.lower, record.names):
            raise SchemaError(
                f"table.partition_by: {term.function}({name or 'now()'}) makes the column {term.column}, and "
                "records have a field of that name: give it another, as NAME"
            )
        try:
            kind = type_of(term, record.field(name) if term.source.is_of_records else None)
        except TermError as error:
            raise SchemaError(f"table.partition_by: {error}") from error
        fields.append(pa.field(term.column, kind))
    return fields


class PartitionColumns:
    """Makes them. No state: any thread may use it."""

    def __init__(self, table: Partitioned, bounds: Bounds) -> None:
        self.terms = made_terms(table)
        self._bounds = bounds

    def added(
        self, columns: pa.Table, timestamps_ms: npt.NDArray[np.int64]
    ) -> tuple[pa.Table, dict[int, str]]:
        """The columns with those, and why rows cannot have one, by row."""
        reasons: dict[int, str] = {}
        table = columns
        for term in self.terms:
            one = made(term, columns, timestamps_ms, self._bounds)
            table = table.append_column(term.column, one.values)
            reasons |= one.bad
        return table, reasons
