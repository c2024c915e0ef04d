"""What scenarios of the environment share: how a recovery is measured, and what the operator may see."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from lockstep.brokers.local import Broker
from tests.broker_fixture import create_topic
from tests.faults.commits import wall_ms
from tests.faults.scenario import Outcome
from tests.faults.stage import Stage
from tests.harness import Pipeline, Run

CALM_PER_SECOND = 1_000
"""A load that leaves the machine time for everything else."""

STACK_TRACES = ("Traceback (most recent call last)", "\tat org.", "\tat java.", "Py4JJavaError:")


def survive(
    stage: Stage, fault: Callable[[], None], *, per_second: int = CALM_PER_SECOND, deadline_s: float = 120
) -> Outcome:
    """A pipeline under load meets a fault, goes on by itself, and proves exact; time from the fault's end."""
    run = stage.start(per_second=per_second)
    fault()
    ended_ms = wall_ms()
    recovery_s = stage.recovery_s(ended_ms, deadline_s=deadline_s)
    return proved(stage, run, recovery_s=recovery_s)


@contextmanager
def on_a_broker_of_its_own(
    stage: Stage, properties: Mapping[str, str], *, records: int
) -> Iterator[Pipeline]:
    """The stage's pipeline on a broker with these properties, and so many records on the topic."""
    folder = stage.pipeline.folder / "its-own"
    folder.mkdir()
    with Broker(folder / "broker", heap_mb=384, properties=properties) as broker:
        create_topic(broker.bootstrap_servers, stage.pipeline.topic, partitions=stage.pipeline.partitions)
        pipeline = replace(stage.pipeline, folder=folder, broker=broker, _runs=[])
        try:
            pipeline.produce(records)
            yield pipeline
        finally:
            pipeline.close()


def proved(stage: Stage, run: Run, *, recovery_s: float | None = None, **notes: float | int | str) -> Outcome:
    """Everything produced is committed, the run ends well, the table alone proves it exact."""
    found = stage.settle_and_verify()
    plain(run)
    return Outcome(recovery_s=recovery_s, notes={**notes, **found, "warnings": warnings(run)})


def plain(run: Run) -> None:
    """What the operator saw was sentences: no stack traces."""
    for trace in STACK_TRACES:
        assert trace not in run.text(), f"a stack trace for the operator ({trace!r}):\n{run.text()[-4_000:]}"


def ends_with(run: Run, code: int, *said: str, deadline_s: float = 120) -> None:
    """The run ends by itself with this exit code, and its log says so much."""
    status = run.wait(deadline_s)
    assert status == code, f"exit code {status}, not {code}:\n{run.text()[-4_000:]}"
    assert_said(run, said)
    plain(run)


def assert_said(run: Run, said: Iterable[str]) -> None:
    for words in said:
        assert words in run.text(), f"{words!r} was not said:\n{run.text()[-4_000:]}"


def warnings(run: Run) -> int:
    """Lines of the run's log that are warnings or errors: the noise that an operator has to read."""
    return sum(" WARNING " in line or " ERROR " in line for line in run.text().splitlines())


def hold(fault_s: float) -> None:
    """The fault lasts for so long: that is what is measured here, not a wait that hopes."""
    time.sleep(fault_s)
