"""One JSON value at a time, in Python: why it is no row, and what Arrow cannot read (MAP, a Kafka key).

Decoding is Arrow's (`participant.records.json.decoder`). This module says in words why Arrow refused a
record, so whatever it refuses Arrow refuses too; a test holds the two against each other. A reason names the
field and what kind of thing was there, never the content: values may hold personal data, and reasons travel.
"""

from __future__ import annotations

import binascii
import json
import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Context, Decimal, Inexact
from typing import Any, NoReturn

import pyarrow as pa

from table.schema import DECIMAL_PRECISION_MAX, LOCAL_MICROS, UTC_MICROS, ddl_name

WHITESPACE = b" \t\r\n"
INTEGER = re.compile(r"-?[0-9]+")
DECIMAL = re.compile(r"[+-]?(?=\.?[0-9])([0-9]*)\.?([0-9]*)(?:[eE]([+-]?[0-9]{1,9}))?", re.ASCII)
DECIMAL_PLACES_MAX = 76
"""Digits behind the point, once an exponent is worked in. Arrow's reader scales by no larger power of ten."""
DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
CLOCK = r"[0-9]{2}(:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?)?"
ZONE = r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)"
TIMESTAMP = re.compile(rf"{DATE.pattern}([ T]{CLOCK}{ZONE}?)?")
TIMESTAMP_NTZ = re.compile(rf"{DATE.pattern}([ T]{CLOCK})?")
NOT_FINITE = {
    "NaN": "NaN",
    **dict.fromkeys(("Infinity", "+Infinity", "+INF"), "Infinity"),
    **dict.fromkeys(("-Infinity", "-INF"), "-Infinity"),
}
"""Texts that are a FLOAT or DOUBLE, as Kafka Connect writes and Spark reads them -> the same without quotes.
Source: `QUOTE_NON_NUMERIC_NUMBERS` of Jackson, Spark's `JacksonParser` (3.5)."""
_EXACT = Context(prec=2 * DECIMAL_PRECISION_MAX, traps=[Inexact])
INT32 = 2**31
INT64 = 2**63
FLOAT_MAX = 3.4028235677973366e38
"""From here on a double rounds to infinity as a FLOAT."""


class Mismatch(ValueError):
    """The value does not fit the schema; the sentence names the field."""


class Number(str):
    """A number as it was spelled."""

    __slots__ = ()


class Object(list[tuple[str, Any]]):
    """A JSON object with its members in order, repeated ones included."""

    __slots__ = ()


_DECODER = json.JSONDecoder(
    object_pairs_hook=Object, parse_int=Number, parse_float=Number, parse_constant=Number
)


def parse(value: bytes) -> Object:
    """The object that a value is; raises `Mismatch` when it is not exactly one JSON object.

    Raises `RecursionError` for a value that is nested deeper than Python goes; Arrow goes deeper.
    """
    document, rest, end = _first(value)
    if not isinstance(document, Object):
        raise Mismatch(f"not a JSON object but {_kind(document)}")
    _expect_end(rest, end)
    return document


def parse_any(value: bytes) -> Any:
    """As `parse`, for JSON of any kind: numbers come as `Number`, objects as `Object`."""
    document, rest, end = _first(value)
    _expect_end(rest, end)
    return document


def _first(value: bytes) -> tuple[Any, str, int]:
    """The first document of a value, what follows it, and where it ends."""
    try:
        text = value.strip(WHITESPACE).decode()
    except UnicodeDecodeError as error:
        raise Mismatch(f"not UTF-8 at byte {error.start}") from None
    try:
        document, end = _DECODER.raw_decode(text)
    except json.JSONDecodeError as error:
        raise Mismatch(f"not JSON: {error.msg.rstrip(': ')} at character {error.pos}") from None
    return document, text[end:].lstrip(WHITESPACE.decode()), end


def _expect_end(rest: str, end: int) -> None:
    if rest.startswith("{"):
        raise Mismatch("holds two documents")
    if rest:
        raise Mismatch(f"not JSON: more after the document's end at character {end}")


