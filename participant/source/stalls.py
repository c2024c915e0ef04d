"""What keeps a source partition from being read: damage that does not pass, refusals, silence. Pure.

Time is that which was spent waiting for the client, in seconds: a thread that was busy elsewhere, or had no
room, has not waited for anybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from confluent_kafka import KafkaError

from control_topic.messages import SourcePartition
from control_topic.unreadable import UNREADABLE
from participant.records.raw import RawBatch
from participant.source.fetcher import Notice

DAMAGED = UNREADABLE | {KafkaError.INVALID_MSG_SIZE}
"""The bytes that came are no records: the same is read again, since a broker or a network may have erred."""
FORBIDDEN = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }
)
DAMAGED_MAX = 3
"""So often in a row may the same place be damaged."""
LOOK_EVERY_S = 5.0
ALARM_S = 30.0
"""Lag, and not one record for so long: said in log and status."""
RENEW_S = 60.0
"""Lag, and not one record for so long: another client reads on, in case that this one hangs by itself."""
STALLED_MAX_S = 300.0
"""And after so long it is taken for final."""
OVERSIZED_MAX = 3
"""Looks in a row at which an answer was larger than the client takes."""
DEAF_S = 120.0
"""A client that has brought nothing of any source partition for so long, and cannot ask its broker either."""


@dataclass(slots=True, kw_only=True)
class Standstill:
    """How one source partition stands still, if it does."""

    since_s: float = 0.0
    """What had been waited (`Stalls.waited_s`) when its records or its end last came."""
    damaged_at: int = -1
    """The offset that could not be read, -1 for none."""
    damaged: int = 0
    """How often in a row it could not."""
    said: str = ""
    """What the log was told of it last."""
    renewed: bool = False
    """Another client has been created since the standstill began."""

    def came(self, waited_s: float) -> None:
        """Records, or the log's end."""
        self.since_s, self.said, self.renewed = waited_s, "", False

    def is_final(self, offset: int) -> bool:
        """Damage at this offset: whether it has been there too often."""
        self.damaged = self.damaged + 1 if offset == self.damaged_at else 1
        self.damaged_at = offset
        return self.damaged >= DAMAGED_MAX


@dataclass(slots=True)
class Stalls:
    """The standstills of all source partitions that are read here."""

    waited_s: float = 0.0
    """For how long records could have come, so far. What a pause takes does not count."""
    alarms: dict[SourcePartition, str] = field(default_factory=dict)
    """Sentences for the status. Replaced whole, since other threads read it."""
    heard_s: float = 0.0
    """What had been waited when the client last brought anything, or could ask its broker."""
    oversized: int = 0
    """Looks in a row at which an answer was larger than the client takes."""
    _looked_s: float = 0.0

    @property
    def is_deaf(self) -> bool:
        """Whether the client may be at fault itself."""
        return self.waited_s - self.heard_s >= DEAF_S

    def heard(self) -> None:
        self.heard_s = self.waited_s

    def waited(self, for_s: float) -> bool:
        """Whether it is time to look for what stands still."""
        self.waited_s += for_s
        if self.waited_s - self._looked_s < LOOK_EVERY_S:
            return False
        self._looked_s = self.waited_s
        return True

    def raise_alarm(self, partition: SourcePartition, sentence: str) -> None:
        self.alarms = {**self.alarms, partition: sentence}

    def clear(self, partition: SourcePartition) -> None:
        if partition in self.alarms:
            self.alarms = {p: said for p, said in self.alarms.items() if p != partition}


def before_damage(batches: Sequence[RawBatch], notices: Iterable[Notice]) -> Sequence[RawBatch]:
    """The batches without what came after damage: the client may go on behind it, which would be a hole.

    Where a notice does not say which offset is damaged, nothing of that source partition is kept.
    """
    cuts: dict[SourcePartition, int] = {}
    for notice in notices:
        if notice.code in DAMAGED:
            at = notice.offset if notice.offset is not None and notice.offset >= 0 else 0
            cuts[notice.partition] = min(at, cuts.get(notice.partition, at))
    if not cuts:
        return batches
    kept = []
    for batch in batches:
        cut = cuts.get(batch.partition)
        count = len(batch) if cut is None else int(np.searchsorted(batch.offsets, cut))
        if count:
            kept.append(batch if count == len(batch) else batch.head(count))
    return kept
