"""Which of the group consumer's errors end a worker, and as what."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from control_topic.messages import SourcePartition
from participant.source import membership
from participant.source.group_trouble import LASTS_MAX_S, QUIET_S, GroupTrouble
from participant.source.membership import Membership

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
