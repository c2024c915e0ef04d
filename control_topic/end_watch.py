"""The control topic's end, asked for by another client than its consumer, which may hang. A shell.

A consumer of librdkafka can wait for ever for one answer, such as that to OffsetForLeaderEpoch, while its
broker answers all else.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo, OffsetSpec

log = logging.getLogger(__name__)
_client_log = logging.getLogger(f"{__name__}.librdkafka")

QUIET_S = 30.0
"""A consumer that brings nothing for so long is compared with the log's end."""
ANSWER_TIMEOUT_S = 10.0


class EndWatch:
    """One partition's end. `kafka`: librdkafka properties. Connects when first asked; for one thread."""

    def __init__(self, kafka: Mapping[str, Any], topic: str, partition: int) -> None:
        self._kafka = dict(kafka)
        self._place = TopicPartition(topic, partition)
        self._admin: AdminClient | None = None
        self._asked: Future[ListOffsetsResultInfo] | None = None
        self._reached = -1
        self._since_s = 0.0

    def hangs(self, reached: int) -> bool:
        """Return whether a consumer that has read all before `reached` hangs. Never waits.

        True once, and again after another `QUIET_S` in which nothing comes.
        """
        now_s = time.monotonic()
        if reached != self._reached:
            self._reached, self._since_s, self._asked = reached, now_s, None
            return False
        if self._asked is None:
            if now_s - self._since_s >= QUIET_S:
                self._asked = self._ask()
            return False
        if not self._asked.done():
            return False
        asked, self._asked, self._since_s = self._asked, None, now_s
        try:
            return bool(asked.result().offset > reached)
        except KafkaException as error:
            log.debug("The end of the control topic is not known: %s", error)
            return False

    def close(self) -> None:
        """Let go of the client."""
        self._admin = self._asked = None

    def _ask(self) -> Future[ListOffsetsResultInfo]:
        if self._admin is None:
            self._admin = AdminClient(self._kafka, logger=_client_log)
        asked = self._admin.list_offsets(
            {self._place: OffsetSpec.latest()},
            isolation_level=IsolationLevel.READ_UNCOMMITTED,
            request_timeout=ANSWER_TIMEOUT_S,
        )
        return asked[self._place]
