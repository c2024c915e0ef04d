"""The few scenarios that every change has to pass. All of them, and random ones: `python -m tests.faults`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from lockstep.brokers.local import Broker
from lockstep.launch.local_server import LocalServer
from table.store.location import AZURE, GOOGLE, S3
from tests.faults.play import SERVERS, load_catalogue, make_stage
from tests.faults.scenario import Scenario

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1_800)]

SELECTED = [one for one in load_catalogue().values() if one.in_tests]
SMOKE = {
    "coordinators_worker_killed_at_commit_landed_reply_lost": [pytest.mark.smoke("killed worker")],
    "driver_killed_inside_the_table_lock": [pytest.mark.smoke("killed driver")],
}
"""Scenarios that `make test` plays; `make test-all` plays all that are selected."""
ON_SERVERS = (
    (S3, "worker_killed_at_commit_begun"),
    (S3, "driver_killed_at_commit_landed_reply_lost"),
    (S3, "s3_server_killed_at_end_sent"),
    (S3, "s3_answers_lost_for_what_decides"),
    (GOOGLE, "gs_every_third_answer_lost"),
    (AZURE, "azure_every_third_answer_lost"),
)
"""Of those with a table there."""


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Not the session's: it may be killed."""
    with Broker(tmp_path_factory.mktemp("faults-broker"), heap_mb=512) as running:
        yield running


@pytest.mark.parametrize(
    "scenario", [pytest.param(one, id=one.name, marks=SMOKE.get(one.name, ())) for one in SELECTED]
)
def test_the_expected_outcome_comes_about(scenario: Scenario, own_broker: Broker, tmp_path: Path) -> None:
    stage = make_stage(own_broker, tmp_path / "stage", scenario.name)
    try:
        scenario.play(stage)  # how soon is for `python -m tests.faults` to judge, on a quiet machine
    finally:
        stage.close()


@pytest.fixture(scope="module")
def own_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], LocalServer]]:
    """Likewise. Each is started when it is first asked for."""
    with ExitStack() as stack:

        @cache
        def server(store: str) -> LocalServer:
            return stack.enter_context(SERVERS[store](tmp_path_factory.mktemp(f"faults-{store}")))

        yield server


@pytest.mark.parametrize(("store", "name"), ON_SERVERS, ids=lambda one: one)
def test_it_comes_about_with_a_table_on_a_server(
    store: str, name: str, own_broker: Broker, own_servers: Callable[[str], LocalServer], tmp_path: Path
) -> None:
    scenario = load_catalogue(store)[name]
    stage = make_stage(own_broker, tmp_path / "stage", scenario.name, own_servers(store))
    try:
        scenario.play(stage)
    finally:
        stage.close()
