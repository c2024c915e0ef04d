"""How often the client tells of a group error that lasts: what participant/source/group_trouble.py counts
on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from statistics import median

import pytest
from confluent_kafka import Consumer, KafkaError

from lockstep.brokers.local import Broker
from participant.source import membership
from participant.source.group_trouble import QUIET_S, GroupTrouble
from participant.source.membership import Membership
from tests.broker_fixture import create_topic
from tests.harness import await_that

MEMBERS_MAX = 2
"""And as many source partitions."""
TIMES = 6


@pytest.fixture(scope="module")
def small_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Its groups have two members at most."""
    properties = {"group.max.size": str(MEMBERS_MAX)}
    with Broker(tmp_path_factory.mktemp("small-groups"), heap_mb=256, properties=properties) as running:
        yield running


class Others:
    """Members of the group that are not ours, each with an assignor of its own choice."""

    def __init__(self, servers: str, group: str, assignor: str, count: int) -> None:
        settings = {
            "bootstrap.servers": servers,
            "group.id": group,
            "partition.assignment.strategy": assignor,
        }
        self._consumers = [Consumer(settings) for _ in range(count)]
        for consumer in self._consumers:
            consumer.subscribe([group])

    def are_in(self) -> bool:
        """And stay: in a rebalance that is still to come, one more may take the place of whoever is late."""
        self.poll()
        given = [len(consumer.assignment()) for consumer in self._consumers]
        return all(given) and sum(given) == MEMBERS_MAX

    def poll(self) -> None:
        for consumer in self._consumers:
            consumer.poll(0.05)

    def close(self) -> None:
        for consumer in self._consumers:
            consumer.close()


@pytest.mark.parametrize(
    ("assignor", "count", "code"),
    [
        ("range", 1, KafkaError.INCONSISTENT_GROUP_PROTOCOL),
        ("cooperative-sticky", MEMBERS_MAX, KafkaError.GROUP_MAX_SIZE_REACHED),
    ],
    ids=["another assignor", "a full group"],
)
def test_an_error_that_lasts_comes_again_much_sooner_than_it_is_taken_to_be_over(
    small_broker: Broker, monkeypatch: pytest.MonkeyPatch, assignor: str, count: int, code: int
) -> None:
    met: list[tuple[float, int]] = []
    meet = GroupTrouble.met

    def noting(trouble: GroupTrouble, now_s: float, code: int, text: str) -> bool:
        met.append((time.monotonic(), code))
        return meet(trouble, now_s, code, text)

    monkeypatch.setattr(GroupTrouble, "met", noting)
    servers, topic = small_broker.bootstrap_servers, f"group-trouble-{assignor}"
    create_topic(servers, topic, partitions=MEMBERS_MAX)
    with ExitStack() as opened:
        others = Others(servers, topic, assignor, count)
        opened.callback(others.close)
        await_that("assignment of the others", others.are_in)
        member = _member(servers, topic)
        opened.callback(member.leave, 20)
        member.start()

        def often() -> bool:
            others.poll()
            return len(met) >= TIMES

        await_that("the same error many times", often)
        assert member.alarms
    assert {code for _, code in met} == {code}
    gaps_s = [later - earlier for (earlier, _), (later, _) in pairwise(met)]
    assert median(gaps_s) < QUIET_S / 3 and max(gaps_s) < QUIET_S, gaps_s


def _member(servers: str, topic: str) -> Membership:
    def ignore(_: object) -> None:
        """Nobody is there to be told."""

    return Membership(
        kafka={"bootstrap.servers": servers},
        group=topic,
        instance="slot-0",
        topics=[topic],
        session_timeout_ms=6_000,
        callbacks=membership.MembershipCallbacks(
            committed=dict,
            assigned=ignore,
            revoked=ignore,
            fenced=ignore,
            failed=ignore,
            refused=ignore,
        ),
    )
