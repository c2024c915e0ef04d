"""What is known of the source topics, and why it may not be: facts and errors, without a client of Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from control_topic.messages import SourcePartition


class SourceTopicsError(Exception):
    """Base of all errors that concern the source topics. The message is for an operator."""


class SourceRefused(SourceTopicsError):
    """Asking again will not help: the sentence says what to change."""


class MissingTopic(SourceRefused):
    """A source topic, or a partition of it, does not exist."""


class Unauthorized(SourceRefused):
    """The broker does not know these credentials, or does not allow them what is needed."""


class SourceUnavailable(SourceTopicsError):
    """The broker did not answer within the deadline. Try again later."""


class NoCoordinator(SourceUnavailable):
    """The broker answers, and nobody coordinates the consumer group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFacts:
    cluster: str
    """The Kafka cluster id."""
    topics: Mapping[str, str]
    """Topic -> topic id, empty where the broker has none."""
    partitions: tuple[SourcePartition, ...]
    """Every source partition that exists, in the order of `SourceTopics`' topics."""
