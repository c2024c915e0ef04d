"""The steps of a transaction as an observer sees them, and which one a moment fell into. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from control_topic.messages import Offsets

START_LASTS_MS = 100
"""So long after START a moment still counts as "START sent", afterwards as in the middle of writing."""


class Step(Enum):
    """In order. All but `ALL_STATUS` are aimed at; that one only says what was hit instead."""

    START_SENT = "START sent"
    MID_WRITE = "mid-write"
    END_SENT = "END sent"
    SOME_STATUS = "some WRITE_STATUS in"
    ALL_STATUS = "every WRITE_STATUS in, no table lock yet"
    COMMIT_BEGUN = "commit begun"
    COMMIT_LANDED = "commit landed, reply lost"
    ACK_SENT = "ACK sent"
    GROUP_COMMITTED = "group offsets committed"


AIMED = tuple(step for step in Step if step is not Step.ALL_STATUS)


@dataclass(slots=True, kw_only=True)
class Sighting:
    """What has been seen of one transaction. Times: Unix epoch, milliseconds; 0 where not seen.

    `writers`: the incarnations that START lists. `statuses`: incarnation → when its WRITE_STATUS was sent.
    `lock_ms`: the table's lock file was there with every WRITE_STATUS in. `landed_ms`: the completed instant.
    """

    transaction: str
    instant: str
    writers: frozenset[str]
    start_ms: int
    end_ms: int = 0
    statuses: dict[str, int] = field(default_factory=dict)
    lock_ms: int = 0
    landed_ms: int = 0
    ack_ms: int = 0
    acked: Offsets = field(default_factory=dict)
    group_ms: int = 0
    abort_ms: int = 0

    @property
    def all_in(self) -> bool:
        return self.writers <= self.statuses.keys()

    def step_at(self, moment_ms: int) -> Step | None:
        """The step that the transaction had reached; None before its START and once it was aborted."""

        def by(seen_ms: int) -> bool:
            return 0 < seen_ms <= moment_ms

        if by(self.abort_ms) or not by(self.start_ms):
            return None
        reached = {who for who, sent_ms in self.statuses.items() if by(sent_ms)}
        ladder = (
            (Step.GROUP_COMMITTED, by(self.group_ms)),
            (Step.ACK_SENT, by(self.ack_ms)),
            (Step.COMMIT_LANDED, by(self.landed_ms)),
            (Step.COMMIT_BEGUN, by(self.lock_ms)),
            (Step.ALL_STATUS, self.writers <= reached),
            (Step.SOME_STATUS, bool(reached)),
            (Step.END_SENT, by(self.end_ms)),
            (Step.MID_WRITE, moment_ms - self.start_ms > START_LASTS_MS),
        )
        return next((step for step, is_reached in ladder if is_reached), Step.START_SENT)
