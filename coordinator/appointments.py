"""Ends that the wall clock asks for: `transaction.schedule` and `transaction.align`. Pure.

A scheduled time is *owed* from when it comes until END has been said after it, by whatever reason: then all
that was there at that time is in a transaction that was ended. Between such ends nothing of it is asked. It
is forgotten where nobody held anything as it came.

A stretch is what lies between two times of the alignment. It is known by its end, and a transaction belongs
to the one in which it was begun: in any other it is not started, and not left open.

The wall clock may be put forward or back. Put forward over scheduled times it owes one end, not one for each.
Put back it does not ask again for those that were: the next is the one that was next, unless the time to it
is over by the monotonic clock, and `SLACK_MS` more; from then on what the wall clock shows counts.
"""

from __future__ import annotations

from typing import Final

from coordinator.events import Event, Settings
from coordinator.times import NEVER, ByTheClock, Times

SLACK_MS: Final = 60_000
"""By which a wall clock may lose against the monotonic one, while it is corrected, without being put back."""


class Appointments:
    """The next scheduled time, and whether one is owed. `owed` at first: what a predecessor missed nobody
    knows."""

    def __init__(self, settings: Settings) -> None:
        self._schedule = settings.by_the_clock.schedule
        self._align = settings.by_the_clock.align
        self._margin_ms = settings.align_margin_ms
        self._is_new = True
        """Nothing was begun yet."""
        self.owed = self._schedule is not None
        self.next_ms = NEVER
        """By the wall clock."""
        self._latest_ms: int | None = None
        """By the monotonic one; None: no time has been looked for."""

    def follow(self, wanted: ByTheClock, event: Event) -> None:
        """What operators have set counts for what begins now, and for nothing that is open.

        A schedule that is new owes nothing but to a coordinator that is: its predecessor may have had it.
        """
        self._align = wanted.align
        if wanted.schedule != self._schedule:
            self._schedule, self.next_ms = wanted.schedule, NEVER
            self.owed = wanted.schedule is not None and (self.owed or self._is_new)
            if wanted.schedule is not None:
                self._plan(event, wanted.schedule)
        self._is_new = False

    # --- the schedule ---------------------------------------------------------------------------

    def look(self, event: Event, *, held: bool) -> None:
        """Time passed. `held`: somebody may hold records that no END was said after."""
        if self._schedule is None:
            return
        if self._latest_ms is None:
            self._plan(event, self._schedule)
        elif event.wall_ms >= self.next_ms or event.now_ms >= self._latest_ms:
            self.owed = self.owed or held
            self._plan(event, self._schedule)

    def _plan(self, event: Event, schedule: Times) -> None:
        self.next_ms = schedule.after(event.wall_ms)
        self._latest_ms = event.now_ms + (self.next_ms - event.wall_ms) + SLACK_MS

    # --- the alignment --------------------------------------------------------------------------

    def stretch(self, event: Event) -> int:
        """The end of the stretch that the wall clock shows, by that clock; 0 where nothing is aligned."""
        return self._align.after(event.wall_ms) if self._align is not None else 0

    def is_at_an_edge(self, event: Event) -> bool:
        """Whether a stretch begins or ends so near that what is begun now could be of another to somebody
        else: its START comes later, and the driver, who names its instant, has a clock of his own.
        """
        if self._align is None:
            return False
        before_ms = self._align.after(event.wall_ms - self._margin_ms)
        return before_ms != self._align.after(event.wall_ms + 2 * self._margin_ms)

    def may_start(self, event: Event, stretch: int) -> bool:
        """Whether what was begun in this stretch was so by everybody's clock: the margin is not over yet."""
        return not self.is_over(event, stretch) and (
            self._align is None or self._align.after(event.wall_ms + self._margin_ms) == stretch
        )

    def is_over(self, event: Event, stretch: int) -> bool:
        """Whether the wall clock shows another stretch than this."""
        return self._align is not None and self._align.after(event.wall_ms) != stretch
