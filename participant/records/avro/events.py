"""What the schemas of Debezium's change events say of columns: those of the row that an event holds.

Which event holds one is read of it, where its schema has more than the table: a delete, or a truncate, brings
no row, and what its schema has besides is nobody's yet. Sources: Debezium's documentation, "Data change
events" of each connector.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from participant.records.avro.columns import row_reader
from participant.records.avro.datum import Read
from participant.records.avro.follows import AvroFollows
from participant.records.avro.natural import columns_of
from participant.records.avro.schema import Node, parse
from participant.records.by_schema.framing import SchemaKey
from participant.records.by_schema.misread import Misread
from participant.records.by_schema.one_by_one import READERS_MAX, Schemas
from participant.records.kinds import DEBEZIUM
from table.schema import SchemaError

OP, AFTER = "op", "after"
SIDES = (AFTER, "before")
"""Fields that hold a row, the first that there is counts."""
OTHERS = (OP, "source")
"""Without which a value is no change event."""
WITH_ROW = frozenset({"c", "u", "r"})
LOOKED_AT = (pa.field(AFTER, pa.struct([])), pa.field(OP, pa.string()))


class AvroEventFollows(AvroFollows):
    """See `participant.records.port.FollowsEvents`."""

    def __init__(self, schemas: Schemas, known_as: Callable[[SchemaKey], str]) -> None:
        super().__init__(schemas, known_as)
        self._readers: dict[SchemaKey, Read] = {}

    def columns(self, key: SchemaKey, has: pa.Schema) -> pa.Schema:
        """See `Follows`."""
        return columns_of(row_of(parse(self._schemas.find(key)))[1], has)

    def place(self, key: SchemaKey) -> str:
        """See `FollowsEvents`."""
        return row_of(parse(self._schemas.find(key)))[0]

    def brings_row(self, key: SchemaKey, value: bytes, headers: bytes | None) -> bool:
        """See `FollowsEvents`."""
        if key not in self._readers:
            if len(self._readers) >= READERS_MAX:
                self._readers.clear()
            self._readers[key] = row_reader(parse(self._schemas.find(key)), LOOKED_AT)
        at = self._split(value, headers)[1]
        try:
            event, _ = self._readers[key](value, at)
        except (Misread, IndexError):
            return False
        return event.get(OP) in WITH_ROW and event.get(AFTER) is not None


def follows_of(envelope: str) -> type[AvroFollows]:
    """Of values in this envelope."""
    return AvroEventFollows if envelope == DEBEZIUM else AvroFollows


def row_of(node: Node) -> tuple[str, Node]:
    """The field of events of this schema that holds the row, and the row's type.

    Raises `SchemaError` where values are no change events.
    """
    fields = dict(node.fields)
    for name in SIDES if fields.keys() >= set(OTHERS) else ():
        kind = fields.get(name)
        real = [one for one in (kind.inside if kind is not None else ()) if one.kind != "null"]
        row = real[0] if kind is not None and kind.kind == "union" and len(real) == 1 else kind
        if row is not None and row.kind == "record":
            return name, row
    raise SchemaError(
        "the Avro schema is no change event's: of that it has the fields op and source, and a record after "
        "or before"
    )
