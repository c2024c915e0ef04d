"""The few scenarios that every change has to pass. All of them, and random ones: `python -m tests.faults`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep.brokers.local import Broker
from tests.faults.play import load_catalogue, make_stage
from tests.faults.scenario import Scenario

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

SELECTED = [one for one in load_catalogue().values() if one.in_tests]


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Not the session's: it may be killed."""
    with Broker(tmp_path_factory.mktemp("faults-broker"), heap_mb=512) as running:
        yield running


@pytest.mark.parametrize("scenario", SELECTED, ids=lambda one: one.name)
def test_the_expected_outcome_comes_about(scenario: Scenario, own_broker: Broker, tmp_path: Path) -> None:
    stage = make_stage(own_broker, tmp_path / "stage", scenario.name)
    try:
        scenario.play(stage)  # how soon is for `python -m tests.faults` to judge, on a quiet machine
    finally:
        stage.close()
