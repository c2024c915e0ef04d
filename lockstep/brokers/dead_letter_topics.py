"""The dead-letter topics: made where they are missing, or the run is refused, before anything starts.

A worker that finds out alone that there is none would take a transaction with it, and its successor the next.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from control_topic.topic import REPLICAS_MAX
from lockstep.driver.looking import Looking
from lockstep.errors import Failed

log = logging.getLogger("lockstep.run")
_client_log = logging.getLogger(f"{__name__}.librdkafka")

ASK_S = 10.0
POLL_S = 0.1
LOOK_EVERY_S = 5.0
JOIN_S = 15.0
MESSAGE_BYTES = "max.message.bytes"
CLEANUP = "cleanup.policy"
ROOM_BYTES = 64 * 1024
"""Beyond what a source topic takes: a dead letter says in headers where it was and why it is one."""
MESSAGE_BYTES_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsStanding:
    """What is there."""

    missing: tuple[str, ...]
    message_bytes: Mapping[str, int]
    """Topic -> max.message.bytes, without those that may not be read."""

    compacted: tuple[str, ...] = ()
    """Topics that keep only the last record of each key."""


class DeadLetterTopics:
    """`partitions`: of those that are made; 0 where none shall be."""

    def __init__(
        self, kafka: Mapping[str, str], topics: Sequence[str], sources: Sequence[str], *, partitions: int
    ) -> None:
        self._topics, self._sources, self._partitions = tuple(topics), tuple(sources), partitions
        self._admin = AdminClient(dict(kafka), logger=_client_log)
        self._trouble = ""
        self._looking = Looking("dead-letter-topics", self._keep, every_s=LOOK_EVERY_S, join_s=JOIN_S)

    def look(self) -> TopicsStanding:
        """What the broker says. Raises `Failed` where it does not."""
        missing = tuple(topic for topic, there in self._described().items() if not there)
        present = [topic for topic in self._topics if topic not in missing]
        settings = self._settings(present)
        return TopicsStanding(
            missing=missing,
            message_bytes={topic: int(found[MESSAGE_BYTES]) for topic, found in settings.items()},
            compacted=tuple(sorted(t for t, found in settings.items() if "compact" in found[CLEANUP])),
        )

    def wanted_bytes(self) -> int:
        """What a dead-letter topic must take, 0 where the source topics' settings may not be read."""
        found = [int(one[MESSAGE_BYTES]) for one in self._settings(self._sources).values()]
        return min(MESSAGE_BYTES_MAX, max(found) + ROOM_BYTES) if found else 0

    def ensure(self, *, timeout_s: float) -> int:
        """Make what is missing. The largest message that all of them take, 0 where that is not known.

        Raises `Failed` where one is missing that is not to be made, or cannot be made.
        """
        if not self._topics:
            return 0
        standing, wanted = self.look(), self.wanted_bytes()
        if standing.missing:
            self._make(standing.missing, wanted, time.monotonic() + timeout_s)
            standing = self.look()
        for topic, found in sorted(standing.message_bytes.items()):
            if found < wanted - ROOM_BYTES:
                log.warning("%s", too_small(topic, found, wanted))
        for topic in standing.compacted:
            log.warning("%s", compacted(topic))
        return min(standing.message_bytes.values(), default=0)

    def _make(self, topics: Sequence[str], message_bytes: int, deadline: float) -> None:
        if not self._partitions:
            raise Failed(
                f"The dead-letter topic {', '.join(topics)} does not exist: create it, or let the run make "
                "it with record.dead_letter_partitions = 1."
            )
        config = {"cleanup.policy": "delete", "retention.ms": "-1"}
        if message_bytes:
            config[MESSAGE_BYTES] = str(message_bytes)
        brokers = self._asked("be created", lambda: self._admin.list_topics(timeout=ASK_S)).brokers
        replicas = max(1, min(REPLICAS_MAX, len(brokers)))
        wanted = [
            NewTopic(topic, num_partitions=self._partitions, replication_factor=replicas, config=config)
            for topic in topics
        ]
        for topic, future in self._admin.create_topics(wanted, request_timeout=ASK_S).items():
            self._asked("be created", future.result, of=topic, ignore=KafkaError.TOPIC_ALREADY_EXISTS)
        while not all(self._described().values()):
            if time.monotonic() > deadline:
                raise self._failed("be found after it was created", "no answer in time")
            time.sleep(POLL_S)
        log.info("made the dead-letter topic %s", ", ".join(topics))

    # --- while the run goes on ----------------------------------------------------------------------

    def start(self) -> None:
        """Look at them from time to time, and make again what somebody deletes."""
        if self._topics and self._partitions:
            self._looking.start()

    def stop(self) -> None:
        self._looking.stop()

    def _keep(self) -> bool:
        try:
            missing = tuple(topic for topic, there in self._described().items() if not there)
            if missing:
                log.warning(
                    "the dead-letter topic %s is gone and is made again; what was in it is lost with it",
                    ", ".join(missing),
                )
                self._make(missing, self.wanted_bytes(), time.monotonic() + ASK_S)
            self._trouble = ""
        except Failed as error:
            if str(error) != self._trouble:  # a broker that is away is said by the Kafka clients, too
                log.debug("%s", error)
            self._trouble = str(error)
        return True

    # --- the broker ---------------------------------------------------------------------------------

    def _described(self) -> dict[str, bool]:
        """Whether each is there."""
        request = self._admin.describe_topics(TopicCollection(list(self._topics)), request_timeout=ASK_S)
        there: dict[str, bool] = {}
        for topic, future in request.items():
            answer = self._asked(
                "be described", future.result, of=topic, ignore=KafkaError.UNKNOWN_TOPIC_OR_PART
            )
            there[topic] = answer is not None
        return there

    def _settings(self, topics: Sequence[str]) -> dict[str, dict[str, str]]:
        """Of each what we look at, without those whose settings we may not read."""
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        if not resources:
            return {}
        found: dict[str, dict[str, str]] = {}
        for resource, future in self._admin.describe_configs(resources, request_timeout=ASK_S).items():
            answer = self._asked(
                "have its settings read",
                future.result,
                of=resource.name,
                ignore=KafkaError.TOPIC_AUTHORIZATION_FAILED,
            )
            if answer is not None:
                found[resource.name] = {name: answer[name].value for name in (MESSAGE_BYTES, CLEANUP)}
        return found

    def _asked(self, what: str, ask: Any, *, of: str = "", ignore: int | None = None) -> Any:
        try:
            return ask(ASK_S) if of else ask()
        except KafkaException as error:
            if ignore is not None and error.args[0].code() == ignore:
                return None
            raise self._failed(what, error.args[0].str(), of) from error
        except FutureTimeout as error:
            raise self._failed(what, f"no answer within {ASK_S:.0f} s", of) from error

    def _failed(self, what: str, why: str, topic: str = "") -> Failed:
        named = topic or ", ".join(self._topics)
        return Failed(
            f"The dead-letter topic {named} could not {what}: {why}. Create it yourself, or check the rights "
            "to it (record.dead_letter_topic, record.dead_letter_partitions)."
        )


def too_small(topic: str, found: int, wanted: int) -> str:
    """What is said of a topic that cannot take all that a source topic can hold."""
    return (
        f"the dead-letter topic {topic} has {MESSAGE_BYTES} = {found}, a source topic takes more: a larger "
        f"record that is rejected halts the run; set it to {wanted}"
    )


def compacted(topic: str) -> str:
    """What is said of a topic that loses the letters of records without a value."""
    return (
        f"the dead-letter topic {topic} has {CLEANUP} = compact: the dead letter of a record without a value "
        "has none either, and compaction removes it (delete.retention.ms); use cleanup.policy = delete, "
        "and a retention.ms of your own"
    )
