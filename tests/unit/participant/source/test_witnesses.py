"""Whoever begins to read behind what others have read sees first that the log is the one they read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from confluent_kafka import KafkaError

from control_topic.messages import Witness
from participant.records.raw import RawBatch, Values
from participant.source.position import WITNESS_GONE
from participant.source.witnesses import REMEMBERED, Remembered, fingerprint, last_before
from tests.unit.participant.source.told import P0, P1, Broker, batch, notice

READ = batch(P0, 0, 10)


def witness(offset: int, fingerprint: int = 7) -> Witness:
    return Witness(partition=P0, offset=offset, fingerprint=fingerprint)


def last_of(read: RawBatch, before: int) -> Witness:
    found = last_before(read, before)
    assert found is not None
    return found


def began_behind(known: Witness, next_offset: int = 10) -> Broker:
    broker = Broker()
    broker.source._rewind(P0, next_offset, 1, known)
    return broker


# --- the record -------------------------------------------------------------------------------------


def test_records_that_differ_in_value_in_time_or_in_having_a_value_are_told_apart() -> None:
    one = RawBatch(
        partition=P0,
        offsets=np.arange(4, dtype=np.int64),
        timestamps_ms=np.array([0, 0, 0, 1], dtype=np.int64),
        values=Values.of([b"a", b"", None, b"a"]),
    )
    assert len({fingerprint(one, index) for index in range(4)}) == 4


def test_the_same_record_is_the_same_wherever_it_stands_in_what_was_fetched() -> None:
    assert fingerprint(READ, 9) == fingerprint(READ.take(np.array([9])), 0)


def test_the_last_record_before_an_offset_is_found_over_gaps_or_there_is_none() -> None:
    gaps = replace(READ, offsets=np.arange(0, 30, 3, dtype=np.int64))
    assert last_of(gaps, 10).offset == 9
    assert last_of(gaps, 9).offset == 6
    assert last_before(gaps, 0) is None


# --- the look at it -----------------------------------------------------------------------------------


def test_reading_goes_on_behind_the_record_that_was_read() -> None:
    broker = began_behind(last_of(READ, 10))
    assert broker.taken == [(P0, 9)]
    broker.read(batch(P0, 9, 15))
    assert [(one.start, one.next) for one in broker.delivered] == [(10, 15)]
    assert broker.taken == [(P0, 9)]
    assert not broker.stuck


def test_what_lies_between_the_record_and_the_offset_is_not_read_again() -> None:
    """Marks of a transaction, or records that were there and are committed."""
    broker = began_behind(last_of(READ, 5))
    broker.read(batch(P0, 4, 15))
    assert broker.taken == [(P0, 4), (P0, 10)]
    assert broker.delivered == []
    broker.read(batch(P0, 10, 15))
    assert [(one.start, one.next) for one in broker.delivered] == [(10, 15)]


def test_an_end_of_the_log_that_came_before_the_reading_turned_back_passes_over_nothing() -> None:
    """It came with the record that was looked for: what lies before it is still to be delivered."""
    broker = began_behind(last_of(READ, 5))
    broker.read(batch(P0, 4, 15), said=[notice(KafkaError._PARTITION_EOF, 15)])
    assert broker.taken == [(P0, 4), (P0, 10)]
    assert broker.delivered == []
    broker.read(batch(P0, 10, 15), said=[notice(KafkaError._PARTITION_EOF, 16)])
    assert [(one.start, one.next) for one in broker.delivered] == [(10, 15), (15, 16)]


def test_another_record_at_its_offset_ends_the_reading_and_nothing_is_delivered() -> None:
    broker = began_behind(last_of(READ, 10))
    broker.read(batch(P0, 9, 15, content=b'{"another": 1}'))
    assert broker.delivered == []
    (reason,) = broker.stuck
    assert reason.startswith("events:0 at offset 10: the log lost its end and goes on to 1000 again")
    assert "at offset 9 is another record than was read" in reason


def test_a_record_that_compaction_took_proves_nothing() -> None:
    broker = began_behind(last_of(READ, 10))
    broker.read(batch(P0, 11, 15, content=b"another"))
    assert broker.taken == [(P0, 9), (P0, 10)]
    broker.read(batch(P0, 11, 15, content=b"another"))
    assert [(one.start, one.next) for one in broker.delivered] == [(10, 15)]


@pytest.mark.parametrize("code", sorted(WITNESS_GONE))
def test_a_record_that_cannot_be_read_is_left_and_its_offset_decides_nothing(code: int) -> None:
    """Retention took it, the log ends before it, or it is damaged: what is read on from is what counts."""
    broker = began_behind(last_of(READ, 10))
    broker.read(said=[notice(code, 9)])
    assert broker.taken == [(P0, 9), (P0, 10)]
    assert not broker.stuck
    broker.high = 5
    broker.read(said=[notice(KafkaError._AUTO_OFFSET_RESET, None)])
    assert "offset 10 is beyond the log's end 5" in broker.stuck[0]


def test_where_there_is_nothing_more_to_read_nothing_is_looked_for() -> None:
    broker = Broker()
    broker.source._until = {P0: 10}
    broker.source._rewind(P0, 10, 1, last_of(READ, 10))
    assert broker.taken == []


# --- what is known ------------------------------------------------------------------------------------


def test_of_all_that_is_known_the_last_record_before_an_offset_counts() -> None:
    known = Remembered()
    assert known.before(P0, 10) is None
    known.table_has([witness(3)])
    known.note([witness(8), witness(12), replace(witness(9), partition=P1)])
    assert known.before(P0, 20) == witness(12)
    assert known.before(P0, 12) == witness(8)
    assert known.before(P0, 8) == witness(3)
    assert known.before(P0, 3) is None


def test_of_two_at_one_offset_the_tables_counts_for_what_was_read_here_may_have_been_aborted() -> None:
    """The log lost its end since, and another worker has read and committed what is there now."""
    known = Remembered()
    known.note([witness(8, fingerprint=7)])
    known.table_has([witness(8, fingerprint=8)])
    assert known.before(P0, 9) == witness(8, fingerprint=8)


def test_what_was_aborted_is_forgotten_when_it_is_read_again() -> None:
    known = Remembered()
    known.note([witness(8), witness(12)])
    known.note([witness(10)])
    known.note([witness(10, fingerprint=8)])
    assert known.before(P0, 20) == witness(10, fingerprint=8)
    assert known.before(P0, 10) == witness(8)


def test_of_its_own_few_are_remembered() -> None:
    known = Remembered()
    known.note([witness(offset) for offset in range(100)])
    assert known.before(P0, 100 - REMEMBERED) is None
    assert known.before(P0, 100 - REMEMBERED + 1) == witness(100 - REMEMBERED)
