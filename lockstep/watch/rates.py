"""What was committed, minute by minute, for the last hour. Pure."""

from __future__ import annotations

STEP_MS = 60_000
STEPS = 60


class Rates:
    """Records and bytes by the minute in which they were committed."""

    def __init__(self) -> None:
        self._minutes: dict[int, tuple[int, int]] = {}

    def add(self, at_ms: int, records: int, size_bytes: int, *, now_ms: int = 0) -> None:
        """A commit. One of times to come would push out what was; `now_ms` 0: nobody knows it."""
        minute = at_ms // STEP_MS
        if now_ms and minute > now_ms // STEP_MS + 1:
            return
        before = self._minutes.get(minute, (0, 0))
        self._minutes[minute] = (before[0] + records, before[1] + size_bytes)
        if len(self._minutes) > 2 * STEPS:
            for old in sorted(self._minutes)[: len(self._minutes) - STEPS]:
                del self._minutes[old]

    def to_json(self, now_ms: int) -> dict[str, object]:
        """The last hour, oldest minute first; the last one is not over yet."""
        first = now_ms // STEP_MS - STEPS + 1
        steps = [self._minutes.get(first + step, (0, 0)) for step in range(STEPS)]
        return {
            "step_ms": STEP_MS,
            "from_ms": first * STEP_MS,
            "records": [records for records, _ in steps],
            "bytes": [size_bytes for _, size_bytes in steps],
        }
