"""What a full run found, kept beside the documentation that quotes it.

A run writes one JSON file; `docs/reliability.md` is generated from these files, so that no figure in it was
typed. Runs write into `build/evidence`; with `RECORD=1` into `docs/evidence`, which is committed.
"""

from __future__ import annotations

import json
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "docs" / "evidence"


def folder() -> Path:
    """Where this run's evidence goes."""
    return RECORDED if os.environ.get("RECORD") == "1" else ROOT / "build" / "evidence"


def write(name: str, *, command: str, passed: bool, figures: dict[str, Any]) -> Path:
    """Keep the figures of one run as `<name>.json`; `command` is what shows them again."""
    path = folder() / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    found = {
        "name": name,
        "command": command,
        "passed": passed,
        "commit": _commit(),
        "at": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cpus": os.cpu_count(),
        "figures": figures,
    }
    path.write_text(json.dumps(found, indent=1, sort_keys=False) + "\n", encoding="utf-8")
    return path


def read(name: str) -> dict[str, Any] | None:
    """The recorded evidence of this name, None where no full run was recorded yet."""
    path = RECORDED / f"{name}.json"
    if not path.exists():
        return None
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _commit() -> str:
    """The commit that ran, with a `+` where the work tree had changes."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty=+"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return described.stdout.strip() or "unknown"
