"""How long Lockstep's commits took, from the control topic. Pure but for the call that reads it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from control_topic.errors import ControlTopicUnavailable
from lockstep.config import load, resolve_kafka
from lockstep.errors import Failed
from lockstep.watch.tail import read_tail
from lockstep.watch.told import Transaction
from lockstep.watch.topic_fold import Fold, fold

READ_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """One committed transaction, by the control topic's timestamps (Unix epoch).

    `end_ms`: END was sent; `written_ms`: the last worker had reported its files; `ack_ms`: it was committed.
    """

    transaction: str
    end_ms: int
    written_ms: int
    ack_ms: int

    @property
    def commit_ms(self) -> int:
        """END to ACK."""
        return self.ack_ms - self.end_ms


def endings(known: Fold) -> list[Ending]:
    """In the order in which the transactions began, which is that of their ACKs."""
    return [_ending(one) for one in known.commits if one.announced and one.end_ms]


def _ending(one: Transaction) -> Ending:
    written_ms = max(one.answered.values(), default=one.end_ms)
    return Ending(
        transaction=one.id,
        end_ms=one.end_ms,
        written_ms=max(written_ms, one.end_ms),
        ack_ms=one.ended_ms,
    )


def read(config: Path) -> Fold:
    """What the pipeline's control topic tells of its run. Raises `Failed`."""
    known = load(config)
    try:
        whole = read_tail(
            resolve_kafka(known),
            known.control.topic,
            pipeline=known.pipeline.id,
            messages_max=None,
            timeout_s=READ_TIMEOUT_S,
        )
    except ControlTopicUnavailable as error:
        raise Failed(str(error)) from error
    if whole.problem:
        raise Failed(whole.problem)
    return fold(whole.heard)
