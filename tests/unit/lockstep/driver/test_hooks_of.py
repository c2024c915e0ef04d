"""How a run's end is told to its hooks."""

from __future__ import annotations

import pytest

from lockstep.driver.hooks_of import HOW, ending_of
from lockstep.hooks.port import Ending, HowEnded
from table.service.ledger import RunOutcome, RunOutcomeKind


@pytest.mark.parametrize("kind", RunOutcomeKind)
def test_each_way_to_end_is_told_as_what_it_is(kind: RunOutcomeKind) -> None:
    assert ending_of(RunOutcome(kind=kind, reason="so")) == Ending(how=HOW[kind], reason="so")


def test_a_run_that_was_told_to_stop_has_ended_well() -> None:
    assert HOW[RunOutcomeKind.STOPPED] is HOW[RunOutcomeKind.REACHED] is HowEnded.WELL
