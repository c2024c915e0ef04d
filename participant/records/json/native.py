"""JSON values to Arrow columns in one pass, in Rust: see `participant.records.native`.

The native decoder leaves to the strict one what is spelled in a rare way (`1e0000000001`, or what is nested a
hundred levels deep in a field that is not read).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from participant.records.json.decoder import BUFFER_BYTES_MAX, JsonDecoder, with_rest
from participant.records.native import AUTO, NativeMissing, chosen, limited, native_module, with_refused
from participant.records.port import Decoded, Decoder
from participant.records.raw import RawBatch
from table.schema import record_schema


class NativeDecoder:
    """As `JsonDecoder`, several times faster. Not for several threads.

    `wide`: whether texts are looked at 16 bytes at a time. `rest`: as of `JsonDecoder`. Raises `SchemaError`
    as `JsonDecoder` does, and `NativeMissing`.
    """

    def __init__(self, schema: pa.Schema, *, wide: bool = True, rest: bool = False) -> None:
        self._strict = JsonDecoder(schema, rest=rest)
        self._schema = with_rest(record_schema(schema), rest=rest)
        try:
            self._native = native_module().Decoder(record_schema(schema), wide, rest)
        except ValueError as error:
            raise NativeMissing(str(error)) from None

    def decode(self, batch: RawBatch) -> Decoded:
        """All records of the batch, as rows or as rejects."""
        values = batch.values
        if len(values.data) > BUFFER_BYTES_MAX:
            return self._strict.decode(batch)  # which takes it in parts
        columns, places = limited(self._native.decode, values.data, values.starts)
        table = pa.Table.from_batches([pa.record_batch(columns)], schema=self._schema)
        if not places:
            return Decoded(table=table)
        refused = np.frombuffer(places, dtype=np.int64)
        return with_refused(batch, table, refused, self._strict, headers=False)


def row_decoder(schema: pa.Schema, wanted: str = AUTO, *, rest: bool = False) -> Decoder:
    """What reads values of this schema; `wanted` is `record.decoder` of the configuration, `rest` as of
    `JsonDecoder`.

    Raises `SchemaError` for a schema that cannot be read from JSON, or not by the decoder that is wanted.
    """
    return chosen(wanted, lambda: NativeDecoder(schema, rest=rest), lambda: JsonDecoder(schema, rest=rest))
