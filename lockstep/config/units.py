"""Durations, sizes and shares as people write them: "500ms", "5s", "2m", "1h"; "120MB", "1GiB"; "25%".

A bare number is refused, since nobody can tell what was meant by it. Parsing and formatting are inverse:
`parse(format(n)) == n` for every n below 10^15.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

from lockstep.config.problems import shown

DURATION_UNITS_MS: Mapping[str, int] = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}

SIZE_UNITS_BYTES: Mapping[str, int] = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
"""Decimal and binary units (IEC 80000-13). Letters may be in any case; only the `i` makes a unit binary."""

_SHARE = re.compile(r"\s*(\d{1,3}(?:\.\d)?)\s*%\s*")
_QUANTITY = re.compile(r"\s*(\d{1,15}(?:\.\d{1,9})?)\s*([A-Za-z]*)\s*")


def parse_duration_ms(value: object) -> int:
    """Milliseconds. Raises `ValueError` with a sentence."""
    return _parse(value, DURATION_UNITS_MS, what="a duration", example="10s", smallest="a millisecond")


def parse_size_bytes(value: object) -> int:
    """Bytes. Raises `ValueError` with a sentence."""
    return _parse(value, SIZE_UNITS_BYTES, what="a size", example="120MB", smallest="a byte")


def format_duration(duration_ms: int) -> str:
    """The shortest spelling that `parse_duration_ms` reads back as the same number."""
    return _format(duration_ms, DURATION_UNITS_MS)


def format_size(size_bytes: int) -> str:
    """The shortest spelling that `parse_size_bytes` reads back as the same number."""
    return _format(size_bytes, SIZE_UNITS_BYTES)


def parse_share(value: object) -> float:
    """`25%` as a part of one, from 1% on. Raises `ValueError` with a sentence."""
    match = _SHARE.fullmatch(value) if isinstance(value, str) else None
    if match is None or not 1 <= float(match[1]) <= 100:
        raise ValueError(f'{shown(value)} is no share from 1% to 100%: write one such as "25%"')
    return float(match[1]) / 100


def format_share(share: float) -> str:
    """As `parse_share` reads it back."""
    return f"{100 * share:g}%"


def _parse(value: object, units: Mapping[str, int], *, what: str, example: str, smallest: str) -> int:
    known = ", ".join(units)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number or (isinstance(value, str) and re.fullmatch(r"\s*\d+(?:\.\d+)?\s*", value)):
        given = value if isinstance(value, str) else shown(value)
        raise ValueError(f'{given} has no unit: write {what} such as "{example}" (units: {known})')
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f'{shown(value)} is not {what}: write one such as "{example}" (units: {known})')
    by_lower_case = {unit.lower(): factor for unit, factor in units.items()}
    factor = by_lower_case.get(match[2].lower())
    if factor is None:
        raise ValueError(f"{shown(match[2])} is not a unit of {what}: the units are {known}")
    quantity = Decimal(match[1]) * factor
    if quantity != quantity.to_integral_value():
        raise ValueError(f"{value!r} is not a whole number of units: {smallest} cannot be divided")
    return int(quantity)


def _format(quantity: int, units: Mapping[str, int]) -> str:
    if quantity < 0:
        raise ValueError(f"{quantity} is negative")
    smallest = next(unit for unit, factor in units.items() if factor == 1)
    if quantity == 0:
        return f"0{smallest}"
    spellings = [f"{quantity // factor}{unit}" for unit, factor in units.items() if quantity % factor == 0]
    return min(spellings, key=len)
