"""Folders of a time, as Hudi's `TimestampBasedKeyGenerator` makes them of a field: `2026/11/27` of
1795737600000. Pure.

The table's own properties say how; a table that we make has columns instead (`table.partitioners`). Other
than those, the field itself stays the table's partition field, and rows hold it as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from table.partitioners import times
from table.partitioners.making import INTEGERS, Made
from table.partitioners.patterns import pattern
from table.schema import SchemaError, ddl_name

MILLISECONDS: Mapping[str, int] = {
    "MILLISECONDS": 1,
    "SECONDS": 1_000,
    "MINUTES": 60_000,
    "HOURS": 3_600_000,
    "DAYS": 86_400_000,
}
"""Names of `java.util.concurrent.TimeUnit` -> in one."""
IN_MILLISECOND: Mapping[str, int] = {"MICROSECONDS": 1_000, "NANOSECONDS": 1_000_000}
"""Those that are shorter -> how many are one."""
UNITS = (*IN_MILLISECOND, *MILLISECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """Of one table."""

    fields: tuple[str, ...]
    """Its partition fields that are times; all alike."""
    unit: str
    """Of numbers since 1970, in `UNITS`; empty: the fields are texts."""
    read: str
    """The pattern of texts; empty: the fields are numbers."""
    spelled: str
    """The pattern of folders."""
    zone: str
    """By whose clock folders are, where it is not the one that fields are read by; empty: that one."""
    of_null: str
    """The folder where a field is null."""

    @classmethod
    def of(cls, text: str) -> Timed:
        """What `encoded` made."""
        said = json.loads(text)
        return cls(**{**said, "fields": tuple(said["fields"])})

    def encoded(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))


def check_timed(timed: Timed, field: pa.Field) -> None:
    """Raises `SchemaError` where a column of this type cannot be such a field."""
    wanted = (pa.string(),) if timed.read else (*INTEGERS, pa.date32())
    if field.type not in wanted:
        known = "a STRING" if timed.read else "an INT, a BIGINT or a DATE"
        raise SchemaError(
            f"column {field.name}: it is {ddl_name(field.type)}, and the table's folders are made of {known}"
        )


def folders_of_times(timed: Timed, name: str, column: pa.ChunkedArray) -> Made:
    """Per row the folder, none null; a row of which none can be made has any, and a reason."""
    values = column.combine_chunks()
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    micros = _micros(timed, values)
    absent = _mask(micros.is_null())
    found, texts = times.spelled(micros.fill_null(0).to_numpy(), pattern(timed.spelled), zone=timed.zone)
    why = f"field {name}: it is no time of the years 1 to 9999, as the table's folders are made of it"
    wrong = np.isin(found, [code for code, text in enumerate(texts) if text is None])
    wrong |= absent & _mask(values.is_valid())
    codes = np.where(absent, np.int32(len(texts)), found).astype(np.int32)
    dictionary = pa.array([text or "" for text in texts] + [timed.of_null], pa.string())
    return Made(
        values=pa.DictionaryArray.from_arrays(pa.array(codes), dictionary),
        bad=dict.fromkeys(np.flatnonzero(wrong).tolist(), why),
    )


def _micros(timed: Timed, values: pa.Array) -> pa.Array:
    """Microseconds since 1970, of whole milliseconds; null where it is null or out of bounds."""
    if timed.read:
        return times.micros_of(values, pattern=pattern(timed.read))
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())  # as Hudi has it: days, whatever the unit says
    numbers = values.cast(pa.int64())
    if timed.unit in IN_MILLISECOND:
        numbers = _towards_zero(numbers, IN_MILLISECOND[timed.unit])
    return times.micros_of(numbers, factor=1_000 * MILLISECONDS.get(timed.unit, 1))


def _towards_zero(numbers: pa.Array, divisor: int) -> pa.Array:
    """As Java divides: -1 microsecond is millisecond 0."""
    return pc.divide(numbers, pa.scalar(divisor, pa.int64()))


def _mask(flags: pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = flags.to_numpy(zero_copy_only=False)
    return found
