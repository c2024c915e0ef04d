"""Ends of a producer's transactions on a real broker, waited for until they stand in the log."""

from __future__ import annotations

from confluent_kafka import Producer

from lockstep.brokers.source_topics import SourceTopics
from tests.harness import await_that


def end_transaction(producer: Producer, topic: str, kafka: dict[str, str], *, commit: bool) -> None:
    """Commit or abort what `producer` has open, and wait until each partition of `topic` holds its marker.

    A producer is told that its transaction ended before the markers are written: what is produced in between
    stands in front of them. No other transaction may be open on `topic`.
    """
    (producer.commit_transaction if commit else producer.abort_transaction)(30)
    await_markers(topic, kafka)


def await_markers(topic: str, kafka: dict[str, str]) -> None:
    """Wait until no transaction is open on `topic`, also none whose producer was told that it ended."""
    source = SourceTopics(kafka, [topic])
    parts = source.facts().partitions
    await_that(
        "the transaction's markers", lambda: source.end(parts) == source.end(parts, read_committed=False)
    )
