"""Times as texts, a whole column at once: of many rows few texts come. Pure.

A row costs a division and a look-up; what is spelled, and what a time zone is asked for, are the few distinct
steps and hours. Times are microseconds since 1970, of the proleptic Gregorian calendar.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from table.partitioners.patterns import Pattern

Micros = npt.NDArray[np.int64]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = 1_000_000
HOUR = 3_600 * SECOND
STEPS: Mapping[str, int] = {
    "second": SECOND,
    "minute": 60 * SECOND,
    "hour": HOUR,
    "day": 24 * HOUR,
    "month": 24 * HOUR,
    "year": 24 * HOUR,
}
"""Part of a time -> what changes it, at least."""
BOUNDS = (-62_135_596_800 * SECOND, 253_402_300_800 * SECOND - 1)
"""The years 1 to 9999."""
HOURS_MAX = 48
_DAYS_BEYOND = 3
"""The 31st of February is taken for the 3rd of March."""
OFFSETS_MAX = 100_000
"""Hours whose offsets are remembered: some eleven years of them."""


def step_of(pattern: Pattern) -> int:
    """Microseconds between two texts, at least."""
    return min(STEPS[part] for part in pattern.parts)


def spelled(
    micros: Micros, pattern: Pattern, *, zone: str = "", step: int = 0
) -> tuple[npt.NDArray[np.int32], list[str | None]]:
    """Per row a code, and per code its text: None where the year has none, 1 to 9999.

    `micros`: within `BOUNDS`. `zone`: by whose clock; empty: as it is. `step`: each time is the last whole
    one before it; 0: what the pattern tells apart.
    """
    step = step or step_of(pattern)
    if not len(micros):
        return np.zeros(0, dtype=np.int32), []
    low, high = int(micros.min()), int(micros.max())
    offset = _offset_between(zone, low, high) if zone else 0
    if offset is not None and (low + offset) // step == (high + offset) // step:  # as of most batches
        return np.zeros(len(micros), dtype=np.int32), [_text((low + offset) // step * step, pattern)]
    local = micros + (offsets(micros, zone) if offset is None else offset)
    found = pa.array(np.floor_divide(local, step)).dictionary_encode()
    texts = [_text(number * step, pattern) for number in found.dictionary.to_pylist()]
    return found.indices.to_numpy(), texts


def offsets(micros: Micros, zone: str) -> Micros:
    """What is added to each time for the clock of the zone."""
    hours = pa.array(np.floor_divide(micros, HOUR)).dictionary_encode()
    of_hour = [_offset_within(zone, hour) for hour in hours.dictionary.to_pylist()]
    codes = hours.indices.to_numpy()
    found: Micros = np.array([0 if one is None else one for one in of_hour] or [0], dtype=np.int64)[codes]
    for code, offset in enumerate(of_hour):
        if offset is not None:
            continue
        rows = np.flatnonzero(codes == code)  # the clock is set within this hour
        seconds, places = np.unique(np.floor_divide(micros[rows], SECOND), return_inverse=True)
        found[rows] = np.array([_offset(zone, second) for second in seconds.tolist()], dtype=np.int64)[places]
    return found


def _offset_between(zone: str, low: int, high: int) -> int | None:
    """In all of this time; None where it changes, or would have to be looked for for long."""
    first, last = low // HOUR, high // HOUR
    if last - first > HOURS_MAX:
        return None
    found = {_offset_within(zone, hour) for hour in range(first, last + 1)}
    return found.pop() if len(found) == 1 else None


@lru_cache(OFFSETS_MAX)
def _offset_within(zone: str, hour: int) -> int | None:
    """In all of this hour since 1970; None where it changes. No zone sets its clock twice within an hour."""
    first, last = (_offset(zone, second) for second in (3_600 * hour, 3_600 * hour + 3_599))
    return first if first == last else None


def _offset(zone: str, second: int) -> int:
    try:
        there = (EPOCH + timedelta(seconds=second)).astimezone(_zone(zone)).utcoffset()
    except OverflowError:  # at the calendar's ends: what is a day away has the same offset there
        return _offset(zone, second + (86_400 if second < 0 else -86_400))
    assert there is not None
    return there // timedelta(microseconds=1)


@lru_cache(64)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def _text(micros: int, pattern: Pattern) -> str | None:
    try:
        time = EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return None
    parts = {part: getattr(time, part) for part in STEPS}
    return pattern.spelled(parts)


def micros_of(column: pa.Array, *, factor: int = 0, pattern: Pattern | None = None) -> pa.Array:
    """Microseconds since 1970 as `int64`, null where it is null or no time of the years 1 to 9999.

    `factor`: how many a number stands for; of a time or a date 0. `pattern`: of texts.
    """
    if pattern is not None:
        return _read(column, pattern).cast(pa.int64())
    if pa.types.is_date32(column.type):
        days = column.cast(pa.int32()).cast(pa.int64())
        return _bounded(days, 24 * HOUR)
    if pa.types.is_timestamp(column.type):
        return _bounded(column.cast(pa.int64()), 1)
    return _bounded(column.cast(pa.int64()), factor)


def _read(texts: pa.Array, pattern: Pattern) -> pa.Array:
    """Timestamps, null where a text is not so spelled, to the digit, or names a day that there is not.

    `strptime` takes fewer digits, other spaces, and the 30th of February for the 2nd of March.
    """
    texts = pc.if_else(pc.match_substring_regex(texts, pattern.read), texts, pa.scalar(None, pa.string()))
    times = pc.strptime(texts, pattern.strptime, "us", error_is_null=True)
    early = pc.less_equal(pc.day(times), _DAYS_BEYOND).fill_null(False)
    if not pc.any(early).as_py():
        return times
    said = pc.struct_field(pc.extract_regex(texts.filter(early), pattern.read), "day").cast(pa.int64())
    wrong = np.zeros(len(times), dtype=np.bool_)
    wrong[early.to_numpy(zero_copy_only=False)] = pc.not_equal(said, pc.day(times.filter(early)))
    return pc.if_else(pa.array(wrong), pa.scalar(None, times.type), times)


def _bounded(numbers: pa.Array, factor: int) -> pa.Array:
    """Times `factor`, null where that is out of bounds."""
    low, high = -(-BOUNDS[0] // factor), BOUNDS[1] // factor
    ends = pc.min_max(numbers)
    smallest, largest = ends["min"].as_py(), ends["max"].as_py()
    if smallest is not None and (smallest < low or largest > high):
        within = pc.and_(pc.greater_equal(numbers, low), pc.less_equal(numbers, high))
        numbers = pc.if_else(within, numbers, pa.scalar(None, pa.int64()))
    return numbers if factor == 1 else pc.multiply(numbers, factor)
