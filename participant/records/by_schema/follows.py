"""What is the same of all values that name a schema by its id: by which, and how people call it."""

from __future__ import annotations

from collections.abc import Callable

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


class FollowsById:
    """See `participant.records.port.Follows`, but for `columns`. `known_as`: a schema's subject and version,
    for people.
    """

    header = VALUE_HEADER
    alike_bytes = 1 + ID_BYTES

    def __init__(self, schemas: Schemas, known_as: Callable[[SchemaKey], str]) -> None:
        self._schemas, self._known_as = schemas, known_as
        self._mark = self.header.encode()

    def is_alike(self, head: bytes) -> bool:
        """See `Follows`: a byte 0 and an id."""
        return head[0] == BY_ID

    def key(self, value: bytes, headers: bytes | None) -> SchemaKey:
        """See `Follows`."""
        return self._split(value, headers)[0]

    def spelled(self, key: SchemaKey) -> str:
        """See `Follows`."""
        known = self._known_as(key)
        return f"{spelled(key)} ({known})" if known else spelled(key)

    def _split(self, value: bytes, headers: bytes | None) -> tuple[SchemaKey, int]:
        """By which schema a value was written, and where its datum begins. Raises `Misread`."""
        if not value:
            raise Misread("empty value")
        return confluent(value, first(headers, self.header, self._mark))
