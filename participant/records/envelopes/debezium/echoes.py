"""Tombstones without a readable key right behind the event of a delete: they delete the same row.

Debezium sends a tombstone after each delete event, with the same Kafka key, or without one where the source's
table has no primary key. A converter or a transformation can shape keys so that they say of no row. Source:
Debezium's documentation, "Tombstone events".
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from control_topic.messages import SourcePartition
from participant.records.envelopes.debezium.decoder import Changes
from participant.records.raw import RawBatch
from participant.records.rejects import Rejects
from table.rows import Tombstones


class Echoes:
    """Gives a tombstone without a readable key the key of the delete right before it.

    Remembers the last record of each source partition, if it was a delete. Not for several threads.
    """

    def __init__(self) -> None:
        self._last: dict[SourcePartition, tuple[int, pa.Table]] = {}

    def remember(self, batch: RawBatch, changes: Changes) -> None:
        """Note whether the batch ends with a delete."""
        self._last.pop(batch.partition, None)
        ends = len(batch) - 1
        if len(changes.kept) and changes.kept[-1] == ends and changes.deleted[-1] and changes.stop is None:
            row = changes.rows.take(pa.array([len(changes.kept) - 1]))  # a slice would hold the whole batch
            self._last[batch.partition] = (int(batch.offsets[-1]), row)

    def keyed(
        self, batch: RawBatch, changes: Changes, tombstones: Tombstones, nameless: Rejects
    ) -> tuple[Tombstones, Rejects]:
        """Return the batch's tombstones, echoes included, and those that are still without a key.

        Where the batch has the Kafka keys of all records, the delete and its echo must have the same.
        """
        names = tombstones.columns.schema.names
        if not len(nameless) or not set(names) <= set(changes.rows.column_names):
            return tombstones, nameless
        gone = np.flatnonzero(changes.deleted)
        deletes = dict(zip(changes.kept[gone].tolist(), gone.tolist(), strict=True))
        keys, reasons = changes.rows.select(names), nameless.by_place()
        offset, before = self._last.get(batch.partition, (-1, None))
        if before is not None and len(batch) and offset == batch.offsets[0] - 1:
            deletes[-1] = keys.num_rows
            keys = pa.concat_tables([keys, before.select(names)])
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
