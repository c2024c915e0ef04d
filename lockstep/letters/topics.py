"""The topics that letters go through: which are there, the topic of marks made and checked, what a source
topic keeps.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from control_topic.topic import REPLICAS_MAX
from lockstep.errors import Failed
from lockstep.letters.marks import mark_topic

log = logging.getLogger("lockstep.letters")
_client_log = logging.getLogger(f"{__name__}.librdkafka")

ASK_S = 10.0
MADE_S = 30.0
POLL_S = 0.1
CLEANUP, RETENTION, TIMES = "cleanup.policy", "retention.ms", "message.timestamp.type"
MESSAGE_BYTES = "max.message.bytes"
LOOKED_AT = (CLEANUP, RETENTION, TIMES, MESSAGE_BYTES)
KEPT = {CLEANUP: "compact"}
"""A mark's key is its own, and no mark is without a value: compaction takes none."""


class LetterTopics:
    """Asks the broker. Raises `Failed`."""

    def __init__(self, kafka: Mapping[str, str]) -> None:
        self._admin = AdminClient(dict(kafka), logger=_client_log)

    def there(self, topics: Sequence[str]) -> list[str]:
        """Those of them that are."""
        request = self._admin.describe_topics(TopicCollection(list(topics)), request_timeout=ASK_S)
        missing = KafkaError.UNKNOWN_TOPIC_OR_PART
        return [
            topic
            for topic, future in request.items()
            if self._asked(topic, "be described", partial(future.result, ASK_S), ignore=missing) is not None
        ]

    def ensure_marks(self, dead_letter_topic: str, *, make: bool) -> None:
        """The topic of marks is there, and keeps them for ever. `make`: it is made where it is missing."""
        topic = mark_topic(dead_letter_topic)
        if not self.there([topic]):
            if not make:
                raise Failed(
                    f"The topic {topic}, which says what was sent back, does not exist, and with "
                    "record.dead_letter_partitions = 0 it is not made: create it with one partition and "
                    "cleanup.policy=compact"
                )
            self._make(topic)
        found = self.settings([topic]).get(topic)
        if found is None:
            log.warning("the settings of %s may not be read: see that it keeps its records for ever", topic)
        elif found[CLEANUP] != KEPT[CLEANUP]:
            raise Failed(
                f"The topic {topic} says what was sent back, and may lose it ({CLEANUP} = "
                f"{found[CLEANUP]}): letters "
                f"would be sent twice. Set {CLEANUP} to {KEPT[CLEANUP]} (kafka-configs.sh --alter "
                "--entity-type topics "
                f"--entity-name {topic} --add-config ...), and try again"
            )

    def message_bytes_max(self, topics: Sequence[str]) -> int:
        """The largest message that all of them take, 0 where that is not known."""
        return min((int(one[MESSAGE_BYTES]) for one in self.settings(topics).values()), default=0)

    def settings(self, topics: Sequence[str]) -> dict[str, dict[str, str]]:
        """Of each what is looked at here, without topics whose settings we may not read."""
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        refused = KafkaError.TOPIC_AUTHORIZATION_FAILED
        found: dict[str, dict[str, str]] = {}
        for resource, future in self._admin.describe_configs(resources, request_timeout=ASK_S).items():
            answer = self._asked(
                resource.name, "have its settings read", partial(future.result, ASK_S), ignore=refused
            )
            if answer is not None:
                found[resource.name] = {name: answer[name].value for name in LOOKED_AT}
        return found

    def _make(self, topic: str) -> None:
        brokers = self._asked(topic, "be created", lambda: self._admin.list_topics(timeout=ASK_S)).brokers
        wanted = NewTopic(
            topic, num_partitions=1, replication_factor=max(1, min(REPLICAS_MAX, len(brokers))), config=KEPT
        )
        [future] = self._admin.create_topics([wanted], request_timeout=ASK_S).values()
        exists = KafkaError.TOPIC_ALREADY_EXISTS
        self._asked(topic, "be created", lambda: future.result(ASK_S), ignore=exists)
        until_s = time.monotonic() + MADE_S
        while not self.there([topic]):
            if time.monotonic() > until_s:
                raise Failed(f"The topic {topic} could not be found after it was created.")
            time.sleep(POLL_S)
        log.info("made the topic %s, which says what was sent back", topic)

    def _asked(self, topic: str, what: str, ask: Callable[[], Any], *, ignore: int | None = None) -> Any:
        try:
            return ask()
        except KafkaException as error:
            if error.args[0].code() == ignore:
                return None
            why = error.args[0].str()
        except FutureTimeout:
            why = f"no answer within {ASK_S:.0f} s"
        raise Failed(
            f"The topic {topic} could not {what}: {why}. Check source.bootstrap_servers, and the rights to "
            "it."
        )
