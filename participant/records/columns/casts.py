"""A column's type made of another one, value by value, and nothing lost: what does not fit is said, not
rounded.

All is done by Arrow on whole columns. Where a column does not fit as a whole, its halves are tried, so that
one misfit costs some 2 log n small casts; what a pattern or a comparison tells is found at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from table.schema import LOCAL_MICROS, MICROS, UTC_MICROS, ddl_name

Mask: TypeAlias = npt.NDArray[np.bool_]
Convert: TypeAlias = Callable[[pa.Array, pa.DataType], pa.Array]

_DIGITS = 76
"""Of a decimal of 256 bits."""
NUMBER = r"-?(0|[1-9][0-9]*)"
DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
CLOCK = r"[0-9]{2}(:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?)?"
ZONE = r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """From one type to another one."""

    convert: Convert
    """Of values that fit; raises `ValueError` where one does not."""
    pattern: str = ""
    """What texts that fit look like; empty for anything."""
    within: Callable[[pa.DataType], tuple[int, int]] | None = None
    """From which value to which one fits."""


# --- which there are -------------------------------------------------------------------------------------


def _plain(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return array.cast(kind)


def _true(array: pa.Array, _kind: pa.DataType) -> pa.Array:
    return pc.equal(array, "true")


def _floating(array: pa.Array, kind: pa.DataType) -> pa.Array:
    done = array.cast(pa.float64()).cast(kind, safe=False)
    if pc.any(pc.is_inf(done)).as_py():
        raise ValueError("beyond the range")
    return pc.add(done, pa.scalar(0.0, kind))  # a negative zero is zero, as in JSON


def _decimal(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Of 256 bits first, which hold 38 digits before the point and 38 behind it: where Arrow gives a number
    another scale in 128 bits, it does not look whether it still fits, and makes another number of it."""
    if pa.types.is_integer(array.type):
        array = array.cast(pa.decimal128(19, 0))
    return array.cast(pa.decimal256(_DIGITS, kind.scale)).cast(kind)


