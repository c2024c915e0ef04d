"""`lockstep demo` itself, small: a broker, a job under spark-submit, two kills, three readers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

RECORDS = 2_000
DEADLINE_S = 600


@pytest.mark.integration
@pytest.mark.nightly
@pytest.mark.parametrize("form", ["json", "avro"])
def test_the_demo_is_exact_after_both_kills_and_leaves_nothing_behind(tmp_path: Path, form: str) -> None:
    asked = ["--records", str(RECORDS), "--format", form, "--output", "json"]
    done = subprocess.run(
        [sys.executable, "-m", "lockstep.cli", "demo", *asked],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["exact"] is True
    assert report["page"].startswith("http://127.0.0.1:")
    assert report["verify"]["rows"] == RECORDS
    assert {counts["rows"] for counts in report["counts"]} == {RECORDS}
    assert [kill["coordinator"] for kill in report["kills"]] == [False, True]
    assert all(kill["outage_ms"] > 0 for kill in report["kills"])
    assert list(tmp_path.glob("lockstep-demo-*")) == []
