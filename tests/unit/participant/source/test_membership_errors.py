"""Which of the group consumer's errors end a worker, and as what; and what it makes of what it is given."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition

from control_topic.messages import SourcePartition
from participant.source import membership
from participant.source.group_trouble import LASTS_MAX_S, PASSING, QUIET_S, GroupTrouble
from participant.source.membership import Membership, MembershipCallbacks

UNRESOLVED = "kafka-1.geofenced.internal:9092: Failed to resolve"
FENCED = "Fatal error: Broker: Static consumer fenced by other consumer with same group.instance.id"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (KafkaError(KafkaError._RESOLVE, UNRESOLVED), ""),
        (KafkaError(KafkaError._FATAL, FENCED, True), "fenced"),
        (KafkaError(KafkaError.FENCED_INSTANCE_ID), "fenced"),
        (KafkaError(KafkaError._FATAL, "something else", True), "failed"),
        (KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED), "refused"),
    ],
    ids=["a host's name", "librdkafka's words", "the broker's code", "another fatal one", "a missing right"],
)
def test_only_a_fenced_member_is_fenced(error: KafkaError, told: str) -> None:
    heard: list[str] = []
    callbacks = SimpleNamespace(
        **{name: lambda _reason, name=name: heard.append(name) for name in ("fenced", "failed", "refused")}
    )
    member: Any = SimpleNamespace(_callbacks=callbacks, _refused=False, _group="p")
    assert Membership._is_final(member, error) is bool(told)
    assert heard == ([told] if told else [])


@pytest.mark.parametrize(
    "partitions", [frozenset(), frozenset({SourcePartition("t", 0)})], ids=["none", "one"]
)
def test_an_error_of_the_group_that_came_once_is_no_alarm_for_ever_and_halts_nobody(
    partitions: frozenset[SourcePartition], monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [0.0]
    monkeypatch.setattr(membership, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    halted: list[str] = []
    trouble = GroupTrouble("p")
    member: Any = SimpleNamespace(
        _trouble=trouble,
        _callbacks=SimpleNamespace(refused=halted.append),
        _refused=False,
        partitions=partitions,
    )
    trouble.met(0.0, KafkaError.GROUP_MAX_SIZE_REACHED, "JoinGroup failed")
    Membership._judge_trouble(member)
    assert trouble.alarm
    now_s[0] = QUIET_S
    Membership._judge_trouble(member)
    assert trouble.alarm == ""
    now_s[0] = LASTS_MAX_S + 1
    Membership._judge_trouble(member)
    assert halted == []


def polled(*errors: KafkaError, topic: str | None = None) -> GroupTrouble:
    """What a member's trouble is after its consumer has told of these, one poll each."""
    told = iter(errors)
    trouble = GroupTrouble("p")
    member: Any = SimpleNamespace(
        _trouble=trouble,
        _is_final=lambda _error: False,
        _consumer=SimpleNamespace(
            poll=lambda _timeout_s: SimpleNamespace(error=lambda: next(told), topic=lambda: topic)
        ),
    )
    for _ in errors:
        Membership._poll(member, 0.0)
    return trouble


def test_an_error_of_the_group_is_an_alarm_and_one_that_passes_is_none(
    caplog: pytest.LogCaptureFixture,
) -> None:
    foreign = KafkaError(KafkaError.INCONSISTENT_GROUP_PROTOCOL)
    with caplog.at_level(logging.WARNING):
        assert not polled(*map(KafkaError, sorted(PASSING))).alarm
        assert not polled(foreign, topic="events").alarm, "that is a source partition's affair"
        assert caplog.messages == []
        alarm = polled(foreign, foreign).alarm
    assert "another partition.assignment.strategy" in alarm
    assert caplog.messages == [alarm], "once, and not at each attempt to join"


def test_what_is_given_has_the_tables_offset_or_none_and_nothing_is_read_of_it_here() -> None:
    """Of what the table has no offset of nobody knows where its log begins: it is not guessed."""
    given: list[dict[SourcePartition, int | None]] = []
    done: list[tuple[str, list[tuple[int, int]]]] = []

    def note(what: str) -> Any:
        return lambda places: done.append((what, [(p.partition, p.offset) for p in places]))

    callbacks = MembershipCallbacks(
        committed=lambda: {SourcePartition("t", 0): 40},
        assigned=lambda offsets: given.append(dict(offsets)),
        **{name: pytest.fail for name in ("revoked", "fenced", "failed", "refused")},
    )
    member: Any = SimpleNamespace(
        _trouble=GroupTrouble("p"),
        _callbacks=callbacks,
        _consumer=SimpleNamespace(incremental_assign=note("assign"), pause=note("pause")),
        partitions=frozenset(),
    )
    Membership._on_assign(member, member._consumer, [TopicPartition("t", 0), TopicPartition("t", 1)])
    assert given == [{SourcePartition("t", 0): 40, SourcePartition("t", 1): None}]
    assert member.partitions == frozenset(given[0])
    assert done == [("assign", [(0, 0), (1, 0)]), ("pause", [(0, 0), (1, 0)])]
