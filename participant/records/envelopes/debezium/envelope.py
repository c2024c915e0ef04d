"""Debezium's change events as an envelope of records."""

from __future__ import annotations

from participant.records.envelopes.debezium.decoder import DebeziumDecoder
from participant.records.port import Asked, Decoded, Format, KeyReader, LookBack
from participant.records.raw import RawBatch
from participant.records.rejects import Rejects


class ChangeEvents:
    """See `participant.records.port.Envelope`."""

    def decoder(self, asked: Asked, values: Format, keys: Format) -> ChangeEventDecoder:
        """Raises `SchemaError`."""
        changes = DebeziumDecoder(asked.schema, values.values, typed=values.typed)
        return ChangeEventDecoder(changes, keys.keys(asked.key_columns), asked.look_back)


class ChangeEventDecoder:
    """Change events, whose order in their log needs what was committed before, once per source partition."""

    def __init__(self, changes: DebeziumDecoder, keys: KeyReader, look_back: LookBack) -> None:
        self._changes, self._keys, self._look_back = changes, keys, look_back

    def decode(self, batch: RawBatch) -> Decoded:
        """All records of the batch: rows, deletes among them, tombstones and rejects."""
        if len(batch) and not self._changes.knows(batch.partition):
            for before in self._look_back(batch.partition, int(batch.offsets[0])):
                self._changes.decode(before, committed=True)
        changes = self._changes.decode(batch)
        tombstones, nameless = self._keys.read(batch, changes.tombstones)
        return Decoded(
            table=changes.rows,
            kept=changes.kept,
            rejects=Rejects.joined([changes.rejects, nameless]),
            deleted=changes.deleted,
            tombstones=tombstones,
            stop=changes.stop,
        )