def _zoned(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Without a zone it is UTC."""
    clocked = pc.if_else(
        pc.match_substring_regex(array, "[T ]"), array, pc.binary_join_element_wise(array, "T00:00", "")
    )
    zoned = pc.match_substring_regex(clocked, f"[T ].*{ZONE}$")
    return _in_years(pc.if_else(zoned, clocked, pc.binary_join_element_wise(clocked, "Z", "")).cast(kind))


def _in_years(array: pa.Array) -> pa.Array:
    """Whatever is a time, or a date, before the year 1 or behind 9999 is none."""
    number = array.cast(pa.timestamp("us"), safe=True) if pa.types.is_date(array.type) else array
    bounds = pc.min_max(number.cast(pa.int64()))
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    if low is not None and (low < MICROS[0] or high > MICROS[1]):
        raise ValueError("outside the years 1 to 9999")
    return array


def _range(kind: pa.DataType) -> tuple[int, int]:
    """Whole numbers that it holds, every one of them."""
    return {
        pa.int32(): (-(2**31), 2**31 - 1),
        pa.int64(): (-(2**63), 2**63 - 1),
        pa.float32(): (-(2**24), 2**24),
        pa.float64(): (-(2**53), 2**53),
    }[kind]


_WHOLE = Cast(convert=_plain, pattern=f"^{NUMBER}$")
_FLOAT = Cast(convert=_floating, pattern=rf"^{NUMBER}(\.[0-9]+)?([eE][+-]?[0-9]+)?$")
_FITS = Cast(convert=_plain, within=_range)
_ANY = Cast(convert=_plain)
CASTS: dict[tuple[str, str], Cast] = {
    ("BINARY", "STRING"): _ANY,
    ("STRING", "BOOLEAN"): Cast(convert=_true, pattern="^(true|false)$"),
    ("STRING", "INT"): _WHOLE,
    ("STRING", "BIGINT"): _WHOLE,
    ("STRING", "FLOAT"): _FLOAT,
    ("STRING", "DOUBLE"): _FLOAT,
    ("STRING", "DECIMAL"): Cast(convert=_decimal, pattern=r"^-?(0|[1-9][0-9]{0,37})(\.[0-9]{1,38})?$"),
    ("STRING", "DATE"): Cast(convert=lambda array, kind: _in_years(array.cast(kind)), pattern=f"^{DATE}$"),
    ("STRING", "TIMESTAMP"): Cast(convert=_zoned, pattern=f"^{DATE}([ T]{CLOCK}{ZONE}?)?$"),
    ("STRING", "TIMESTAMP_NTZ"): Cast(
        convert=lambda array, kind: _in_years(array.cast(kind)), pattern=f"^{DATE}([ T]{CLOCK})?$"
    ),
    ("BOOLEAN", "STRING"): _ANY,
    ("INT", "STRING"): _ANY,
    ("BIGINT", "STRING"): _ANY,
    ("DATE", "STRING"): _ANY,
    ("INT", "BIGINT"): _ANY,
    ("INT", "DOUBLE"): _ANY,
    ("INT", "FLOAT"): _FITS,
    ("BIGINT", "INT"): _FITS,
    ("BIGINT", "FLOAT"): _FITS,
    ("BIGINT", "DOUBLE"): _FITS,
    ("FLOAT", "DOUBLE"): _ANY,
    ("DOUBLE", "INT"): _ANY,
    ("DOUBLE", "BIGINT"): _ANY,
    ("FLOAT", "INT"): _ANY,
    ("FLOAT", "BIGINT"): _ANY,
    ("INT", "DECIMAL"): Cast(convert=_decimal),
    ("BIGINT", "DECIMAL"): Cast(convert=_decimal),
    ("DECIMAL", "INT"): _ANY,
    ("DECIMAL", "BIGINT"): _ANY,
    ("DECIMAL", "DECIMAL"): Cast(convert=_decimal),
}
"""From and to, as DDL names them."""


def name_of(kind: pa.DataType) -> str:
    """As `CASTS` names it."""
    return "DECIMAL" if pa.types.is_decimal(kind) else ddl_name(kind)


def route(given: pa.DataType, wanted: pa.DataType) -> tuple[pa.DataType, ...] | None:
    """By which types one is made of the other, the last included; None where it is not."""
    if given == wanted:
        return ()
    if (name_of(given), name_of(wanted)) in CASTS:
        return (wanted,)
    if given == pa.binary() and ("STRING", name_of(wanted)) in CASTS:
        return (pa.string(), wanted)
    return None


# --- done ------------------------------------------------------------------------------------------------


def cast(array: pa.Array, kind: pa.DataType) -> tuple[pa.Array, Mask]:
    """The values as `kind`, and which of them do not fit: they are null. Null stays null, and fits."""
    if array.type == kind:
        return array, np.zeros(len(array), dtype=np.bool_)
    how = CASTS[name_of(array.type), name_of(kind)]
    misfits = np.zeros(len(array), dtype=np.bool_)
    if how.pattern:
        misfits |= _not(pc.match_substring_regex(array, how.pattern))
    if how.within is not None:
        low, high = (pa.scalar(end, array.type) for end in _ends(how, array, kind))
        inside = pc.and_(pc.greater_equal(array, low), pc.less_equal(array, high))
        misfits |= _not(inside)
    return converted(array, misfits, lambda some: how.convert(some, kind))


def _not(fits: pa.BooleanArray) -> Mask:
    """Null fits."""
    found: Mask = ~fits.fill_null(True).to_numpy(zero_copy_only=False)
    return found


def _ends(how: Cast, array: pa.Array, kind: pa.DataType) -> tuple[int, int]:
    """Of what both types hold."""
    assert how.within is not None
    low, high = how.within(kind)
    least, most = _range(array.type)
    return max(low, least), min(high, most)


def moment(array: pa.Array, micros: int) -> tuple[pa.Array, Mask]:
    """Numbers that count so many microseconds since 1970, as times; which of them are none."""
    numbers = array.fill_null(0).to_numpy()
    misfits: Mask = (numbers < MICROS[0] // micros) | (numbers > MICROS[1] // micros)
    good = pc.if_else(pa.array(misfits), pa.scalar(None, pa.int64()), array)
    return pc.multiply(good, micros).cast(UTC_MICROS), misfits


def day(array: pa.Array) -> pa.Array:
    """The day on which a time is, by UTC's calendar."""
    return pc.floor_temporal(array.cast(LOCAL_MICROS), unit="day").cast(pa.date32())


def converted(
    array: pa.Array, misfits: Mask, convert: Callable[[pa.Array], pa.Array]
) -> tuple[pa.Array, Mask]:
    """`misfits`: those known beforehand. All of them are null, and what else `convert` does not take."""
    good = pc.if_else(pa.array(misfits), pa.scalar(None, array.type), array) if misfits.any() else array
    try:
        return convert(good), misfits
    except ValueError:
        found = misfits.copy()
        _look(good, convert, found)
        return convert(pc.if_else(pa.array(found), pa.scalar(None, array.type), array)), found


def _look(array: pa.Array, convert: Callable[[pa.Array], pa.Array], found: Mask) -> None:
    """Marks the values that are not taken. `found`: of these values."""
    parts = [(0, len(array))]
    while parts:
        begin, end = parts.pop()
        try:
            convert(array.slice(begin, end - begin))
        except ValueError:
            if end - begin == 1:
                found[begin] = True
                continue
            middle = (begin + end) // 2
            parts += [(begin, middle), (middle, end)]
