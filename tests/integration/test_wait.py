"""`lockstep wait` on real runs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.harness import Pipeline, await_that

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]


IN_VAIN = "15s"
"""For what does not come: long enough to be told by table and broker what is missing."""


def wait(pipeline: Pipeline, *arguments: str, deadline_s: float = 200) -> subprocess.CompletedProcess[str]:
    return pipeline.command("wait", *arguments, "--output", "json", deadline_s=deadline_s)


def test_a_script_that_waits_from_before_the_first_run_goes_on_once_the_table_has_it(
    pipeline: Pipeline,
) -> None:
    pipeline.produce(4_000)
    command = [sys.executable, "-m", "lockstep.cli", "wait", "-c", str(pipeline.config), "--latest"]
    waiting = subprocess.Popen(
        [*command, "--timeout", "3m", "--output", "json"],
        stdout=subprocess.PIPE,
        text=True,
        env=pipeline._environment(),
    )
    try:
        run = pipeline.start()
        said, _ = waiting.communicate(timeout=240)
        assert waiting.returncode == 0, run.text()[-4_000:]
    finally:
        waiting.kill()
    assert json.loads(said)["reached"] is True
    assert pipeline.committed() >= 4_000

    assert wait(pipeline, "--lag", "0", "--timeout", "2m").returncode == 0
    pipeline.produce(2_000)
    offsets = [f"--offset={pipeline.topic}:{number}=1500" for number in range(4)]
    done = wait(pipeline, *offsets, "--timeout", "2m")
    assert done.returncode == 0 and pipeline.committed() == 6_000

    beyond = wait(pipeline, "--offset", f"{pipeline.topic}:2=1501", "--timeout", IN_VAIN)
    assert beyond.returncode == 1
    assert f"{pipeline.topic}:2 is at 1500, 1501 is waited for" in beyond.stderr
    assert run.stop() == 0

    # No run is alive: what is there counts, what is not is waited for.
    assert wait(pipeline, "--latest", "--timeout", "1m").returncode == 0
    pipeline.produce(4)
    behind = wait(pipeline, "--lag", "3", "--timeout", IN_VAIN)
    assert behind.returncode == 1 and json.loads(behind.stdout)["lag"] == 4
    assert wait(pipeline, "--lag", "4", "--timeout", "1m").returncode == 0


def test_a_run_that_halts_ends_the_waiting_and_who_says_so_is_told(
    make_pipeline: Callable[[int], Pipeline],
) -> None:
    pipeline = make_pipeline(1)
    pipeline.produce(100)
    pipeline.produce_raw([b"no json at all"], partition=0)
    run = pipeline.start()
    done = wait(pipeline, "--latest", "--timeout", "3m")
    assert done.returncode == 3, done.stderr + run.text()[-4_000:]
    assert run.wait(120) == 3
    assert json.loads(done.stdout)["halted"]["word"] in ("driver", "control topic")
    assert "100 is" not in done.stderr and f"{pipeline.topic}:0 is at 100, 101 is waited for" in done.stderr

    # The driver is gone: the control topic alone tells, after the time that a new run would take to come.
    late = wait(pipeline, "--latest", "--timeout", "3m")
    assert late.returncode == 3
    assert json.loads(late.stdout)["halted"]["word"] == "control topic"
    assert "No driver answers" in late.stderr and "others may write" in late.stderr

    # What was committed before the halt is there, halted or not.
    assert wait(pipeline, "--offset", f"{pipeline.topic}:0=100", "--timeout", "1m").returncode == 0


def test_a_new_run_after_a_halt_is_waited_for(make_pipeline: Callable[[int], Pipeline]) -> None:
    pipeline = make_pipeline(1)
    pipeline.produce_raw([b"no json at all"], partition=0)
    assert pipeline.run_to_end().process.returncode == 3
    pipeline.produce(50)
    await_that("an end of the halted run", lambda: pipeline.runs[0].process.poll() is not None)
    pipeline.settings["record.on_error"] = "dead_letter"
    run = pipeline.start()  # whose driver has 30 s to answer from when it is waited for
    await_that("a driver that begins", lambda: "lockstep.run: pipeline" in run.text())
    done = wait(pipeline, "--latest", "--timeout", "3m")
    assert done.returncode == 0, done.stderr
