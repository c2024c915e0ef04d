"""Tombstones without a readable key right behind the event of a delete: they delete the same row.

Debezium sends a tombstone after each delete event, with the same Kafka key, or without one where the source's
table has no primary key. A converter or a transformation can shape keys so that they say of no row. Source:
Debezium's documentation, "Tombstone events".
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from control_topic.messages import SourcePartition
from participant.records.envelopes.debezium.decoder import Changes
from participant.records.raw import RawBatch
from participant.records.rejects import Rejects
from table.rows import Tombstones

BATCHES = 8
"""Whose last records are remembered: one may be read again, or in parts."""


class Echoes:
    """Gives a tombstone without a readable key the key of the delete right before it.

    Remembers the last records of the last batches of each source partition, and of each whether it was a
    delete. Not for several threads.
    """

    def __init__(self) -> None:
        self._last: dict[SourcePartition, dict[int, pa.Table | None]] = {}

    def knows(self, partition: SourcePartition, offset: int) -> bool:
        """Whether the record at this offset is remembered."""
        return offset in self._last.get(partition, {})

    def remember(self, batch: RawBatch, changes: Changes) -> None:
        """Note whether the batch ends with a delete."""
        if changes.stop is not None or not len(batch):
            return
        row, ends = None, len(batch) - 1
        if len(changes.kept) and changes.kept[-1] == ends and changes.deleted[-1]:
            row = changes.rows.take(pa.array([len(changes.kept) - 1]))  # a slice would hold the whole batch
        last = self._last.setdefault(batch.partition, {})
        last.pop(int(batch.offsets[-1]), None)
        last[int(batch.offsets[-1])] = row
        while len(last) > BATCHES:
            del last[next(iter(last))]

    def keyed(
        self,
        batch: RawBatch,
        changes: Changes,
        tombstones: Tombstones,
        nameless: Rejects,
        fields: Mapping[str, str] | None = None,
    ) -> tuple[Tombstones, Rejects]:
        """Return the batch's tombstones, echoes included, and those that are still without a key.

        Where the batch has the Kafka keys of all records, the delete and its echo must have the same.
        `fields`: of `Asked.key_fields`.
        """
        names = tombstones.columns.schema.names
        there = [name if fields is None else fields.get(name, "") for name in names]
        if not len(nameless) or not set(there) <= set(changes.rows.column_names):
            return tombstones, nameless
        gone = np.flatnonzero(changes.deleted)
        deletes = dict(zip(changes.kept[gone].tolist(), gone.tolist(), strict=True))
        keys, reasons = changes.rows.select(there).rename_columns(names), nameless.by_place()
        before = self._last.get(batch.partition, {}).get(int(batch.offsets[0]) - 1)
        if before is not None and set(there) <= set(before.column_names):
            deletes[-1] = keys.num_rows
            keys = pa.concat_tables([keys, before.select(there).rename_columns(names)])
        echoes: dict[int, int] = {}
        for place in reasons:
            row = deletes.get(place - 1)
            if row is None or not _may_have_one_key(batch, place):
                continue
            if all(column[row].is_valid for column in keys.columns):
                echoes[place] = row
        if not echoes:
            return tombstones, nameless
        rows = keys.take(pa.array(list(echoes.values()), pa.int64()))
        rows = pa.Table.from_arrays(rows.columns, schema=tombstones.columns.schema)
        places = np.concatenate([tombstones.places, np.array(list(echoes), dtype=np.int64)])
        order = np.argsort(places)
        found = Tombstones(
            columns=pa.concat_tables([tombstones.columns, rows]).take(pa.array(order)),
            places=places[order],
            offsets=batch.offsets[places[order]],
        )
        left = {place: why for place, why in reasons.items() if place not in echoes}
        return found, Rejects.of(left, batch.offsets)


def _may_have_one_key(batch: RawBatch, place: int) -> bool:
    """Return whether a record can have the Kafka key of the one before it."""
    return not place or batch.record_keys is None or batch.record_keys[place] == batch.record_keys[place - 1]
