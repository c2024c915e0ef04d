"""What the schemas that values of Avro name say of columns."""

from __future__ import annotations

import pyarrow as pa

from participant.records.avro.natural import columns_of
from participant.records.avro.schema import parse
from participant.records.by_schema.follows import FollowsById
from participant.records.by_schema.framing import SchemaKey


class AvroFollows(FollowsById):
    """See `participant.records.port.Follows`."""

    def columns(self, key: SchemaKey, has: pa.Schema) -> pa.Schema:
        """See `Follows`."""
        return columns_of(parse(self._schemas.find(key)), has)
