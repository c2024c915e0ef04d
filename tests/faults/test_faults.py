"""The few scenarios that every change has to pass. All of them, and random ones: `python -m tests.faults`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep.brokers.local import Broker
from lockstep.launch.local_server import LocalServer
from tests.faults.play import SERVERS, load_catalogue, make_stage
from tests.faults.scenario import S3, Scenario

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

SELECTED = [one for one in load_catalogue().values() if one.in_tests]
ON_S3 = (
    "worker_killed_at_commit_begun",
    "driver_killed_at_commit_landed_reply_lost",
    "s3_server_killed_at_end_sent",
    "s3_answers_lost_for_what_decides",
)
"""Of those with a table there, by name."""


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


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """Likewise."""
    with SERVERS[S3](tmp_path_factory.mktemp("faults-s3")) as running:
        yield running


@pytest.mark.parametrize("name", ON_S3)
def test_it_comes_about_with_a_table_on_s3(
    name: str, own_broker: Broker, own_server: LocalServer, tmp_path: Path
) -> None:
    scenario = load_catalogue(S3)[name]
    stage = make_stage(own_broker, tmp_path / "stage", scenario.name, own_server)
    try:
        scenario.play(stage)
    finally:
        stage.close()
