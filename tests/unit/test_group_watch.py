"""A member of the pipeline's consumer group that is no worker of it: when it is said, and final."""

from __future__ import annotations

from control_topic.messages import SourcePartition
from lockstep.group_watch import HELD_MAX_S, LOOK_EVERY_S, SAID_AFTER_S, Held, strangers
from table.source import GroupMember

P0, P1 = SourcePartition("events", 0), SourcePartition("events", 1)


def member(instance: str, *partitions: SourcePartition) -> GroupMember:
    return GroupMember(client="console", host="/10.0.0.7", instance=instance, partitions=partitions)


OURS = member("orders-0", P0)


def test_workers_are_known_by_their_slot_and_whoever_holds_nothing_disturbs_nobody() -> None:
    guests = [member(name, P1) for name in ("", "orders", "orders-x", "orders-0-1", "borders-0", "orders.0")]
    assert strangers([OURS, member("orders-17", P1), member(""), *guests], "orders") == guests


def test_a_guest_who_stays_is_said_once_and_then_ends_the_run() -> None:
    held, said = Held("orders"), []
    at_s = 0.0
    while not said or not said[-1][1]:
        found = held.look([OURS, member("", P1)], at_s)
        said += [found] if found[0] else []
        at_s += LOOK_EVERY_S
    (first, _), (last, final) = said
    assert final
    assert at_s - LOOK_EVERY_S == HELD_MAX_S
    assert first.startswith(
        "events:1 cannot be read: consumer group orders has given them to console at /10.0.0.7"
    )
    assert f"(for {SAID_AFTER_S:.0f} s)" in first
    assert f"(for {HELD_MAX_S:.0f} s)" in last


def test_guests_who_come_and_go_are_borne() -> None:
    held = Held("orders")
    for turn in range(100):
        guest = [member("", P1)] if turn % 3 else []
        assert held.look([OURS, *guest], turn * LOOK_EVERY_S) == ("", False)


def test_another_source_partition_is_another_time() -> None:
    held = Held("orders")
    for turn in range(100):
        assert held.look([member("", P0 if turn % 4 < 2 else P1)], turn * LOOK_EVERY_S) == ("", False)


def test_many_source_partitions_are_counted() -> None:
    held, many = Held("orders"), [SourcePartition("events", number) for number in range(12)]
    held.look([member("", *many)], 0.0)
    said, _ = held.look([member("", *many)], SAID_AFTER_S)
    assert said.startswith("events:0, events:1, events:2, events:3, events:4 and 7 more cannot be read")
