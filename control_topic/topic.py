"""The control topic's administration: made on purpose, with one partition, or refused."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from control_topic.creation import (
    REFUSALS,
    REPLICAS_MAX,
    Created,
    WantedTopic,
    create_topic,
    replicas_for,
)
from control_topic.errors import ControlTopicRefused, ControlTopicUnavailable

log = logging.getLogger(__name__)
_client_log = logging.getLogger(f"{__name__}.librdkafka")

RETENTION_MS = 7 * 24 * 3600 * 1000
"""Long enough to look into what happened over a long weekend; the protocol itself needs minutes."""

SETTINGS = {
    "cleanup.policy": "delete",
    "retention.ms": str(RETENTION_MS),
    "message.timestamp.type": "LogAppendTime",
    "compression.type": "uncompressed",
}
"""Times are the broker's: by a worker's clock that is wrong a message would be refused, or taken for old. The
broker unpacks what comes compressed, and then looks at its size again: a record of kilobytes that unpacks to
hundreds of megabytes in each reader does not get in."""

DENIALS = frozenset({KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED})
"""Errors of a user who may not create topics."""
REQUEST_TIMEOUT_S = 10.0
POLL_S = 0.1

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFacts:
    """What the broker says of the topic."""

    exists: bool
    partitions: int = 0
    topic_id: str = ""
    """Another one when the topic is made again."""


class ControlTopic:
    """Makes sure of the topic. `kafka` are librdkafka properties: bootstrap.servers, security."""

    def __init__(self, kafka: Mapping[str, Any], topic: str) -> None:
        self._topic = topic
        self._servers = str(kafka.get("bootstrap.servers", ""))
        self._admin = AdminClient(dict(kafka), logger=_client_log)

    def describe(self, *, timeout_s: float = REQUEST_TIMEOUT_S) -> TopicFacts:
        """What the broker says. Raises `ControlTopicUnavailable` where it does not answer."""
        request = self._admin.describe_topics(TopicCollection([self._topic]), request_timeout=timeout_s)
        try:
            description = request[self._topic].result(timeout_s)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return TopicFacts(exists=False)
            raise self._unavailable("be described", error.args[0].str()) from error
        except FutureTimeout as error:
            raise self._unavailable("be described", f"no answer within {timeout_s:.0f} s") from error
        return TopicFacts(
            exists=True, partitions=len(description.partitions), topic_id=str(description.topic_id)
        )

    def ensure(self, *, timeout_s: float) -> None:
        """Make the topic where it is missing, and wait until it can be used.

        Raises `ControlTopicRefused` for one that exists and will not do, `ControlTopicUnavailable` where the
        broker does not answer in time or does not let us.
        """
        deadline = time.monotonic() + timeout_s
        facts = self.describe(timeout_s=timeout_s)
        if not facts.exists:
            created = self.create(timeout_s=max(1.0, deadline - time.monotonic()))
            if created.left_out:
                log.warning("%s", without_settings(f"control topic {self._topic}", created))
        while not facts.exists:
            if time.monotonic() > deadline:
                raise self._unavailable("be found after it was created", f"waited {timeout_s:.0f} s")
            time.sleep(POLL_S)
            facts = self.describe(timeout_s=max(1.0, deadline - time.monotonic()))
        if facts.partitions != 1:
            raise ControlTopicRefused(
                f"The control topic {self._topic} has {facts.partitions} partitions and must have exactly 1,"
                " since its total order is what the protocol stands on: delete it, no record is lost by that,"
                " or name another one as control.topic."
            )
        self._look_at_settings(max(1.0, deadline - time.monotonic()))

    def create(self, *, timeout_s: float = REQUEST_TIMEOUT_S, validate_only: bool = False) -> Created:
        """Create the topic, or with `validate_only` ask the broker whether it would.

        Raises `ControlTopicRefused` with the command that creates it where the broker's policy forbids it,
        `ControlTopicUnavailable` where the broker does not answer in time or does not let us.
        """
        wanted = WantedTopic(topic=self._topic, partitions=1, replicas=REPLICAS_MAX, optional=SETTINGS)
        try:
            wanted = replace(wanted, replicas=replicas_for(self._admin, timeout_s=timeout_s))
            return create_topic(self._admin, wanted, timeout_s=timeout_s, validate_only=validate_only)
        except KafkaException as error:
            why = error.args[0].str()
            if error.args[0].code() in REFUSALS or error.args[0].code() in DENIALS:
                raise ControlTopicRefused(
                    f"The control topic {self._topic} could not be created: {why}. Have it created: "
                    f"{wanted.command(self._servers)}"
                ) from error
            raise self._unavailable("be created", why) from error
        except FutureTimeout as error:
            raise self._unavailable("be created", f"no answer within {timeout_s:.0f} s") from error

    def _look_at_settings(self, timeout_s: float) -> None:
        """Refuse what cannot work; of what only a stranger could abuse, say it."""
        resource = ConfigResource(ResourceType.TOPIC, self._topic)
        try:
            future: Future[dict[str, Any]]
            future = self._admin.describe_configs([resource], request_timeout=timeout_s)[resource]
            settings = future.result(timeout_s)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                return  # may use the topic and may not look at its settings
            raise self._unavailable("have its settings read", error.args[0].str()) from error
        except FutureTimeout as error:
            raise self._unavailable(
                "have its settings read", f"no answer within {timeout_s:.0f} s"
            ) from error
        policy = settings["cleanup.policy"].value
        if "compact" in policy:
            raise ControlTopicRefused(
                f"The control topic {self._topic} has cleanup.policy={policy}, which refuses messages without"
                " a key: set it to delete, or name another one as control.topic."
            )
        if settings["compression.type"].value != SETTINGS["compression.type"]:
            log.warning(
                "The control topic %s has compression.type=%s: whoever may write to it can make every worker"
                " unpack a small record to hundreds of megabytes. Set it to uncompressed, or delete the"
                " topic: it is made again, and no record is lost by that.",
                self._topic,
                settings["compression.type"].value,
            )

    def _unavailable(self, what: str, why: str) -> ControlTopicUnavailable:
        return ControlTopicUnavailable(
            f"The control topic {self._topic} could not {what}: {why}."
            " Check source.bootstrap_servers, the credentials, and that the broker is up."
        )


def without_settings(what: str, created: Created) -> str:
    """Return the sentence about a topic that was created without some of its settings."""
    left_out = ", ".join(created.left_out)
    return f"Created the {what} without {left_out}, which the broker refused: {created.reason}"
