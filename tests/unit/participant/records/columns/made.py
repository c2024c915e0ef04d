"""Records and decoders of columns for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from control_topic.messages import SourcePartition
from participant.records.headers import pack
from participant.records.port import Decoded, Decoder, RecordSpec
from participant.records.raw import RawBatch, Values
from participant.worker.stages import decoder
from table.port import INSERT, UPSERT, TableSpec
from table.schema import table_schema

PLACE = SourcePartition("events", 3)
FIRST, FIRST_MS = 10, 1_700_000_000_123
Headers = Sequence[tuple[str, str | bytes | None]]


def made(ddl: str, sources: Mapping[str, str], *, key: Sequence[str] = (), **how: Any) -> Decoder:
    """What reads such a table's records; with `key` its rows are upserts."""
    debezium = how.get("envelope") == "debezium"
    spec = TableSpec(
        path="/t",
        name="t",
        mode=UPSERT if key else INSERT,
        ddl=ddl,
        key_fields=tuple(key),
        partition_fields=how.pop("partition_by", ()),
        source_position=debezium,
    )
    record = RecordSpec(columns=tuple(sources.items()), **how)
    return decoder(spec, table_schema(ddl, kafka_columns=True, source_position=debezium), record)


def batch(
    values: Sequence[bytes | None],
    keys: Sequence[bytes | None] | None = None,
    headers: Sequence[Headers] | None = None,
    *,
    timestamps_ms: Sequence[int] | None = None,
    packed: Sequence[bytes] | None = None,
) -> RawBatch:
    """As a fetcher gives them that was asked for all. Offsets have gaps."""
    count = len(values)
    keys = keys if keys is not None else [None] * count
    times = np.array(timestamps_ms or [FIRST_MS + i for i in range(count)], dtype=np.int64)
    some = packed if packed is not None else [pack(one) for one in headers or [()] * count]
    return RawBatch(
        partition=PLACE,
        offsets=np.arange(FIRST, FIRST + 2 * count, 2, dtype=np.int64),
        timestamps_ms=times,
        values=Values.of(values),
        keys={i: keys[i] for i, value in enumerate(values) if value is None},
        record_keys=Values.of(keys),
        headers=Values.of(list(some)),
    )


def rows(decoded: Decoded) -> list[dict[str, Any]]:
    decoded.table.validate(full=True)
    found: list[dict[str, Any]] = decoded.table.to_pylist()
    return found


def reasons(decoded: Decoded) -> dict[int, str]:
    return decoded.rejects.by_place()
