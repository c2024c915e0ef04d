"""`lockstep demo --cdc` itself, small: change events, a compaction, a kill, and Spark SQL's rows compared."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lockstep.demo.shop import Shop

EVENTS = 4_000
PARTITIONS = 4
DEADLINE_S = 600


@pytest.mark.integration
@pytest.mark.nightly
def test_the_table_equals_the_shop_after_a_kill_and_a_compaction_and_shows_its_history(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "lockstep.cli", "demo", "--cdc"),
            *("--records", str(EVENTS), "--output", "json"),
        ],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    found = {name: report[name] for name in ("missing", "unexpected", "different", "doubled", "history")}
    assert done.returncode == 0, (found, done.stderr)
    model = Shop(orders=EVENTS // 4, changes=EVENTS - EVENTS // 4).model(PARTITIONS)
    assert report["exact"] is True
    assert report["records"] == EVENTS + model.ops["d"]
    assert report["rows"] == len(model.rows)
    assert not any(report[name] for name in ("missing", "unexpected", "different", "doubled"))
    assert report["compactions"] >= 1
    [kill] = report["kills"]
    assert kill["coordinator"] and kill["outage_ms"] > 0
    statuses = [state["order"] and state["order"]["status"] for state in report["history"]]
    assert len(statuses) >= 3
    assert statuses[-1] == "shipped"
    assert list(tmp_path.glob("lockstep-demo-*")) == []
