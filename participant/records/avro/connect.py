"""What a type of Avro means that Kafka Connect wrote: it keeps its own type's name beside, as `connect.name`.

Debezium has types of its own for dates and times, which Avro sees as plain numbers and texts. They go into
the columns that they mean, and into those of what they are made of besides.

Sources: Debezium's documentation, "Data type mappings" of each connector; Confluent's `AvroData`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

from participant.records.avro import datum
from participant.records.avro.datum import Read
from participant.records.avro.schema import CONNECT_DECIMAL, PRECISION_UNSAID, SCALE_MAX, Node
from participant.records.by_schema.misread import Misread
from participant.records.json.values import Mismatch, convert
from table.schema import DECIMAL_PRECISION_MAX, LOCAL_MICROS, UTC_MICROS

VARIABLE_SCALE = "io.debezium.data.VariableScaleDecimal"
NUMBER_BYTES_MAX = 256
_EXACT = Context(prec=2 * DECIMAL_PRECISION_MAX)


def said_digits(node: Node) -> bool:
    """Whether a decimal's precision is one, and not Connect's word for none."""
    return (node.connect, node.precision) != (CONNECT_DECIMAL, PRECISION_UNSAID)


def variable_decimal(node: Node, kind: pa.Decimal128Type) -> Read | None:
    """Reads a decimal that brings its scale along; None where the node is none. At the column's own scale."""
    if node.name != VARIABLE_SCALE:
        return None
    inside = {name: one.kind for name, one in node.fields}
    if inside != {"scale": "int", "value": "bytes"}:
        return None
    whole = datum.record_of(
        [(name, datum.read_int if of == "int" else datum.read_bytes, True) for name, of in inside.items()], []
    )

    def read(data: bytes, at: int) -> tuple[Decimal, int]:
        found, at = whole(data, at)
        return rescaled(found["value"], found["scale"], kind), at

    return read


def loose_decimal(node: Node, kind: pa.Decimal128Type) -> Read | None:
    """Return a reader of a decimal whose scale is none of Avro's; None for any other type."""
    if node.logical != "decimal" or 0 <= node.scale <= node.precision:
        return None

    def read(data: bytes, at: int) -> tuple[Decimal, int]:
        value, at = datum.read_bytes(data, at)
        return rescaled(value, node.scale, kind), at

    return read


def rescaled(value: bytes, scale: int, kind: pa.Decimal128Type) -> Decimal:
    """Return an unscaled number as a decimal of the column's scale. Raises `Misread` if a digit is lost."""
    if not value or len(value) > NUMBER_BYTES_MAX or abs(scale) > SCALE_MAX:
        raise Misread("a decimal of more digits than the column, or of no byte")
    number, rest, limit = int.from_bytes(value, "big", signed=True), 0, 10**kind.precision
    if scale <= kind.scale:
        number *= 10 ** (kind.scale - scale)
    else:
        number, rest = divmod(number, 10 ** (scale - kind.scale))
    if rest or not -limit < number < limit:
        raise Misread("a decimal of more digits than the column")
    return Decimal(number).scaleb(-kind.scale, context=_EXACT)


def _text(turned: Callable[[str], Any]) -> Read:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        text, at = datum.read_string(data, at)
        try:
            return turned(text), at
        except Mismatch:
            raise Misread("a string that is no date or time as its schema says") from None

    return read


def _date(text: str) -> Any:
    return convert(text.removesuffix("Z"), pa.date32(), "")


def _zoned(text: str) -> Any:
    return convert(text, UTC_MICROS, "")


def _local(text: str) -> Any:
    """Debezium writes a Z behind the time of a column that has no zone."""
    moment: datetime = convert(text, UTC_MICROS, "")
    return moment.replace(tzinfo=None)


TEXTS: Mapping[tuple[str, str], Mapping[pa.DataType, Read]] = {
    ("string", "io.debezium.time.ZonedTimestamp"): {UTC_MICROS: _text(_zoned)},
    ("string", "io.debezium.time.IsoTimestamp"): {LOCAL_MICROS: _text(_local)},
    ("string", "io.debezium.time.IsoDate"): {pa.date32(): _text(_date)},
}
"""Type of Avro and Connect's name for it -> the column that takes it besides, and how."""
