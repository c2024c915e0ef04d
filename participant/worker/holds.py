"""Source partitions whose next records cannot be read yet, though others can. Pure: seconds come in.

What was read ahead of such a place waits in order, and is tried again with back-off; whoever reads the topic
is told to bring no more of it meanwhile, so that what waits is what was on its way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from control_topic.messages import SourcePartition
from participant.source.fetched import Fetched

FIRST_S, MOST_S = 0.5, 5.0
"""Between two attempts; doubled each time."""
LONGEST_S = 600.0
"""As long as any outage is waited out."""


@dataclass(slots=True, kw_only=True)
class _Held:
    since_s: float
    again_s: float
    pause_s: float = FIRST_S
    runs: deque[Fetched] = field(default_factory=deque)


class Holds:
    """Those of one worker."""

    def __init__(self) -> None:
        self._held: dict[SourcePartition, _Held] = {}
        self.size_bytes = 0
        """Of what waits."""

    def begin(self, fetched: Fetched, now_s: float) -> None:
        """It cannot be read now; what comes of its source partition from here on waits behind it."""
        self._held[fetched.partition] = _Held(since_s=now_s, again_s=now_s + FIRST_S)
        self.add(fetched)

    def add(self, fetched: Fetched) -> bool:
        """Whether it waits, as what stands before it does."""
        held = self._held.get(fetched.partition)
        if held is None:
            return False
        held.runs.append(fetched)
        self.size_bytes += fetched.size_bytes
        return True

    def split(self, partition: SourcePartition, parts: Iterable[Fetched]) -> None:
        """Replace what is due by its parts, in order."""
        held = self._held[partition]
        self.size_bytes -= held.runs.popleft().size_bytes
        for part in reversed(list(parts)):
            held.runs.appendleft(part)
            self.size_bytes += part.size_bytes

    def due(self, now_s: float) -> Fetched | None:
        """What is to be tried now."""
        return next((held.runs[0] for held in self._held.values() if held.again_s <= now_s), None)

    def put_off(self, partition: SourcePartition, now_s: float) -> bool:
        """It could not be read again; whether that has been so for too long."""
        held = self._held[partition]
        held.again_s = now_s + held.pause_s
        held.pause_s = min(2 * held.pause_s, MOST_S)
        return now_s - held.since_s >= LONGEST_S

    def postpone(self, partition: SourcePartition, now_s: float) -> None:
        """It could not be read yet, though what it waits for gets on: no outage."""
        held = self._held[partition]
        held.since_s, held.again_s, held.pause_s = now_s, now_s + FIRST_S, FIRST_S

    def passed(self, partition: SourcePartition, now_s: float) -> bool:
        """What was due is read; whether nothing waits behind it."""
        held = self._held[partition]
        self.size_bytes -= held.runs.popleft().size_bytes
        if not held.runs:
            del self._held[partition]
            return True
        held.since_s, held.again_s, held.pause_s = now_s, now_s, FIRST_S
        return False

    def drop(self, partition: SourcePartition) -> None:
        """It is read from elsewhere, or not at all."""
        held = self._held.pop(partition, None)
        if held is not None:
            self.size_bytes -= sum(fetched.size_bytes for fetched in held.runs)

    def wait_s(self, now_s: float, most_s: float) -> float:
        """Until something is due."""
        soonest_s = min((held.again_s for held in self._held.values()), default=now_s + most_s)
        return min(most_s, max(0.0, soonest_s - now_s))
