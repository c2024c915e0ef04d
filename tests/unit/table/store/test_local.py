"""Files of this machine: how many of them may be open."""

from __future__ import annotations

import subprocess
import sys

import pytest

ASKED = "from table.store.local import LocalStore; print(LocalStore.capabilities.open_at_once)"


@pytest.mark.parametrize(("allowed", "open_at_once"), [(400, 100), (4_096, 1_000)])
def test_of_what_the_system_lets_a_process_open_a_quarter_is_for_files_that_are_written(
    allowed: int, open_at_once: int
) -> None:
    """As of a process that has many sockets and other files: one too many would end its transaction."""
    limited = f"ulimit -n {allowed} && exec {sys.executable} -c '{ASKED}'"
    said = subprocess.run(["sh", "-c", limited], capture_output=True, text=True, check=True)
    assert int(said.stdout) == open_at_once
