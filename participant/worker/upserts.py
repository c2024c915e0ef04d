"""What an upsert table needs of a batch: rows and deletes with their keys, table partitions and order.

A delete is a row whose delete field is true, a change event of a delete, or a tombstone: a record without a
value, whose Kafka key says which row. As an ordering value a tombstone has none: it always deletes. But one
that Debezium sends right behind the event of the same delete says nothing more than that event, whose place
in the log is known: only the event counts, so that both may be sent again and a row that is newer stays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from participant.records.json.decoder import Decoded, JsonDecoder
from participant.records.json.values import Mismatch
from participant.records.raw import RawBatch, Values
from participant.records.rejects import NONE, Rejects
from participant.records.tombstone_keys import ABOUT, key_document
from participant.worker.derive import Deriver, Rows, with_kafka_columns
from table.port import TableLayout
from table.schema import SchemaError, record_schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletes:
    """Keys that are deleted. `ordering`: of the ordering field's type, null where a delete always wins.

    `places`: where each stood in the batch.
    """

    record_key: pa.ChunkedArray
    table_partition: pa.DictionaryArray
    ordering: pa.ChunkedArray
    places: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.record_key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upserts:
    """Changes that are ready to be written.

    `rows`: the data columns, then the Kafka columns where the table has them. `record_key`,
    `table_partition`: as in `participant.worker.derive.Derived`. `places`: where each row stood in the batch
    of
    `length` records. `rejects`: on top of the decoder's.
    """

    rows: pa.Table
    record_key: pa.ChunkedArray
    table_partition: pa.DictionaryArray
    places: npt.NDArray[np.int64]
    deletes: Deletes
    length: int
    rejects: Rejects = NONE

    @property
    def count(self) -> int:
        """Changes, deletes included."""
        return int(self.rows.num_rows) + len(self.deletes)

    @property
    def nbytes(self) -> int:
        """Memory held; a key that shares the memory of a column is not counted again."""
        held = self.rows.append_column("", self.record_key).append_column("", self.table_partition)
        deletes = self.deletes.record_key.nbytes + self.deletes.ordering.nbytes
        return int(held.get_total_buffer_size()) + deletes + 8 * self.count


class ChangeDecoder:
    """As `participant.records.json.decoder.JsonDecoder`, for records without a value or with a delete field
    as well."""

    def __init__(self, schema: pa.Schema, delete_field: str) -> None:
        self._json = JsonDecoder(schema)
        self._delete_field = delete_field

    def decode(self, batch: RawBatch) -> Decoded:
        """All records of the batch: rows, some of them deletes, tombstones and rejects."""
        nulls = batch.values.nulls
        places = np.flatnonzero(~nulls) if nulls is not None else np.arange(0)
        decoded = self._json.decode(batch if nulls is None else batch.take(places))
        deleted = None
        if self._delete_field:
            flags = decoded.table.column(self._delete_field)
            deleted = flags.fill_null(False).to_numpy()
        if nulls is None:
            return Decoded(table=decoded.table, kept=decoded.kept, rejects=decoded.rejects, deleted=deleted)
        return Decoded(
            table=decoded.table,
            kept=places if decoded.kept is None else places[decoded.kept],
            rejects=decoded.rejects.at(places),
            deleted=deleted,
            tombstones=np.flatnonzero(nulls),
        )


class UpsertDeriver:
    """Derives for one upsert table. No state: any thread may use it. Raises as `Deriver` does."""

    def __init__(self, layout: TableLayout, schema: pa.Schema) -> None:
        self._layout = layout
        self._rows = Deriver(layout, schema)
        self._schema = schema
        columns = record_schema(schema)
        names = list(layout.key_fields)
        if layout.partition_field and layout.partition_field not in names:
            names.append(layout.partition_field)
        self._keyed_by = [columns.field(name).with_nullable(False) for name in names]
        self._keys_decoder = JsonDecoder(pa.schema(self._keyed_by))
        self._ordering_type = pa.int64()
        if layout.ordering_field:
            place = schema.get_field_index(layout.ordering_field)
            if place < 0:
                raise SchemaError(
                    f"column {layout.ordering_field} is to order versions, but the schema does not have it"
                )
            self._ordering_type = schema.field(place).type

    def derive(self, batch: RawBatch, decoded: Decoded) -> Upserts:
        """The changes that `decoded` holds, which came from `batch`, less those rejected here."""
        rows = Rows(batch, decoded)
        places = rows.kept if rows.kept is not None else np.arange(rows.table.num_rows, dtype=np.int64)
        deleted = decoded.deleted if decoded.deleted is not None else np.zeros(len(places), dtype=np.bool_)
        record_key, partitions, reasons = self._rows.keys_and_partitions(batch, rows)
        reasons |= self._without_order(rows.table)
        rejects = NONE
        if reasons:
            rejects = rows.reject(reasons)
            kept = np.delete(np.arange(rows.table.num_rows), list(reasons))
            keep = pa.array(kept)
            record_key, partitions = record_key.take(keep), partitions.take(keep)
            rows.take(keep)
            places, deleted = places[kept], deleted[kept]
        deletes, refused = self._tombstones(batch, decoded)
        if deleted.any():
            gone, left = np.flatnonzero(deleted), np.flatnonzero(~deleted)
            by_row = Deletes(
                record_key=record_key.take(pa.array(gone)),
                table_partition=partitions.take(pa.array(gone)),
                ordering=self._ordering(rows.table.take(pa.array(gone))),
                places=places[gone],
            )
            if self._layout.source_position:
                deletes = _without_echoes(deletes, by_row)
            deletes = _joined(by_row, deletes)
            keep = pa.array(left)
            rows.take(keep)
            record_key, partitions, places = record_key.take(keep), partitions.take(keep), places[left]
        table = rows.table
        if self._layout.kafka_columns:
            table = with_kafka_columns(table, batch, rows)
        table = pa.Table.from_arrays(table.columns, schema=self._schema)  # NOT NULL, deletes being gone
        return Upserts(
            rows=table,
            record_key=record_key,
            table_partition=partitions,
            places=places,
            deletes=deletes,
            length=len(batch),
            rejects=Rejects.joined([rejects, refused]),
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

    def _tombstones(self, batch: RawBatch, decoded: Decoded) -> tuple[Deletes, Rejects]:
        """The deletes that records without a value ask for, and those of them that name no row."""
        found = decoded.tombstones if decoded.tombstones is not None else np.arange(0)
        documents: list[bytes | None] = []
        places: list[int] = []
        reasons: dict[int, str] = {}
        for place in found.tolist():
            try:
                documents.append(key_document(batch.keys.get(place), self._keyed_by))
                places.append(place)
            except Mismatch as mismatch:
                reasons[place] = str(mismatch)
        at = np.array(places, dtype=np.int64)
        keys = RawBatch(
            partition=batch.partition,
            offsets=batch.offsets[at],
            timestamps_ms=batch.timestamps_ms[at],
            values=Values.of(documents),
        )
        read = self._keys_decoder.decode(keys)
        rows = Rows(keys, read)
        record_key, partitions, bad = self._rows.keys_and_partitions(keys, rows)
        kept = rows.kept if rows.kept is not None else np.arange(rows.table.num_rows, dtype=np.int64)
        reasons |= {int(at[place]): f"{ABOUT}: {why}" for place, why in read.rejects.by_place().items()}
        reasons |= {int(at[kept[row]]): why for row, why in bad.items()}
        good = np.delete(np.arange(len(kept)), list(bad))
        deletes = Deletes(
            record_key=record_key.take(pa.array(good)),
            table_partition=partitions.take(pa.array(good)),
            ordering=pa.chunked_array([pa.nulls(len(good), self._ordering_type)]),
            places=at[kept[good]],
        )
        return deletes, Rejects.of(reasons, batch.offsets)


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
