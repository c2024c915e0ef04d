"""How the plain writer reads: by the participant's own fetcher, so that both sides read alike."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from confluent_kafka import KafkaError

from control_topic.messages import SourcePartition
from lockstep.errors import Failed
from participant.records.raw import RawBatch
from participant.source.fetcher import fetch_settings
from participant.source.native import open_fetcher

SILENCE_S = 60.0
FETCH_S = 0.1
QUEUE_BYTES = 64_000_000


def batches(
    bootstrap_servers: str, topic: str, ends: Mapping[int, int], reader: str = "auto"
) -> Iterator[RawBatch]:
    """Everything from the beginning to `ends` (source partition -> offset), without a group.

    `reader`: as `source.reader`. Raises `Failed` where nothing comes for too long.
    """
    kafka = {"bootstrap.servers": bootstrap_servers}
    fetcher = open_fetcher(
        fetch_settings(kafka, group="lockstep-bench-plain", queue_bytes_max=QUEUE_BYTES), reader
    )
    left = {number: end for number, end in ends.items() if end > 0}
    heard = time.monotonic()
    try:
        for number in left:
            fetcher.read_from(SourcePartition(topic, number), 0)
        while left:
            taken = fetcher.fetch(FETCH_S)
            for notice in taken.notices:
                if notice.code != KafkaError._PARTITION_EOF:
                    raise Failed(f"{topic} cannot be read: {notice.text}.")
            if taken.batches:
                heard = time.monotonic()
            elif time.monotonic() - heard > SILENCE_S:
                raise Failed(f"Nothing came from {topic} for {SILENCE_S:.0f} s: is the broker well?")
            for batch in taken.batches:
                yield batch
                if batch.offsets[-1] + 1 >= left.get(batch.partition.number, 0):
                    left.pop(batch.partition.number, None)
    finally:
        fetcher.close()
