"""How decimals are encoded in change events of JSON: the schema in the event decides, else the configuration.

* `precise`: base64 of an unscaled number, of the scale in the schema, else of the column's. A number as well,
  which a converter with `decimal.format=NUMERIC` writes.
* `string`: digits in a string, or a number.
* `double`: a number.

Some base64 is spelled as a number (`1234`), so that nothing is guessed from a value. Source of the schema:
Kafka's `JsonSchema` and `JsonConverter`; of the modes: Debezium's documentation, "Decimal types".
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from participant.records.decimal_handling import DOUBLE, PRECISE, SCHEMA, STRING
from participant.records.envelopes.debezium.bytes_decimals import SCALE_MAX
from participant.records.envelopes.debezium.event_reader import EventReader, Events, Stopped
from participant.records.json.values import Mismatch, Number, Object, parse
from participant.records.port import Decoder
from participant.records.raw import RawBatch
from table.schema import ddl_name

CONNECT_DECIMAL = "org.apache.kafka.connect.data.Decimal"
HEADS_MAX, HEADS_BYTES_MAX = 256, 16 * 1024 * 1024
"""Schemas that are remembered at once, with the bytes of each."""
READERS_MAX = 16
PAYLOAD = b'"payload"'
ESCAPED_NAME = rb'\\u[0-9a-fA-F]{4}[^"]*"\s*:'
"""A field's name with an escape, which could be a decimal's."""
PLACES_MAX = 8
"""Places of that word at which the end of a schema is looked for, before the whole value is parsed."""
NO_SCHEMA = (
    "field schema is missing, which says how decimals are encoded: have the connector write it "
    "(schemas.enable), or set record.decimal_handling to its decimal.handling.mode"
)

Encoding: TypeAlias = tuple[str, int | None]
"""`PRECISE` and the scale, None for bytes that are no decimal; `STRING` or `DOUBLE` and None."""
Encodings: TypeAlias = tuple[Encoding, ...]
Path: TypeAlias = tuple[str, ...]
"""Names of fields, `[]` for an array's element, `{}` for a map's value."""


def decimals_of(kind: pa.DataType, path: Path = ()) -> dict[Path, pa.Decimal128Type]:
    """Return the type of each DECIMAL in a row by its path."""
    if pa.types.is_decimal(kind):
        return {path: kind}
    inside: list[tuple[str, pa.DataType]] = []
    if pa.types.is_struct(kind):
        inside = [(field.name, field.type) for field in kind]
    elif pa.types.is_list(kind):
        inside = [("[]", kind.value_type)]
    elif pa.types.is_map(kind):
        inside = [("{}", kind.item_type)]
    return {leaf: one for name, child in inside for leaf, one in decimals_of(child, (*path, name)).items()}


def shown(path: Path) -> str:
    """Return a path as reasons spell it."""
    return "".join(name if name in ("[]", "{}") else f".{name}" for name in path).removeprefix(".")


def fields_of(decimals: Mapping[Path, pa.Decimal128Type]) -> dict[str, str]:
    """Return the type of each decimal by the field that a reason begins with."""
    return {
        f"field {outer}{side}.{shown(path)}": ddl_name(kind)
        for path, kind in decimals.items()
        for outer in ("", "payload.")
        for side in ("before", "after")
    }


class DecimalReader:
    """Reads events whose rows hold decimals, each as its schema or the configuration says. See `EventReader`.

    `handling`: one of `HANDLINGS`.
    """

    def __init__(self, row: pa.StructType, values: Callable[[pa.Schema], Decoder], handling: str) -> None:
        self._row, self._values = row, values
        self._decimals = decimals_of(row)
        self._schemas = EventSchemas(tuple(self._decimals))
        self._default: Encodings | None = None
        if handling != SCHEMA:
            scales = (one.scale if handling == PRECISE else None for one in self._decimals.values())
            self._default = tuple((handling, scale) for scale in scales)
        self._readers: dict[Encodings, _OneEncoding] = {}
        self._reader(self._default or self._any())  # a schema that cannot be read is refused now

    def read(self, batch: RawBatch) -> Events | Stopped:
        """Read the events of each encoding together."""
        found = [self._schemas.encodings(value or b"") or self._default for value in batch.values]
        groups: dict[Encodings | None, list[int]] = {}
        for place, one in enumerate(found):
            groups.setdefault(one, []).append(place)
        if len(groups) == 1 and None not in groups and found[0] is not None:
            return self._reader(found[0]).read(batch)
        whole: Events | None = None
        stopped: list[Stopped] = []
        for encodings, places in (groups or {self._default: []}).items():
            at = np.array(places, dtype=np.int64)
            events = self._reader(encodings or self._any()).read(batch.take(at))
            if isinstance(events, Stopped):
                stopped.append(Stopped(place=int(at[events.place]), why=events.why))
                continue
            if encodings is None:
                self._refuse_all(events)
            events.kept = at[events.kept]
            events.reasons = {int(at[place]): why for place, why in events.reasons.items()}
            if whole is not None:
                events = whole.followed_by(events, {**whole.reasons, **events.reasons})
            whole = events
        if stopped or whole is None:
            return min(stopped, key=lambda one: one.place)
        return whole

    def _refuse_all(self, events: Events) -> None:
        """Refuse events without a schema; what is wrong with them besides decimals says more."""
        events.refuse(np.ones(len(events.good), dtype=np.bool_), NO_SCHEMA)
        fields = fields_of(self._decimals)
        for place, why in events.reasons.items():
            if why.partition(":")[0] in fields:
                events.reasons[place] = NO_SCHEMA

    def _any(self) -> Encodings:
        """Return the encoding that takes most, to find other faults of events that are refused."""
        return tuple((STRING, None) for _ in self._decimals)

    def _reader(self, encodings: Encodings) -> _OneEncoding:
        if encodings not in self._readers:
            if len(self._readers) >= READERS_MAX:
                self._readers.clear()
            by_path = dict(zip(self._decimals, encodings, strict=True))
            self._readers[encodings] = _OneEncoding(self._row, self._values, self._decimals, by_path)
        return self._readers[encodings]


class _OneEncoding:
    """Reads events of one encoding: base64 by one reader, numbers by another."""

    def __init__(
        self,
        row: pa.StructType,
        values: Callable[[pa.Schema], Decoder],
        decimals: Mapping[Path, pa.Decimal128Type],
        encodings: Mapping[Path, Encoding],
    ) -> None:
        scales = {shown(path): scale for path, (kind, scale) in encodings.items() if kind == PRECISE}
        strict = [path for path, (kind, _) in encodings.items() if kind == DOUBLE]
        self._readers = [_Strict(EventReader(row, values, scales=scales), strict, decimals)]
        if scales:
            numbers = [path for path, (kind, _) in encodings.items() if kind != STRING]
            self._readers.append(_Strict(EventReader(row, values), numbers, decimals))
        read_as_bytes = {path: kind for path, kind in decimals.items() if shown(path) in scales}
        self._named = fields_of(read_as_bytes)

    def read(self, batch: RawBatch) -> Events | Stopped:
        """Read as the last batch was encoded; what does not fit, once more the other way."""
        events = self._readers[0].read(batch)
        if isinstance(events, Stopped) or not events.reasons:
            return events
        events.reasons = {place: self._reason(why) for place, why in events.reasons.items()}
        if len(self._readers) == 1:
            return events
        refused = np.array(sorted(events.reasons), dtype=np.int64)
        again = self._readers[1].read(batch.take(refused))
        if isinstance(again, Stopped):
            return Stopped(place=int(refused[again.place]), why=again.why)
        again.kept = refused[again.kept]
        if again.good.any():
            self._readers.reverse()
        reasons = {int(refused[place]): self._reason(why) for place, why in again.reasons.items()}
        for place, why in reasons.items():
            if why.partition(":")[0] in self._named:  # the other reader says more of anything else
                reasons[place] = events.reasons[place]
        return events.followed_by(again, reasons)

    def _reason(self, why: str) -> str:
        """Return a reason that names the column's type, whatever it was read as."""
        field, colon, rest = why.partition(":")
        kind = self._named.get(field)
        return f"{field}{colon}{rest.replace('not a BINARY', f'not a {kind}', 1)}" if kind else why