def spelled(value: Any) -> str:
    """What `parse_any` made of a text, as JSON again: each number as it was, repeated members included."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, Object):
        return f"{{{','.join(f'{json.dumps(name)}:{spelled(inner)}' for name, inner in value)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(spelled, value))}]"
    return json.dumps(value)


def with_bare_words(value: bytes, schema: pa.Schema) -> bytes | None:
    """Return a value in which `NOT_FINITE` of FLOAT and DOUBLE fields stand bare, as Arrow reads them.

    None where there is none, or where it is no JSON.
    """
    if not any(part in value for part in (b"NaN", b"Inf", b"INF", b"\\u")):
        return None
    try:
        document = parse(value)
        bare = spelled(_bare(document, pa.struct(list(schema)))).encode()
    except (Mismatch, RecursionError):
        return None
    return bare if bare != spelled(document).encode() else None


def _bare(value: Any, kind: pa.DataType) -> Any:
    if isinstance(value, Object) and pa.types.is_struct(kind):
        fields = {field.name: field.type for field in kind}
        return Object([(name, _bare(one, fields[name]) if name in fields else one) for name, one in value])
    if isinstance(value, list) and not isinstance(value, Object) and pa.types.is_list(kind):
        return [_bare(one, kind.value_type) for one in value]
    if type(value) is str and pa.types.is_floating(kind) and value in NOT_FINITE:
        return Number(NOT_FINITE[value])
    return value


def explain(value: bytes, schema: pa.Schema) -> str:
    """Why a value is not a row of `schema`; empty where nothing is found. Never holds the value's content."""
    try:
        convert_members(parse(value), list(schema), "")
    except Mismatch as mismatch:
        if str(mismatch).startswith("not JSON") and (b"Inf" in value or b"-NaN" in value):
            return ""  # Arrow knows more spellings of what is not a number than Python does
        return str(mismatch)
    except RecursionError:
        return ""
    return ""


def check(value: bytes, schema: pa.Schema) -> None:
    """Raises `Mismatch` for a value that Python, alone, would not make a row of."""
    try:
        convert_members(parse(value), list(schema), "")
    except RecursionError:
        raise Mismatch("nested too deeply") from None


def convert_members(document: Object, fields: Sequence[pa.Field], parent: str) -> dict[str, Any]:
    """The fields of an object as Python values that `pyarrow.array` takes. Other members are ignored."""
    wanted = {field.name for field in fields}
    members: dict[str, Any] = {}
    for name, value in document:
        if name in wanted:
            if name in members:
                raise Mismatch(f"field {parent}{name} is there twice")
            members[name] = value
    return {field.name: _convert_field(field, members, parent) for field in fields}


def _convert_field(field: pa.Field, members: dict[str, Any], parent: str) -> Any:
    value = members.get(field.name)
    if value is None and not field.nullable:
        how = "null" if field.name in members else "missing"
        raise Mismatch(f"required field {parent}{field.name} is {how}")
    return convert(value, field.type, f"{parent}{field.name}")


