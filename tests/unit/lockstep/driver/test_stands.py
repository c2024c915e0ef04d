"""Whether a run stands still: what is said of it, when, and when that is the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest

from control_topic.messages import SourcePartition
from lockstep.brokers.group import GroupMember, GroupView, coordinator_partition, why_no_coordinator
from lockstep.driver.stands import (
    ALARM_S,
    NEW_S,
    OUTAGE_MAX_S,
    UNREAD_MAX_S,
    GroupVerdict,
    LivingWorker,
    Look,
    Stands,
    sentence,
    strangers,
)

EVERY_S = 10.0
P0, P1, P2 = (SourcePartition("events", number) for number in range(3))
AWAY = "The Kafka broker at b:9092 did not describe the cluster within 10 s: no answer."


def member(instance: str, *partitions: SourcePartition) -> GroupMember:
    return GroupMember(client="console", host="/10.0.0.7", instance=instance, partitions=partitions)


OURS = member("orders-0", P0)
OURS_ALL = member("orders-0", P0, P1)
READS_P0 = LivingWorker(name="worker-0", owned=frozenset([P0]))
READS_ALL = LivingWorker(name="worker-0", owned=frozenset([P0, P1]))


def stable(*members: GroupMember) -> GroupView:
    return GroupView(state="STABLE", members=members)


REBALANCING = GroupView(state="PREPARING_REBALANCING", members=(member("orders-0"), member("")))


def look(
    *workers: LivingWorker,
    group: GroupView | None = None,
    outage: str = "",
    partitions: Iterable[SourcePartition] = (P0, P1),
    commits: int = 0,
) -> Look:
    """One look, whose time `looks` puts in."""
    seen = () if outage else tuple(partitions)
    return Look(now_s=0.0, partitions=seen, group=group, outage=outage, workers=workers, commits=commits)


def looks(seen: Iterable[Look], *, every_s: float = EVERY_S) -> Iterator[tuple[float, GroupVerdict]]:
    """Seconds since the first, and what came of each, until the run halts."""
    stands = Stands("orders")
    for turn, one in enumerate(seen):
        at_s = 1_000.0 + turn * every_s
        found = stands.look(
            Look(
                now_s=at_s,
                partitions=one.partitions,
                group=one.group,
                outage=one.outage,
                workers=one.workers,
                commits=one.commits,
            )
        )
        yield at_s - 1_000.0, found
        if found.halt:
            return


def first_alarm(seen: Iterable[Look]) -> tuple[float, str]:
    return next((at_s, found.alarm) for at_s, found in looks(seen) if found.alarm)


def end(seen: Iterable[Look]) -> tuple[float, str]:
    *_, (at_s, found) = looks(seen)
    return at_s, found.halt


def is_well(seen: Iterable[Look]) -> bool:
    return all(found == GroupVerdict() for _, found in looks(seen))


# --- nobody reads a source partition ----------------------------------------------------------------------


def test_workers_are_known_by_their_slot_and_whoever_holds_nothing_is_given_nothing() -> None:
    guests = [member(name, P1) for name in ("", "orders", "orders-x", "orders-0-1", "borders-0", "orders.0")]
    assert strangers([OURS, member("orders-17", P1), member(""), *guests], "orders") == guests


def test_a_guest_who_stays_is_said_once_and_then_ends_the_run() -> None:
    found = list(looks([look(READS_P0, group=stable(OURS, member("", P1)))] * 100))
    told = [(at_s, one) for at_s, one in found if one.is_news]
    [(at_s, first)], (last_s, last) = told, found[-1]
    assert at_s == ALARM_S
    assert last_s == UNREAD_MAX_S
    assert first.alarm.startswith(
        "events:1 cannot be read: consumer group orders has given them to console at /10.0.0.7"
    )
    assert f"(for {ALARM_S:.0f} s" in first.alarm
    assert last.halt.startswith("events:1 cannot be read: consumer group orders has given them to console")
    assert f"(for {UNREAD_MAX_S:.0f} s)" in last.halt
    assert all(one.alarm for at_s, one in found if ALARM_S <= at_s < UNREAD_MAX_S)


def test_guests_who_come_and_go_are_borne() -> None:
    here = look(READS_P0, group=stable(OURS, member("", P1)))
    assert is_well(
        [here, here, here, look(READS_ALL, group=stable(OURS_ALL))][turn % 4] for turn in range(100)
    )


def test_a_guest_who_comes_and_goes_while_nobody_of_ours_gets_the_source_partition_is_not() -> None:
    here, gone = look(READS_P0, group=stable(OURS, member("", P1))), look(READS_P0, group=stable(OURS))
    assert end([here, gone] * 50)[0] == UNREAD_MAX_S


def test_another_source_partition_is_another_time() -> None:
    reads_p1 = LivingWorker(name="worker-0", owned=frozenset([P1]))
    assert is_well(
        look(READS_P0 if turn % 4 < 2 else reads_p1, group=stable(OURS_ALL)) for turn in range(100)
    )


def test_many_source_partitions_are_counted() -> None:
    many = [SourcePartition("events", number) for number in range(12)]
    assert sentence([member("", *many)], "orders").startswith(
        "events:0, events:1, events:2, events:3, events:4 and 7 more cannot be read"
    )


def test_all_guests_are_named_and_what_none_of_them_holds() -> None:
    idle = GroupMember(client="idle", host="/10.0.0.8", instance="", partitions=())
    seen = look(READS_P0, group=stable(OURS, member("", P1), idle), partitions=(P0, P1, P2))
    _, said = first_alarm([seen] * 10)
    assert "beside it in the group: idle at /10.0.0.8 (holds nothing that the broker tells of)" in said
    assert "; nor does a worker read events:2" in said


def test_a_rebalance_that_a_busy_member_never_ends_names_that_member_and_ends_the_run() -> None:
    """A broker does not tell who holds what meanwhile."""
    busy = [look(READS_P0, group=REBALANCING)] * 100
    at_s, said = first_alarm(busy)
    assert at_s == ALARM_S
    assert said.startswith("No worker reads events:1: consumer group orders is rebalancing")
    assert (
        "In the group beside the workers: console at /10.0.0.7 (holds nothing that the broker tells of)"
        in said
    )
    at_s, said = end(busy)
    assert at_s == UNREAD_MAX_S
    assert "console at /10.0.0.7" in said and said.endswith("(for 120 s). Nothing is lost.")


def test_a_foreign_leader_that_gives_a_source_partition_to_nobody_is_named() -> None:
    _, said = first_alarm([look(READS_P0, group=stable(OURS, member("")))] * 10)
    assert "consumer group orders is STABLE and has given them to nobody" in said
    assert "End that member: the group is the pipeline's own" in said


def test_a_worker_of_an_earlier_run_that_has_it_in_the_group_is_named() -> None:
    _, said = first_alarm([look(READS_P0, group=stable(OURS, member("orders-3", P1)))] * 10)
    assert "has given them to orders-3 at /10.0.0.7, and no living worker says that it has them" in said


def test_without_guests_the_sentence_says_so_and_what_the_workers_say_is_added() -> None:
    refused = LivingWorker(name="worker-1", alarms=("the group is full",))
    _, said = first_alarm([look(READS_P0, refused, group=GroupView(state="EMPTY", members=()))] * 10)
    assert "nobody is in consumer group orders. Nobody but workers is in the group" in said
    assert said.count("worker-1: the group is full") == 1


def test_a_group_that_may_not_be_looked_at_keeps_nobody_from_counting() -> None:
    at_s, said = end([look(READS_P0)] * 100)
    assert at_s == UNREAD_MAX_S
    assert "may not be looked at. See who is in it (kafka-consumer-groups --describe --members)" in said


def test_another_cause_is_said_anew_and_the_same_is_not() -> None:
    guest, busy = look(READS_P0, group=stable(OURS, member("", P1))), look(READS_P0, group=REBALANCING)
    found = [one.is_news for _, one in looks([guest] * 5 + [busy] * 2 + [guest] * 2)]
    assert found == [False, False, False, True, False, True, False, True, False]


def test_workers_that_lost_the_broker_do_not_know_that_they_own_nothing_any_more_and_the_group_does() -> None:
    cut_off = [look(READS_ALL, group=GroupView(state="EMPTY", members=()))] * 100
    at_s, said = end(cut_off)
    assert at_s == UNREAD_MAX_S
    assert said.startswith("No worker reads events:0, events:1: nobody is in consumer group orders.")
    assert (
        said.count("worker-0 says that it has them, and the group does not: see that it reaches the broker")
        == 1
    )


@pytest.mark.parametrize("state", ["PREPARING_REBALANCING", "COMPLETING_REBALANCING", "UNKNOWN"])
def test_while_a_group_is_on_its_way_the_workers_word_counts(state: str) -> None:
    assert is_well([look(READS_ALL, group=GroupView(state=state, members=()))] * 100)


# --- what does not count ------------------------------------------------------------------------------------


def test_a_start_counts_from_the_first_worker_that_lives() -> None:
    slow, joined = [look(group=stable())] * 60, [look(READS_P0, group=stable(OURS))] * 100
    assert end(slow + joined)[0] == 600.0 + UNREAD_MAX_S


def test_while_no_worker_lives_their_deaths_and_starts_have_the_word() -> None:
    assert is_well([look(group=stable())] * 1_000)
    found = [one.alarm for _, one in looks([look(READS_P0, group=stable(OURS))] * 5 + [look(group=stable())])]
    assert found[-2] and not found[-1]


def test_a_normal_rebalance_passes_without_a_word() -> None:
    turn = [look(READS_ALL, group=stable(OURS_ALL))] * 3 + [
        look(LivingWorker(name="worker-0"), group=REBALANCING)
    ] * 3
    assert is_well(turn * 20)


def test_fewer_workers_than_source_partitions_and_workers_with_none_are_well() -> None:
    assert is_well([look(READS_ALL, LivingWorker(name="worker-1"), group=stable(OURS_ALL))] * 100)


def test_a_source_partition_that_is_added_may_take_its_time_to_be_known() -> None:
    before, after = (
        look(READS_ALL, group=stable(OURS_ALL)),
        look(READS_ALL, group=stable(OURS_ALL), partitions=(P0, P1, P2)),
    )
    at_s, said = first_alarm([before] * 5 + [after] * 20)
    assert at_s == 50.0 + 70.0 and 70.0 - EVERY_S < NEW_S + ALARM_S <= 70.0
    assert said.startswith("No worker reads events:2: ")


def test_a_source_partition_that_is_gone_is_forgotten() -> None:
    lost, fewer = look(READS_P0, group=stable(OURS)), look(READS_P0, group=stable(OURS), partitions=(P0,))
    assert is_well(([lost] * 3 + [fewer]) * 20)


@pytest.mark.parametrize("outage", ["", AWAY])
def test_a_driver_that_was_frozen_itself_counts_little_of_it(outage: str) -> None:
    one = look(READS_P0, group=stable(OURS), outage=outage)
    assert not any(found.halt for _, found in looks([one] * 3, every_s=5_000.0))


# --- a broker that is away, a group without a coordinator ---------------------------------------------------


def test_a_broker_that_is_away_is_said_after_half_a_minute_and_ends_the_run_after_ten() -> None:
    away = [look(READS_ALL, group=stable(OURS_ALL)), *[look(READS_ALL, outage=AWAY)] * 1_000]
    at_s, said = first_alarm(away)
    assert at_s == ALARM_S
    assert said == f"{AWAY[:-1]} (for 30 s; after 600 s the run halts)"
    at_s, said = end(away)
    assert at_s == OUTAGE_MAX_S == 600.0
    assert said.startswith("Kafka has not served this run for 600 s, and an outage is waited out for 600 s")
    assert AWAY in said and "start again" in said


def test_a_broker_that_never_answered_since_the_start_ends_the_run_too_workers_or_not() -> None:
    assert end([look(outage=AWAY)] * 1_000)[0] == OUTAGE_MAX_S


def test_a_broker_that_restarts_every_minute_for_a_minute_is_borne() -> None:
    here = [look(READS_ALL, group=stable(OURS_ALL))]
    assert all(not found.halt for _, found in looks((here * 6 + [look(READS_ALL, outage=AWAY)] * 6) * 20))


def test_who_commits_is_served() -> None:
    """By a broker that the driver alone does not reach."""
    assert is_well(look(READS_ALL, outage=AWAY, commits=turn // 2) for turn in range(1_000))


def test_an_outage_is_no_time_without_an_owner_and_forgives_none() -> None:
    lost, away = look(READS_P0, group=stable(OURS)), look(READS_P0, outage=AWAY)
    at_s, _ = end([lost] * 7 + [away] * 3 + [lost] * 100)
    assert at_s == UNREAD_MAX_S + 4 * EVERY_S  # three looks, and the time up to the first that was answered


# --- where a group is kept ----------------------------------------------------------------------------------


def test_a_group_is_kept_where_java_s_hash_of_its_name_leads() -> None:
    """As java.lang.String.hashCode has them; of "polygenelubricants" it is the least number there is."""
    assert coordinator_partition("orders", 50) == 1_008_770_331 % 50
    assert coordinator_partition("polygenelubricants", 50) == 0
    assert coordinator_partition("", 50) == 0


def test_why_there_is_no_coordinator_is_said_as_far_as_it_is_known() -> None:
    number = coordinator_partition("orders", 50)
    leaders = dict.fromkeys(range(50), 1)
    assert "brokers that are up: 1" in why_no_coordinator("orders", {}, 1)
    assert f"__consumer_offsets:{number}" in why_no_coordinator("orders", {**leaders, number: -1}, 2)
    assert why_no_coordinator("orders", leaders, 2).startswith("broker 1, which leads")


def test_a_group_that_keeps_places_for_long_is_waited_for_longer() -> None:
    """session.timeout.ms is the operator's: for so long what a worker had is nobody's."""
    for session_s, halts_s in ((0.0, UNREAD_MAX_S), (45.0, UNREAD_MAX_S), (300.0, 360.0)):
        stands, now_s = Stands("orders", session_s), 0.0
        while not stands.look(replace(look(READS_P0, group=stable(OURS)), now_s=now_s)).halt:
            now_s += EVERY_S
        assert now_s == halts_s
