"""The table lock where it is an object whose holder renews it, as Hudi's StorageBasedLockProvider does.

Such a lock ends at a time that its holder's clock has said, by the clock of whoever wants it. So each of them
must be near the store's: one that is ahead takes a lock that is held, and one that is behind holds a lock
that others may take. The object itself says who its owner is, and its client (jvm/S3StorageLockClient.java)
takes it over at once where that process is dead: nothing is noted beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from control_topic.spelling import lasting
from table.errors import ClockAhead, Unavailable
from table.hudi.driver.file_clock import AHEAD_MAX_S, ATTEMPTS_MAX, NAME, ClockDifference
from table.hudi.driver.watchdog import CLOCK
from table.hudi.layout import META_FOLDER
from table.store.port import Store

GOOD_FOR_S = 60.0
"""How long a comparison holds, unless this clock was set meanwhile: it costs three requests."""
SET_S = 1.0
"""By so much the clock has gone otherwise than one that nobody sets: it was set."""


class LeaseHolder:
    """It renews the lock, or knows that it has lost it. See `table.hudi.driver.holder.LockHolder`."""

    def check(self) -> None:
        return None

    def free_if_dead(self) -> bool:
        return False


class LeaseClock:
    """`store`: the table's. `lease_s`: how long the lock lives that is not renewed; 0: clocks do not matter.

    `clock_s`: Unix epoch; `steady_s`: a clock that nobody sets, and that goes on in a suspended machine.
    """

    def __init__(
        self,
        store: Store,
        *,
        lease_s: int,
        clock_s: Callable[[], float] = time.time,
        steady_s: Callable[[], float] = lambda: time.clock_gettime(CLOCK),
    ) -> None:
        self._store = store
        self._lease_s = lease_s
        self._clock_s = clock_s
        self._steady_s = steady_s
        self._agreed: tuple[float, float] | None = None  # both clocks, when they were compared

    def check(self) -> None:
        """Raise `ClockAhead` where this clock is too far from the store's for the lock, `Unavailable` where
        that is not known. Before the lock is taken.
        """
        if not self._lease_s or self._still_agree():
            return
        for _ in range(ATTEMPTS_MAX):
            at = (self._clock_s(), self._steady_s())
            apart = self.apart()
            if apart.most_s <= AHEAD_MAX_S and apart.least_s >= -AHEAD_MAX_S:
                self._agreed = at
                return
            if apart.least_s > AHEAD_MAX_S or apart.most_s < -AHEAD_MAX_S:
                raise ClockAhead(self._far(apart))
        raise Unavailable(
            f"table {self._store.place()}: the store took {apart.most_s - apart.least_s:.0f} s to date a "
            "file, too long to compare clocks"
        )

    def apart(self) -> ClockDifference:
        """Raises `Unavailable`."""
        path = f"{META_FOLDER}/{NAME}"
        try:
            before_s = self._clock_s()
            self._store.put(path, b"")
            found = self._store.stat(path)
            after_s = self._clock_s()  # the date may be another driver's, who has put it since
        except OSError as error:
            raise self._unasked(str(error.strerror)) from error
        if found is None:
            raise self._unasked("somebody has removed what it had dated")
        # A server says whole seconds: what it calls noon may have been nearly a second later.
        return ClockDifference(
            before_s - found.modified_s - 1.0, after_s - found.modified_s, found.modified_s
        )

    def sentence(self) -> str:
        """How the clocks compare, for a person. Raises as `check`."""
        if not self._lease_s:
            return "the table lock does not depend on clocks"
        self.check()
        return f"this clock and the store's agree to {AHEAD_MAX_S:.0f} s"

    def _still_agree(self) -> bool:
        if self._agreed is None:
            return False
        clock_s, steady_s = self._agreed
        gone_s = self._steady_s() - steady_s
        return gone_s < GOOD_FOR_S and abs(self._clock_s() - clock_s - gone_s) < SET_S

    def _unasked(self, why: str) -> Unavailable:
        return Unavailable(f"table {self._store.place()}: the clock of its store cannot be asked: {why}")

    def _far(self, apart: ClockDifference) -> str:
        ahead = apart.least_s > 0
        far_s, which = (apart.least_s, "ahead of") if ahead else (-apart.most_s, "behind")
        harm = "take it from its holder" if ahead else "hold it when others may take it"
        return (
            f"the clock is {lasting(round(1_000 * far_s))} {which} that of the store of table "
            f"{self._store.place()}, whose lock is a lease of {self._lease_s} s: this driver might {harm}, "
            "so it is not taken. It is waited for; set this clock right, with NTP (Clocks, in "
            "docs/operations.md)"
        )
