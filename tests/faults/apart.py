"""A module of ours in a process of its own: Spark stays there, with its memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

APART_S = 300.0


def apart(module: str, log: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
    """Run it to its end. What it says is left in `log`."""
    with log.open("w") as output:
        done = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            timeout=APART_S,
            check=False,
        ).returncode
    assert done == 0, f"{module} ended with {done}: {log.read_text()[-4_000:]}"
