"""Positions of generated binlogs, as numbers that grow with the log whatever a connector reports."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

import numpy as np
import pytest

from control_topic.messages import SourcePartition
from participant.records.envelopes.debezium.binlog import (
    BEYOND,
    CONNECTORS_MAX,
    POS_BITS,
    POS_MAX,
    RANGE,
    TURNS_MAX,
    BinlogRanges,
)
from participant.records.envelopes.debezium.decoder import DebeziumDecoder
from table.schema import POSITION_COLUMN, parse_ddl
from tests.debezium_events import BINLOG, batch_of, event, reasons

SHOP = SourcePartition("shop.accounts", 0)
KEY = ("mysql", "shop")
GIB = 2**30
ROTATED_AT = GIB
"""`max_binlog_size`."""


class Change(NamedTuple):
    """One row's event: where it really stands, and the time of its statement."""

    file: int
    place: int
    time_ms: int

    @property
    def number(self) -> int:
        return self.file << POS_BITS | self.place

    @property
    def reported(self) -> int:
        return self.file << POS_BITS | self.place % RANGE


def binlog(random: Random, transactions: int) -> list[Change]:
    """Changes of one table in transactions of all sizes, up to 7 GiB; some are one statement."""
    changes: list[Change] = []
    file, place, time_ms = random.randrange(1, 9), 4, 1_000
    for _ in range(transactions):
        until = place + random.choice((2_000, GIB // 3, 2 * GIB, 5 * GIB, 7 * GIB))
        is_one_statement = random.random() < 0.5
        while (following := place + random.randrange(200, 3 * GIB // 2)) < min(until, POS_MAX):
            place = following
            time_ms += 0 if is_one_statement else random.randrange(3)
            changes.append(Change(file, place, time_ms))
        time_ms += random.randrange(1, 5_000)
        place += 500
        changes.append(Change(file, place, time_ms))
        if place > ROTATED_AT:
            file, place = file + random.choice((1, 1, 3)), 4
    return changes


def sent(random: Random, changes: list[Change]) -> list[Change]:
    """What is written to the topic: now and then a connector begins again with what it sent a moment ago, and
    a dead letter is sent back."""
    topic: list[Change] = []
    at = 0
    while at < len(changes):
        topic.append(changes[at])
        at += 1
        if random.random() < 0.1 and is_older(letter := changes[random.randrange(at)], changes[:at]):
            topic.append(letter)
        if random.random() < 0.15:
            back, furthest = at, max(one.number for one in topic)
            while back and furthest - changes[back - 1].number < 3 * GIB // 2:
                back -= 1
                if changes[back].file != changes[at - 1].file:
                    break
            at = random.randrange(back, at) if back < at else at
    return topic


def is_older(letter: Change, sent: list[Change]) -> bool:
    """Whether a change was made before the last one, and before its file began its positions again."""
    beyond = [one.time_ms for one in sent if one.file == letter.file and one.place >= RANGE]
    return letter.time_ms < min([sent[-1].time_ms, *beyond]) and letter.place < RANGE


def expand(ranges: BinlogRanges, topic: list[Change], start: int, end: int) -> list[int]:
    batch = topic[start:end]
    found = ranges.expand(
        SHOP,
        KEY,
        np.arange(start, end, dtype=np.int64) * 2,
        np.array([one.reported for one in batch], dtype=np.int64),
        np.array([one.time_ms for one in batch], dtype=np.int64),
    )
    return list(found.tolist())


@pytest.mark.parametrize("seed", range(60))
def test_numbers_grow_with_the_log_in_any_batches_however_often_they_are_read(seed: int) -> None:
    random = Random(seed)
    topic = sent(random, binlog(random, 40))
    assert any(one.place >= RANGE for one in topic)
    ranges, at = BinlogRanges(), 0
    while at < len(topic):
        end = min(len(topic), at + random.randrange(1, 30))
        assert expand(ranges, topic, at, end) == [one.number for one in topic[at:end]]
        at = max(0, end - random.randrange(20)) if random.random() < 0.3 else end


def test_changes_of_an_ordinary_log_keep_their_numbers() -> None:
    topic = [Change(1 + place // 10, place % 10 * (GIB // 8) + 4, place) for place in range(100)]
    assert expand(BinlogRanges(), topic, 0, 100) == [one.reported for one in topic]


def test_what_is_sent_once_more_from_the_end_of_an_earlier_file_keeps_its_numbers() -> None:
    topic = [Change(1, place * GIB + 4, place) for place in range(1, 7)] + [Change(2, 4, 9)]
    topic += topic[4:]
    assert expand(BinlogRanges(), topic, 0, len(topic)) == [one.number for one in topic]


def test_a_dead_letter_that_is_sent_back_keeps_its_number() -> None:
    begun = [Change(3, place * GIB // 2, place) for place in (1, 3, 6, 9)]
    topic = [*begun, Change(4, 4, 20), begun[0], Change(4, 900, 21)]
    assert expand(BinlogRanges(), topic, 0, len(topic)) == [one.number for one in topic]
    topic = [*begun[:2], Change(3, 7 * GIB // 2, 7), begun[0], Change(3, 18 * GIB // 5, 8)]
    assert expand(BinlogRanges(), topic, 0, len(topic)) == [one.number for one in topic]


def test_a_position_beyond_the_number_is_no_position_of_the_next_file() -> None:
    topic = [Change(1, place * GIB + 4, 1) for place in range(1, 10)]
    found = expand(BinlogRanges(), topic, 0, len(topic))
    assert found == [one.number if one.place <= POS_MAX else -1 for one in topic]


def test_what_is_remembered_is_bounded() -> None:
    ranges = BinlogRanges()
    for file in range(1, 3 * TURNS_MAX):
        topic = [Change(file, 7 * GIB // 2, 1), Change(file, 5 * GIB, 1)]
        offsets = np.array([2 * file, 2 * file + 1], dtype=np.int64)
        numbers = np.array([one.reported for one in topic], dtype=np.int64)
        for name in ("shop", f"{file}"):
            assert ranges.expand(SHOP, ("mysql", name), offsets, numbers, offsets)[1] == topic[1].number
    assert len(ranges._read[SHOP, KEY].turns) == TURNS_MAX
    for number in range(CONNECTORS_MAX):
        ranges.expand(SHOP, ("mysql", f"new {number}"), offsets, numbers, offsets)
    assert len(ranges._read) == CONNECTORS_MAX


def change(pos: int, ts_ms: int = 1, **said: object) -> bytes:
    return event("u", after={"id": 1}, source=BINLOG | {"pos": pos, "ts_ms": ts_ms, "name": "db"} | said)


def test_the_events_of_a_transaction_beyond_four_gigabytes_have_growing_positions() -> None:
    places = [4_294_000_000, 4_294_960_000, 698, 900]
    for times in ((1, 1, 1, 1), (1, 1, 2, 2)):
        by = DebeziumDecoder(parse_ddl("id INT"))
        found = by.decode(batch_of([change(*one) for one in zip(places, times, strict=True)]))
        assert found.stop is None
        numbers = found.rows.column(POSITION_COLUMN).to_pylist()
        assert numbers == sorted(set(numbers))


def test_an_event_that_reaches_across_four_gigabytes_begins_before_them() -> None:
    by = DebeziumDecoder(parse_ddl("id INT"))
    found = by.decode(batch_of([change(4_294_000_000), change(-1_000), change(698)]))
    numbers = found.rows.column(POSITION_COLUMN).to_pylist()
    assert numbers == sorted(set(numbers)) and not len(found.rejects)


def test_an_event_beyond_eight_gigabytes_is_a_reject_that_names_the_remedy() -> None:
    by = DebeziumDecoder(parse_ddl("id INT"))
    places = [4_000_000_000, 10, 2_000_000_000, 4_000_000_000, 20]
    found = by.decode(batch_of([change(place) for place in places]))
    assert reasons(found) == {4: BEYOND}
