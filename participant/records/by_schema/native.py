"""Values whose schema they name to Arrow columns, in Rust: see `participant.records.native`.

Schemas are the plain decoder's to find, to read and to refuse; the native one is told of each once. Where one
may not pass, the plain decoder is asked about the whole batch, and ends where it ends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from contextlib import suppress
from typing import Generic, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from participant.records.by_schema.framing import SchemaKey
from participant.records.by_schema.misread import Misread
from participant.records.by_schema.one_by_one import RowDecoder
from participant.records.errors import ChangedSchema, UnknownSchema
from participant.records.native import BATCH_BYTES_MAX, NativeMissing, limited, native_module, with_refused
from participant.records.port import Decoded
from participant.records.raw import RawBatch
from table.schema import record_schema

Type: TypeAlias = tuple[str, list[int], list[str]]
"""Of a schema, as the native decoder is told of it: a name, numbers and texts."""

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


class NativeBySchema(ABC, Generic[K, R]):
    """As `RowDecoder`, many times faster. Not for several threads. Raises `NativeMissing`.

    `plain`: who reads what is not read natively. `header`: which one names a value's schema.
    """

    format = ""
    """Its name in the configuration."""

    def __init__(self, schema: pa.Schema, plain: RowDecoder[K, R], framing: str, header: str) -> None:
        self._plain = plain
        self._schema = record_schema(schema)
        self._framing = framing
        try:
            self._native = native_module().BySchema(self._schema, self.format, framing, header)
        except ValueError as error:
            raise NativeMissing(str(error)) from None

    @abstractmethod
    def key(self, raw: bytes) -> K:
        """A schema's key, which a value or header spells so."""

    @abstractmethod
    def types(self, read: R) -> list[Type]:
        """What the native decoder is told. Raises `ValueError` where only the plain one reads it."""

    def check(self, key: K) -> None:
        """See `RowDecoder`."""
        self._plain.check(key)

    def decode(self, batch: RawBatch) -> Decoded:
        """See `RowDecoder`."""
        values = batch.values
        named = self._plain.reader.naming(batch) if self._framing == "confluent" else None
        headers = (None, None) if named is None else (named.data, named.starts)
        if len(values.data) + (named.nbytes if named is not None else 0) > BATCH_BYTES_MAX:
            return self._plain.decode(batch)
        found, unknown = limited(self._native.decode, values.data, values.starts, *headers)
        if unknown:
            if not self._learn(unknown):
                return self._plain.decode(batch)
            found, _ = limited(self._native.decode, values.data, values.starts, *headers)
            if found is None:  # of more schemas than are known at once
                return self._plain.decode(batch)
        columns, places = found
        table = pa.Table.from_batches([pa.record_batch(columns)], schema=self._schema)
        if not places:
            return Decoded(table=table)
        refused = np.frombuffer(places, dtype=np.int64)
        return with_refused(batch, table, refused, self._plain, headers=named is not None)

    def _learn(self, keys: list[bytes]) -> bool:
        """Tells the native decoder of these schemas, in the order of their first records.

        False where one of them may not pass. Raises `SchemasUnavailable`.
        """
        for raw in keys:
            types: list[Type] | None = None
            try:
                types = self.types(self._plain.reader.known(self.key(raw)))
            except ChangedSchema:
                return False
            except (Misread, ValueError):
                pass  # its records are the plain decoder's, which says why where they are no rows
            with suppress(ValueError):  # beyond the native decoder's limits, which notes that itself
                self._native.learn(raw, types)
        return True


class Nowhere:
    """Of no schema: to see whether a table's columns are read natively."""

    def find(self, _key: SchemaKey) -> tuple[str, ...]:
        raise UnknownSchema("no schema is asked for")
