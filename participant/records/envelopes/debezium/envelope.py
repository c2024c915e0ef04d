"""Debezium's change events as an envelope of records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from participant.records.decimal_handling import PRECISE
from participant.records.envelopes.debezium.date_keys import DateKeys
from participant.records.envelopes.debezium.decimal_keys import DecimalKeys
from participant.records.envelopes.debezium.decoder import DebeziumDecoder
from participant.records.envelopes.debezium.echoes import Echoes
from participant.records.envelopes.debezium.order import LogOrder
from participant.records.null_payloads import NullPayloads
from participant.records.port import Asked, Decoded, Decoder, Format, KeyReader, LookBack, decoded_parts
from participant.records.raw import RawBatch
from participant.records.rejects import Rejects

NO_COLUMN = pa.schema([pa.field("lockstep.none", pa.string())])
"""Of rows, where only their place in the log is wanted. No database's column is called so, and no field of
Avro's may be."""


class ChangeEvents:
    """See `participant.records.port.Envelope`. Its decoders, of which one follows another where columns grow,
    know together how far logs were read.
    """

    def __init__(self) -> None:
        self._order = LogOrder()
        self._echoes = Echoes()

    def decoder(self, asked: Asked, values: Format, keys: Format) -> Decoder:
        """Raises `SchemaError`."""

        def reading(schema: pa.Schema, order: LogOrder) -> DebeziumDecoder:
            return DebeziumDecoder(
                schema,
                values.values,
                typed=values.typed,
                order=order,
                decimal_handling=asked.decimal_handling,
            )

        def reading_keys(fields: Sequence[pa.Field]) -> KeyReader:
            return DecimalKeys.of(fields, keys) if asked.decimal_handling == PRECISE else keys.keys(fields)

        fields = asked.key_columns
        keys_of = keys.keys(fields) if keys.typed else DateKeys.of(fields, reading_keys)
        changes = ChangeEventDecoder(
            reading(asked.schema, self._order),
            keys_of,
            asked.look_back,
            lambda: reading(NO_COLUMN, self._order),
            lambda: reading(asked.schema, LogOrder()),
            self._echoes,
            asked.key_fields,
        )
        return changes if values.typed else NullPayloads(changes, needs_keys=False)


class ChangeEventDecoder:
    """Change events, whose order in their log needs what was committed before, once per source partition.

    `past`: what reads that, whatever columns it was written for: they may have been others. `last`: what
    reads its last record, for `echoes`.
    """

    def __init__(
        self,
        changes: DebeziumDecoder,
        keys: KeyReader,
        look_back: LookBack,
        past: Callable[[], DebeziumDecoder],
        last: Callable[[], DebeziumDecoder],
        echoes: Echoes,
        key_fields: Mapping[str, str] | None = None,
    ) -> None:
        self._changes, self._keys, self._look_back, self._past = changes, keys, look_back, past
        self._last, self._echoes, self._key_fields = last, echoes, key_fields

    def decode(self, batch: RawBatch) -> Decoded:
        """All records of the batch: rows, deletes among them, tombstones and rejects."""
        if len(batch) and not self._changes.knows(batch.partition):
            past, last = self._past(), self._last()
            for before in self._look_back(batch.partition, int(batch.offsets[0])):
                for _ in decoded_parts(partial(past.decode, committed=True), before):
                    pass  # it keeps the order itself
                self._remember_last(last, before)
        changes = self._changes.decode(batch)
        tombstones, nameless = self._keys.read(batch, changes.tombstones)
        if 0 in nameless.places and not self._echoes.knows(batch.partition, int(batch.offsets[0]) - 1):
            last = self._last()  # it is read again, from this place on
            for before in self._look_back(batch.partition, int(batch.offsets[0])):
                self._remember_last(last, before)
        tombstones, nameless = self._echoes.keyed(batch, changes, tombstones, nameless, self._key_fields)
        self._echoes.remember(batch, changes)
        return Decoded(
            table=changes.rows,
            kept=changes.kept,
            rejects=Rejects.joined([changes.rejects, nameless]),
            deleted=changes.deleted,
            tombstones=tombstones,
            stop=changes.stop,
        )

    def _remember_last(self, last: DebeziumDecoder, before: RawBatch) -> None:
        if len(before):
            end = before.take(np.array([len(before) - 1]))
            self._echoes.remember(end, last.decode(end, committed=True))
