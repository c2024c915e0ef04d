"""The topics that letters go through: which are there, the topic of marks made and checked, what a source
topic keeps.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence

from lockstep.brokers.kept_topics import KeptTopics
from lockstep.errors import Failed
from lockstep.letters.marks import mark_topic

log = logging.getLogger("lockstep.letters")

MADE_S = 30.0
CLEANUP, RETENTION, TIMES = "cleanup.policy", "retention.ms", "message.timestamp.type"
MESSAGE_BYTES = "max.message.bytes"
LOOKED_AT = (CLEANUP, RETENTION, TIMES, MESSAGE_BYTES)
KEPT = {CLEANUP: "compact"}
"""A mark's key is its own, and no mark is without a value: compaction takes none."""


class LetterTopics:
    """Asks the broker. Raises `Failed`."""

    def __init__(self, kafka: Mapping[str, str]) -> None:
        self._broker = KeptTopics(kafka, _refusal)

    def there(self, topics: Sequence[str]) -> list[str]:
        """Those of them that are."""
        return [topic for topic, there in self._broker.there(topics).items() if there]

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
                f"The topic {topic} says what was sent back, and may lose it ({CLEANUP} = {found[CLEANUP]}): "
                f"letters would be sent twice. Set {CLEANUP} to {KEPT[CLEANUP]} (kafka-configs.sh --alter "
                f"--entity-type topics --entity-name {topic} --add-config ...), and try again"
            )

    def message_bytes_max(self, topics: Sequence[str]) -> int:
        """The largest message that all of them take, 0 where that is not known."""
        return min((int(one[MESSAGE_BYTES]) for one in self.settings(topics).values()), default=0)

    def settings(self, topics: Sequence[str]) -> dict[str, dict[str, str]]:
        """Of each what is looked at here, without topics whose settings we may not read."""
        return self._broker.settings(topics, LOOKED_AT)

    def _make(self, topic: str) -> None:
        self._broker.make([topic], partitions=1, required=KEPT, deadline_s=time.monotonic() + MADE_S)
        log.info("made the topic %s, which says what was sent back", topic)


def _refusal(topics: str, what: str, why: str) -> Failed:
    return Failed(
        f"The topic {topics} could not {what}: {why}. Check source.bootstrap_servers, and the rights to it."
    )
