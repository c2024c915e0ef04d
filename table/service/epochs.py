"""Whose epoch counts in a run. Pure: standard library only."""

from __future__ import annotations

from collections.abc import Callable

from control_topic.messages import EPOCH_LEAD_MAX
from table.state import TableState


class Epochs:
    """Those of one run's coordinators, and what the table says of others. `epoch`: the registered one.

    `epoch`, `run` and `fence` may be read without a lock.
    """

    def __init__(self, run: str) -> None:
        self.run = run
        self.epoch = 0
        self.incarnation = ""
        self._highest_epoch = 0
        self._usurped = False

    @property
    def highest_epoch(self) -> int:
        """The highest epoch that was registered here or seen in the table."""
        return self._highest_epoch

    def register(self, epoch: int, incarnation: str, table_epoch: int) -> bool:
        """Make `incarnation` the coordinator of `epoch`. False: a newer or equal one is known, or it is far
        beyond them all, and nobody's.

        The same pair again is fine as long as nothing newer has been seen since.
        """
        self._highest_epoch = max(self._highest_epoch, table_epoch)
        if (epoch, incarnation) == (self.epoch, self.incarnation):
            return self.is_current(epoch)
        if not self._highest_epoch < epoch <= self._highest_epoch + EPOCH_LEAD_MAX:
            return False
        self.epoch, self.incarnation, self._highest_epoch = epoch, incarnation, epoch
        self._usurped = False
        return True

    def saw(self, newest: TableState) -> None:
        """The table's newest commit: it may carry a newer epoch, or ours in another run's name."""
        self._highest_epoch = max(self._highest_epoch, newest.epoch)
        if newest.epoch == self.epoch and newest.run != self.run:
            self._usurped = True

    def is_current(self, epoch: int) -> bool:
        """Whether `epoch` is the registered one and nobody else is known to have it, or a newer one."""
        return 0 < epoch == self.epoch == self._highest_epoch and not self._usurped

    def fence(self, epoch: int) -> Callable[[TableState | None], str]:
        """The check that a commit of `epoch` makes under the table lock. It takes no lock of ours."""

        def objection(newest: TableState | None) -> str:
            if epoch != self.epoch:
                return f"epoch {epoch} is stale: epoch {self.epoch} is registered in this run"
            if epoch > (newest.epoch if newest is not None else 0) + EPOCH_LEAD_MAX:
                return f"epoch {epoch} leads the table's by more than {EPOCH_LEAD_MAX}: it is nobody's"
            if newest is None or newest.epoch < epoch:
                return ""
            if newest.epoch > epoch:
                return f"epoch {epoch} is stale: run {newest.run} has committed with epoch {newest.epoch}"
            if newest.run != self.run:
                return f"epoch {epoch} is stale: instant {newest.instant} of run {newest.run} carries it"
            return ""

        return objection
