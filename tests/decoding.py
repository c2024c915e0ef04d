"""Batches for decoders, and what became of their records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from control_topic.messages import SourcePartition
from participant.records.port import Decoded
from participant.records.raw import RawBatch, Values


def batch(
    values: Sequence[bytes | None],
    keys: Mapping[int, bytes | None] | None = None,
    *,
    headers: Sequence[bytes] | None = None,
) -> RawBatch:
    """With gaps, so that no index can be taken for an offset."""
    offsets = 1_000 + 3 * np.arange(len(values), dtype=np.int64)
    return RawBatch(
        partition=SourcePartition("events", 0),
        offsets=offsets,
        timestamps_ms=offsets,
        values=Values.of(values),
        headers=Values.of(headers) if headers is not None else None,
        keys=keys or {},
    )


def fates(decoded: Decoded, count: int) -> list[dict[str, Any] | str]:
    """Of each record its row, or why it is none."""
    kept = range(count) if decoded.kept is None else decoded.kept.tolist()
    rows = dict(zip(kept, decoded.table.to_pylist(), strict=True))
    assert list(rows) == sorted(rows)
    rejects = decoded.rejects.by_place()
    assert not rows.keys() & rejects.keys()
    return [rows[place] if place in rows else rejects[place] for place in range(count)]
