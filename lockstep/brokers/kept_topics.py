"""What a broker is asked about topics that are Lockstep's to make. Whoever asks says what a failure means."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from typing import Any, TypeAlias

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from control_topic.topic import REPLICAS_MAX
from lockstep.errors import Failed

_client_log = logging.getLogger(f"{__name__}.librdkafka")

ASK_S = 10.0
POLL_S = 0.1

Refusal: TypeAlias = Callable[[str, str, str], Failed]
"""Makes the error of which topics, what could not be done with them ("be described"), and why."""


class KeptTopics:
    """`refusal`: what whoever asks says of a question that fails, which is raised."""

    def __init__(self, kafka: Mapping[str, str], refusal: Refusal) -> None:
        self._admin = AdminClient(dict(kafka), logger=_client_log)
        self._refusal = refusal

    def there(self, topics: Sequence[str]) -> dict[str, bool]:
        """Whether each is there."""
        request = self._admin.describe_topics(TopicCollection(list(topics)), request_timeout=ASK_S)
        missing = KafkaError.UNKNOWN_TOPIC_OR_PART
        return {
            topic: self._asked(topic, "be described", partial(future.result, ASK_S), ignore=missing)
            is not None
            for topic, future in request.items()
        }

    def settings(self, topics: Sequence[str], names: Sequence[str]) -> dict[str, dict[str, str]]:
        """Of each those of these names, without topics whose settings we may not read."""
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        if not resources:
            return {}
        refused, what = KafkaError.TOPIC_AUTHORIZATION_FAILED, "have its settings read"
        found: dict[str, dict[str, str]] = {}
        for resource, future in self._admin.describe_configs(resources, request_timeout=ASK_S).items():
            answer = self._asked(resource.name, what, partial(future.result, ASK_S), ignore=refused)
            if answer is not None:
                found[resource.name] = {name: answer[name].value for name in names}
        return found

    def make(
        self, topics: Sequence[str], *, partitions: int, config: Mapping[str, str], deadline_s: float
    ) -> None:
        """Make them, and wait until they are seen, at most until `deadline_s` of the monotonic clock."""
        named, what = ", ".join(topics), "be created"
        brokers = self._asked(named, what, lambda: self._admin.list_topics(timeout=ASK_S)).brokers
        replicas = max(1, min(REPLICAS_MAX, len(brokers)))
        wanted = [
            NewTopic(topic, num_partitions=partitions, replication_factor=replicas, config=dict(config))
            for topic in topics
        ]
        exists = KafkaError.TOPIC_ALREADY_EXISTS
        for topic, future in self._admin.create_topics(wanted, request_timeout=ASK_S).items():
            self._asked(topic, what, partial(future.result, ASK_S), ignore=exists)
        while not all(self.there(topics).values()):
            if time.monotonic() > deadline_s:
                raise self._refusal(named, "be found after it was created", "no answer in time")
            time.sleep(POLL_S)

    def _asked(self, topics: str, what: str, ask: Callable[[], Any], *, ignore: int | None = None) -> Any:
        try:
            return ask()
        except KafkaException as error:
            if error.args[0].code() == ignore:
                return None
            raise self._refusal(topics, what, error.args[0].str()) from error
        except FutureTimeout as error:
            raise self._refusal(topics, what, f"no answer within {ASK_S:.0f} s") from error
