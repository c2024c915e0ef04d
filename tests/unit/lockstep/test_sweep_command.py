"""`lockstep sweep` on a table whose files and timeline are spelled out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lockstep import cli
from lockstep.config import Config
from lockstep.errors import EXIT_FAILED, EXIT_WELL
from table.hudi.files.base_file import file_name, new_file_id
from table.orphans import NOT_LISTED, ROLLED_BACK, UNKNOWN
from tests.timeline_files import Table, committed, rolled_back
from tests.unit.lockstep.test_cli import PIPELINE

DONE, BACK, LOST, ROLLBACK = (f"2026112801000{number}000" for number in range(4))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = Table(tmp_path / "table", **{"hoodie.table.timeline.timezone": "UTC"})
    listed = hold(made, DONE, 1)
    made.add(f"{DONE}_{DONE}.commit", committed(stats=[{"path": listed}]))
    made.add(f"{ROLLBACK}_{ROLLBACK}.rollback", rolled_back((BACK, "commit")))
    return made


def hold(table: Table, instant: str, number: int) -> str:
    name = file_name(new_file_id(number), "0-0-0", instant)
    path = table.base / "a" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"rows")
    return f"a/{name}"


def sweep(table: Table, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    config = table.base.parent / "pipeline.toml"
    config.write_text(PIPELINE, encoding="utf-8")
    path = f"table.path=file://{table.base}"
    code = cli.run(["sweep", "-c", str(config), "--set", path, *options])
    told = capsys.readouterr()
    return code, told.out + told.err


def test_a_table_without_orphaned_files_is_said_to_have_none(
    table: Table, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = sweep(table, capsys)
    assert (code, said.strip()) == (EXIT_WELL, "No orphaned files among 1 data files.")


def test_each_orphaned_file_is_listed_with_its_proof_and_goes_with_execute_alone(
    table: Table, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    late = {hold(table, DONE, 2): NOT_LISTED, hold(table, BACK, 3): ROLLED_BACK}
    late |= {hold(table, BACK, number): ROLLED_BACK for number in range(4, 20)}
    kept = hold(table, LOST, 30)
    code, said = sweep(table, capsys, "--execute")
    assert code == EXIT_WELL and "No orphaned files" in said, "they are young"
    monkeypatch.setattr(Config, "sweep_grace_ms", 0)
    code, said = sweep(table, capsys, "--output", "json")
    found = json.loads(said)
    assert code == EXIT_WELL and {one["file"]: one["proof"] for one in found["orphaned"]} == late
    assert [(one["file"], one["proof"]) for one in found["unknown"]] == [(kept, UNKNOWN)]
    assert (found["executed"], found["removed"]) == (False, 0)
    assert all((table.base / path).exists() for path in late)
    code, said = sweep(table, capsys)
    assert code == EXIT_WELL and "18 orphaned files among 20 data files. A dry run" in said
    assert all(path in said for path in (*late, kept)) and "compare .hoodie/timeline/history" in said
    code, said = sweep(table, capsys, "--execute")
    assert code == EXIT_WELL and "Removed 18 of 18 orphaned files." in said
    assert not any((table.base / path).exists() for path in late)
    assert (table.base / kept).exists()


def test_a_table_that_is_not_there_is_said_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = tmp_path / "pipeline.toml"
    config.write_text(PIPELINE, encoding="utf-8")
    assert cli.run(["sweep", "-c", str(config), "--set", f"table.path=file://{tmp_path}/no"]) == EXIT_FAILED
    assert "There is no Hudi table at" in capsys.readouterr().err
