"""What the JSON Schemas that values name say of columns."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pyarrow as pa

from participant.records.by_schema.follows import FollowsById
from participant.records.by_schema.framing import SchemaKey
from participant.records.by_schema.one_by_one import Schemas
from participant.records.json_schema.natural import columns_of


class JsonFollows(FollowsById):
    """See `participant.records.port.Follows`. `taken`: fields that make no column of their own."""

    def __init__(
        self, schemas: Schemas, known_as: Callable[[SchemaKey], str], taken: Collection[str] = ()
    ) -> None:
        super().__init__(schemas, known_as)
        self._taken = frozenset(taken)

    def columns(self, key: SchemaKey, has: pa.Schema) -> pa.Schema:
        """See `Follows`."""
        return columns_of(self._schemas.find(key), has, self._taken)
