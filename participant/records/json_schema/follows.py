"""What the JSON Schemas that values name say of columns."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pyarrow as pa

from participant.records.by_schema.framing import (
    BY_ID,
    ID_BYTES,
    VALUE_HEADER,
    SchemaKey,
    confluent,
    spelled,
)
from participant.records.by_schema.misread import Misread
from participant.records.by_schema.one_by_one import Schemas
from participant.records.headers import first
from participant.records.json_schema.natural import columns_of


class JsonFollows:
    """See `participant.records.port.Follows`. `known_as`: a schema's subject and version, for people.
    `taken`: fields that make no column of their own.
    """

    header = VALUE_HEADER
    alike_bytes = 1 + ID_BYTES

    def __init__(
        self, schemas: Schemas, known_as: Callable[[SchemaKey], str], taken: Collection[str] = ()
    ) -> None:
        self._schemas, self._known_as, self._taken = schemas, known_as, frozenset(taken)
        self._mark = self.header.encode()

    def is_alike(self, head: bytes) -> bool:
        """See `Follows`: a byte 0 and an id."""
        return head[0] == BY_ID

    def key(self, value: bytes, headers: bytes | None) -> SchemaKey:
        """See `Follows`."""
        if not value:
            raise Misread("empty value")
        return confluent(value, first(headers, self.header, self._mark))[0]

    def columns(self, key: SchemaKey, has: pa.Schema) -> pa.Schema:
        """See `Follows`."""
        return columns_of(self._schemas.find(key), has, self._taken)

    def spelled(self, key: SchemaKey) -> str:
        """See `Follows`."""
        known = self._known_as(key)
        return f"{spelled(key)} ({known})" if known else spelled(key)
