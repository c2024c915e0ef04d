"""What a record's value must become: one at a time, with Python's `json`, sharing no code with the decoder.

The rules are those that `participant.records.json.decoder` documents. Where they leave a spelling open, the
record may be a row or a reject; a row must hold the reference's values all the same.
"""

from __future__ import annotations

import base64
import json
import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, localcontext
from typing import Any, NoReturn

import pyarrow as pa

BLANK = " \t\r\n"
DEPTH_MAX = 60
ODD_NUMBERS = re.compile(rb"-?Inf|-?NaN")
HALF_PAIR = re.compile("[\ud800-\udfff]")
DIGITS = re.compile(r"-?[0-9]+", re.ASCII)
DECIMAL = re.compile(r"[+-]?([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?", re.ASCII)
MOMENT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d)(?::(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?"
    r"(?:Z|([+-])(\d\d)(?::?(\d\d))?)?)?",
    re.ASCII,
)
WORDS = {
    "NaN": "nan",
    "Infinity": "inf",
    "-Infinity": "-inf",
    "+Infinity": "inf",
    "+INF": "inf",
    "-INF": "-inf",
}
FLOAT_END = 3.4028235677973366e38
INSIDE = {pa.int32(): 32, pa.int64(): 64}


class Refused(Exception):
    """The record must be a reject."""


@dataclass(slots=True)
class Reading:
    """`row`: the values that a row must have. `open`: it may be a reject as well."""

    row: dict[str, Any] = field(default_factory=dict)
    open: bool = False


class Spelled(str):
    """A number as it was spelled."""


class Pairs(list):  # type: ignore[type-arg]
    """An object's members, repeated ones included."""


def read(value: bytes | None, schema: pa.Schema) -> Reading:
    """Raises `Refused` where the value is no row of the schema."""
    if value is None or b"\0" in value:
        raise Refused
    found = Reading()
    try:
        text = value.decode("utf-8").strip(BLANK)
    except UnicodeDecodeError:
        raise Refused from None
    if not (text.startswith("{") and text.endswith("}")):
        raise Refused
    if max(text.count("["), text.count("{")) > DEPTH_MAX:
        found.open = True
    try:
        document = json.loads(
            text, object_pairs_hook=Pairs, parse_int=Spelled, parse_float=Spelled, parse_constant=Spelled
        )
        found.open |= _odd(document)
    except RecursionError:
        return Reading(open=True)
    except ValueError:
        if ODD_NUMBERS.search(value):  # other spellings of what is no number
            return Reading(open=True)
        raise Refused from None
    found.row = _members(document, schema, found)
    return found


def _odd(value: Any) -> bool:
    """Whether there is, anywhere, what nobody promised to read or to refuse: half a pair, a vast number."""
    if isinstance(value, Pairs):
        return any(_odd(name) or _odd(inner) for name, inner in value)
    if isinstance(value, list):
        return any(map(_odd, value))
    if isinstance(value, Spelled):
        return value[-1] not in "Ny" and math.isinf(float(value))
    return isinstance(value, str) and HALF_PAIR.search(value) is not None


def _members(document: Any, fields: Any, found: Reading) -> dict[str, Any]:
    if not isinstance(document, Pairs):
        raise Refused
    row: dict[str, Any] = {one.name: None for one in fields}
    kinds = {one.name: one.type for one in fields}
    seen: set[str] = set()
    for name, value in document:
        if name in row:
            if name in seen:
                raise Refused
            seen.add(name)
            row[name] = convert(value, kinds[name], found)
    if any(row[one.name] is None and not one.nullable for one in fields):
        raise Refused
    return row


def convert(value: Any, kind: pa.DataType, found: Reading) -> Any:
    """A JSON value as `pyarrow`'s `to_pylist` shows it in a column of `kind`."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return _members(value, kind, found)
    if pa.types.is_map(kind):
        if not isinstance(value, Pairs) or len({name for name, _ in value}) != len(value):
            raise Refused
        return [(_string(name), convert(item, kind.item_type, found)) for name, item in value]
    if pa.types.is_list(kind):
        if not isinstance(value, list) or isinstance(value, Pairs):
            raise Refused
        return [convert(item, kind.value_type, found) for item in value]
    if pa.types.is_decimal(kind):
        return _decimal(value, kind)
    if pa.types.is_timestamp(kind):
        return _moment(value, found) if kind.tz else _clock(value, found)
    if kind in INSIDE:
        return _whole(value, INSIDE[kind])
    return _PLAIN[kind](value)


def _no() -> NoReturn:
    raise Refused


def _string(value: Any) -> str:
    if not isinstance(value, str) or isinstance(value, Spelled) or HALF_PAIR.search(value):
        _no()
    return value


def _whole(value: Any, bits: int) -> int:
    if not isinstance(value, Spelled) or not DIGITS.fullmatch(value) or len(value) > 4_000:
        _no()
    number = int(value)
    return number if -(2 ** (bits - 1)) <= number < 2 ** (bits - 1) else _no()


def _double(value: Any) -> float:
    if isinstance(value, str) and value in WORDS:
        return float(WORDS[value])
    if not isinstance(value, Spelled):
        _no()
    number = float(value) + 0.0  # a negative zero is zero
    return _no() if math.isinf(number) and not value.endswith("y") else number


def _single(value: Any) -> float:
    number = _double(value)
    if math.isfinite(number) and abs(number) >= FLOAT_END:
        _no()
    return float(struct.unpack("<f", struct.pack("<f", number))[0]) + 0.0


def _truth(value: Any) -> bool:
    return value if isinstance(value, bool) else _no()


def _decimal(value: Any, kind: pa.DataType) -> Decimal:
    match = DECIMAL.fullmatch(value) if isinstance(value, str) else None
    if match is None or not (match[1] or match[2]) or len(match[3] or "") > 12:
        _no()
    whole, fraction, exponent = match[1].lstrip("0"), match[2] or "", int(match[3] or 0)
    places = len(fraction) - exponent
    if len(whole) + len(fraction) + max(0, -places) > kind.precision or places > 76:
        _no()
    with localcontext() as context:
        context.prec = 200
        scaled = Decimal(value).scaleb(kind.scale)
        if scaled != scaled.to_integral_value() or abs(scaled) >= 10**kind.precision:
            _no()
        return scaled.to_integral_value().scaleb(-kind.scale)


def _day(value: Any) -> date:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", _string(value)):
        _no()
    try:
        return date.fromisoformat(value)
    except ValueError:
        _no()


def _moment(value: Any, found: Reading) -> datetime:
    match = MOMENT.fullmatch(_string(value))
    if match is None:
        _no()
    year, month, day, hour, minute, second, fraction, sign, zone_h, zone_m = match.groups()
    if hour is not None and minute is None:
        found.open = True  # an hour alone
    try:
        local = datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0))
        if int(zone_h or 0) > 23 or int(zone_m or 0) > 59:
            _no()
        zone = timedelta(hours=int(zone_h or 0), minutes=int(zone_m or 0))
        moment = local - (-zone if sign == "-" else zone)
    except (ValueError, OverflowError):
        _no()
    return moment.replace(microsecond=int((fraction or "0").ljust(6, "0")), tzinfo=UTC)


def _clock(value: Any, found: Reading) -> datetime:
    if any(sign in _string(value)[10:] for sign in "+-Z"):
        _no()  # it names a zone
    return _moment(value, found).replace(tzinfo=None)


def _bytes(value: Any) -> bytes:
    if not re.fullmatch(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", _string(value)):
        _no()
    return base64.b64decode(value)


_PLAIN: dict[pa.DataType, Callable[[Any], Any]] = {
    pa.string(): _string,
    pa.bool_(): _truth,
    pa.float32(): _single,
    pa.float64(): _double,
    pa.date32(): _day,
    pa.binary(): _bytes,
}


def same(row: Any, wanted: Any) -> bool:
    """Equal in type and value, zeros' signs included; NaN equals itself."""
    if type(row) is not type(wanted):
        return False
    if isinstance(wanted, float):
        return struct.pack("<d", row) == struct.pack("<d", wanted) or (math.isnan(row) and math.isnan(wanted))
    if isinstance(wanted, dict):
        return row.keys() == wanted.keys() and all(same(row[key], wanted[key]) for key in wanted)
    if isinstance(wanted, list | tuple):
        return len(row) == len(wanted) and all(map(same, row, wanted))
    return bool(row == wanted)