class _Strict:
    """Refuses events in which a string stands for a decimal that is a number. See `EventReader`."""

    def __init__(
        self, reader: EventReader, paths: Sequence[Path], decimals: Mapping[Path, pa.Decimal128Type]
    ) -> None:
        self._reader, self._paths, self._decimals = reader, paths, decimals
        names = {next(name for name in reversed(path) if name not in ("[]", "{}")) for path in paths}
        spelled = "|".join(re.escape(json.dumps(name, ensure_ascii=False)) for name in sorted(names))
        nested = any(path[-1] in ("[]", "{}") for path in paths)
        opening = rb'["\[{]' if nested else b'"'
        named = b"(?:" + spelled.encode() + rb")\s*:\s*" + opening
        self._suspect = re.compile(named + b"|" + ESCAPED_NAME) if names else None

    def read(self, batch: RawBatch) -> Events | Stopped:
        """Read events; look closer at those in which a string stands behind a decimal's name."""
        events = self._reader.read(batch)
        if isinstance(events, Stopped) or self._suspect is None:
            return events
        for place in np.flatnonzero(events.good).tolist():
            value = batch.values[int(events.kept[place])] or b""
            if self._suspect.search(value):
                path = self._text(value)
                if path is not None:
                    kind = ddl_name(self._decimals[path[1:]])
                    events.refuse_one(place, f"field {shown(path)}: not a {kind} but a string")
        return events

    def _text(self, value: bytes) -> Path | None:
        """Return the path of the first decimal that is a string."""
        try:
            event = dict(parse(value))
        except (Mismatch, RecursionError):  # Arrow reads a few spellings that Python does not
            return ("after", *self._paths[0])
        payload = event.get("payload")
        inside = dict(payload) if isinstance(payload, Object) else event
        for side in ("before", "after"):
            for path in self._paths:
                if any(map(_is_text, _at(inside.get(side), path))):
                    return (side, *path)
        return None


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not isinstance(value, Number)


