"""How the native decoder is told of a schema: its types, those that others hold before them, each once.

A type is a name, numbers and texts (`made` in native/src/avro/plan.rs):

    ("record", [type, column, type, column …], [])   types by their places; column -1: it is read over
    ("union", [type …], []), ("array", [type], []), ("map", [type], [])
    ("enum", [], symbols), ("fixed", [bytes], [])
    ("decimal", [bytes or 0, digits, places that the column has more], [])
    (name, [], []) of anything else: a primitive type, or what it means in its column

Which type goes into which column is decided before, by `participant.records.avro.columns`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from participant.records.avro.columns import SCALARS
from participant.records.avro.schema import Node
from participant.records.by_schema.native import Type
from table.schema import LOCAL_MICROS

UNREAD = -1
MEANT: Mapping[tuple[str, str], str] = {
    ("int", "date"): "date",
    ("long", "timestamp-millis"): "millis",
    ("long", "timestamp-micros"): "micros",
    ("long", "local-timestamp-millis"): "millis",
    ("long", "local-timestamp-micros"): "micros",
}
"""What is not only the number that it is made of."""
CONNECTED: Mapping[tuple[str, str], tuple[str, pa.DataType]] = {
    ("int", "io.debezium.time.Date"): ("date", pa.date32()),
    ("long", "io.debezium.time.Timestamp"): ("millis", LOCAL_MICROS),
    ("long", "io.debezium.time.MicroTimestamp"): ("micros", LOCAL_MICROS),
    ("long", "org.apache.kafka.connect.data.Timestamp"): ("millis", LOCAL_MICROS),
}
"""What Connect calls it -> the same, and the column where it means that."""


def plan_of(node: Node, fields: Sequence[pa.Field]) -> list[Type]:
    """Of a record that `row_reader` takes, into these columns.

    Raises `ValueError` where only the plain decoder reads it: a decimal of any scale, a time as text.
    """
    plan = _Plan()
    plan.row(node, fields)
    return plan.types


class _Plan:
    def __init__(self) -> None:
        self.types: list[Type] = []
        self._bare: dict[Node, int] = {}

    def row(self, node: Node, fields: Sequence[pa.Field]) -> int:
        """The place of a record that becomes these columns."""
        places = {field.name: place for place, field in enumerate(fields)}
        pairs: list[int] = []
        for name, one in node.fields:
            column = places.get(name, UNREAD)
            if column != UNREAD:
                pairs += (self._of(one, fields[column].type), column)
            elif one.least_bytes:  # what takes no byte is not there
                pairs += (self._unread(one), UNREAD)
        return self._add("record", pairs)

    def _add(self, name: str, numbers: list[int], texts: Sequence[str] = ()) -> int:
        self.types.append((name, numbers, list(texts)))
        return len(self.types) - 1

    def _of(self, node: Node, kind: pa.DataType) -> int:
        match node.kind:
            case "union":
                return self._add("union", [self._of(one, kind) for one in node.inside])
            case "record" if pa.types.is_struct(kind):
                return self.row(node, list(kind))
            case "array":
                return self._add("array", [self._of(node.inside[0], kind.value_type)])
            case "map":
                return self._add("map", [self._of(node.inside[0], kind.item_type)])
            case "enum":
                return self._add("enum", [], node.symbols)
        if node.logical == "decimal" and pa.types.is_decimal128(kind):
            digits = min(node.precision, kind.precision - kind.scale + node.scale)
            places = kind.scale - node.scale
            if digits < 1 or places < 0:
                raise ValueError(f"{node} into {kind}: numbers fit or not one by one")
            return self._add("decimal", [node.size_bytes, digits, places])
        if node.kind == "fixed":
            spelled = node.logical == "uuid" and pa.types.is_string(kind)
            return self._add("uuid", []) if spelled else self._add("fixed", [node.size_bytes])
        meant, column = CONNECTED.get((node.kind, node.connect), ("", None))
        if meant and column == kind:
            return self._add(meant, [])
        if node.kind != "null" and kind not in SCALARS.get((node.kind, node.logical), {}):
            raise ValueError(f"{node} into {kind}")
        return self._add(MEANT.get((node.kind, node.logical), node.kind), [])

    def _unread(self, node: Node) -> int:
        """Of what becomes of no column: once for each type, which may be there many times."""
        if node not in self._bare:
            self._bare[node] = self._made(node)
        return self._bare[node]

    def _made(self, node: Node) -> int:
        match node.kind:
            case "record":
                whole = [one for _, one in node.fields if one.least_bytes]
                return self._add("record", [n for one in whole for n in (self._unread(one), UNREAD)])
            case "union" | "array" | "map":
                return self._add(node.kind, [self._unread(one) for one in node.inside])
            case "enum":
                return self._add("enum", [], node.symbols)
            case "fixed":
                return self._add("fixed", [node.size_bytes])
        return self._add(node.kind, [])
