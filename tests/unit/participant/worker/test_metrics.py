"""The table of what a worker measures of itself."""

from __future__ import annotations

from pathlib import Path

from participant.worker.metrics import METRICS
from table.service.calls import WorkerReport
from table.service.codec import METRIC_NAME, METRICS_MAX
from table.service.progress import worker_json
from table.service.roster import Reported

OPERATIONS = Path(__file__).resolve().parents[4] / "docs" / "operations.md"


def test_every_metric_has_a_name_of_its_own_that_the_driver_takes_and_a_meaning() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names) <= METRICS_MAX
    assert all(METRIC_NAME.fullmatch(name) for name in names)
    assert all(metric.meaning for metric in METRICS)


def test_no_metric_has_a_name_that_the_status_takes_for_something_else() -> None:
    measured = {metric.name: -1.0 for metric in METRICS}
    report = WorkerReport(slot=0, incarnation="w", metrics=measured)
    shown = worker_json(Reported(report=report, at_ms=0), 0)
    assert {name: shown[name] for name in measured} == measured


def test_every_metric_stands_in_the_documents_as_its_line_says_it() -> None:
    document = OPERATIONS.read_text(encoding="utf-8")
    assert [m.name for m in METRICS if f"| `{m.name}` | {m.meaning} |" not in document] == []
