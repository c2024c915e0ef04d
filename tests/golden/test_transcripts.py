"""Golden transcripts: scripts with the whole conversation that each command causes, compared as a diff.

A changed protocol shows as a changed conversation. `LOCKSTEP_REGENERATE=1 pytest tests/golden` writes
what is said now; the diff is then read before it is committed.
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path

import pytest

from tests.golden.pair import Pair

SCRIPTS = sorted(Path(__file__).parent.glob("*.txt"))
INDENT = "    "


def conversation(script: str) -> str:
    """The script with what is said now: comments and commands are kept, everything else is made anew."""
    pair = Pair()
    lines: list[str] = []
    for line in script.splitlines():
        if line.startswith("> "):
            lines += [line, *(INDENT + said for said in pair.run(line[2:]))]
        elif not line.startswith(INDENT):
            lines.append(line)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_the_conversation_is_as_written(path: Path) -> None:
    written = path.read_text(encoding="utf-8")
    said = conversation(written)
    if os.environ.get("LOCKSTEP_REGENERATE"):
        path.write_text(said, encoding="utf-8")
        return
    diff = "\n".join(
        difflib.unified_diff(written.splitlines(), said.splitlines(), "written", "said", lineterm="")
    )
    if diff:
        pytest.fail(f"{path.name} differs; LOCKSTEP_REGENERATE=1 accepts it:\n{diff}", pytrace=False)


def test_there_are_scripts() -> None:
    assert len(SCRIPTS) >= 8
