"""SIGTERM ends a run while its brokers do not answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep.brokers.local import Broker
from tests.broker_fixture import create_topic
from tests.harness import Pipeline

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Pipeline]:
    """A pipeline with a broker of its own, which may stand still."""
    with Broker(tmp_path / "broker", heap_mb=384) as broker:
        create_topic(broker.bootstrap_servers, "own", partitions=2)
        folder = tmp_path / "pipeline"
        folder.mkdir()
        pipeline = Pipeline(folder, broker, "own", 2)
        try:
            yield pipeline
        finally:
            broker.resume()
            pipeline.close()


def test_sigterm_ends_a_run_whose_broker_does_not_answer_and_the_next_run_loses_nothing(
    own: Pipeline,
) -> None:
    own.produce(2_000)
    run = own.start()
    run.await_commits(1)
    own.produce(2_000)
    own.broker.pause()
    assert run.stop(deadline_s=600) == 0, run.text()
    assert "Traceback" not in run.text()
    own.broker.resume()
    assert own.run_to_end().process.returncode == 0
    own.assert_exact(4_000)
