"""Avro schemas as a tree that is safe to walk: what cannot be read in bounded time and memory is refused.

fastavro parses and resolves names. It takes schemas that the specification does not (an empty enum, a field
twice, a union in a union), so the tree is checked once more. Source: Avro 1.12, "Specification".
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import fastavro
from fastavro.schema import SchemaParseException, fingerprint, to_parsing_canonical_form

from table.schema import SchemaError

TEXT_CHARS_MAX = 1_048_576
"""Of a schema with all that it refers to."""
TYPES_MAX = 20_000
DEPTH_MAX = 64
FIXED_BYTES_MAX = 1_048_576
TOO_LARGE = f"the Avro schema is nested more than {DEPTH_MAX} deep, or has more than {TYPES_MAX:,} types"

LEAST_BYTES: Mapping[str, int] = {
    **dict.fromkeys(("boolean", "int", "long", "bytes", "string", "enum", "array", "map", "union"), 1),
    "null": 0,
    "float": 4,
    "double": 8,
}
"""What a value takes at least. Of a record it is a sum, of a fixed its size."""
PRIMITIVES = LEAST_BYTES.keys() - {"enum", "array", "map", "union"}
"""Of all other words, a type may be of that name."""
LONG = frozenset({"long"})
LOGICAL: Mapping[str, frozenset[str]] = {
    "date": frozenset({"int"}),
    "time-millis": frozenset({"int"}),
    "time-micros": LONG,
    "timestamp-millis": LONG,
    "timestamp-micros": LONG,
    "timestamp-nanos": LONG,
    "local-timestamp-millis": LONG,
    "local-timestamp-micros": LONG,
    "local-timestamp-nanos": LONG,
    "decimal": frozenset({"bytes", "fixed"}),
    "uuid": frozenset({"string", "fixed"}),
    "duration": frozenset({"fixed"}),
}
"""Logical type -> what it may be of. Of anything else it says nothing, as the specification wants."""
UUID_BYTES = 16
CONNECT_DECIMAL = "org.apache.kafka.connect.data.Decimal"
PRECISION_UNSAID = 64
"""Connect's precision for a decimal whose number of digits it does not know."""
SCALE_MAX = 400
"""Bound of a decimal's scale, above and below zero. A NUMBER of Oracle has 127."""
SCALE_UNKNOWN = "decimal of unknown scale"
"""Logical type of a Connect decimal whose scale is missing or beyond `SCALE_MAX`: no column takes it."""
LOGICAL_TYPE = "lockstep.logicalType"
"""Under which the logical type stands while fastavro parses: the specification wants one that does not go
with its type to be ignored, and fastavro refuses the schema."""
OF_READERS = frozenset({"default", "aliases", "order"})
"""What says nothing here. A default of another type, such as `"null"`, was taken by parsers for years, and
stands in schemas that were registered then; fastavro refuses them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Node:
    """A type. Named ones that are used twice are one node."""

    kind: str
    """`record`, `enum`, `fixed`, `array`, `map`, `union`, or a primitive type's name."""
    least_bytes: int
    name: str = ""
    logical: str = ""
    connect: str = ""
    """Of a primitive, what Kafka Connect calls it, where that wrote the schema."""
    precision: int = 0
    scale: int = 0
    size_bytes: int = 0
    """Of a fixed."""
    symbols: tuple[str, ...] = ()
    fields: tuple[tuple[str, Node], ...] = ()
    inside: tuple[Node, ...] = ()
    """Of an array or a map one, of a union its branches."""
    levels: int = 1
    """Levels of nesting, with every name replaced by its type."""

    def __str__(self) -> str:
        """For people."""
        if self.kind == "union":
            return f"a union of {', '.join(one.name or one.logical or one.kind for one in self.inside)}"
        if self.logical == "decimal":
            return f"a decimal({self.precision},{self.scale})"
        return f"{'an' if (self.logical or self.kind)[0] in 'aei' else 'a'} {self.logical or self.kind}"


