"""Messages that the control topic does not take, for a reason that does not pass: said, shown, and after a
bound the end of the run. Pure. Times are seconds of a clock that does not go back.

A producer tells of failures only, so that what is over is known by its silence: what is not answered is said
again within seconds, for as long as it matters.
"""

from __future__ import annotations

from dataclasses import dataclass

from confluent_kafka import KafkaError

LASTS_MAX_S = 120.0
OVER_S = 60.0
"""So long without another refusal, and it is over."""
HINTS = {
    KafkaError.INVALID_RECORD: "a topic with cleanup.policy=compact takes none of them: set it to delete",
    KafkaError.MSG_SIZE_TOO_LARGE: "set the topic's max.message.bytes to the broker's default or more",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "give the pipeline's user the right to write to it",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "give the pipeline's user the right to write to it",
    KafkaError.POLICY_VIOLATION: "the broker has a policy against them",
    KafkaError.INVALID_TIMESTAMP: "set the topic's message.timestamp.before.max.ms and .after.max.ms wider",
    KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT: "the topic's message format is too old for headers",
}
"""What no waiting helps against, and what does."""


@dataclass(slots=True)
class RefusedWrites:
    """Of all writers of one process."""

    topic: str
    _said: str = ""
    _since_s: float = 0.0
    _last_s: float = 0.0

    def met(self, now_s: float, code: int, text: str) -> None:
        """A message was not delivered. Errors that pass, as of a broker that is away, are not counted."""
        hint = HINTS.get(code)
        if hint is None:
            return
        if not self.alarm(now_s):
            self._since_s = now_s
        self._said = f"the control topic {self.topic} does not take this worker's messages: {text}; {hint}"
        self._last_s = now_s

    def alarm(self, now_s: float) -> str:
        """The sentence for the status, empty where all is well."""
        return self._said if self._said and now_s - self._last_s < OVER_S else ""

    def final(self, now_s: float) -> str:
        """Why the run is to halt; empty while it may still pass."""
        alarm, lasts_s = self.alarm(now_s), self._last_s - self._since_s
        return f"{alarm} (for {lasts_s:.0f} s)" if alarm and lasts_s >= LASTS_MAX_S else ""
