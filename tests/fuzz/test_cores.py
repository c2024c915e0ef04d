"""The running cores under hypothesis: no message of somebody with the key ends one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from control_topic.errors import Malformed
from control_topic.trust import Trust
from tests.fuzz import strategies
from tests.fuzz.cores import TARGETS

(CORES,) = TARGETS
SEEDS = 30


@settings(strategies.PROFILE, max_examples=100)
@given(strategies.cases(CORES, size=40))
def test_no_message_with_the_runs_mark_ends_a_core(case: Any) -> None:
    CORES.check(case)


def test_epochs_without_a_bound_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trust, "within_reach", lambda self, epoch: True)
    with pytest.raises(Malformed, match="epoch 18446744073709551616"):
        for seed in range(SEEDS):
            CORES.try_seed(seed)
