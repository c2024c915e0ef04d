"""Topics that Lockstep creates, also where the broker's policy forbids some of their settings. A shell.

A `create.topic.policy.class.name` of the broker (KIP-108) may refuse a setting, a size or a replication
factor. What is optional is then left out, one attempt after another, and the caller logs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

REPLICAS_MAX = 3
BROKERS_DEFAULT = -1
"""Replication factor for which the broker takes its own default."""
REFUSALS = frozenset(
    {KafkaError.POLICY_VIOLATION, KafkaError.INVALID_CONFIG, KafkaError.INVALID_REPLICATION_FACTOR}
)
"""Errors after which another attempt may succeed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedTopic:
    """A topic as it should be created."""

    topic: str
    partitions: int
    replicas: int
    optional: Mapping[str, str] = field(default_factory=dict)
    """Settings that may be left out."""
    required: Mapping[str, str] = field(default_factory=dict)
    """Settings without which the topic is of no use."""

    def command(self, servers: str) -> str:
        """Return the command by which an operator creates it."""
        settings = {**self.required, **self.optional}
        configs = "".join(f" --config {name}={value}" for name, value in settings.items())
        return (
            f"kafka-topics.sh --bootstrap-server {servers} --create --topic {self.topic} "
            f"--partitions {self.partitions} --replication-factor {self.replicas}{configs}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """Settings that the broker refused before it created the topic."""

    left_out: tuple[str, ...] = ()
    """Settings that the topic was created without; `replication factor` among them."""
    reason: str = ""
    """The broker's own words."""


def replicas_for(admin: AdminClient, *, timeout_s: float) -> int:
    """Return the replication factor of a new topic: one replica per broker, at most `REPLICAS_MAX`.

    Raises `KafkaException`.
    """
    return max(1, min(REPLICAS_MAX, len(admin.list_topics(timeout=timeout_s).brokers)))


def create_topic(
    admin: AdminClient, wanted: WantedTopic, *, timeout_s: float, validate_only: bool = False
) -> Created:
    """Create a topic, without what the broker forbids. `timeout_s` bounds each of at most six attempts.

    Raises `KafkaException` with the broker's first refusal where no attempt succeeds, or with what else went
    wrong, and `concurrent.futures.TimeoutError` where the broker does not answer.
    """
    everything = tuple(wanted.optional)
    refusal = _attempt(admin, wanted, everything, wanted.replicas, timeout_s, validate_only)
    if refusal is None:
        return Created()
    reason = refusal.args[0].str()
    for optional, replicas in _fewer(wanted, reason):
        if _attempt(admin, wanted, optional, replicas, timeout_s, validate_only) is None:
            left_out = tuple(name for name in everything if name not in optional)
            default = ("replication factor",) if replicas != wanted.replicas else ()
            return Created(left_out=left_out + default, reason=reason)
    raise refusal


def _attempt(
    admin: AdminClient,
    wanted: WantedTopic,
    optional: Sequence[str],
    replicas: int,
    timeout_s: float,
    validate_only: bool,
) -> KafkaException | None:
    """Return the broker's refusal, None where the topic is there. Raises what fewer settings do not help."""
    settings = {**wanted.required, **{name: wanted.optional[name] for name in optional}}
    asked = NewTopic(
        wanted.topic, num_partitions=wanted.partitions, replication_factor=replicas, config=settings
    )
    futures = admin.create_topics([asked], request_timeout=timeout_s, validate_only=validate_only)
    try:
        futures[wanted.topic].result(timeout_s)
    except KafkaException as error:
        code = error.args[0].code()
        if code in REFUSALS:
            return error
        if code != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
    return None


def _fewer(wanted: WantedTopic, reason: str) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the optional settings and the replication factor of further attempts, the most complete first.

    `reason`: the broker's, which mostly names the setting that it forbids.
    """
    everything = tuple(wanted.optional)
    tried = [(everything, wanted.replicas)]
    for optional in (tuple(name for name in everything if name not in reason), everything, ()):
        for replicas in (wanted.replicas, BROKERS_DEFAULT):
            if (optional, replicas) not in tried:
                tried.append((optional, replicas))
                yield optional, replicas
