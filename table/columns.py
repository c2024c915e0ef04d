"""Columns that every table adds to what records say, whatever its kind."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from table.rows import Rows
from table.schema import KAFKA_PREFIX, MICROS, UTC_MICROS

TIMES_MS = (MICROS[0] // 1_000, MICROS[1] // 1_000)
"""Kafka takes any number for a timestamp."""


def constant(value: str, length: int) -> pa.DictionaryArray:
    """One string, `length` times."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(length, dtype=np.int32)), pa.array([value]))


def with_kafka_columns(rows: Rows) -> pa.Table:
    """The rows with where they came from."""
    table, length = rows.columns, rows.count
    columns = {
        "topic": constant(rows.source.topic, length),
        "partition": pa.array(np.full(length, rows.source.number, dtype=np.int32)),
        "offset": pa.array(rows.offsets),
        "timestamp": pa.array(np.clip(rows.timestamps_ms, *TIMES_MS) * 1_000).view(UTC_MICROS),
    }
    for name, column in columns.items():
        field = pa.field(f"{KAFKA_PREFIX}{name}", column.type, nullable=False)
        table = table.append_column(field, column)
    return table
