"""Whoever begins to read behind what others have read sees first that the log is the one they read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from confluent_kafka import KafkaError

from control_topic.messages import Lost, Range, SourcePartition, Witness, WriteStatus
from participant.records.raw import RawBatch, Values
from participant.source.position import OUT_OF_RANGE
from participant.source.stalls import DAMAGED
from participant.source.witnesses import REMEMBERED, Known, Remembered, fingerprint, last_before
from tests.unit.participant.source.told import P0, P1, Broker, batch, notice

READ = batch(P0, 0, 10)


def witness(offset: int, fingerprint: int = 7) -> Witness:
    return Witness(partition=P0, offset=offset, fingerprint=fingerprint)


def last_of(read: RawBatch, before: int) -> Witness:
    found = last_before(read, before)
    assert found is not None
    return found


def began_behind(witness: Witness, next_offset: int = 10, *, nothing_until: int = 0) -> Broker:
    """`nothing_until`: where it is not the last that was read before the offset."""
    broker = Broker()
    broker.source._rewind(P0, next_offset, 1, Known(witness, nothing_until or next_offset))
    return broker


def unasked(_partition: SourcePartition) -> tuple[int, int]:
    raise AssertionError("asked for a log's bounds")


def delivered(broker: Broker) -> list[tuple[int, int]]:
    return [(one.start, one.next) for one in broker.delivered]


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


def test_marks_between_the_record_and_the_offset_are_passed_over() -> None:
    broker = began_behind(last_of(READ, 5))
    broker.read(batch(P0, 4, 5))
    broker.read(batch(P0, 12, 15), said=[notice(KafkaError._PARTITION_EOF, 16)])
    assert broker.taken == [(P0, 4)]
    assert delivered(broker) == [(10, 15), (15, 16)]


@pytest.mark.parametrize("together", [True, False])
def test_a_record_where_there_was_none_ends_the_reading(together: bool) -> None:
    """The cut left the record and took marks, or what a transaction had aborted; and the log grew again."""
    broker = began_behind(last_of(READ, 5))
    broker.read(*([batch(P0, 4, 15)] if together else [batch(P0, 4, 5), batch(P0, 5, 15)]))
    assert broker.delivered == []
    (reason,) = broker.stuck
    assert "at offset 10: the log lost its end and goes on to 1000 again" in reason
    assert "at offset 5 is a record, where there was none" in reason


def test_so_it_does_where_the_record_itself_was_compacted_away() -> None:
    broker = began_behind(last_of(READ, 5))
    broker.read(batch(P0, 6, 15))
    assert "at offset 6 is a record, where there was none" in broker.stuck[0]


def test_what_others_have_read_behind_the_record_is_not_read_again() -> None:
    broker = began_behind(last_of(READ, 5), nothing_until=6)
    broker.read(batch(P0, 4, 5), batch(P0, 6, 15))
    assert broker.taken == [(P0, 4)]
    assert delivered(broker) == [(10, 15)]


def test_much_that_others_have_read_is_passed_over_at_once() -> None:
    broker = began_behind(last_of(READ, 5), nothing_until=5)
    broker.read(batch(P0, 4, 8), batch(P0, 8, 15), said=[notice(KafkaError._PARTITION_EOF, 15)])
    assert broker.taken == [(P0, 4), (P0, 10)]
    assert broker.delivered == []
    broker.read(batch(P0, 10, 15), said=[notice(KafkaError._PARTITION_EOF, 16)])
    assert delivered(broker) == [(10, 15), (15, 16)]


def test_an_end_behind_the_record_is_an_end_as_any_other() -> None:
    broker = began_behind(last_of(READ, 10))
    broker.read(batch(P0, 9, 10), said=[notice(KafkaError._PARTITION_EOF, 10)])
    assert broker.taken == [(P0, 9)]
    assert broker.delivered == []
    broker.read(said=[notice(KafkaError._PARTITION_EOF, 12)])
    broker.read(batch(P0, 12, 15))
    assert delivered(broker) == [(10, 12), (12, 15)]


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
    assert broker.taken == [(P0, 9)]
    assert delivered(broker) == [(10, 15)]


def test_nor_does_one_that_went_with_all_up_to_the_end() -> None:
    broker = began_behind(last_of(READ, 10))
    broker.read(said=[notice(KafkaError._PARTITION_EOF, 12)])
    assert broker.taken == [(P0, 9), (P0, 10)]
    assert broker.delivered == []
    broker.read(said=[notice(KafkaError._PARTITION_EOF, 12)])
    assert delivered(broker) == [(10, 12)]


@pytest.mark.parametrize("code", sorted(OUT_OF_RANGE))
def test_nor_does_one_that_retention_took(code: int) -> None:
    """The log goes as far as the offset, so that its beginning was refused: nobody asks for its bounds."""
    broker = began_behind(last_of(READ, 10))
    broker.source._fetcher.bounds = unasked  # type: ignore[method-assign]
    broker.read(said=[notice(code, 9)])
    broker.read(said=[notice(KafkaError._PARTITION_EOF, 10)])
    broker.read(said=[notice(code, 9)])
    assert broker.taken == [(P0, 9), (P0, 10), (P0, 9), (P0, 10)]
    broker.read(batch(P0, 10, 15))
    assert delivered(broker) == [(10, 15)]


@pytest.mark.parametrize("code", sorted(OUT_OF_RANGE))
def test_one_that_was_refused_and_is_there_after_all_is_compared(code: int) -> None:
    """The log was cut before it, and has grown past the offset until the broker was asked for that."""
    broker = began_behind(last_of(READ, 10))
    broker.read(said=[notice(code, 9)])
    broker.read(batch(P0, 10, 15, content=b"another"))
    assert broker.taken == [(P0, 9), (P0, 10), (P0, 9)]
    broker.read(batch(P0, 9, 15, content=b"another"))
    assert broker.delivered == []
    assert "at offset 9 is another record than was read" in broker.stuck[0]


@pytest.mark.parametrize("code", sorted(DAMAGED))
def test_a_damaged_record_is_left_and_what_is_read_is_behind_it(code: int) -> None:
    broker = began_behind(last_of(READ, 10))
    broker.read(said=[notice(code, 9)])
    assert broker.taken == [(P0, 9), (P0, 10)]
    broker.read(batch(P0, 10, 15))
    assert delivered(broker) == [(10, 15)]


@pytest.mark.parametrize("code", sorted(OUT_OF_RANGE))
def test_a_log_that_does_not_reach_the_record_ends_the_reading(code: int) -> None:
    broker = began_behind(last_of(READ, 10))
    broker.high = 5
    broker.read(said=[notice(code, 9)])
    broker.read(said=[notice(code, 10)])
    assert "offset 10 is beyond the log's end 5" in broker.stuck[0]


# --- a log that ends before the record ------------------------------------------------------------------


def ended_before_it() -> Broker:
    broker = began_behind(last_of(READ, 10))
    broker.high = 9
    broker.read(said=[notice(KafkaError._PARTITION_EOF, 9)])
    assert broker.taken == [(P0, 9), (P0, 10)]
    return broker


@pytest.mark.parametrize("code", sorted(OUT_OF_RANGE))
def test_an_end_before_the_record_is_a_cut_where_the_broker_refuses_the_offset(code: int) -> None:
    broker = ended_before_it()
    broker.read(said=[notice(code, 10)])
    assert "offset 10 is beyond the log's end 9" in broker.stuck[0]


def test_it_is_a_cut_where_the_log_has_grown_again_until_the_broker_refuses_it() -> None:
    broker = ended_before_it()
    broker.high = 20
    broker.read(said=[notice(KafkaError.OFFSET_OUT_OF_RANGE, 10)])
    assert "the log lost its end and goes on to 20 again" in broker.stuck[0]


def test_where_the_broker_takes_the_offset_the_look_is_taken_again() -> None:
    """A leader that was just elected may learn late how far its log goes."""
    broker = ended_before_it()
    broker.read(said=[notice(KafkaError._PARTITION_EOF, 9)])
    assert broker.taken[2:] == [(P0, 9)]
    broker.read(said=[notice(KafkaError._PARTITION_EOF, 9)])
    assert broker.taken[3:] == [(P0, 10)]
    broker.read(batch(P0, 10, 15))
    assert broker.taken[4:] == [(P0, 9)]
    assert broker.delivered == []
    broker.read(batch(P0, 9, 15))
    assert delivered(broker) == [(10, 15)]


def test_what_grew_meanwhile_is_looked_at_before_anything_is_delivered() -> None:
    broker = ended_before_it()
    broker.read(batch(P0, 10, 15, content=b"another"))
    assert broker.taken[2:] == [(P0, 9)]
    broker.read(batch(P0, 9, 15, content=b"another"))
    assert broker.delivered == []
    assert "at offset 9 is another record than was read" in broker.stuck[0]


def test_where_there_is_nothing_more_to_read_nothing_is_looked_for() -> None:
    broker = Broker()
    broker.source._until = {P0: 10}
    broker.source._rewind(P0, 10, 1, Known(last_of(READ, 10), 10))
    assert broker.taken == []


# --- what is known ------------------------------------------------------------------------------------


def test_of_all_that_is_known_the_last_record_before_an_offset_counts() -> None:
    known = Remembered()
    assert known.before(P0, 10) is None
    known.table_has([witness(3)], {P0: 5})
    known.note([witness(8), replace(witness(9), partition=P1)], {P0: 10, P1: 10})
    known.note([witness(12)], {P0: 15})
    assert known.before(P0, 20) == Known(witness(12), 15)
    assert known.before(P0, 12) == Known(witness(8), 10)
    assert known.before(P0, 8) == Known(witness(3), 5)
    assert known.before(P0, 3) is None


def test_of_two_at_one_offset_the_tables_counts_for_what_was_read_here_may_have_been_aborted() -> None:
    """The log lost its end since, and another worker has read and committed what is there now."""
    known = Remembered()
    known.note([witness(8, fingerprint=7)], {P0: 9})
    known.table_has([witness(8, fingerprint=8)], {P0: 9})
    assert known.before(P0, 9) == Known(witness(8, fingerprint=8), 9)


def test_so_does_the_tables_where_it_was_read_up_to_the_offset() -> None:
    known = Remembered()
    known.note([witness(8)], {P0: 9})
    known.table_has([witness(5, fingerprint=8)], {P0: 12})
    assert known.before(P0, 12) == Known(witness(5, fingerprint=8), 12)
    assert known.before(P0, 13) == Known(witness(8), 9)


def test_what_was_aborted_is_forgotten_when_it_is_read_again() -> None:
    known = Remembered()
    for offset, value in ((8, 7), (12, 7), (10, 7), (10, 8)):
        known.note([witness(offset, value)], {P0: offset + 1})
    assert known.before(P0, 20) == Known(witness(10, fingerprint=8), 11)
    assert known.before(P0, 10) == Known(witness(8), 9)


def test_of_its_own_few_are_remembered() -> None:
    known = Remembered()
    for offset in range(100):
        known.note([witness(offset)], {P0: offset + 1})
    assert known.before(P0, 100 - REMEMBERED) is None
    assert known.before(P0, 100 - REMEMBERED + 1) == Known(witness(100 - REMEMBERED), 100 - REMEMBERED + 1)


def test_a_record_of_which_no_offset_is_known_is_followed_by_nothing_that_is_known() -> None:
    known = Remembered()
    known.note([witness(8)], {})
    assert known.before(P0, 20) == Known(witness(8), 8)


def wrote(
    start: int, next_offset: int, *, last: Witness | None = None, lost: tuple[int, int] | None = None
) -> WriteStatus:
    return WriteStatus(
        transaction="t",
        ranges=(Range(partition=P0, start=start, next=next_offset, records=0 if last is None else 1),),
        lost=() if lost is None else (Lost(partition=P0, start=lost[0], next=lost[1]),),
        witnesses=() if last is None else (last,),
    )


def test_a_range_without_a_record_leaves_the_last_one_the_last() -> None:
    """Else a cut in what was aborted would not be noticed by the worker that has read it."""
    known = Remembered()
    known.table_has([witness(3)], {P0: 5})
    known.wrote(wrote(5, 9))
    assert known.before(P0, 9) == Known(witness(3), 9)
    known.wrote(wrote(9, 20, last=witness(15)))
    known.wrote(wrote(20, 25))
    known.wrote(wrote(25, 30))
    assert known.before(P0, 30) == Known(witness(15), 30)
    known.wrote(wrote(40, 50))
    assert known.before(P0, 50) == Known(witness(15), 30)  # others have written in between


def test_of_one_record_that_others_name_as_well_counts_how_far_nothing_stands_behind_it() -> None:
    """A worker that was given a source partition, and is told by START that only marks came since."""
    known = Remembered()
    known.table_has([witness(3)], {P0: 5})
    known.note([witness(3)], {P0: 9})
    assert known.before(P0, 9) == Known(witness(3), 9)


def test_where_offsets_were_lost_records_stood_and_may_come_back() -> None:
    known = Remembered()
    known.wrote(wrote(0, 20, last=witness(5), lost=(6, 20)))
    assert known.before(P0, 20) == Known(witness(5), 6)
    known.wrote(wrote(20, 30, lost=(20, 30)))
    assert known.before(P0, 30) == Known(witness(5), 6)
    known.wrote(wrote(30, 60, last=witness(55), lost=(30, 40)))
    assert known.before(P0, 60) == Known(witness(55), 60)
