"""Values and keys of Protobuf as rows. What is accepted and what is not: docs/formats.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from participant.records.by_schema.framing import KEY_HEADER, VALUE_HEADER, spelled
from participant.records.by_schema.misread import Misread
from participant.records.by_schema.one_by_one import Reader, RowDecoder, RowKeys, Schemas, check_shared
from participant.records.protobuf.columns import RowReader
from participant.records.protobuf.files import message_of
from participant.records.protobuf.framing import MessageKey, confluent
from table.schema import record_schema


class MessageReader(Reader[MessageKey, RowReader]):
    """See `Reader`. `message`: the full name of what values are; empty where each says so itself. `alone`: as
    of `ProtobufDecoder`.
    """

    def __init__(
        self, message: str, schemas: Schemas, header: str, fields: Sequence[pa.Field], *, alone: bool = False
    ) -> None:
        super().__init__(header)
        self._schemas, self._fields, self._message = schemas, fields, message
        self._alone = alone

    def read(self, value: bytes | None, headers: bytes | None) -> dict[str, Any]:
        """See `Reader`. A value of no byte is a message of which nothing is set."""
        if value is None:
            raise Misread("null value")
        key: MessageKey = (b"", self._message)
        at = 0
        if not self._message:
            key, at = confluent(value, self.named(headers))
        reader = self.known(key)
        row = reader.read(value[at:])
        self.values = reader.values
        self.size_bytes = len(value) + reader.values
        return row

    def made(self, key: MessageKey) -> RowReader:
        """See `Reader`."""
        schema, which = key
        message = message_of(self._schemas.find(schema), which)
        read = RowReader(message, self._fields)
        if self._alone:
            check_shared([one.name for one in message.fields], self._fields)
        return read

    def spelled(self, key: MessageKey) -> str:
        """See `Reader`."""
        schema, which = key
        if isinstance(which, str):
            return ""
        return f"message {'.'.join(map(str, which))} of {spelled(schema)}"


class ProtobufDecoder(RowDecoder[MessageKey, RowReader]):
    """See `RowDecoder`. `message`: as of `MessageReader`. `alone`: whether rows have nothing but these
    columns, so that a message has some.
    """

    def __init__(
        self,
        schema: pa.Schema,
        message: str,
        schemas: Schemas,
        header: str = VALUE_HEADER,
        *,
        alone: bool = False,
    ) -> None:
        fields = list(record_schema(schema))
        super().__init__(schema, MessageReader(message, schemas, header, fields, alone=alone))


class ProtobufKeys(RowKeys[MessageKey, RowReader]):
    """See `RowKeys`. A key is a message with these fields."""

    def __init__(self, fields: Sequence[pa.Field], message: str, schemas: Schemas) -> None:
        wanted = [field.with_nullable(False) for field in fields]
        super().__init__(wanted, MessageReader(message, schemas, KEY_HEADER, wanted))
