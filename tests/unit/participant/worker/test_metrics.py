"""The table of what a worker measures of itself."""

from __future__ import annotations

from participant.worker.metrics import METRICS
from table.service.codec import METRIC_NAME, METRICS_MAX


def test_every_metric_has_a_name_of_its_own_that_the_driver_takes_and_a_meaning() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names) <= METRICS_MAX
    assert all(METRIC_NAME.fullmatch(name) for name in names)
    assert all(metric.meaning for metric in METRICS)
