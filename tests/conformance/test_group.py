"""The consumer group: what the simulator's assumes of membership, on a real broker as well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.conformance.group_sides import GroupSide, KafkaGroupSide, Member, SimulatedGroupSide

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("conformance")]

PARTITIONS = 4
ALL = set(range(PARTITIONS))


@pytest.fixture(params=["kafka", "simulated"])
def group(request: pytest.FixtureRequest) -> Iterator[GroupSide]:
    with ExitStack() as opened:
        if request.param == "kafka":
            topic = request.getfixturevalue("make_topic")(partitions=PARTITIONS)
            yield KafkaGroupSide(request.getfixturevalue("broker").bootstrap_servers, topic, opened)
        else:
            yield SimulatedGroupSide()


def share(group: GroupSide, *members: Member, of: set[int] = ALL) -> None:
    """Await that the members own everything between them, evenly, each source partition once."""
    sizes = sorted(len(of) // len(members) + (n < len(of) % len(members)) for n in range(len(members)))

    def is_shared() -> bool:
        owned = [number for member in members for number in member.owns]
        return sorted(owned) == sorted(of) and sorted(len(member.owns) for member in members) == sizes

    try:
        group.await_that("even share", is_shared)
    except AssertionError as error:
        raise AssertionError(f"{error} of {of}: {[sorted(member.owns) for member in members]}") from error


def test_the_first_member_owns_all_and_one_that_joins_is_handed_a_share(group: GroupSide) -> None:
    first = group.join(0)
    share(group, first)
    second = group.join(1)
    share(group, first, second)
    assert all(first.prove(number) for number in first.owns)
    assert not any(first.prove(number) for number in second.owns)


def test_a_newcomer_of_the_same_slot_takes_its_source_partitions_over_and_the_old_one_is_fenced(
    group: GroupSide,
) -> None:
    old, other = group.join(0), group.join(1)
    share(group, old, other)
    was, untouched = set(old.owns), set(other.owns)
    newcomer = group.join(0)
    group.await_that("newcomer's assignment", lambda: newcomer.owns == was, within_s=group.session_s * 4)
    group.await_that("fencing", lambda: old.fenced)
    assert not old.prove(min(was))
    assert other.owns == untouched
    assert newcomer.prove(min(was))


def test_a_fenced_member_that_leaves_late_takes_nothing_from_its_successor(group: GroupSide) -> None:
    """Nor is anybody given what it has, or asked twice to give it up."""
    old, other = group.join(0), group.join(1)
    share(group, old, other)
    was = set(old.owns)
    old.freeze()
    newcomer = group.join(0)
    group.await_that("newcomer's assignment", lambda: newcomer.owns == was, within_s=group.session_s * 4)
    third = group.join(2)
    old.thaw()
    group.await_that("fencing", lambda: old.fenced)
    old.leave()
    share(group, newcomer, other, third)
    for member in (newcomer, other, third):
        owned: set[int] = set()
        for what, partitions in member.told:
            if what == "assigned":
                assert not owned & partitions
                owned |= partitions
            else:
                assert owned >= partitions
                owned -= partitions
        assert owned == member.owns


def test_what_a_dead_member_owned_is_nobodys_until_its_session_ends(group: GroupSide) -> None:
    dead, other = group.join(0), group.join(1)
    share(group, dead, other)
    before = set(other.owns)
    dead.kill()
    with pytest.raises(AssertionError, match="there was no whole"):
        group.await_that("whole", lambda: other.owns == ALL, within_s=group.session_s / 2)
    assert other.owns == before
    share(group, other)


def test_a_dead_members_successor_in_its_slot_owns_the_same_at_once(group: GroupSide) -> None:
    dead, other = group.join(0), group.join(1)
    share(group, dead, other)
    was = set(dead.owns)
    dead.kill()
    successor = group.join(0)
    group.await_that("successor's assignment", lambda: successor.owns == was)
    assert other.owns == ALL - was


def test_a_member_that_stood_still_for_longer_than_its_session_learns_of_it_and_joins_again(
    group: GroupSide,
) -> None:
    frozen, other = group.join(0), group.join(1)
    share(group, frozen, other)
    was = set(frozen.owns)
    frozen.freeze()
    share(group, other)
    assert frozen.owns == was  # as far as it knows
    frozen.thaw()
    share(group, frozen, other)
    assert not frozen.fenced
    assert all(frozen.prove(number) for number in frozen.owns)


def test_what_a_member_that_leaves_owned_is_others_before_its_session_would_end(group: GroupSide) -> None:
    leaving, other = group.join(0), group.join(1)
    share(group, leaving, other)
    leaving.leave()
    group.await_that("whole", lambda: other.owns == ALL, within_s=group.session_s)


def test_a_source_partition_that_is_added_gets_an_owner(group: GroupSide) -> None:
    one, two = group.join(0), group.join(1)
    share(group, one, two)
    group.add_partition()
    share(group, one, two, of={*ALL, PARTITIONS})


def test_source_partitions_that_a_topic_made_anew_has_not_are_taken_away_where_it_was_seen_missing(
    group: GroupSide,
) -> None:
    one = group.join(0)
    share(group, one)
    group.recreate(2, seen=True)
    share(group, one, of={0, 1})


def test_whoever_holds_what_a_topic_made_anew_has_not_keeps_it_where_nobody_saw_the_topic_missing(
    group: GroupSide,
) -> None:
    one = group.join(0, looks_at_topics=False)
    share(group, one)
    group.recreate(2, seen=False)
    two = group.join(1, looks_at_topics=False)
    group.await_that("a share of what there is", lambda: two.owns and one.owns == ALL - two.owns)
    assert two.owns <= {0, 1}


def test_a_foreign_member_with_another_assignor_keeps_everybody_out_until_it_leaves(group: GroupSide) -> None:
    group.foreign_joins("range")
    one = group.join(0)
    with pytest.raises(AssertionError, match="there was no assignment"):
        group.await_that("assignment", lambda: one.owns, within_s=group.session_s)
    group.foreign_leaves()
    share(group, one)


def test_a_foreign_member_with_the_same_assignor_takes_a_share_that_is_nobodys_of_ours(
    group: GroupSide,
) -> None:
    one = group.join(0)
    share(group, one)
    group.foreign_joins("cooperative-sticky")
    group.await_that("share", lambda: len(one.owns) == PARTITIONS // 2)
    assert not any(one.prove(number) for number in ALL - one.owns)
    group.foreign_leaves()
    share(group, one)


def test_librdkafka_refuses_to_assign_what_is_assigned() -> None:
    """So no worker hears twice that it owns something; the core refuses it, too."""
    consumer = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0})
    place = TopicPartition("events", 0, 0)
    try:
        consumer.incremental_assign([place])
        with pytest.raises(KafkaException) as raised:
            consumer.incremental_assign([place])
        assert raised.value.args[0].code() == KafkaError._CONFLICT
    finally:
        consumer.close()
