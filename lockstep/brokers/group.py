"""What a broker says of a consumer group, and where it keeps that. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from control_topic.messages import SourcePartition

OFFSETS_TOPIC = "__consumer_offsets"
"""Kafka's own: whoever leads a partition of it coordinates the groups whose names lead there."""
REBALANCING = frozenset({"PREPARING_REBALANCING", "COMPLETING_REBALANCING"})
SETTLED = frozenset({"STABLE", "EMPTY", "DEAD"})


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """A living member of the consumer group."""

    client: str
    host: str
    instance: str
    """Its static membership, or empty."""

    partitions: tuple[SourcePartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """A consumer group at one moment.

    While a group is rebalancing a broker tells who is in it; who holds what is as it was before, or nothing.
    """

    state: str
    """As confluent_kafka names it, STABLE for one at rest."""

    members: tuple[GroupMember, ...]

    @property
    def rebalancing(self) -> bool:
        return self.state in REBALANCING

    @property
    def settled(self) -> bool:
        """Whether who holds what is as it says."""
        return self.state in SETTLED


def coordinator_partition(group: str, count: int) -> int:
    """Which of `count` partitions of the offsets topic has the group: Java's hash of its name."""
    value = 0
    units = group.encode("utf-16-be")
    for at in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[at : at + 2], "big")) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >> 31 else value
    return (0 if signed == -(1 << 31) else abs(signed)) % count


def why_no_coordinator(group: str, leaders: Mapping[int, int], brokers: int) -> str:
    """What the offsets topic tells. `leaders`: partition -> broker, -1 for none; empty: no such topic."""
    if not leaders:
        return (
            f"its topic {OFFSETS_TOPIC} is not there and cannot be made; brokers that are up: {brokers}, and "
            "it takes offsets.topic.replication.factor of them (3 where nothing is set)"
        )
    number = coordinator_partition(group, len(leaders))
    leader = leaders.get(number, -1)
    if leader < 0:
        return f"{OFFSETS_TOPIC}:{number}, which has this group, has no leader: a broker is missing"
    return (
        f"broker {leader}, which leads {OFFSETS_TOPIC}:{number} and so has this group, does not answer for it"
    )
