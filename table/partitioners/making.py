"""The columns that a table has for terms of `table.partition_by`, made of what rows have. Pure.

Who makes them holds no state. A row for which one cannot be made has null there, and a reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from table.partitioners import times
from table.partitioners.bounds import LATE, Bounds
from table.partitioners.expressions import BUCKET, READINGS, TRUNCATE, Term, TermError
from table.partitioners.hashes import buckets

TEXT_BYTES_MAX = 4_096
"""Of what a bucket is made of."""
MARK = "\0"
"""No folder of anything that records say holds it."""
KAFKA_MS = (times.BOUNDS[0] // 1_000, times.BOUNDS[1] // 1_000)
MICROSECONDS = ("timestamp[us, tz=UTC]", "timestamp[us]")
"""TIMESTAMP, and TIMESTAMP_NTZ."""
INTEGERS = (pa.int32(), pa.int64())


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    values: pa.Array
    """Per row. Few texts are a dictionary's."""
    bad: Mapping[int, str] = field(default_factory=dict)
    """Row -> why it has none."""


def type_of(term: Term, column: pa.Field | None) -> pa.DataType:
    """Of the column that is made. `column`: the term's field. Raises `TermError` where none can be."""
    if term.is_time:
        if term.source.is_of_records:
            _check_time(term, column)
        return pa.string()
    assert column is not None
    if column.type != pa.string() and column.type not in INTEGERS:
        raise TermError(f"{term.function}({column.name}): it is no STRING, INT or BIGINT")
    return pa.int32() if term.function == BUCKET else column.type


def _check_time(term: Term, column: pa.Field | None) -> None:
    assert column is not None and term.pattern is not None
    kind, said = column.type, f"{term.function}({column.name})"
    if term.source.reading in READINGS:
        if kind not in INTEGERS:
            raise TermError(f"{said}: {term.source.reading} reads INT and BIGINT, which it is not")
    elif term.source.reading:
        if kind != pa.string():
            raise TermError(f"{said}: parse reads a STRING, which it is not")
    elif str(kind) not in MICROSECONDS and not pa.types.is_date32(kind):
        known = ", ".join(f"{name}({column.name})" for name in READINGS)
        raise TermError(
            f"{said}: it is no TIMESTAMP, TIMESTAMP_NTZ or DATE: say how it is a time: {known}, "
            f'or parse({column.name}, "yyyy-MM-dd HH:mm:ss")'
        )
    elif term.zone and str(kind) not in MICROSECONDS[:1]:
        raise TermError(
            f"{said}: it is as somebody's clock showed it, nobody knows where: leave the zone out"
        )
    elif pa.types.is_date32(kind) and times.step_of(term.pattern) < times.STEPS["day"]:
        raise TermError(f"{said}: a DATE has no hour")


def made(term: Term, columns: pa.Table, timestamps_ms: npt.NDArray[np.int64], bounds: Bounds) -> Made:
    """`columns`: of records; `timestamps_ms`: theirs in Kafka, below 0 where there is none. Of `now()` the
    mark, which `at` takes the place of.
    """
    if term.source.is_now:
        return Made(values=_one(mark(term), columns.num_rows))
    if not term.is_time:
        return _of_values(term, columns.column(term.source.field).combine_chunks())
    if term.source.is_kafkas:
        micros = pa.array(np.clip(timestamps_ms, *KAFKA_MS) * 1_000)
        return _spelled(term, micros, {}, None)
    column = columns.column(term.source.field).combine_chunks()
    factor = READINGS.get(term.source.reading, 0)
    micros = times.micros_of(column, factor=factor, pattern=term.source.pattern)
    bad: dict[int, str] = {}
    if micros.null_count > column.null_count:
        why = f"field {term.source.field}: no time of the years 1 to 9999, by which it is partitioned"
        bad = dict.fromkeys(np.flatnonzero(_mask(pc.and_(micros.is_null(), column.is_valid()))).tolist(), why)
    return _spelled(term, micros, bad, _beyond(micros, timestamps_ms, bounds), bounds)


def mark(term: Term) -> str:
    """What stands for the text of `now()` until it is known."""
    return f"{MARK}{term.column}{MARK}"


