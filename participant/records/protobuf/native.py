"""Protobuf values to Arrow columns, straight from their bytes, in Rust."""

from __future__ import annotations

import pyarrow as pa

from participant.records.by_schema.framing import VALUE_HEADER
from participant.records.by_schema.native import NativeBySchema, Type
from participant.records.by_schema.one_by_one import Schemas
from participant.records.protobuf.columns import RowReader
from participant.records.protobuf.decoder import ProtobufDecoder
from participant.records.protobuf.framing import MessageKey, confluent
from participant.records.protobuf.plan import plan_of


class NativeProtobuf(NativeBySchema[MessageKey, RowReader]):
    """See `NativeBySchema`; as `ProtobufDecoder`."""

    format = "protobuf"

    def __init__(
        self,
        schema: pa.Schema,
        message: str,
        schemas: Schemas,
        header: str = VALUE_HEADER,
        *,
        alone: bool = False,
    ) -> None:
        self._message = message
        framing = "none" if message else "confluent"
        plain = ProtobufDecoder(schema, message, schemas, header, alone=alone)
        super().__init__(schema, plain, framing, header)

    def key(self, raw: bytes) -> MessageKey:
        """See `NativeBySchema`."""
        return (b"", self._message) if self._message else confluent(raw, raw)[0]

    def types(self, read: RowReader) -> list[Type]:
        """See `NativeBySchema`."""
        return plan_of(read.message, list(self._schema))
