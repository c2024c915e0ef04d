"""The cores have no branch that no test walks, and no (state, event) pair that no test gives them."""

from __future__ import annotations

import pytest

from tests.coverage_of_cores import MEASURING_MAX_S, Figures, measure

BRANCHES_PERCENT = 98


@pytest.mark.nightly
@pytest.mark.timeout(MEASURING_MAX_S + 60)
def test_nearly_every_branch_and_every_pair_of_both_cores_is_walked() -> None:
    figures: Figures = measure()
    assert figures.pairs_missing == ()
    assert figures.state_event_pairs == figures.state_event_pairs_possible > 300
    assert figures.coordinator_branch_percent >= BRANCHES_PERCENT, figures.missing
    assert figures.participant_branch_percent >= BRANCHES_PERCENT, figures.missing
    assert figures.excluded_lines == 0, "a line of a core is excluded from the measurement"
