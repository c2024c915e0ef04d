"""How the plain writer reads: the one place that knows the participant's reader.

Lockstep's own reader may be exchanged for this comparison by changing `batches` alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

import numpy as np
from confluent_kafka import Consumer, TopicPartition

from control_topic.messages import SourcePartition
from lockstep.errors import Failed
from participant.decode import RawBatch
from participant.fetched import runs, sentence
from participant.source import BATCH_RECORDS, CONSUME_S

SILENCE_S = 60.0


def batches(bootstrap_servers: str, topic: str, ends: Mapping[int, int]) -> Iterator[RawBatch]:
    """Everything from the beginning to `ends` (source partition -> offset), assigned without a group.

    Raises `Failed` where nothing comes for too long.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "lockstep-bench-plain",  # asked for by librdkafka, never joined
            "enable.auto.commit": False,
            "queued.max.messages.kbytes": 64_000,
            "queued.min.messages": 200_000,
            "fetch.max.bytes": 50 * 1024 * 1024,
            "max.partition.fetch.bytes": 8 * 1024 * 1024,
            "fetch.wait.max.ms": 100,
        }
    )
    left = {number: end for number, end in ends.items() if end > 0}
    heard = time.monotonic()
    try:
        consumer.assign([TopicPartition(topic, number, 0) for number in left])
        while left:
            messages = consumer.consume(BATCH_RECORDS, CONSUME_S)
            if not messages and time.monotonic() - heard > SILENCE_S:
                raise Failed(f"Nothing came from {topic} for {SILENCE_S:.0f} s: is the broker well?")
            for message in messages:
                if message.error() is not None:
                    raise Failed(f"{topic} cannot be read: {sentence(message.error())}.")
            if messages:
                heard = time.monotonic()
            for partition, run in runs(messages, single_topic=True) if messages else ():
                yield _raw(partition, run)
                if run[-1].offset() + 1 >= left.get(partition.number, 0):
                    left.pop(partition.number, None)
    finally:
        consumer.close()


def _raw(partition: SourcePartition, run: list) -> RawBatch:
    count = len(run)
    return RawBatch(
        partition=partition,
        offsets=np.fromiter((m.offset() for m in run), dtype=np.int64, count=count),
        timestamps_ms=np.fromiter((m.timestamp()[1] for m in run), dtype=np.int64, count=count),
        values=[m.value() for m in run],
    )