def _at(value: Any, path: Sequence[str]) -> Iterator[Any]:
    """Yield what stands at a path."""
    if not path:
        yield value
    elif path[0] == "[]" and isinstance(value, list) and not isinstance(value, Object):
        for one in value:
            yield from _at(one, path[1:])
    elif isinstance(value, Object):
        for name, one in value:
            if path[0] in (name, "{}"):
                yield from _at(one, path[1:])


class EventSchemas:
    """Reads from the schema next to an event's payload how the decimals at these paths are encoded."""

    def __init__(self, paths: tuple[Path, ...]) -> None:
        self._paths = paths
        self._heads: dict[bytes, Encodings] = {}
        self._size_bytes = 0

    def encodings(self, value: bytes) -> Encodings | None:
        """Return the encoding of each decimal; None for an event without a schema."""
        end = value.find(PAYLOAD)
        if end < 0:
            return None
        for _ in range(PLACES_MAX):
            if end < 0:
                break
            head = value[:end].rstrip()
            if head in self._heads:
                return self._heads[head]
            if head.endswith(b",") and (schema := _schema(head[:-1] + b"}")) is not None:
                return self._remember(head, schema)
            end = value.find(PAYLOAD, end + 1)
        schema = _schema(value)
        return self._of(schema) if schema is not None else None

    def _remember(self, head: bytes, schema: Mapping[str, Any]) -> Encodings:
        if len(self._heads) >= HEADS_MAX or self._size_bytes + len(head) > HEADS_BYTES_MAX:
            self._heads.clear()
            self._size_bytes = 0
        found = self._of(schema)
        self._heads[head] = found
        self._size_bytes += len(head)
        return found

    def _of(self, schema: Mapping[str, Any]) -> Encodings:
        row = _field(schema, "after") or _field(schema, "before")
        return tuple(_encoding(_inside(row, path)) for path in self._paths)


def _schema(text: bytes) -> Mapping[str, Any] | None:
    """Return the schema in an event, or in its first part; None where there is none."""
    try:
        event = json.loads(text)
    except (ValueError, RecursionError):
        return None
    schema = event.get("schema") if isinstance(event, dict) else None
    return schema if isinstance(schema, dict) else None


def _field(schema: Any, name: str) -> Any:
    """Return the schema of a struct's field."""
    fields = schema.get("fields") if isinstance(schema, dict) else None
    for field in fields if isinstance(fields, list) else ():
        if isinstance(field, dict) and field.get("field") == name:
            return field
    return None


def _inside(schema: Any, path: Path) -> Any:
    """Return the schema at a path."""
    for name in path:
        if name in ("[]", "{}"):
            key = "items" if name == "[]" else "values"
            schema = schema.get(key) if isinstance(schema, dict) else None
        else:
            schema = _field(schema, name)
    return schema


def _encoding(schema: Any) -> Encoding:
    """Return how a decimal of this schema is encoded. What is no decimal of Connect must be a number."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    if kind == "string":
        return STRING, None
    if kind != "bytes":
        return DOUBLE, None
    parameters = schema.get("parameters")
    said = parameters.get("scale") if isinstance(parameters, dict) else None
    if schema.get("name") != CONNECT_DECIMAL or not re.fullmatch("-?[0-9]{1,4}", str(said)):
        return PRECISE, None
    return PRECISE, int(str(said)) if abs(int(str(said))) <= SCALE_MAX else None