def at(term: Term, instant: datetime) -> str:
    """The text of `now()` in the transaction whose instant this is, in UTC."""
    assert term.pattern is not None
    micros = np.array([(instant - times.EPOCH) // timedelta(microseconds=1)], dtype=np.int64)
    (text,) = times.spelled(micros, term.pattern, zone=term.zone, step=_step(term))[1]
    assert text is not None
    return text


def _step(term: Term) -> int:
    return term.number * times.STEPS["minute"]


def _spelled(
    term: Term,
    micros: pa.Array,
    bad: dict[int, str],
    beyond: npt.NDArray[np.bool_] | None,
    bounds: Bounds | None = None,
) -> Made:
    assert term.pattern is not None
    nulls = _mask(micros.is_null()) if micros.null_count else None
    if nulls is not None:
        some = pc.min(micros).as_py()  # of those that there are
        micros = micros.fill_null(0 if some is None else some)
    known = micros.to_numpy()
    codes, texts = times.spelled(known, term.pattern, zone=term.zone, step=_step(term))
    for code, text in enumerate(texts):
        if text is None:
            why = f"field {term.source.field}: its year there is none of 1 to 9999"
            bad |= dict.fromkeys(np.flatnonzero(codes == code).tolist(), why)
    if beyond is not None and beyond.any():
        assert bounds is not None
        if bounds.set_aside:
            codes, texts = np.where(beyond, np.int32(len(texts)), codes), [*texts, LATE]
        else:
            bad |= dict.fromkeys(np.flatnonzero(beyond).tolist(), _too_far(term))
    dictionary = pa.array(["" if text is None else text for text in texts], pa.string())
    return Made(values=pa.DictionaryArray.from_arrays(pa.array(codes, mask=nulls), dictionary), bad=bad)


def _beyond(
    micros: pa.Array, timestamps_ms: npt.NDArray[np.int64], bounds: Bounds
) -> npt.NDArray[np.bool_] | None:
    """Which rows are too old, or too far ahead."""
    if not bounds.max_age_ms and not bounds.max_ahead_ms:
        return None
    age_ms = np.clip(timestamps_ms, *KAFKA_MS) - np.floor_divide(micros.fill_null(0).to_numpy(), 1_000)
    beyond = np.zeros(len(age_ms), dtype=np.bool_)
    if bounds.max_age_ms:
        beyond |= age_ms > bounds.max_age_ms
    if bounds.max_ahead_ms:
        beyond |= -age_ms > bounds.max_ahead_ms
    found: npt.NDArray[np.bool_] = beyond & (timestamps_ms >= 0) & _mask(micros.is_valid())
    return found


def _too_far(term: Term) -> str:
    return (
        f"field {term.source.field}: further from the record's timestamp than partition.max_age and "
        "partition.max_ahead allow"
    )


def _of_values(term: Term, column: pa.Array) -> Made:
    """Of `bucket` and `truncate`."""
    if term.function == TRUNCATE:
        if column.type == pa.string():
            return Made(values=pc.utf8_slice_codeunits(column, 0, term.number))
        nulls = _mask(column.is_null()) if column.null_count else None
        numbers = (column.fill_null(0) if nulls is not None else column).to_numpy()
        low = np.iinfo(numbers.dtype).min
        short = numbers < low + np.mod(numbers, term.number)  # the multiple below it is no such number
        whole = np.where(short, low, numbers) - np.where(short, 0, np.mod(numbers, term.number))
        why = f"field {term.source.field}: no multiple of {term.number} is below it"
        bad = dict.fromkeys(np.flatnonzero(short).tolist(), why)
        return Made(values=pa.array(whole.astype(numbers.dtype), mask=nulls), bad=bad)
    bad = {}
    if column.type == pa.string():
        long = _mask(pc.greater(pc.binary_length(column), TEXT_BYTES_MAX).fill_null(False))
        if long.any():
            why = f"field {term.source.field}: a text of more than {TEXT_BYTES_MAX} bytes has no bucket"
            bad = dict.fromkeys(np.flatnonzero(long).tolist(), why)
            column = pc.if_else(pa.array(long), "", column)
    return Made(values=pa.array(buckets(column, term.number)), bad=bad)


def _mask(flags: pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = flags.to_numpy(zero_copy_only=False)
    return found


def _one(text: str, count: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, dtype=np.int32)), pa.array([text]))


def codes(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """Per row a code of its value, each value with one. Null has a code of its own."""
    whole = column.combine_chunks()
    if not pa.types.is_dictionary(whole.type):
        return whole.dictionary_encode("encode")
    if whole.indices.null_count:
        null = len(whole.dictionary)
        values = pa.concat_arrays([whole.dictionary, pa.nulls(1, whole.dictionary.type)])
        return pa.DictionaryArray.from_arrays(whole.indices.fill_null(null), values)
    return whole
