"""Upserts under faults: the load's changes, and the rows that they must have left in the table.

All records of a key are in one source partition, so that Kafka's order there and the ordering field decide.
Half of the keys are never deleted, and their versions may be late by seconds. The others are deleted and come
back, with versions in order: a compaction forgets deletes and their ordering values (docs/upserts.md), and
when one happens is not known here.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from table.store.objects.settings import ObjectSettings
from tests.faults.apart import apart
from tests.merge_model import Change, Key, Model
from tests.place import Place

KEYS = 400
"""Of one source partition."""
LATE, EARLY = 20_000, 5_000
"""So far a version's ordering value may be behind and ahead: at 4,000 changes a second, five seconds."""
FIRST_TS = 1_000_000

Row = tuple[int, int]
"""(amount, ts)."""

SETTINGS: Mapping[str, str] = {
    "record.schema": "id STRING NOT NULL, region STRING, amount BIGINT, ts BIGINT, deleted BOOLEAN",
    "table.kind": "upsert",
    "table.key": '["id"]',
    "table.partition_by": "region",
    "table.ordering": "ts",
    "table.delete_field": "deleted",
    "table.buckets": "3",
}
"""What makes `tests.harness.Pipeline`'s configuration one of upserts."""


def change(number: int, partition: int) -> tuple[bytes, bytes | None]:
    """Change `number` of the load as a Kafka record of this source partition: (key, value)."""
    chance = zlib.crc32(b"%d" % number)
    place, dice = chance % KEYS, chance // KEYS % 20
    name = f'"region":"{"ab"[place % 2]}","id":"k-{partition}-{place}"'
    key = f"{{{name}}}".encode()
    ts, deleted = FIRST_TS + number, "false"
    if place % 4 < 2:
        if dice == 0:
            return key, None
        deleted = "true" if dice == 1 else deleted
    elif dice < 6:
        ts += EARLY if dice == 0 else -LATE
    return key, f'{{{name},"amount":{number},"ts":{ts},"deleted":{deleted}}}'.encode()


def always_there() -> list[Key]:
    """Some keys that are never deleted, of the first four source partitions."""
    places = [place for place in range(12) if place % 4 >= 2]
    return [("ab"[place % 2], f"k-{partition}-{place}") for place in places for partition in range(4)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Of the table from the model. `examples` names a few, for people."""

    rows: int
    rows_due: int
    missing: int
    unexpected: int
    doubled: int
    different: int
    examples: tuple[str, ...]

    @property
    def none(self) -> bool:
        return not (self.missing or self.unexpected or self.doubled or self.different)


def difference(rows: Iterable[tuple[Key, Row]], expected: Mapping[Key, Row]) -> Difference:
    """`rows`: as they were read, so that a key may be there twice."""
    listed = list(rows)
    held = dict(listed)
    twice = [key for key, count in Counter(key for key, _ in listed).items() if count > 1]
    missing, unexpected = expected.keys() - held.keys(), held.keys() - expected.keys()
    different = [key for key in expected.keys() & held.keys() if held[key] != expected[key]]
    kinds = (("missing", missing), ("unexpected", unexpected), ("twice", twice), ("different", different))
    return Difference(
        rows=len(listed),
        rows_due=len(expected),
        missing=len(missing),
        unexpected=len(unexpected),
        doubled=len(twice),
        different=len(different),
        examples=tuple(
            f"{kind} {key}: {held.get(key)} where {expected.get(key)} is due"
            for kind, keys in kinds
            for key in sorted(keys)[:3]
        ),
    )


def expected_rows(bootstrap_servers: str, topic: str, partitions: int) -> dict[Key, Row]:
    """The rows that the records on the topic leave, applied in the order of each source partition."""
    model = Model(by_event_time=True)
    for message in _records(bootstrap_servers, topic, partitions):
        model.apply(_parsed(message))
    return model.rows()


def held_rows(place: Place, folder: Path) -> list[tuple[Key, Row]]:
    """What Spark's snapshot query of the table says. A process of its own asks; its files are left there."""
    answer = folder / "snapshot.json"
    endpoint = [place.settings.endpoint] if isinstance(place.settings, ObjectSettings) else []
    arguments = (place.plain, str(answer), *endpoint)
    apart("tests.faults.snapshot", folder / "snapshot.log", *arguments)
    return [((region, name), (amount, ts)) for region, name, amount, ts in json.loads(answer.read_text())]


def _parsed(message: Message) -> Change:
    value = message.value()
    if value is None:
        named = json.loads(message.key() or b"")
        return Change(key=(named["region"], named["id"]), tombstone=True)
    body = json.loads(value)
    return Change(
        key=(body["region"], body["id"]), amount=body["amount"], ts=body["ts"], deleted=body["deleted"]
    )


def _records(bootstrap_servers: str, topic: str, partitions: int) -> Iterator[Message]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "faults-model",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    ends = 0
    try:
        while ends < partitions:
            for message in consumer.consume(10_000, 5):
                error = message.error()
                if error is None:
                    yield message
                else:
                    assert error.code() == KafkaError._PARTITION_EOF, str(error)
                    ends += 1
    finally:
        consumer.close()
