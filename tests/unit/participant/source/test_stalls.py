"""What keeps a source partition from being read, or a worker from the group: when it is said, and final."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from control_topic.messages import Witness
from participant.source import stalls
from participant.source.fetcher import fetch_settings
from participant.source.group_trouble import LASTS_MAX_S, QUIET_S, SAY_AGAIN_S, GroupTrouble
from participant.source.reading import SourceCallbacks
from participant.source.stalls import (
    ALARM_S,
    DAMAGED,
    DAMAGED_MAX,
    DEAF_S,
    FORBIDDEN,
    LOOK_EVERY_S,
    OVERSIZED_MAX,
    RENEW_S,
    STALLED_MAX_S,
    before_damage,
)
from participant.source.witnesses import Known
from tests.harness import await_that
from tests.unit.participant.source.told import P0, P1, Broker, batch, notice


@pytest.fixture
def broker() -> Broker:
    made = Broker()
    made.source._rewind(P0, 10, 1)
    return made


# --- damage ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", sorted(DAMAGED))
def test_damage_is_read_again_and_named_when_it_is_there_each_time(broker: Broker, code: int) -> None:
    broker.read(batch(P0, 10, 20))
    for _turn in range(DAMAGED_MAX - 1):
        broker.read(said=[notice(code, 20)])
        assert broker.taken[-1] == (P0, 20)
        assert not broker.stuck
    broker.read(said=[notice(code, 20)])
    (reason,) = broker.stuck
    assert reason.startswith("events:0 at offset 20: the log cannot be read there, at each attempt")
    assert "lockstep offsets --set" in reason


@pytest.mark.parametrize("damaged", [True, False])
def test_a_place_that_was_damaged_and_then_is_refused_is_final_and_both_are_said(
    broker: Broker, damaged: bool
) -> None:
    """Seen of a real broker once, while a damaged batch was read again."""
    if damaged:
        broker.read(said=[notice(KafkaError._BAD_MSG, 10)])
    broker.read(said=[notice(KafkaError.OFFSET_OUT_OF_RANGE, None)])
    assert len(broker.stuck) == 1 and "at offset 10: the log lost its end" in broker.stuck[0]
    assert ("kafka-dump-log" in broker.stuck[0]) is damaged


def test_damage_that_passes_is_forgotten(broker: Broker) -> None:
    for start in range(10, 100, 10):
        broker.read(said=[notice(KafkaError._BAD_MSG, start)])
        broker.read(batch(P0, start, start + 10))
    assert not broker.stuck
    assert broker.delivered[-1].next == 100


def test_nothing_behind_damage_is_delivered_though_the_client_has_gone_on(broker: Broker) -> None:
    broker.read(batch(P0, 10, 40), said=[notice(KafkaError._BAD_MSG, 20)])
    assert [(one.start, one.next) for one in broker.delivered] == [(10, 20)]
    assert broker.taken[-1] == (P0, 20)


def test_of_damage_without_an_offset_nothing_that_came_with_it_is_kept() -> None:
    batches = (batch(P0, 10, 40), batch(P1, 0, 5))
    assert before_damage(batches, [notice(KafkaError._BAD_MSG, None)]) == [batches[1]]
    assert before_damage(batches, [notice(KafkaError._BAD_MSG, -1001)]) == [batches[1]]
    assert before_damage(batches, [notice(KafkaError._PARTITION_EOF, 20)]) is batches


def test_of_two_damaged_places_the_first_one_counts() -> None:
    said = [notice(KafkaError._BAD_MSG, 30), notice(KafkaError._BAD_COMPRESSION, 20)]
    (kept,) = before_damage((batch(P0, 10, 40),), said)
    assert kept.offsets.tolist() == list(range(10, 20))


def test_checksums_are_checked_unless_somebody_says_otherwise() -> None:
    assert fetch_settings({}, group="g", queue_bytes_max=0)["check.crcs"] is True
    given = fetch_settings({"check.crcs": "false"}, group="g", queue_bytes_max=0)
    assert given["check.crcs"] == "false"


def test_a_compressed_batch_that_does_not_unpack_may_be_too_large_which_is_said_before_it_is_skipped(
    broker: Broker,
) -> None:
    for _turn in range(DAMAGED_MAX):
        broker.read(said=[notice(KafkaError._BAD_COMPRESSION, 10)])
    (reason,) = broker.stuck
    assert reason.index("memory.per_worker") < reason.index("lockstep offsets --set")
    assert "receive.message.max.bytes in [source.kafka]" in reason


# --- an answer that is too large ------------------------------------------------------------------

TOO_LARGE = "Receive failed: Invalid response size 9 (0..5): increase receive.message.max.bytes"


def test_an_answer_that_is_larger_than_the_client_takes_halts_soon_and_names_the_property(
    broker: Broker,
) -> None:
    """It closes the connection each time, so that all source partitions of the broker wait."""
    broker.source._rewind(P1, 20, 1)
    broker.wait(ALARM_S)
    for _look in range(OVERSIZED_MAX):
        assert not broker.stuck
        broker.says_too_large = TOO_LARGE
        broker.wait(LOOK_EVERY_S)
        broker.wait(LOOK_EVERY_S)
    assert len(broker.stuck) == 1
    (reason,) = broker.stuck
    assert TOO_LARGE in reason and "Raise memory.per_worker" in reason
    assert "events:0 at offset 10, events:1 at offset 20" in reason
    assert "nothing is damaged" in reason and "--set" not in reason
    assert ALARM_S + 2 * OVERSIZED_MAX * LOOK_EVERY_S < STALLED_MAX_S / 3


def test_an_answer_that_was_too_large_once_halts_nothing_where_records_come_again(broker: Broker) -> None:
    for start in range(10, 10 + 3 * OVERSIZED_MAX, 1):
        broker.wait(ALARM_S)
        broker.says_too_large = TOO_LARGE
        broker.wait(0)
        broker.read(batch(P0, start, start + 1))
        broker.wait(0)
    assert not broker.stuck


@pytest.mark.parametrize(
    ("given", "queue_bytes", "received"),
    [
        ({}, 64_000_000, 256_000_000),
        ({}, 1_000, 100_000_000),
        ({}, 1 << 40, 2**31 - 1),
        ({"fetch.max.bytes": "900000000"}, 64_000_000, 900_000_512),
        ({"receive.message.max.bytes": "1000"}, 64_000_000, "1000"),
    ],
)
def test_the_largest_answer_is_half_of_the_memory_unless_it_is_set(
    given: dict[str, str], queue_bytes: int, received: int | str
) -> None:
    made = fetch_settings(given, group="g", queue_bytes_max=queue_bytes)
    assert made["receive.message.max.bytes"] == received


# --- a right that is missing ----------------------------------------------------------------------


@pytest.mark.parametrize("code", sorted(FORBIDDEN))
def test_what_the_broker_forbids_is_final_at_once(broker: Broker, code: int) -> None:
    broker.read(batch(P0, 10, 12), said=[notice(code, None)])
    (reason,) = broker.stuck
    assert reason.startswith("events:0 at offset 12: the broker does not let this worker read it")
    assert broker.delivered[-1].next == 12


# --- silence --------------------------------------------------------------------------------------


def test_lag_without_progress_is_an_alarm_and_then_final(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.wait(ALARM_S - 1)
    assert broker.source.alarms == ()
    broker.wait(1)
    (alarm,) = broker.source.alarms
    assert alarm.startswith("events:0 at offset 10: the log goes on to offset 1000")
    broker.wait(5)
    assert caplog.text.count("the log goes on to offset 1000") == 1
    broker.wait(STALLED_MAX_S)
    assert (broker.made, broker.stuck) == (1, []), "another client comes before any conclusion"
    broker.wait(LOOK_EVERY_S)
    assert broker.stuck[0].startswith("events:0 at offset 10: the log goes on to offset 1000")
    assert broker.source.alarms == ()


def test_a_client_that_hangs_while_its_log_goes_on_is_another_one_before_the_run_halts(
    broker: Broker,
) -> None:
    """As librdkafka does that waits for an answer to OffsetForLeaderEpoch: it asks the broker all else."""
    broker.source._rewind(P1, 7, 1)
    broker.read(batch(P0, 10, 12))
    broker.wait(RENEW_S - 1)
    assert broker.made == 0
    before = len(broker.taken)
    broker.wait(1)
    assert (broker.made, sorted(broker.taken[before:])) == (1, [(P0, 12), (P1, 7)])
    await_that("the end of the one before", lambda: broker.closed == 1)
    broker.wait(RENEW_S)
    assert broker.made == 1, "one for each standstill"
    broker.read(batch(P0, 12, 13), batch(P1, 7, 9))
    assert (broker.source.alarms, broker.stuck) == ((), [])
    broker.wait(RENEW_S)
    assert broker.made == 2


def test_an_alarm_ends_with_the_next_record(broker: Broker) -> None:
    broker.wait(ALARM_S)
    broker.read(batch(P0, 10, 11))
    assert broker.source.alarms == ()
    broker.wait(ALARM_S - 1)
    assert broker.source.alarms == ()


def test_a_log_that_ends_before_what_was_read_of_it_is_an_alarm_and_never_final(broker: Broker) -> None:
    """A new leader learns late how far it goes, and not at all while the replicas that know are away."""
    broker.high = 9
    broker.wait(ALARM_S - 1)
    assert broker.source.alarms == ()
    broker.wait(1)
    (alarm,) = broker.source.alarms
    assert alarm.startswith("events:0 at offset 10: what can be read of its log ends at offset 9")
    broker.wait(10 * STALLED_MAX_S)
    assert (broker.source.alarms, broker.stuck) == ((alarm,), [])
    broker.high = 10
    broker.wait(LOOK_EVERY_S)
    assert broker.source.alarms == ()


@pytest.mark.parametrize("end", ["rewound", "dropped"])
def test_an_alarm_ends_with_what_it_is_about(broker: Broker, end: str) -> None:
    broker.wait(ALARM_S)
    if end == "rewound":
        broker.source._rewind(P0, 10, 2)
    else:
        broker.source._callbacks = SourceCallbacks(
            owned=frozenset,
            deliver=lambda _fetched: True,
            stuck=lambda _partition, _generation, _reason: None,
            failed=broker.stuck.append,
        )
        broker.source._drop([P0])
    assert broker.source.alarms == ()


def test_the_log_s_end_is_no_standstill_and_a_broker_that_is_away_is_waited_for(broker: Broker) -> None:
    broker.high = 10
    broker.wait(10 * STALLED_MAX_S)
    assert (broker.source.alarms, broker.stuck) == ((), [])
    broker.high, broker.away = 1_000, {P0}
    broker.wait(10 * STALLED_MAX_S)
    (said,) = broker.source.alarms
    assert said.endswith("the log's bounds cannot be read; it is waited for")
    assert not broker.stuck
    broker.away = set()
    broker.wait(LOOK_EVERY_S)
    assert not broker.stuck  # what it was away for does not count
    broker.high = 10
    broker.wait(LOOK_EVERY_S)
    assert broker.source.alarms == ()


def test_a_client_that_brings_nothing_and_can_ask_nothing_is_another_one_after_a_while(
    broker: Broker,
) -> None:
    """It may hang by itself, while the broker answers everybody else."""
    broker.source._rewind(P1, 7, 1)
    broker.read(batch(P0, 10, 12))
    broker.away = {P0, P1}
    broker.wait(DEAF_S - 1)
    assert broker.made == 0
    before = len(broker.taken)
    broker.wait(1)
    await_that("the end of the one before", lambda: broker.closed == 1)
    assert (broker.made, sorted(broker.taken[before:])) == (1, [(P0, 12), (P1, 7)])
    assert len(broker.source.alarms) == 2, "until it reads again"
    broker.read(batch(P1, 7, 9))
    broker.read(batch(P0, 12, 13))
    assert (broker.source.alarms, broker.stuck) == ((), [])


def test_a_client_that_cannot_be_closed_is_the_last_that_another_takes_the_place_of(broker: Broker) -> None:
    broker.closes.clear()
    broker.away = {P0}
    for _ in range(5):
        broker.wait(DEAF_S)
    assert broker.made == 1
    broker.closes.set()


def test_a_client_that_reads_of_others_is_not_deaf(broker: Broker) -> None:
    broker.source._rewind(P1, 0, 1)
    broker.away = {P0}
    for number in range(40):
        broker.wait(RENEW_S / 2)
        broker.read(batch(P1, number, number + 1))
    assert broker.made == 0


def test_what_was_to_be_looked_at_is_looked_at_again_by_another_client(broker: Broker) -> None:
    known = Known(witness=Witness(partition=P0, offset=8, fingerprint=1), nothing_until=10)
    broker.source._rewind(P0, 10, 2, known)
    broker.away = {P0}
    broker.wait(DEAF_S)
    assert broker.taken[-2:] == [(P0, 8), (P0, 8)]


def test_a_source_partition_without_a_leader_hides_no_other_that_stands_still(broker: Broker) -> None:
    broker.source._rewind(P1, 0, 1)
    broker.away = {P0}
    broker.wait(2 * ALARM_S)
    broker.wait(LOOK_EVERY_S)
    assert [said.split(":", 2)[1].split()[0] for said in broker.source.alarms] == ["0", "1"]
    broker.wait(STALLED_MAX_S)
    broker.wait(LOOK_EVERY_S)
    (stuck,) = broker.stuck
    assert stuck.startswith("events:1 at offset 0: the log goes on to offset 1000")


def test_time_in_which_reading_is_paused_is_no_standstill(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stalls, "LOOK_EVERY_S", 0.0)
    broker.source._set_paused(True)
    before = broker.source._stalls.waited_s
    broker.read()
    assert broker.source._stalls.waited_s == before


# --- the group ------------------------------------------------------------------------------------

INCONSISTENT = KafkaError.INCONSISTENT_GROUP_PROTOCOL


def test_a_group_error_is_said_again_from_time_to_time_and_final_when_it_lasts() -> None:
    trouble = GroupTrouble("pipeline")
    assert trouble.met(100.0, INCONSISTENT, "JoinGroup failed")
    assert not trouble.met(101.0, INCONSISTENT, "JoinGroup failed")
    assert trouble.met(100.0 + SAY_AGAIN_S, INCONSISTENT, "JoinGroup failed")
    assert "consumer group pipeline" in trouble.alarm
    assert "another partition.assignment.strategy" in trouble.alarm
    for after_s in range(int(SAY_AGAIN_S), int(LASTS_MAX_S), 3):
        trouble.met(100.0 + after_s, INCONSISTENT, "JoinGroup failed")
    assert not trouble.final(99.0 + LASTS_MAX_S)
    assert trouble.final(100.0 + LASTS_MAX_S) == f"{trouble.alarm}, for {LASTS_MAX_S:.0f} s"


def test_a_group_error_that_is_not_met_again_is_over_though_the_group_gives_and_takes_nothing() -> None:
    trouble = GroupTrouble("pipeline")
    trouble.met(0.0, KafkaError.GROUP_MAX_SIZE_REACHED, "JoinGroup failed")
    assert not trouble.final(QUIET_S - 1)
    assert "raise group.max.size" in trouble.alarm
    assert not trouble.final(QUIET_S)
    assert trouble.alarm == ""
    assert not trouble.final(LASTS_MAX_S + 1)
    assert trouble.met(200.0, INCONSISTENT, "JoinGroup failed")
    assert not trouble.final(201.0)


def test_a_lasting_group_error_is_not_over_between_two_attempts_to_join() -> None:
    trouble = GroupTrouble("pipeline")
    for at_s in range(0, int(LASTS_MAX_S) + 1, 5):
        trouble.met(float(at_s), INCONSISTENT, "JoinGroup failed")
        assert not trouble.final(at_s - 0.1)
    assert "for 120 s" in trouble.final(LASTS_MAX_S)


def test_a_group_error_is_over_when_the_group_gives_or_takes_something() -> None:
    trouble = GroupTrouble("pipeline")
    trouble.met(100.0, -1, "something")
    trouble.over()
    assert (trouble.alarm, trouble.final(1e9)) == ("", "")
    assert trouble.met(1e6, -1, "something else")
    assert not trouble.final(1e6 + 1)


def test_an_answer_is_a_small_part_of_what_may_be_fetched_ahead_and_never_less_than_is_asked_for() -> None:
    usual = fetch_settings({}, group="g", queue_bytes_max=64_000_000)
    assert usual["fetch.max.bytes"] == usual["max.partition.fetch.bytes"] == 1_000_000
    small = fetch_settings({}, group="g", queue_bytes_max=1_000_000)
    assert small["fetch.max.bytes"] == small["message.max.bytes"] == 65_536
    larger = fetch_settings({"message.max.bytes": "5000000"}, group="g", queue_bytes_max=64_000_000)
    assert larger["fetch.max.bytes"] == 5_000_000
    given = fetch_settings({"fetch.max.bytes": "2000000"}, group="g", queue_bytes_max=64_000_000)
    assert (given["fetch.max.bytes"], given["message.max.bytes"]) == ("2000000", 1_000_000)
