"""`lockstep dead-letters` before it asks a broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep import cli
from lockstep.commands.dead_letters import SCHEMA_BYTES_MAX
from lockstep.errors import EXIT_USAGE
from tests.unit.lockstep.test_cli import PIPELINE


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    path = tmp_path / "pipeline.toml"
    path.write_text(PIPELINE, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--execute", "--why", "x"], "--replay"),
        (["--by-key"], "--replay"),
        (["--other-group", "g"], "--replay"),
        (["--replay", "--follow"], "leave --follow out"),
        (["--replay", "--execute"], "--why TEXT"),
        (["--replay", "--execute", "--why", " "], "--why TEXT"),
        (["--replay", "--execute", "--why", "x", "--schema", "a STRING"], "mend that"),
        (["--record", "events:x"], "--record"),
        (["--since", "yesterday"], "--since"),
        (["--schema", "event_id"], "record.schema"),
    ],
)
def test_what_makes_no_sense_together_is_refused_before_anything_is_asked(
    pipeline: Path, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    assert cli.run(["dead-letters", "-c", str(pipeline), *options]) == EXIT_USAGE
    told = capsys.readouterr()
    assert said in told.err and not told.out


def test_a_schema_is_read_from_a_file_of_a_reasonable_size(
    pipeline: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    schema = tmp_path / "mended.ddl"
    for content, said in (
        (b"event_id WRONG\n", "WRONG"),
        (b"\xff", "UTF-8"),
        (b" " * (SCHEMA_BYTES_MAX + 1), "bytes"),
    ):
        schema.write_bytes(content)
        assert cli.run(["dead-letters", "-c", str(pipeline), "--schema", str(schema)]) == EXIT_USAGE
        assert said in capsys.readouterr().err


def test_a_schema_longer_than_any_path_is_a_schema(
    pipeline: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = ", ".join(f"column_{number} WRONG" for number in range(1_000))
    assert cli.run(["dead-letters", "-c", str(pipeline), "--schema", schema]) == EXIT_USAGE
    assert "not Spark DDL" in capsys.readouterr().err
