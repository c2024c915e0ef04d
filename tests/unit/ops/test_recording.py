"""What recording rules compute, as Prometheus' own tool computes it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.debian import NotToBeHad, prometheus

ROOT = Path(__file__).resolve().parents[3]
RULES = ROOT / "ops" / "recording.yml"
BUCKET = "lockstep_commit_duration_seconds_bucket"

SERIES = {
    'lockstep_records_total{pipeline="p",instance="run"}': "0+6000x90",
    'lockstep_records_total{pipeline="p",instance="ui"}': "0+6000x90",
    'lockstep_transactions_total{pipeline="p",outcome="committed",reason="interval"}': "0+6x90",
    'lockstep_transactions_total{pipeline="p",outcome="committed",reason="records"}': "0+6x90",
    **{
        f'{BUCKET}{{pipeline="p",part="write",le="{bound}"}}': f"0+{count}x90"
        for bound, count in (("0.1", 0), ("0.5", 10), ("+Inf", 10))
    },
    'lockstep_table_freshness_seconds{pipeline="p"}': "0+0x59 120+0x30",
    'lockstep_total_lag_records{pipeline="p",instance="run"}': "10+0x90",
    'lockstep_total_lag_records{pipeline="p",instance="ui"}': "12+0x90",
}
COMPUTED = {
    "pipeline:lockstep_records:rate5m": ('{pipeline="p"}', 100),
    "pipeline_outcome:lockstep_transactions:rate5m": ('{pipeline="p",outcome="committed"}', 0.2),
    "pipeline_part:lockstep_commit_duration_seconds:p50_15m": ('{pipeline="p",part="write"}', 0.3),
    "pipeline:lockstep_fresh:ratio1h": ('{pipeline="p"}', 0.5),
    "pipeline:lockstep_lag_records:sum": ('{pipeline="p"}', 10),
}
"""After an hour and a half: the labels that are left, and the value."""


@pytest.mark.parametrize("name", COMPUTED)
def test_a_recorded_series_is_what_its_name_says_however_many_look(name: str, tmp_path: Path) -> None:
    try:
        promtool = prometheus() / "promtool"
    except NotToBeHad as error:
        pytest.skip(str(error))
    labels, value = COMPUTED[name]
    asked = {
        "expr": f"round({name}, 0.1)",
        "eval_time": "89m",
        "exp_samples": [{"labels": labels, "value": value}],
    }
    plan = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in SERIES.items()],
                "promql_expr_test": [asked],
            }
        ],
    }
    file = tmp_path / "tests.json"
    file.write_text(json.dumps(plan), encoding="utf-8")
    done = subprocess.run(
        [promtool, "test", "rules", file], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
