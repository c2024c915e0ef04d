"""What the supervisor makes of the workers' reports."""

from __future__ import annotations

from lockstep.driver.supervisor import who_reports
from table.service.calls import WorkerReport
from table.service.roster import Reported


def entry(slot: int, incarnation: str, *, dead: bool = False) -> Reported:
    return Reported(
        report=WorkerReport(incarnation=incarnation, slot=slot, state="writing"), at_ms=0, dead=dead
    )


def test_a_death_is_that_of_the_worker_that_last_reported_from_its_slot() -> None:
    assert who_reports([entry(0, "a"), entry(1, "b")], 1) == "b"
    assert who_reports([entry(0, "a")], 1) == ""


def test_who_dies_before_its_first_report_is_not_its_predecessor_dying_again() -> None:
    assert who_reports([entry(0, "a", dead=True), entry(1, "b")], 0) == ""
