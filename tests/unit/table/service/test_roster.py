"""What the workers' reports say of the coordinator."""

from __future__ import annotations

import pytest

from table.service.calls import CoordinatorReport, RunMode, WorkerReport
from table.service.ledger import Ledger
from table.service.roster import FRESH_MS, Roster
from tests.unit.table.service.test_ledger import ledger


def report(slot: int, *, epoch: int, state: str) -> WorkerReport:
    held = CoordinatorReport(epoch=epoch, state=state)
    return WorkerReport(slot=slot, incarnation=f"w{slot}", state="waiting", coordinator=held)


def directed(book: Ledger, roster: Roster, now_ms: int) -> RunMode:
    return book.directive(now_ms, roster.coordinator_state(now_ms, book.epoch)).mode


@pytest.mark.parametrize("state", ["drained", "halted"])
def test_a_run_does_not_end_because_a_coordinator_before_the_registered_one_has_nothing_open(
    state: str,
) -> None:
    """Its successor has taken over, opened a transaction, and is silent for longer than reports count."""
    book, roster = ledger(), Roster(slots_max=2)
    roster.note(0, report(0, epoch=1, state="idle"))
    book.request_stop("done")
    assert directed(book, roster, 0) is RunMode.DRAIN
    assert book.register(2, "w1", 0)
    roster.note(1, report(1, epoch=2, state="started"))
    now_ms = FRESH_MS + 2
    roster.note(now_ms, report(0, epoch=1, state=state))
    assert directed(book, roster, now_ms) is RunMode.DRAIN
    roster.note(now_ms, report(1, epoch=2, state="drained"))
    assert directed(book, roster, now_ms) is RunMode.STOP
