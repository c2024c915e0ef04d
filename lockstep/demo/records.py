"""The demo's events, as records of its topic. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

SCHEMA = (
    "event_id STRING NOT NULL, user_id BIGINT, country STRING, action STRING, "
    "amount DOUBLE, ts TIMESTAMP, day STRING, page STRING"
)
"""Spark DDL of an event."""

KEY = ("event_id",)
PARTITION_BY = "day"
DAYS = 3
"""Table partitions that the events fall into."""

COUNTRIES = ("AR", "BR", "CN", "DE", "ES", "FR", "GB", "IN", "IT", "JP", "KE", "MX", "NG", "PL", "US", "VN")
ACTIONS = ("view", "view", "view", "search", "cart", "buy", "return")
DAY_0 = datetime(2026, 1, 1, tzinfo=UTC)
SECONDS = 86_400


class DemoRecord(NamedTuple):
    """A Kafka record to be produced."""

    source_partition: int
    key: bytes | None
    value: bytes | None
    """None in a tombstone."""


def event(number: int) -> bytes:
    """Event `number` as JSON, about 160 bytes. The same number gives the same event, in any run."""
    mixed = (number * 2_654_435_761) & 0xFFFF_FFFF  # Knuth's multiplicative hash: looks random, is not
    day, second = DAY_TEXTS[number % DAYS], mixed % SECONDS
    return (
        f'{{"event_id":"e-{number:010d}","user_id":{mixed % 250_000},'
        f'"country":"{COUNTRIES[mixed >> 28]}","action":"{ACTIONS[mixed % 7]}",'
        f'"amount":{mixed % 20_000 / 100},'
        f'"ts":"{day}T{second // 3_600:02d}:{second // 60 % 60:02d}:{second % 60:02d}.{mixed % 1_000:03d}Z",'
        f'"day":"{day}","page":"/p/{mixed % 5_000}"}}'
    ).encode()


DAY_TEXTS = tuple((DAY_0 + timedelta(days=n)).strftime("%Y-%m-%d") for n in range(DAYS))


def records(events: int, source_partitions: int) -> Iterator[DemoRecord]:
    """Events 0 to `events` - 1 in order, event n for source partition n modulo `source_partitions`."""
    for number in range(events):
        yield DemoRecord(number % source_partitions, None, event(number))


def spread(events: int, source_partitions: int) -> dict[int, int]:
    """How many of the first `events` events go to each source partition."""
    return {
        number: events // source_partitions + (number < events % source_partitions)
        for number in range(source_partitions)
    }
