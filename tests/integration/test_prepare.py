"""`lockstep prepare`, and runs that start from what it has made."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import Pipeline

pytestmark = pytest.mark.timeout(900)

RECORDS = 400
CLASSES_MIN = 5_000
MIDDLE_BYTES = 40_000_000


def prepare() -> dict[str, object]:
    command = [sys.executable, "-m", "lockstep.cli", "prepare", "--output", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    document: dict[str, object] = json.loads(done.stdout)
    return document


def run(pipeline: Pipeline, log: Path) -> int:
    """One run, exact; how many of its driver's classes came from the archive."""
    pipeline.produce(RECORDS)
    done = pipeline.run_to_end("--conf", f"spark.driver.extraJavaOptions=-Xlog:class+load:file={log}")
    assert done.process.returncode == 0, done.text()[-4_000:]
    pipeline.assert_exact(pipeline.produced)
    return log.read_text().count("source: shared objects file (top)")


def test_a_prepared_run_starts_from_the_archive_and_a_damaged_one_is_passed_over(
    pipeline: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCKSTEP_CACHE", str(tmp_path / "a cache"))
    made = prepare()
    assert made["made"] is True
    assert prepare() == {**made, "made": False}
    assert run(pipeline, tmp_path / "prepared.log") > CLASSES_MIN

    archive = Path(str(made["archive"]))
    archive.chmod(0o644)
    with archive.open("r+b") as file:
        file.seek(MIDDLE_BYTES)
        file.write(bytes(1_000_000))
    assert run(pipeline, tmp_path / "damaged.log") == 0
