"""What becomes of a run's metrics file, by how the run ends."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lockstep.config import Config
from lockstep.config.load import from_mapping
from lockstep.driver import run_observer
from lockstep.driver.run_observer import RunObserver
from lockstep.watch.observer import Observer
from table.service.ledger import RunOutcome, RunOutcomeKind
from tests.harness import await_that
from tests.watched import PIPELINE, live, rich


class AloneObserver(Observer):
    """Looks at nothing by itself: no broker and no table are there."""

    def start(self) -> None:
        return None

    def stop(self) -> None:
        return None


class Run:
    """A run that has a metrics file, and a driver that says how it stands."""

    def __init__(self, stack: ExitStack, file: Path) -> None:
        self.says: dict[str, Any] = live(rich())
        service: Any = SimpleNamespace(progress=lambda: SimpleNamespace(to_json=lambda: self.says))
        self.observing = RunObserver(stack, config(file), {}, service)
        self.observing.keep_file()
        await_that("metrics file", file.exists)


def config(file: Path) -> Config:
    return from_mapping(
        {
            "pipeline": {"id": PIPELINE},
            "source": {"bootstrap_servers": "127.0.0.1:1", "topics": ["orders"]},
            "record": {"schema": "id STRING"},
            "table": {"path": "file:///nowhere", "name": "events"},
            "metrics": {"file": str(file), "file_period": "1h"},
        }
    )


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(run_observer, "Observer", AloneObserver)
    return tmp_path / "lockstep.prom"


def test_a_halt_is_in_the_file_that_is_left(file: Path) -> None:
    with ExitStack() as stack:
        run = Run(stack, file)
        run.says = live(rich(), halted="offsets passed", mode="HALT")
        run.observing.finish(RunOutcome(kind=RunOutcomeKind.HALTED, reason="offsets passed"))
    assert f'lockstep_halted{{pipeline="{PIPELINE}"}} 1.0' in file.read_text(encoding="utf-8")


def test_an_error_leaves_the_file_and_is_what_is_raised(file: Path) -> None:
    with pytest.raises(RuntimeError, match="Spark is gone"), ExitStack() as stack:
        run = Run(stack, file)
        run.says = {"workers": None}  # nothing that could be taken for an answer
        raise RuntimeError("Spark is gone")
    assert file.exists()


@pytest.mark.parametrize("kind", [RunOutcomeKind.STOPPED, RunOutcomeKind.REACHED, RunOutcomeKind.SUPERSEDED])
def test_a_run_that_is_over_takes_its_file_with_it(file: Path, kind: RunOutcomeKind) -> None:
    with ExitStack() as stack:
        Run(stack, file).observing.finish(RunOutcome(kind=kind, reason=""))
    assert not file.exists()
