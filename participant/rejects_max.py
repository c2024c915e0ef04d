"""How many rejects a transaction may have before the run halts instead of setting more aside. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from control_topic.messages import Reject, SourcePartition

SHARE_JUDGED_FROM = 100
"""Rejects. Of fewer a share says nothing: one bad record among ten is no reason to halt at night."""
PARTITIONS_NAMED_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectsMax:
    """Of what one worker reads for one transaction. None: no limit."""

    count: int | None = None
    share: float | None = None
    """Of the records, from 0 to 1."""
    share_judged_from: int = SHARE_JUDGED_FROM
    """From so many rejects on the share is looked at."""

    @classmethod
    def of(cls, text: str) -> RejectsMax:
        """As the configuration spells it: a number, a share as `5%`, or empty."""
        if not text:
            return NO_LIMIT
        return cls(share=float(text[:-1]) / 100) if text.endswith("%") else cls(count=int(text))

    def exceeded(self, rejects: int, records: int, *, complete: bool) -> bool:
        """`records` with the rejects. A share can only be judged once the transaction is `complete`."""
        if self.count is not None and rejects > self.count:
            return True
        judged = complete and self.share is not None and rejects >= self.share_judged_from
        return judged and rejects > (self.share or 0) * records

    def __str__(self) -> str:
        return f"{self.count:,}" if self.count is not None else f"{100 * (self.share or 0):g}%"


NO_LIMIT = RejectsMax()


def too_many(
    limit: RejectsMax,
    rejects: Mapping[SourcePartition, int],
    first: Mapping[SourcePartition, Reject],
    records: int,
) -> str:
    """The sentence for the operator."""
    worst = sorted(rejects, key=lambda partition: -rejects[partition])
    named = "; ".join(
        f"{partition}: {rejects[partition]:,}, the first at offset {first[partition].offset}: "
        f"{first[partition].reason}"
        for partition in worst[:PARTITIONS_NAMED_MAX]
    )
    more = len(worst) - PARTITIONS_NAMED_MAX
    others = f"; and of {more} more source partitions" if more > 0 else ""
    return (
        f"{sum(rejects.values()):,} of the {records:,} records that one worker read for a transaction are no "
        f"rows, more than record.max_rejects ({limit}) allows ({named}{others}). They were not sent to the "
        "dead-letter topic and are not committed. Mend the producer or record.schema, or raise "
        "record.max_rejects, and start again"
    )
