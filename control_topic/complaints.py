"""What goes wrong again and again while something is away: counted, and said now and then."""

from __future__ import annotations

import logging
import time

from confluent_kafka import KafkaError

log = logging.getLogger("control_topic.kafka")

COMPLAINT_INTERVAL_S = 10.0


class Complaints:
    """Counts errors of one activity, keeps the last, and logs one in ten seconds."""

    def __init__(self, activity: str) -> None:
        self._activity = activity
        self._quiet_until = 0.0
        self._unsaid = 0
        self.count = 0
        self.last = ""

    def hear(self, error: KafkaError) -> None:
        self.say(f"{error.name()}: {error.str()}")

    def say(self, reason: str) -> None:
        self.count += 1
        self.last = reason
        now = time.monotonic()
        if now < self._quiet_until:
            self._unsaid += 1
            return
        unsaid = f" ({self._unsaid} more since the last such line)" if self._unsaid else ""
        log.warning("Trouble %s: %s%s. It is tried again.", self._activity, reason, unsaid)
        self._quiet_until, self._unsaid = now + COMPLAINT_INTERVAL_S, 0