def parse(texts: Sequence[str]) -> Node:
    """The last of these schemas, which may use names of those before it. Raises `SchemaError`."""
    if sum(map(len, texts)) > TEXT_CHARS_MAX:
        raise SchemaError(f"the Avro schema has more than {TEXT_CHARS_MAX:,} characters")
    named: dict[str, Any] = {}
    try:
        parsed = [
            fastavro.parse_schema(_written_by(json.loads(one)), named_schemas=named, _force=True)
            for one in texts
        ]
    except json.JSONDecodeError as error:
        raise SchemaError(f"the Avro schema is not JSON: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise SchemaError("the Avro schema is nested too deeply") from None
    except SchemaParseException as error:
        raise SchemaError(f"the Avro schema is none: {error}") from None
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise SchemaError(f"the Avro schema is none: {type(error).__name__} ({error})") from None
    return _Tree(named).node(parsed[-1], 0)


def fingerprint_of(text: str) -> bytes:
    """CRC-64-AVRO of the schema's canonical form, as the single-object encoding spells it."""
    canonical = to_parsing_canonical_form(_written_by(json.loads(text)))
    return bytes.fromhex(fingerprint(canonical, "CRC-64-AVRO"))


def _written_by(schema: Any) -> Any:
    """A schema without what says nothing of how its values are written."""
    if isinstance(schema, list):
        return [_written_by(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        LOGICAL_TYPE if name == "logicalType" else name: _written_by(one)
        for name, one in schema.items()
        if name not in OF_READERS
    }


class _Tree:
    """Makes nodes of what fastavro parsed."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._done: dict[str, Node] = {}
        self._open: set[str] = set()
        self._count = 0

    def node(self, parsed: Any, depth: int) -> Node:
        self._count += 1
        if depth > DEPTH_MAX or self._count > TYPES_MAX:
            raise SchemaError(TOO_LARGE)
        if isinstance(parsed, list):
            return self._union(parsed, depth)
        if isinstance(parsed, str):
            if parsed in PRIMITIVES:
                return _primitive(parsed, {})
            return self._by_name(parsed, depth)
        if not isinstance(parsed, dict):
            raise SchemaError("the Avro schema is none: a type is neither a name nor an object")
        kind = parsed.get("type")
        if kind in ("record", "error", "enum", "fixed"):
            return self._by_name(str(parsed.get("name")), depth)
        if kind == "array" or kind == "map":
            return self._repeated(kind, parsed, depth)
        if not isinstance(kind, str) or kind not in PRIMITIVES:
            raise SchemaError(f"the Avro schema is none: {str(kind)[:100]!r} is not a type")
        return _primitive(kind, parsed)

    def _by_name(self, name: str, depth: int) -> Node:
        """A record, an enum or a fixed."""
        if name in self._open:
            raise SchemaError(f"the Avro schema is recursive: {name} holds itself, which no column can")
        if name not in self._done:
            parsed = self._named.get(name)
            if not isinstance(parsed, dict):
                raise SchemaError(f"the Avro schema is none: {name[:100]!r} is not defined")
            self._open.add(name)
            self._done[name] = self._definition(name, parsed, depth)
            self._open.discard(name)
        return self._done[name]

    def _definition(self, name: str, parsed: Mapping[str, Any], depth: int) -> Node:
        if parsed["type"] == "enum":
            symbols = tuple(parsed.get("symbols", ()))
            if not symbols or not all(isinstance(one, str) for one in symbols):
                raise SchemaError(f"the Avro schema is none: enum {name} has no symbols")
            return Node(kind="enum", least_bytes=1, name=name, symbols=symbols)
        if parsed["type"] == "fixed":
            return _fixed(name, parsed)
        fields = tuple((str(one["name"]), self.node(one["type"], depth + 1)) for one in parsed["fields"])
        if len(dict(fields)) < len(fields):
            raise SchemaError(f"the Avro schema is none: record {name} has a field twice")
        levels = self._levels(one for _, one in fields)
        least_bytes = sum(one.least_bytes for _, one in fields)
        if not least_bytes:
            raise SchemaError(
                f"record {name} of the Avro schema takes no byte, so that its number has no bound"
            )
        return Node(kind="record", least_bytes=least_bytes, name=name, fields=fields, levels=levels)

    def _union(self, parsed: list[Any], depth: int) -> Node:
        branches = tuple(self.node(one, depth + 1) for one in parsed)
        if not branches or any(one.kind == "union" for one in branches):
            raise SchemaError("the Avro schema is none: a union is empty, or in a union")
        return Node(kind="union", least_bytes=1, inside=branches, levels=self._levels(branches))

    def _repeated(self, kind: str, parsed: Mapping[str, Any], depth: int) -> Node:
        inner = self.node(parsed["items" if kind == "array" else "values"], depth + 1)
        if kind == "array" and not inner.least_bytes:
            raise SchemaError("an array of the Avro schema is of null, so that its length has no bound")
        return Node(kind=kind, least_bytes=1, inside=(inner,), levels=self._levels((inner,)))

    def _levels(self, inside: Iterable[Node]) -> int:
        """Levels of a type that holds these. Raises `SchemaError` for too many.

        A record that is named where it is used adds no level to the text: readers recurse into it all the
        same.
        """
        levels = 1 + max((one.levels for one in inside), default=0)
        if levels > DEPTH_MAX:
            raise SchemaError(TOO_LARGE)
        return levels


def _primitive(kind: str, parsed: Mapping[str, Any]) -> Node:
    logical, precision, scale = _logical(kind, parsed)
    if kind == "bytes" and not logical and parsed.get("connect.name") == CONNECT_DECIMAL:
        logical, precision, scale = _connect_decimal(parsed)
    return Node(
        kind=kind,
        least_bytes=LEAST_BYTES[kind],
        logical=logical,
        connect=str(parsed.get("connect.name", "")),
        precision=precision,
        scale=scale,
    )


def _fixed(name: str, parsed: Mapping[str, Any]) -> Node:
    size = parsed.get("size")
    if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= FIXED_BYTES_MAX:
        raise SchemaError(f"fixed {name} of the Avro schema has no size from 1 to {FIXED_BYTES_MAX:,}")
    logical, precision, scale = _logical("fixed", parsed)
    if (logical == "uuid" and size != UUID_BYTES) or (logical == "duration" and size != 12):
        logical = ""
    if precision > math.log10(2) * (8 * size - 1):  # more digits than it holds
        logical, precision, scale = "", 0, 0
    return Node(
        kind="fixed",
        least_bytes=size,
        name=name,
        size_bytes=size,
        logical=logical,
        precision=precision,
        scale=scale,
    )


def _logical(kind: str, parsed: Mapping[str, Any]) -> tuple[str, int, int]:
    """Logical type, precision and scale; nothing where it does not go with the type."""
    said = parsed.get(LOGICAL_TYPE)
    if not isinstance(said, str) or kind not in LOGICAL.get(said, ()):
        return "", 0, 0
    if said != "decimal":
        return said, 0, 0
    precision, scale = parsed.get("precision"), parsed.get("scale", 0)
    if type(precision) is not int or type(scale) is not int or not 0 <= scale <= precision or not precision:
        return "", 0, 0
    return said, precision, scale


def _connect_decimal(parsed: Mapping[str, Any]) -> tuple[str, int, int]:
    """Return logical type, precision and scale of a Connect decimal that is no decimal of Avro.

    Avro allows no scale below zero or above the precision, Connect does.
    """
    parameters = parsed.get("connect.parameters")
    said = parsed.get("scale", parameters.get("scale") if isinstance(parameters, Mapping) else None)
    try:
        scale = int(str(said))
    except ValueError:
        return SCALE_UNKNOWN, 0, 0
    precision = parsed.get("precision")
    if type(precision) is not int or precision < 1:
        precision = PRECISION_UNSAID
    return ("decimal", precision, scale) if abs(scale) <= SCALE_MAX else (SCALE_UNKNOWN, 0, 0)
