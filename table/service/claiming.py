"""Calls of whoever means to commit: the newest epoch, what others left open, and what became of a commit.

A run's coordinator and an operator who moves offsets claim the table the same way, are fenced the same way,
and learn the same way whether they have committed. Everything runs on the one thread that talks to the table.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Lock

from control_topic.messages import Offsets, Range
from table.chain import follows
from table.checks import same_ranges
from table.errors import Contradiction, OutcomeUnknown, Refused, TableError
from table.port import Commit, TransactionalTable, Unfinished
from table.service.answering import Answering, answers
from table.service.calls import Answer, Result
from table.service.ledger import Ledger
from table.state import TableState

log = logging.getLogger(__name__)


class Claiming(Answering):
    """The table's side of a claim on it, by one run."""

    def __init__(
        self,
        *,
        table: TransactionalTable,
        ledger: Ledger,
        guard: Lock,
        run: str,
        clock_ms: Callable[[], int],
    ) -> None:
        super().__init__(ledger=ledger, guard=guard, clock_ms=clock_ms)
        self._table = table
        self._run = run

    # --- the newest epoch -----------------------------------------------------------------------

    @answers(effect=False)
    def survey(self) -> Answer:
        """The highest epoch that the table or this service knows."""
        self._see(self._table.newest())
        with self._guard:
            return Answer(result=Result.OK, epoch=self._ledger.highest_epoch)

    @answers(effect=False)
    def register(self, epoch: int, incarnation: str) -> Answer:
        """Make the caller the one coordinator; everybody of a lower epoch is stale from here on."""
        newest = self._table.newest()
        self._see(newest)
        with self._guard:
            taken = self._ledger.register(epoch, incarnation, newest.epoch if newest is not None else 0)
            highest = self._ledger.highest_epoch
        if not taken:
            why = "far above" if epoch > highest else "not above"
            return Answer(result=Result.STALE, reason=f"epoch {epoch} is {why} {highest}, which is taken")
        log.debug("epoch %d is registered by incarnation %s", epoch, incarnation)
        return Answer(result=Result.OK)

    @answers(effect=False)
    def clear(self) -> Answer:
        """Roll back what earlier runs left open, before a coordinator asks: `recover` finds it done then."""
        refusal = self._closed()
        if refusal is not None:
            return refusal
        for open_one in self._table.unfinished():
            if open_one.run != self._run:
                self._remove(open_one)
        return Answer(result=Result.OK)

    def _remove(self, open_one: Unfinished) -> None:
        removed = self._table.roll_back(open_one.instant)
        log.info(
            "instant %s (transaction %s, run %s) was %s",
            *(open_one.instant, open_one.transaction, open_one.run),
            "rolled back" if removed else "complete already",
            extra={"instant": open_one.instant, "transaction": open_one.transaction},
        )

    # --- offsets alone --------------------------------------------------------------------------

    @answers(effect=True)
    def move(self, epoch: int, expected: Offsets, state: TableState) -> Answer:
        """Commit these offsets and no rows, where the table still holds those that were expected.

        What is open of this pipeline is rolled back first. Asked again, it is the same commit: of its
        transaction there is one.
        """
        refusal = self._stale(epoch) or self._closed()
        if refusal is not None:
            return refusal
        if (done := self._table.find(state.transaction)) is not None:
            return self._committed(done, (), Result.OK)
        for open_one in self._table.unfinished():
            self._remove(open_one)
        instant = self._table.begin(run=self._run, transaction=state.transaction)
        try:
            self._table.commit(
                Commit(instant=instant, expected=expected, state=state, files=()),
                fence=self._ledger.fence(epoch),
            )
        except (Refused, OutcomeUnknown) as error:
            return self._after_failed_commit(epoch, state.transaction, (), error)
        return self._committed(replace(state, instant=instant), (), Result.OK)

    # --- what became of it ----------------------------------------------------------------------

    def _after_failed_commit(
        self, epoch: int, transaction: str, ranges: Sequence[Range], error: Refused | OutcomeUnknown
    ) -> Answer:
        """Decide from the timeline, never from the error alone."""
        try:
            done = self._table.find(transaction)
            self._see(self._table.newest())
        except TableError as unread:
            raise OutcomeUnknown(f"{error}; and then the table could not be read: {unread}") from error
        if done is not None:
            return self._committed(done, ranges, Result.OK)
        if isinstance(error, OutcomeUnknown):
            raise error
        if (refusal := self._stale(epoch)) is not None:
            return refusal
        if isinstance(error, Contradiction):  # as every later commit would be, until somebody acts
            return self.halt(str(error))
        return Answer(result=Result.REFUSED, reason=str(error), committed=self._offsets())

    @answers(effect=False)
    def find(self, transaction: str, ranges: Sequence[Range]) -> Answer:
        """Whether the transaction is on the timeline, with these ranges."""
        try:
            done = self._table.find(transaction)
        except TableError as error:
            answer = self.unavailable(str(error))
            return answer if answer.result is Result.HALTED else replace(answer, result=Result.UNKNOWN)
        if done is None:
            return Answer(result=Result.ABSENT, reason=f"transaction {transaction} is not on the timeline")
        return self._committed(done, ranges, Result.COMMITTED)

    def _committed(self, done: TableState, ranges: Sequence[Range], result: Result) -> Answer:
        if not same_ranges(done.ranges, ranges):
            reason = f"transaction {done.transaction} is committed (instant {done.instant}) with other ranges"
            return Answer(result=Result.REFUSED, reason=reason)
        self._landed(done)
        return Answer(result=result, instant=done.instant, committed=self._offsets())

    def _landed(self, state: TableState) -> None:
        """A transaction is durable."""
        if follows(self.view.newest, state):
            self.view = replace(self.view, newest=state)
