"""What a worker believes of the control topic: what carries the mark of its own run, and nothing else.

Whoever may write to the topic can write anything, in anybody's name. So the driver draws a key for each run
and gives it to that run's workers, never to the topic; every record carries, in a Kafka header, an
HMAC-SHA256 over its value: the very bytes, so that nothing depends on how a message would be written again.
A record that is repeated by a stranger still has its mark: the cores know a repeat by its sequence number.

Nobody needs the key to read. Pure: standard library only.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field

from control_topic.messages import EPOCH_LEAD_MAX, Message

HEADER = "lockstep-mac"
"""The Kafka header that holds a record's mark."""

KEY_BYTES = 32
MAC_BYTES = 32


def mark(key: bytes, raw: bytes) -> bytes:
    """The mark that a record with the value `raw` carries: HMAC-SHA256."""
    return hmac.digest(key, raw, "sha256")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """What a worker needs to know of its run to tell the run's own messages from all others."""

    pipeline: str
    run: str
    key: bytes = field(repr=False)
    table_epoch: int = 0
    """The newest that the table had when the run started. An epoch far beyond is nobody's."""

    def __post_init__(self) -> None:
        if len(self.key) != KEY_BYTES:
            raise ValueError(f"a key of {len(self.key)} bytes, a run's has {KEY_BYTES}")

    def authentic(self, raw: bytes | None, mac: bytes | None) -> bool:
        """Whether somebody with the run's key has written this value. Before anything in it is looked at."""
        return raw is not None and mac is not None and hmac.compare_digest(self._mark(raw), mac)

    def _mark(self, raw: bytes) -> bytes:
        return mark(self.key, raw)

    def objection(self, message: Message) -> str:
        """Why a message that is authentic is not obeyed all the same, or an empty string."""
        if (message.pipeline, message.run) != (self.pipeline, self.run):
            return "another run's"
        if not self.within_reach(message.epoch):
            return "of an epoch that nobody can have"
        return ""

    def within_reach(self, epoch: int) -> bool:
        """Whether a run that began at the table's epoch can have come to this one."""
        return epoch <= self.table_epoch + EPOCH_LEAD_MAX
