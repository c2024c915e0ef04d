"""Whether the topic of a name is still the one that it was: by its id, which a topic made again has anew.

A consumer does not always notice: librdkafka takes what the broker says of a topic for outdated where the
leader's epoch is lower than the one it knows. With a topic made again it begins at 0, and each restart of
the broker had added to it before.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection, Uuid
from confluent_kafka.admin import AdminClient, TopicDescription

log = logging.getLogger(__name__)
_client_log = logging.getLogger(f"{__name__}.librdkafka")

ASK_EVERY_S = 5.0
ANSWER_TIMEOUT_S = 10.0
NO_ID = str(Uuid(0, 0))
"""What brokers say that know no ids of topics (before 2.8): then nothing is noticed here."""
SILENCE = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)


class TopicWatch:
    """One topic's id. `kafka`: librdkafka properties. Connects when first asked; for one thread."""

    def __init__(self, kafka: Mapping[str, Any], topic: str) -> None:
        self._kafka = kafka
        self._topic = topic
        self._admin: AdminClient | None = None
        self._asked: Future[TopicDescription] | None = None
        self._ask_at_s = 0.0
        self._id = ""

    def begin(self, timeout_s: float) -> None:
        """Note which topic it is, before it is read. Raises `KafkaException` where nobody answers in time.

        That there is none, or that nobody may know, is left to whoever reads it.
        """
        self._id = ""
        try:
            description = self._ask(timeout_s).result(timeout_s)
        except FutureTimeout as error:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from error
        except KafkaException as error:
            if error.args[0].code() in SILENCE:
                raise
            return
        self._id = _id_of(description)

    def is_another(self) -> bool:
        """Whether the broker has said since that it is another topic. Never waits; asks now and then."""
        if self._asked is None:
            if time.monotonic() >= self._ask_at_s:
                self._asked = self._ask(ANSWER_TIMEOUT_S)
            return False
        if not self._asked.done():
            return False
        asked, self._asked = self._asked, None
        self._ask_at_s = time.monotonic() + ASK_EVERY_S
        try:
            found = _id_of(asked.result())
        except KafkaException as error:
            log.debug("the id of the topic %s was not told: %s", self._topic, error)
            return False
        before, self._id = self._id, found or self._id
        return bool(before and found and before != found)

    def close(self) -> None:
        self._admin = self._asked = None

    def _ask(self, timeout_s: float) -> Future[TopicDescription]:
        if self._admin is None:
            self._admin = AdminClient(dict(self._kafka), logger=_client_log)
        self._asked, self._ask_at_s = None, time.monotonic() + ASK_EVERY_S
        topics = TopicCollection([self._topic])
        return self._admin.describe_topics(topics, request_timeout=timeout_s)[self._topic]


def _id_of(description: TopicDescription) -> str:
    found = str(description.topic_id)
    return "" if found == NO_ID else found
