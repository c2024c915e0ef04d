"""What an upsert table needs of a batch: rows and deletes with their keys, table partitions and order.

A delete is a row whose delete field is true, a change event of a delete, or a tombstone: a record without a
value, whose Kafka key says which row. As an ordering value a tombstone has none: it always deletes. But one
that Debezium sends right behind the event of the same delete says nothing more than that event, whose place
in the log is known: only the event counts, so that both may be sent again and a row that is newer stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from table.columns import constant, with_kafka_columns
from table.hudi.files.shaping import InsertShaper
from table.hudi.layout import HudiLayout
from table.rows import Rows, Tombstones
from table.schema import SchemaError


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletes:
    """Keys that are deleted."""

    record_key: pa.ChunkedArray
    table_partition: pa.DictionaryArray
    ordering: pa.ChunkedArray
    """Of the ordering field's type, null where a delete always wins."""
    places: npt.NDArray[np.int64]
    """Where each stood in the batch."""

    def __len__(self) -> int:
        return len(self.record_key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upserts:
    """Changes that are ready to be written. What has the name of a field of `InsertRows` means the same."""

    rows: pa.Table
    """The data columns, then the Kafka columns where the table has them."""
    record_key: pa.ChunkedArray
    table_partition: pa.DictionaryArray
    places: npt.NDArray[np.int64]
    """Where each row stood in the batch of `length` records."""
    deletes: Deletes
    length: int
    refused: Mapping[int, str] = field(default_factory=dict)
    echoes: Sequence[int] = ()

    @property
    def count(self) -> int:
        """Changes, deletes included."""
        return int(self.rows.num_rows) + len(self.deletes)

    @property
    def nbytes(self) -> int:
        """Memory held; a key that shares the memory of a column is not counted again."""
        held = self.rows.append_column("", self.record_key).append_column("", self.table_partition)
        deletes = self.deletes.record_key.nbytes + self.deletes.ordering.nbytes
        return int(held.get_total_buffer_size() + deletes) + 8 * self.count


class UpsertShaper:
    """Shapes for one upsert table. No state: any thread may use it. Raises as `InsertShaper` does."""

    def __init__(self, layout: HudiLayout, schema: pa.Schema) -> None:
        self._layout = layout
        self._keys = InsertShaper(layout, schema, unique=True)
        self._schema = schema
        self._ordering_type = pa.int64()
        if layout.ordering_field:
            place = schema.get_field_index(layout.ordering_field)
            if place < 0:
                raise SchemaError(
                    f"column {layout.ordering_field} is to order versions, but the schema does not have it"
                )
            self._ordering_type = schema.field(place).type

    def shape(self, rows: Rows) -> Upserts:
        """The changes, less those that this table cannot take."""
        length = rows.length
        rows, record_key, partitions, reasons = self._keys.found(rows)
        reasons |= self._without_order(rows.columns)
        refused: dict[int, str] = {}
        if reasons:
            refused = rows.refused(reasons)
            kept = np.delete(np.arange(rows.count), list(reasons))
            record_key, partitions = record_key.take(pa.array(kept)), partitions.take(pa.array(kept))
            rows = rows.take(kept)
        deletes, nameless = self._deletes_of(rows.tombstones)
        deleted, echoes = rows.deleted, np.empty(0, dtype=np.int64)
        if deleted is not None and deleted.any():
            gone, left = np.flatnonzero(deleted), np.flatnonzero(~deleted)
            by_row = Deletes(
                record_key=record_key.take(pa.array(gone)),
                table_partition=partitions.take(pa.array(gone)),
                ordering=self._ordering(rows.columns.take(pa.array(gone))),
                places=rows.places[gone],
            )
            if self._layout.source_position:
                tombstones, deletes = deletes, _without_echoes(deletes, by_row)
                echoes = np.setdiff1d(tombstones.places, deletes.places)
            deletes = _joined(by_row, deletes)
            record_key, partitions = record_key.take(pa.array(left)), partitions.take(pa.array(left))
            rows = rows.take(left)
        table = with_kafka_columns(rows) if self._layout.kafka_columns else rows.columns
        table = pa.Table.from_arrays(table.columns, schema=self._schema)  # NOT NULL, deletes being gone
        return Upserts(
            rows=table,
            record_key=record_key,
            table_partition=partitions,
            places=rows.places,
            deletes=deletes,
            length=length,
            refused=refused | nameless,
            echoes=echoes.tolist(),
        )

    def _without_order(self, table: pa.Table) -> dict[int, str]:
        name = self._layout.ordering_field
        if not name or not table.column(name).null_count:
            return {}
        text = f"the ordering field {name} is null"
        return dict.fromkeys(np.flatnonzero(table.column(name).is_null().to_numpy()).tolist(), text)

    def _ordering(self, table: pa.Table) -> pa.ChunkedArray:
        if not self._layout.ordering_field:
            return pa.chunked_array([pa.nulls(table.num_rows, self._ordering_type)])
        return table.column(self._layout.ordering_field)

    # --- tombstones -------------------------------------------------------------------------------

    def _deletes_of(self, tombstones: Tombstones | None) -> tuple[Deletes, dict[int, str]]:
        """The deletes that records without a value ask for; why others cannot be, by place."""
        if tombstones is None:
            empty = pa.chunked_array([], pa.string())
            deletes = Deletes(
                record_key=empty,
                table_partition=constant("", 0),
                ordering=pa.chunked_array([pa.nulls(0, self._ordering_type)]),
                places=np.empty(0, dtype=np.int64),
            )
            return deletes, {}
        record_key, partitions, bad = self._keys.of_columns(tombstones.columns)
        good = np.delete(np.arange(len(tombstones.places)), list(bad))
        deletes = Deletes(
            record_key=record_key.take(pa.array(good)),
            table_partition=partitions.take(pa.array(good)),
            ordering=pa.chunked_array([pa.nulls(len(good), self._ordering_type)]),
            places=tombstones.places[good],
        )
        return deletes, {int(tombstones.places[row]): why for row, why in bad.items()}


def _without_echoes(tombstones: Deletes, deletes: Deletes) -> Deletes:
    """The tombstones that do not stand right behind the change event which deletes the same row."""

    def rows(of: Deletes) -> list[tuple[int, str, str]]:
        columns = (of.places.tolist(), of.record_key.to_pylist(), of.table_partition.to_pylist())
        return list(zip(*columns, strict=True))

    said = set(rows(deletes))
    kept = [i for i, (place, *row) in enumerate(rows(tombstones)) if (place - 1, *row) not in said]
    if len(kept) == len(tombstones):
        return tombstones
    keep = pa.array(kept, pa.int64())
    return Deletes(
        record_key=tombstones.record_key.take(keep),
        table_partition=tombstones.table_partition.take(keep),
        ordering=tombstones.ordering.take(keep),
        places=tombstones.places[kept],
    )


def _joined(first: Deletes, second: Deletes) -> Deletes:
    partitions = pa.chunked_array([first.table_partition, second.table_partition]).unify_dictionaries()
    return Deletes(
        record_key=pa.chunked_array([*first.record_key.chunks, *second.record_key.chunks], pa.string()),
        table_partition=partitions.combine_chunks(),
        ordering=pa.chunked_array([*first.ordering.chunks, *second.ordering.chunks], first.ordering.type),
        places=np.concatenate([first.places, second.places]),
    )
