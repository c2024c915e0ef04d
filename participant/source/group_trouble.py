"""An error of the consumer group that does not pass: said, shown, and after a bound the end of the run. Pure.

Times are seconds of a clock that does not go back.
"""

from __future__ import annotations

from dataclasses import dataclass

from confluent_kafka import KafkaError

SAY_AGAIN_S = 30.0
LASTS_MAX_S = 120.0
QUIET_S = 30.0
"""An error that lasts comes with each attempt to join, 1 to 3 s apart: none for so long is the end of it."""
FORBIDDEN = frozenset({KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED})
"""No waiting helps."""
PASSING = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TIMED_OUT,
        KafkaError._RESOLVE,
        KafkaError._WAIT_COORD,
        KafkaError._MAX_POLL_EXCEEDED,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
    }
)
"""Of a broker that is away, and of a group that is being made anew: the client sees to these itself."""
HINTS = {
    KafkaError.INCONSISTENT_GROUP_PROTOCOL: (
        "somebody is in the group with another partition.assignment.strategy than cooperative-sticky; a "
        "pipeline's group is its own (kafka-consumer-groups --describe --members names who is there): end "
        "that one"
    ),
    KafkaError.GROUP_MAX_SIZE_REACHED: "the group is full: end other members, or raise group.max.size",
}


@dataclass(slots=True)
class GroupTrouble:
    """What the consumer group has against this worker, and since when."""

    group: str
    alarm: str = ""
    """The sentence for the status, empty where all is well."""
    _since_s: float = 0.0
    """When the first error of this trouble came."""
    _said_s: float = 0.0
    """When the log was told of it last."""
    _met_s: float = 0.0
    """When the last error came."""

    def met(self, now_s: float, code: int, text: str) -> bool:
        """The group answered with an error; whether that is worth a line in the log."""
        hint = HINTS.get(code, "")
        is_new = not self.alarm
        self._met_s = now_s
        if is_new:
            self._since_s = now_s
        self.alarm = f"consumer group {self.group} does not take this worker in: {text}" + (
            hint and f"; {hint}"
        )
        if not is_new and now_s - self._said_s < SAY_AGAIN_S:
            return False
        self._said_s = now_s
        return True

    def over(self) -> None:
        """The group has given or taken something: it counts us as a member."""
        self.alarm = ""

    def final(self, now_s: float) -> str:
        """Why the run is to halt; empty while it may still pass. Asked often: by that it is over, too."""
        if now_s - self._met_s >= QUIET_S:
            self.over()
        lasts_s = now_s - self._since_s
        return f"{self.alarm}, for {lasts_s:.0f} s" if self.alarm and lasts_s >= LASTS_MAX_S else ""


def forbidden(group: str, text: str) -> str:
    """What to say of a right that is missing."""
    return (
        f"Kafka does not let this worker into consumer group {group}: {text}. Give the pipeline's user the "
        "right to read the group and the source topics, and start again."
    )
