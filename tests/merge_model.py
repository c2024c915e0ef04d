"""What a table of upserts holds, in plain Python: Hudi's merge rules over a dict, without its code."""

from __future__ import annotations

from dataclasses import dataclass, field

Key = tuple[str, str]
"""Table partition and record key: Hudi's bucket index looks for a key in one table partition only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A version of a row or its delete: `deleted` is ordered by `ts` as a row is, `tombstone` is not."""

    key: Key
    amount: int = 0
    ts: int = 0
    deleted: bool = False
    tombstone: bool = False

    @property
    def deletes(self) -> bool:
        return self.deleted or self.tombstone


@dataclass(slots=True)
class Model:
    """Changes are applied in the order of the log. `by_event_time`: the larger `ts` counts.

    `held` is what the log files hold, `base` the rows of the base files, which a compaction makes of both:
    it forgets deletes, and with them the order that they had.
    """

    by_event_time: bool
    held: dict[Key, Change] = field(default_factory=dict)
    base: dict[Key, Change] = field(default_factory=dict)

    def apply(self, change: Change) -> None:
        held = self.held.get(change.key)
        if held is None or not self.by_event_time or change.tombstone:
            self.held[change.key] = change
        elif held.tombstone:  # gives way to any row, and to no ordered delete
            if not change.deletes:
                self.held[change.key] = change
        elif change.ts >= held.ts:
            self.held[change.key] = change

    def compact(self) -> None:
        self.base, self.held = self._merged(), {}

    def rows(self) -> dict[Key, tuple[int, int]]:
        return {key: (one.amount, one.ts) for key, one in self._merged().items()}

    def _merged(self) -> dict[Key, Change]:
        merged = dict(self.base)
        for key, one in self.held.items():
            below = self.base.get(key)
            if below is None or not self.by_event_time or one.tombstone or one.ts >= below.ts:
                merged[key] = one
        return {key: one for key, one in merged.items() if not one.deletes}
