"""The dead-letter topics: made where they are missing, or the run is refused, before anything starts.

A worker that finds out alone that there is none would take a transaction with it, and its successor the next.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from control_topic.creation import Created
from lockstep.brokers.kept_topics import ASK_S, KeptTopics
from lockstep.driver.looking import Looking
from lockstep.errors import Failed

log = logging.getLogger("lockstep.run")

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
        self._broker = KeptTopics(kafka, _refusal)
        self._trouble = ""
        self._looking = Looking("dead-letter-topics", self._keep, every_s=LOOK_EVERY_S, join_s=JOIN_S)

    def look(self) -> TopicsStanding:
        """What the broker says. Raises `Failed` where it does not."""
        missing = self._missing()
        present = [topic for topic in self._topics if topic not in missing]
        settings = self._broker.settings(present, (MESSAGE_BYTES, CLEANUP))
        return TopicsStanding(
            missing=missing,
            message_bytes={topic: int(found[MESSAGE_BYTES]) for topic, found in settings.items()},
            compacted=tuple(sorted(t for t, found in settings.items() if "compact" in found[CLEANUP])),
        )

    def wanted_bytes(self) -> int:
        """What a dead-letter topic must take, 0 where the source topics' settings may not be read."""
        settings = self._broker.settings(self._sources, (MESSAGE_BYTES, CLEANUP))
        found = [int(one[MESSAGE_BYTES]) for one in settings.values()]
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

    def _make(self, topics: Sequence[str], message_bytes: int, deadline_s: float) -> None:
        if not self._partitions:
            raise Failed(
                f"The dead-letter topic {', '.join(topics)} does not exist: create it, or let the run make "
                "it with record.dead_letter_partitions = 1."
            )
        settings = _settings(message_bytes)
        self._broker.make(topics, partitions=self._partitions, optional=settings, deadline_s=deadline_s)
        log.info("made the dead-letter topic %s", ", ".join(topics))

    def try_to_make(self, topic: str) -> Created:
        """Ask the broker whether it would create a topic that is missing. Raises `Failed` if it would not."""
        settings = _settings(self.wanted_bytes())
        return self._broker.try_to_make(topic, partitions=self._partitions, optional=settings)

    # --- while the run goes on ----------------------------------------------------------------------

    def start(self) -> None:
        """Look at them from time to time, and make again what somebody deletes."""
        if self._topics and self._partitions:
            self._looking.start()

    def stop(self) -> None:
        self._looking.stop()

    def _keep(self) -> bool:
        try:
            missing = self._missing()
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

    def _missing(self) -> tuple[str, ...]:
        return tuple(topic for topic, there in self._broker.there(self._topics).items() if not there)


def _settings(message_bytes: int) -> dict[str, str]:
    settings = {CLEANUP: "delete", "retention.ms": "-1"}
    return {**settings, MESSAGE_BYTES: str(message_bytes)} if message_bytes else settings


def _refusal(topics: str, what: str, why: str) -> Failed:
    return Failed(
        f"The dead-letter topic {topics} could not {what}: {why}. Create it yourself, or check the rights "
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
