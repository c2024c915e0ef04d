"""What a full run found, kept beside the documentation that quotes it.

A run writes one JSON file; `docs/reliability.md` is generated from these files, so that no figure in it was
typed. Runs write into `build/evidence`; with `RECORD=1` into `docs/evidence`, which is committed.

The longest runs keep what they have found so far, and go on from it with `RESUME=1`: only where the code that
they run is the same, which a digest tells. It is that of all code and all tests, unless a run names its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "docs" / "evidence"
CODE = (
    "control_topic",
    "coordinator",
    "lockstep",
    "participant",
    "proto",
    "pyproject.toml",
    "table",
    "tests",
)


def folder() -> Path:
    """Where this run's evidence goes."""
    return RECORDED if os.environ.get("RECORD") == "1" else ROOT / "build" / "evidence"


def write(
    name: str, *, command: str, passed: bool, figures: dict[str, Any], of: Sequence[str] = CODE
) -> Path:
    """Keep the figures of one run of the files `of` as `<name>.json`; `command` is what shows them again."""
    path = folder() / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    found = {
        "name": name,
        "command": command,
        "passed": passed,
        "commit": _commit(),
        "code": code(of),
        "at": _now(),
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


def origin() -> dict[str, str]:
    """Which code gave a figure, and when, for evidence whose rows are not all of one run."""
    return {"commit": _commit(), "at": _now()}


def rows(name: str, key: str) -> list[dict[str, Any]]:
    """A list in the recorded evidence, each row with its origin; empty where nothing was recorded."""
    found = read(name)
    if found is None:
        return []
    return [{"commit": found["commit"], "at": found["at"], **row} for row in found["figures"].get(key, ())]


def unfinished(name: str, of: Sequence[str] = CODE) -> dict[str, Any] | None:
    """The figures that a run of this very code has kept so far, where it is to be gone on with."""
    path = folder() / f"{name}.json"
    if os.environ.get("RESUME") != "1" or not path.exists():
        return None
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    figures: dict[str, Any] = found["figures"]
    return figures if code(of) and found.get("code") == code(of) else None


def code(of: Sequence[str] = CODE) -> str:
    """A digest of all code and tests, or of these files; empty where they were changed and not committed."""
    if _git("status", "--porcelain", "--", *of):
        return ""
    return hashlib.sha256(_git("ls-files", "--stage", "--", *of).encode()).hexdigest()[:16]


def loaded() -> list[str]:
    """The project's own modules that this process has imported, as files relative to its root."""
    files = (
        Path(module.__file__) for module in list(sys.modules.values()) if getattr(module, "__file__", None)
    )
    own = (file.relative_to(ROOT) for file in files if file.is_relative_to(ROOT))
    return sorted({str(file) for file in own if file.parts[0] in CODE})


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _commit() -> str:
    """The commit that ran, with a `+` where code or tests had changes, which evidence is not."""
    return (_git("describe", "--always").strip() or "unknown") + ("" if code() else "+")
