"""What a broker is asked about topics that are Lockstep's to make. Whoever asks says what a failure means."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from typing import Any, TypeAlias

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from control_topic.creation import Created, WantedTopic, create_topic, replicas_for
from control_topic.topic import without_settings
from lockstep.errors import Failed

log = logging.getLogger("lockstep.run")
_client_log = logging.getLogger(f"{__name__}.librdkafka")

ASK_S = 10.0
POLL_S = 0.1
CREATED = "be created"

Refusal: TypeAlias = Callable[[str, str, str], Failed]
"""Makes the error of which topics, what could not be done with them ("be described"), and why."""


class KeptTopics:
    """`refusal`: what whoever asks says of a question that fails, which is raised."""

    def __init__(self, kafka: Mapping[str, str], refusal: Refusal) -> None:
        self._admin = AdminClient(dict(kafka), logger=_client_log)
        self._servers = str(kafka.get("bootstrap.servers", ""))
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
        self,
        topics: Sequence[str],
        *,
        partitions: int,
        optional: Mapping[str, str] | None = None,
        required: Mapping[str, str] | None = None,
        deadline_s: float,
    ) -> None:
        """Create them, and wait until they are seen, at most until `deadline_s` of the monotonic clock.

        `optional`: settings that are left out, with a warning, where the broker's policy forbids them.
        """
        replicas = self._replicas(", ".join(topics))
        for topic in topics:
            created = self._create(
                WantedTopic(
                    topic=topic,
                    partitions=partitions,
                    replicas=replicas,
                    optional=optional or {},
                    required=required or {},
                )
            )
            if created.left_out:
                log.warning("%s", without_settings(f"topic {topic}", created))
        while not all(self.there(topics).values()):
            if time.monotonic() > deadline_s:
                raise self._refusal(", ".join(topics), "be found after it was created", "no answer in time")
            time.sleep(POLL_S)

    def try_to_make(
        self, topic: str, *, partitions: int, optional: Mapping[str, str] | None = None
    ) -> Created:
        """Ask the broker whether it would create a topic, and create none. Raises what `make` raises."""
        replicas = self._replicas(topic)
        wanted = WantedTopic(topic=topic, partitions=partitions, replicas=replicas, optional=optional or {})
        return self._create(wanted, validate_only=True)

    def _replicas(self, topics: str) -> int:
        found: int = self._asked(topics, CREATED, partial(replicas_for, self._admin, timeout_s=ASK_S))
        return found

    def _create(self, wanted: WantedTopic, *, validate_only: bool = False) -> Created:
        ask = partial(create_topic, self._admin, wanted, timeout_s=ASK_S, validate_only=validate_only)
        advice = f"; have it created: {wanted.command(self._servers)}"
        created: Created = self._asked(wanted.topic, CREATED, ask, advice=advice)
        return created

    def _asked(
        self, topics: str, what: str, ask: Callable[[], Any], *, ignore: int | None = None, advice: str = ""
    ) -> Any:
        try:
            return ask()
        except KafkaException as error:
            if error.args[0].code() == ignore:
                return None
            raise self._refusal(topics, what, f"{error.args[0].str()}{advice}") from error
        except FutureTimeout as error:
            raise self._refusal(topics, what, f"no answer within {ASK_S:.0f} s") from error
