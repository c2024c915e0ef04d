"""Records with headers that few clients write and every broker takes."""

from __future__ import annotations

from contextlib import closing

import numpy as np

from control_topic.messages import SourcePartition
from participant.records.raw import RawBatch, Values
from participant.records.rejects import HeldRejects, Rejects
from participant.source.letter_senders import BATCH_BYTES_MAX, NativeSender, producer_settings


def produce_odd(kafka: dict[str, str], topic: str, packed: bytes, *, count: int = 1) -> None:
    """Records with these headers, as a client sends them that looks at nothing, and more headers behind."""
    offsets = np.arange(count, dtype=np.int64)
    batch = RawBatch(
        partition=SourcePartition("elsewhere", 0),
        offsets=offsets,
        timestamps_ms=offsets,
        values=Values.of([b"nope"] * count),
        headers=Values.of([packed] * count),
    )
    settings = producer_settings(kafka, batch_bytes_max=BATCH_BYTES_MAX)
    with closing(NativeSender(settings)) as sender:
        held = HeldRejects.of(batch, Rejects.of(dict.fromkeys(range(count), ""), offsets))
        sender.send(0, topic, held, 0, count)
        assert sender.wait(0, 60.0)[:2] == (0, 0)
