"""Avro values to Arrow columns, straight from their bytes, in Rust: see `participant.records.native`.

Schemas are the plain decoder's to find, to read and to refuse; the native one is told of each once. Where one
cannot be had now, or may not pass, the plain decoder is asked about the whole batch, and ends where it ends.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pyarrow as pa

from participant.records.avro.decoder import AvroDecoder
from participant.records.avro.plan import Type, plan_of
from participant.records.by_schema.framing import VALUE_HEADER, SchemaKey, identity
from participant.records.by_schema.misread import Misread
from participant.records.by_schema.one_by_one import Schemas
from participant.records.errors import ChangedSchema, SchemasUnavailable
from participant.records.native import BATCH_BYTES_MAX, NativeMissing, native_module, with_refused
from participant.records.port import Decoded
from participant.records.raw import RawBatch
from table.schema import record_schema


class NativeAvro:
    """As `AvroDecoder`, many times faster. Not for several threads. Raises `NativeMissing`."""

    def __init__(self, schema: pa.Schema, framing: str, schemas: Schemas, header: str = VALUE_HEADER) -> None:
        self._plain = AvroDecoder(schema, framing, schemas, header)
        self._schema = record_schema(schema)
        self._framing = framing
        try:
            self._native = native_module().AvroDecoder(self._schema, framing, header)
        except ValueError as error:
            raise NativeMissing(str(error)) from None

    def check(self, key: SchemaKey) -> None:
        """See `AvroDecoder`."""
        self._plain.check(key)

    def decode(self, batch: RawBatch) -> Decoded:
        """See `AvroDecoder`."""
        values = batch.values
        named = self._plain.reader.naming(batch) if self._framing == "confluent" else None
        headers = (None, None) if named is None else (named.data, named.starts)
        if len(values.data) + (named.nbytes if named is not None else 0) > BATCH_BYTES_MAX:
            return self._plain.decode(batch)
        found, unknown = self._native.decode(values.data, values.starts, *headers)
        if unknown:
            if not self._learn(unknown):
                return self._plain.decode(batch)
            found, _ = self._native.decode(values.data, values.starts, *headers)
            if found is None:  # of more schemas than are known at once
                return self._plain.decode(batch)
        columns, places = found
        table = pa.Table.from_batches([pa.record_batch(columns)], schema=self._schema)
        if not places:
            return Decoded(table=table)
        refused = np.frombuffer(places, dtype=np.int64)
        return with_refused(batch, table, refused, self._plain, headers=named is not None)

    def _learn(self, keys: list[bytes]) -> bool:
        """Tells the native decoder of these schemas. False where one of them is not to be had now."""
        for raw in keys:
            key: SchemaKey = identity(raw, "")[0] if self._framing == "confluent" else raw
            types: list[Type] | None = None
            try:
                types = plan_of(self._plain.reader.known(key).node, list(self._schema))
            except (ChangedSchema, SchemasUnavailable):
                return False
            except (Misread, ValueError):
                pass  # its records are the plain decoder's, which says why where they are no rows
            with suppress(ValueError):  # beyond the native decoder's limits, which notes that itself
                self._native.learn(raw, types)
        return True
