"""Messages that the control topic refuses: when that is an alarm, when the end, and when it is over."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from control_topic.refused_writes import LASTS_MAX_S, OVER_S, RefusedWrites

EVERY_S = 5


@pytest.fixture
def refused() -> RefusedWrites:
    return RefusedWrites("events-control")


def test_a_refusal_is_an_alarm_with_what_helps_and_after_a_bound_the_end(refused: RefusedWrites) -> None:
    assert refused.alarm(0) == refused.final(0) == ""
    ends = []
    for now_s in range(10, 200, EVERY_S):
        refused.met(now_s, KafkaError.INVALID_RECORD, "Broker: …")
        assert "events-control does not take" in refused.alarm(now_s)
        assert "cleanup.policy=compact" in refused.alarm(now_s)
        ends += [now_s] if refused.final(now_s) else []
    assert ends[0] == 10 + LASTS_MAX_S


def test_one_refusal_alone_passes(refused: RefusedWrites) -> None:
    refused.met(0, KafkaError.MSG_SIZE_TOO_LARGE, "too large")
    assert refused.alarm(OVER_S - 1) and not refused.final(LASTS_MAX_S)
    assert not refused.alarm(OVER_S)
    refused.met(LASTS_MAX_S + 1, KafkaError.MSG_SIZE_TOO_LARGE, "too large")
    assert not refused.final(LASTS_MAX_S + 1), "it was over meanwhile"


@pytest.mark.parametrize("code", [KafkaError._MSG_TIMED_OUT, KafkaError.UNKNOWN_TOPIC_OR_PART])
def test_a_broker_that_is_away_and_a_topic_that_is_made_again_are_no_refusal(
    refused: RefusedWrites, code: int
) -> None:
    for now_s in range(0, 1_000, EVERY_S):
        refused.met(now_s, code, "…")
    assert not refused.alarm(1_000) and not refused.final(1_000)
