"""What a pipeline exposes is as Prometheus' own tool would have it: names, types, units, help."""

from __future__ import annotations

import subprocess

import pytest

from lockstep.watch.metrics import exposed
from lockstep.watch.seen import metrics_seen
from tests.debian import NotToBeHad, prometheus
from tests.watched import rich, seen


@pytest.mark.parametrize("with_driver", [True, False])
def test_promtool_finds_nothing_to_mend_in_metrics(with_driver: bool) -> None:
    try:
        promtool = prometheus() / "promtool"
    except NotToBeHad as error:
        pytest.skip(str(error))
    pipeline = rich()
    found = seen(pipeline, with_driver=with_driver)
    text = exposed(lambda: metrics_seen(found, pipeline.now_ms), as_openmetrics=False)
    assert b"lockstep_records_total{" in text
    done = subprocess.run(
        [promtool, "check", "metrics"], input=text, capture_output=True, timeout=60, check=False
    )
    assert done.stderr.decode() == ""
