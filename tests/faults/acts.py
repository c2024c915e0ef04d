"""Ways in which a pipeline meets its environment, which many rows share, and what its operator may see.

A row binds what is its own: `partial(goes_on, fault=...)`. A fault is given the stage and may return notes;
one that lasts is a context manager, and over when the block is left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace

from lockstep.brokers.local import Broker
from lockstep.errors import EXIT_HALTED
from tests.broker_fixture import create_topic
from tests.faults.commits import wall_ms
from tests.faults.scenario import Notes, Outcome
from tests.faults.stage import Stage
from tests.harness import DEADLINE_S, Pipeline, Run, await_that

CALM_PER_SECOND = 1_000
"""A load that leaves the machine time for everything else."""
RECORDS = 4_000
"""Of a pipeline that has no load."""
GOES_ON_S = DEADLINE_S
"""Long for the commits of a run that finds its way by itself, or begins anew."""

STACK_TRACES = ("Traceback (most recent call last)", "\tat org.", "\tat java.", "Py4JJavaError:")
NOTHING_TO_DO = "nothing to do"

Fault = Callable[[Stage], Notes | None]
Lasting = Callable[[Stage], AbstractContextManager[object]]


# --- what a row binds its own to ----------------------------------------------------------------------


def goes_on(
    stage: Stage,
    *,
    fault: Fault,
    said: tuple[str, ...] = (),
    per_second: int = CALM_PER_SECOND,
    on: Lasting = nullcontext,
) -> Outcome:
    """A pipeline under load meets a fault, goes on by itself, and proves exact; time from the fault's end.

    `said`: by the run's log. `on`: what lasts from before the pipeline is started until all is proved.
    """
    with on(stage):
        run = stage.start(per_second=per_second)
        notes = fault(stage) or {}
        recovery_s = stage.recovery_s(wall_ms(), deadline_s=GOES_ON_S)
        outcome = proved(stage, run, recovery_s=recovery_s, **notes)
        assert_said(run, said)
        return outcome


def halts(
    stage: Stage,
    *,
    during: Lasting,
    said: tuple[str, ...],
    alarm: tuple[str, ...] = (),
    deadline_s: float = DEADLINE_S,
    per_second: int = CALM_PER_SECOND,
    with_load: bool = True,
    on: Lasting = nullcontext,
) -> Outcome:
    """A pipeline meets what does not end: it halts. When that is over, the next run loses nothing.

    `during`: what it is; it may give one more sentence that the log has to say beside `said`. Both may name
    {topic}, {table}. `alarm`: what `lockstep status` says first. `with_load`: also while it lasts.
    """
    with on(stage):
        run = stage.start(per_second=per_second)
        if not with_load:
            stage.stop_load()
        notes: Notes = {}
        began_ms = wall_ms()
        with during(stage) as sentence:
            if alarm:
                await_alarm(stage.pipeline, *alarm)
                notes["alarm_after_s"] = round((wall_ms() - began_ms) / 1_000)
            words = (*said, *([sentence] if isinstance(sentence, str) else []))
            filled = [
                one.format(topic=stage.pipeline.topic, table=stage.pipeline.place.plain) for one in words
            ]
            ends_with(run, EXIT_HALTED, *filled, deadline_s=deadline_s)
            notes["halted_after_s"] = round((wall_ms() - began_ms) / 1_000)
        return begins_again(stage, per_second=per_second, warnings_before=warnings(run), **notes)


def begins_again(stage: Stage, *, per_second: int, **notes: float | int | str) -> Outcome:
    """The next run, under a load, loses nothing; time from its start."""
    began_ms = wall_ms()
    if stage.load is None:
        stage.start_load(per_second=per_second)
    again = stage.restart()
    recovery_s = stage.recovery_s(began_ms, deadline_s=GOES_ON_S)
    return proved(stage, again, recovery_s=recovery_s, **notes)


def is_met_between_runs(stage: Stage, *, fault: Fault) -> Outcome:
    """A pipeline that has stopped meets a fault; the next run loses nothing; time from its start."""
    stage.pipeline.produce(RECORDS)
    runs_well(stage.pipeline)
    notes = fault(stage) or {}
    stage.pipeline.produce(RECORDS)
    began_ms = wall_ms()
    run = stage.restart()
    return proved(stage, run, recovery_s=stage.recovery_s(began_ms), **notes)


def lasting(seconds: float, what: Lasting) -> Fault:
    """What lasts as a fault, over after so many seconds."""

    def fault(stage: Stage) -> None:
        with what(stage):
            hold(seconds)

    return fault


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


# --- what is due at the end ---------------------------------------------------------------------------


def proved(stage: Stage, run: Run, *, recovery_s: float | None = None, **notes: float | int | str) -> Outcome:
    """Everything produced is committed, the run ends well, the table alone proves it exact."""
    found = stage.settle_and_verify()
    plain(run)
    return Outcome(recovery_s=recovery_s, notes={**notes, **found, "warnings": warnings(run)})


def runs_well(pipeline: Pipeline) -> Run:
    """All that is on the topic is committed by a run of its own, which has ended then."""
    run = pipeline.run_to_end()
    assert run.process.returncode == 0, run.text()[-4_000:]
    return run


def stops_well(run: Run) -> None:
    """Told to, and with nothing but sentences for its operator."""
    assert run.stop() == 0, run.text()[-4_000:]
    plain(run)


def ends_with(run: Run, code: int, *said: str, deadline_s: float = DEADLINE_S) -> None:
    """The run ends by itself with this exit code, and its log says so much."""
    status = run.wait(deadline_s)
    assert status == code, f"exit code {status}, not {code}:\n{run.text()[-4_000:]}"
    assert_said(run, said)
    plain(run)


def halts_after_s(run: Run, *said: str, deadline_s: float = DEADLINE_S) -> float:
    """The run halts, and its log says so much; how long that took, seconds."""
    began_s = time.monotonic()
    ends_with(run, EXIT_HALTED, *said, deadline_s=deadline_s)
    return round(time.monotonic() - began_s, 1)


def await_alarm(pipeline: Pipeline, *said: str) -> None:
    """Until `lockstep status` says so, and nothing of having nothing to do."""

    def shown() -> str:
        text = " ".join(pipeline.command("status").stdout.split())
        return text if all(words in text for words in said) else ""

    text = await_that(f"status that says {said}", shown, deadline_s=DEADLINE_S)
    assert NOTHING_TO_DO not in text, text


def plain(run: Run) -> None:
    """What the operator saw was sentences: no stack traces."""
    for trace in STACK_TRACES:
        assert trace not in run.text(), f"a stack trace for the operator ({trace!r}):\n{run.text()[-4_000:]}"


def assert_said(run: Run, said: Iterable[str]) -> None:
    for words in said:
        assert words in run.text(), f"{words!r} was not said:\n{run.text()[-4_000:]}"


def warnings(run: Run) -> int:
    """Lines of the run's log that are warnings or errors: the noise that an operator has to read."""
    return sum(" WARNING " in line or " ERROR " in line for line in run.text().splitlines())


def hold(fault_s: float) -> None:
    """The fault lasts for so long: that is what is measured here, not a wait that hopes."""
    time.sleep(fault_s)
