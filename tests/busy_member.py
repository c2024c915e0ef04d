"""Somebody else in a consumer group, as an application is between two calls of poll(): a member by its
heartbeats, with an hour to spare, that does not come back when the group is made anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager

from confluent_kafka import Consumer

from lockstep.brokers.source_topics import SourceTopics
from tests.harness import await_that

COOPERATIVE = {"partition.assignment.strategy": "cooperative-sticky"}
NAME = "busy-app"


@contextmanager
def busy_member(kafka: Mapping[str, str], group: str, topic: str) -> Iterator[None]:
    """A member inside of the `with`, once the broker has taken it in; it never polls."""
    topics = SourceTopics(kafka, [topic])
    consumer = Consumer(
        {
            **kafka,
            **COOPERATIVE,
            "group.id": group,
            "client.id": NAME,
            "max.poll.interval.ms": 3_600_000,
        }
    )
    with closing(consumer):
        consumer.subscribe([topic])
        await_that(
            f"{NAME} in group {group}", lambda: NAME in {one.client for one in topics.group(group).members}
        )
        yield
