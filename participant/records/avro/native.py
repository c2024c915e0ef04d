"""Avro values to Arrow columns, straight from their bytes, in Rust."""

from __future__ import annotations

import pyarrow as pa

from participant.records.avro.decoder import AvroDecoder, Readable
from participant.records.avro.plan import plan_of
from participant.records.by_schema.framing import VALUE_HEADER, SchemaKey, identity
from participant.records.by_schema.native import NativeBySchema, Type
from participant.records.by_schema.one_by_one import Schemas


class NativeAvro(NativeBySchema[SchemaKey, Readable]):
    """See `NativeBySchema`; as `AvroDecoder`."""

    format = "avro"

    def __init__(
        self,
        schema: pa.Schema,
        framing: str,
        schemas: Schemas,
        header: str = VALUE_HEADER,
        *,
        alone: bool = False,
    ) -> None:
        plain = AvroDecoder(schema, framing, schemas, header, alone=alone)
        super().__init__(schema, plain, framing, header)

    def key(self, raw: bytes) -> SchemaKey:
        """See `NativeBySchema`."""
        return identity(raw, "")[0] if self._framing == "confluent" else raw

    def types(self, read: Readable) -> list[Type]:
        """See `NativeBySchema`."""
        return plan_of(read.node, list(self._schema))