def convert(value: Any, kind: pa.DataType, path: str) -> Any:
    """`value` as a Python value of the Arrow type `kind`; raises `Mismatch`."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        _expect(value, Object, kind, path)
        return convert_members(value, list(kind), f"{path}.")
    if pa.types.is_map(kind):
        _expect(value, Object, kind, path)
        return _convert_map(value, kind, path)
    if pa.types.is_list(kind):
        if not isinstance(value, list) or isinstance(value, Object):
            _refuse(value, kind, path)
        return [convert(item, kind.value_type, f"{path}[]") for item in value]
    if pa.types.is_decimal128(kind):
        return _to_decimal(value, kind, path)
    return _SCALARS[kind](value, kind, path)


def _convert_map(value: Object, kind: pa.DataType, path: str) -> list[tuple[str, Any]]:
    entries = {_to_string(k, pa.string(), path): convert(v, kind.item_type, f"{path}{{}}") for k, v in value}
    if len(entries) != len(value):
        raise Mismatch(f"field {path}: a key is there twice")
    return list(entries.items())


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    if value is None:
        return "null"
    for kind, name in ((Number, "a number"), (str, "a string"), (Object, "an object"), (list, "an array")):
        if isinstance(value, kind):
            return name
    return type(value).__name__


def _refuse(value: Any, kind: pa.DataType, path: str, why: str = "") -> NoReturn:
    raise Mismatch(f"field {path}: not a {ddl_name(kind)} but {why or _kind(value)}")


def _expect(value: Any, wanted: type, kind: pa.DataType, path: str) -> None:
    if not isinstance(value, wanted) or (wanted is str and isinstance(value, Number)):
        _refuse(value, kind, path)


def _to_string(value: Any, kind: pa.DataType, path: str) -> str:
    _expect(value, str, kind, path)
    text: str = value
    try:
        text.encode()
    except UnicodeEncodeError:
        _refuse(value, kind, path, "a string with half a surrogate pair")
    return text


def _to_bool(value: Any, kind: pa.DataType, path: str) -> bool:
    _expect(value, bool, kind, path)
    return value is True


def _to_int(value: Any, kind: pa.DataType, path: str) -> int:
    _expect(value, Number, kind, path)
    if not INTEGER.fullmatch(value):
        _refuse(value, kind, path, "a number that is not spelled as a whole one")
    limit = INT32 if kind == pa.int32() else INT64
    # 20 characters hold every BIGINT; more is beyond it, and Python would refuse to read thousands
    if len(value) > 20 or not -limit <= int(value) < limit:
        _refuse(value, kind, path, "a number beyond its range")
    return int(value)


def _to_float(value: Any, kind: pa.DataType, path: str) -> float:
    if type(value) is str and value in NOT_FINITE:
        return float(NOT_FINITE[value])
    _expect(value, Number, kind, path)
    number = float(value)
    limit = FLOAT_MAX if kind == pa.float32() else math.inf
    if abs(number) >= limit and not value.lstrip("-").startswith("Inf"):
        _refuse(value, kind, path, "a number beyond its range")
    return number + 0.0  # a negative zero is zero


def _to_decimal(value: Any, kind: pa.DataType, path: str) -> Decimal:
    if not isinstance(value, str):
        _refuse(value, kind, path)
    match = DECIMAL.fullmatch(value)
    if match is None:
        _refuse(value, kind, path, f"{_kind(value)} that is not spelled as a decimal")
    whole, fraction = match[1].lstrip("0"), match[2]
    places = len(fraction) - int(match[3] or 0)
    # Arrow counts so: zeros at the end are digits too
    if len(whole) + len(fraction) + max(0, -places) > kind.precision or places > DECIMAL_PLACES_MAX:
        _refuse(value, kind, path, "a number with more digits")
    try:
        # of the column's own scale: PyArrow rescales any other, and crashed the process at 0E-999999999
        number = Decimal(value).quantize(Decimal(1).scaleb(-kind.scale), context=_EXACT)
    except Inexact:
        _refuse(value, kind, path, "a number with more digits")
    if number and number.adjusted() >= kind.precision - kind.scale:
        _refuse(value, kind, path, "a number with more digits")
    return number


def _to_date(value: Any, kind: pa.DataType, path: str) -> date:
    _expect(value, str, kind, path)
    try:
        if DATE.fullmatch(value):
            return date.fromisoformat(value)
    except ValueError:
        pass
    _refuse(value, kind, path, "a string that is no date like 2026-12-31")


def _to_timestamp(value: Any, kind: pa.DataType, path: str) -> datetime:
    _expect(value, str, kind, path)
    try:
        if TIMESTAMP.fullmatch(value):
            moment = datetime.fromisoformat(value)
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    _refuse(value, kind, path, "a string that is no time like 2026-12-31T23:59:59.123456Z")


def _to_local_timestamp(value: Any, kind: pa.DataType, path: str) -> datetime:
    _expect(value, str, kind, path)
    try:
        if TIMESTAMP_NTZ.fullmatch(value):
            return datetime.fromisoformat(value)
    except ValueError:
        pass
    _refuse(value, kind, path, "a string that is no time without a zone like 2026-12-31T23:59:59.123456")


def from_base64(text: str) -> bytes:
    """The bytes of base64 with its padding and nothing else in it. Raises `ValueError`."""
    decoded = binascii.a2b_base64(text, strict_mode=True)
    if len(text) != (len(decoded) + 2) // 3 * 4:  # the strict mode lets padding pass that nothing needs
        raise ValueError("more padding than is needed")
    return decoded


def _to_bytes(value: Any, kind: pa.DataType, path: str) -> bytes:
    _expect(value, str, kind, path)
    try:
        return from_base64(value)
    except ValueError:
        _refuse(value, kind, path, "a string that is not base64 with its padding")


_SCALARS: dict[pa.DataType, Callable[[Any, pa.DataType, str], Any]] = {
    pa.string(): _to_string,
    pa.bool_(): _to_bool,
    pa.int32(): _to_int,
    pa.int64(): _to_int,
    pa.float32(): _to_float,
    pa.float64(): _to_float,
    pa.date32(): _to_date,
    UTC_MICROS: _to_timestamp,
    LOCAL_MICROS: _to_local_timestamp,
    pa.binary(): _to_bytes,
}
