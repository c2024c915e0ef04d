"""What stood on a source partition before the place from which it is read: what a worker was never told.

A worker that is new to a source partition of change events knows nothing of the log that they came from. The
topic does, as long as it keeps them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping

from confluent_kafka import KafkaError, KafkaException

from control_topic.messages import SourcePartition
from participant.errors import SourceUnreadable
from participant.records.raw import RawBatch
from participant.source.fetcher import PlainFetcher, fetch_settings, sentence

log = logging.getLogger("lockstep.source")

RECORDS = 1_000
QUEUE_BYTES = 8 * 1024 * 1024
DEADLINE_S = 20.0


class TopicLookBack:
    """A `LookBack`: reads the last `records` offsets before one. What cannot be read is said in the log."""

    def __init__(self, kafka: Mapping[str, str], *, group: str, records: int = RECORDS) -> None:
        self._settings = fetch_settings(kafka, group=group, queue_bytes_max=QUEUE_BYTES)
        self._records = records

    def __call__(self, partition: SourcePartition, offset: int) -> Iterator[RawBatch]:
        """In offset order. Waits for the broker, for `DEADLINE_S` at most."""
        if offset <= 0:
            return
        try:
            fetcher = PlainFetcher(self._settings)
            try:
                yield from self._read(fetcher, partition, offset)
            finally:
                fetcher.close()
        except (SourceUnreadable, KafkaException) as error:
            log.warning(
                "%s: what stands before offset %d cannot be read (%s): whether the source has begun a new "
                "log since then is not known",
                partition,
                offset,
                sentence(error),
                extra={"source_partition": partition, "offset": offset},
            )

    def _read(self, fetcher: PlainFetcher, partition: SourcePartition, offset: int) -> Iterator[RawBatch]:
        first, end = fetcher.bounds(partition)
        start = max(first, offset - self._records)
        if start >= min(offset, end):
            return
        fetcher.read_from(partition, start)
        until = time.monotonic() + DEADLINE_S
        while time.monotonic() < until:
            taken = fetcher.fetch(0.2)
            for batch in taken.batches:
                before = int(batch.offsets.searchsorted(offset))
                if before:
                    yield batch.head(before)
                if before < len(batch):
                    return
            for notice in taken.notices:
                if notice.code == KafkaError._PARTITION_EOF:
                    return
        raise SourceUnreadable(f"no answer within {DEADLINE_S:.0f} s")
