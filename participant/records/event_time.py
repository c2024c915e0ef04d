"""When what rows tell of happened: a column's values, or the records' own timestamps, a batch at a time.

A row counts where it is in the table, has an event time, and that is not absurd: not further ahead of the
record's Kafka timestamp, and of this machine's clock, than is allowed. A row that deletes has none but the
record's timestamp: what its columns say is of the row that it deletes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from control_topic.messages import EVENT_TIME_MAX_MS
from participant.records.raw import RawBatch
from table.rows import Rows
from table.watermark import KAFKA_TIMESTAMP

log = logging.getLogger("lockstep.records")

INT64_MAX = 2**63 - 1
DAY_MS = 86_400_000
UNITS = {"s": (1_000, 1), "ms": (1, 1), "us": (1, 1_000), "ns": (1, 1_000_000)}
"""Of a number: it is so many milliseconds, as a fraction."""
Times = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchTimes:
    """Event times of a batch, of the rows that have one which is not absurd."""

    values: Times
    """As the column has them: each is `scale` milliseconds."""
    scale: tuple[int, int]
    absurd: int = 0
    """So many are left out for being too far ahead."""

    @property
    def greatest_ms(self) -> int | None:
        """None where no row has one. Of a part of a millisecond the beginning."""
        if not len(self.values):
            return None
        over, under = self.scale
        return max(-EVENT_TIME_MAX_MS, int(self.values.max()) * over // under)

    def late(self, watermark_ms: int | None) -> int:
        """How many are before it."""
        if watermark_ms is None or not len(self.values):
            return 0
        over, under = self.scale
        first = -(-watermark_ms * under // over)
        return int(np.count_nonzero(self.values < min(max(first, -INT64_MAX), INT64_MAX)))

    @property
    def nbytes(self) -> int:
        """Memory held, part of which the rows may share."""
        return self.values.nbytes


@dataclass(slots=True)
class EventTimeReader:
    """`column`: a column of the record, or `KAFKA_TIMESTAMP`. `unit`: of `UNITS`, of a column of numbers.
    `ahead_max_ms`: so far an event time may be ahead. `now_ms`: the wall clock, Unix epoch."""

    column: str
    unit: str
    ahead_max_ms: int
    now_ms: Callable[[], int]
    _complained: bool = field(default=False, init=False)

    def read(self, rows: Rows, batch: RawBatch, refused: Iterable[int]) -> BatchTimes | None:
        """Of the rows of `batch`. `refused`: those at these places of the batch change nothing in a table.

        None where there is nothing to be read.
        """
        if self.column == KAFKA_TIMESTAMP:
            values, stamps, scale = _stamps(rows, batch, refused), None, (1, 1)
        else:
            found = self._values(rows)
            if found is None:
                return None
            column, scale = found
            values, stamps = _counted(column, rows, refused)
        return self._sane(values, stamps, scale)

    def _values(self, rows: Rows) -> tuple[pa.ChunkedArray, tuple[int, int]] | None:
        """The column as whole numbers, and what each is in milliseconds."""
        index = rows.columns.schema.get_field_index(self.column)
        kind = rows.columns.schema.types[index] if index >= 0 else None
        scale = scale_of(kind, self.unit)
        if scale is None:
            if not self._complained:
                self._complained = True
                said = "there is no such column" if kind is None else f"it is of type {kind}"
                log.warning("record.event_time: %s has no event times, for %s", self.column, said)
            return None
        column = rows.columns.column(index)
        if not pa.types.is_int64(kind):
            column = column.cast(pa.int32()) if pa.types.is_date32(kind) else column
            column = column.cast(pa.int64())
        return column, scale

    def _sane(self, values: Times, stamps: Times | None, scale: tuple[int, int]) -> BatchTimes:
        """Without the absurd ones. Where the greatest is none, none of them is looked at."""
        over, under = scale
        top_ms = self.now_ms() + self.ahead_max_ms
        lowest_ms = top_ms
        if stamps is not None and len(stamps):
            lowest_ms = min(top_ms, max(0, int(stamps.min())) + self.ahead_max_ms)
        if not len(values) or int(values.max()) <= lowest_ms * under // over:
            return BatchTimes(values=values, scale=scale)
        if stamps is None:
            sane = values <= top_ms * under // over
        else:
            known = np.where(stamps > 0, stamps, top_ms)
            limits = np.minimum(known, top_ms - self.ahead_max_ms) + self.ahead_max_ms
            sane = values <= limits * under // over
        kept = values[sane]
        return BatchTimes(values=kept, scale=scale, absurd=len(values) - len(kept))


def scale_of(kind: pa.DataType | None, unit: str) -> tuple[int, int] | None:
    """What a whole number of such a column is in milliseconds, as a fraction; None where it is no time."""
    if kind is None:
        return None
    if pa.types.is_timestamp(kind):
        return UNITS[kind.unit]
    if pa.types.is_date32(kind):
        return (DAY_MS, 1)
    return UNITS[unit] if pa.types.is_int64(kind) else None


def _counted(column: pa.ChunkedArray, rows: Rows, refused: Iterable[int]) -> tuple[Times, Times]:
    """The values of the rows that count, and the Kafka timestamps of their records."""
    stamps, counts = rows.timestamps_ms, _kept(rows.places, refused)
    if rows.deleted is not None:
        counts = ~rows.deleted if counts is None else counts & ~rows.deleted
    if column.null_count:
        valid = pc.is_valid(column).to_numpy()
        counts = valid if counts is None else counts & valid
        column = pc.fill_null(column, 0)
    values = column.to_numpy()
    return (values, stamps) if counts is None else (values[counts], stamps[counts])


def _stamps(rows: Rows, batch: RawBatch, refused: Iterable[int]) -> Times:
    """The records' timestamps, where they have one."""
    stamps, counts = rows.timestamps_ms, _kept(rows.places, refused)
    if counts is not None:
        stamps = stamps[counts]
    if rows.tombstones is not None:
        places = rows.tombstones.places
        kept = _kept(places, refused)
        stamps = np.concatenate([stamps, batch.timestamps_ms[places if kept is None else places[kept]]])
    return stamps[stamps >= 0] if len(stamps) and stamps.min() < 0 else stamps


def _kept(places: Times, refused: Iterable[int]) -> npt.NDArray[np.bool_] | None:
    """Which of those at these places are not refused; None where all are kept."""
    gone = list(refused)
    return ~np.isin(places, gone) if gone else None
