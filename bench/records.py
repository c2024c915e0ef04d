"""The narrow workload: JSON events of 8 fields, about 160 bytes, the same in every run."""

from __future__ import annotations

from confluent_kafka import Producer

SCHEMA = (
    "event_id STRING, user_id BIGINT, country STRING, action STRING, amount DOUBLE, ts BIGINT, "
    "day STRING, page STRING"
)
COUNTRIES = ("AR", "BR", "CN", "DE", "ES", "FR", "GB", "IN", "IT", "JP", "KE", "MX", "NG", "PL", "US", "VN")
ACTIONS = ("view", "search", "cart", "buy", "return")
DAYS = ("2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04")


def event(number: int) -> bytes:
    mixed = (number * 2_654_435_761) & 0xFFFF_FFFF
    return (
        f'{{"event_id":"e-{number:010d}","user_id":{mixed % 250_000},"country":"{COUNTRIES[mixed >> 28]}",'
        f'"action":"{ACTIONS[mixed % 5]}","amount":{mixed % 20_000 / 100},"ts":{1_767_225_600_000 + number},'
        f'"day":"{DAYS[number % len(DAYS)]}","page":"/products/{mixed % 5_000}"}}'
    ).encode()


def produce(bootstrap_servers: str, topic: str, *, records: int, partitions: int) -> int:
    """Produce all events, spread evenly; the bytes of their values."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "compression.type": "lz4",
            "linger.ms": 20,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    size_bytes = 0
    for number in range(records):
        value = event(number)
        size_bytes += len(value)
        while True:
            try:
                producer.produce(topic, value, partition=number // 1_000 % partitions)
                break
            except BufferError:
                producer.poll(0.05)
        if number % 10_000 == 0:
            producer.poll(0)
    if producer.flush(120):
        raise SystemExit("the broker did not take all events")
    return size_bytes
