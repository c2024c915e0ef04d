"""What a full run found, kept beside the documentation that quotes it.

A run writes one JSON file; `docs/reliability.md` is generated from these files, so that no figure in it was
typed. Runs write into `build/evidence`; with `RECORD=1` into `docs/evidence`, which is committed.

Each file names the code that it covers (`covers`) and the digest of that code (`code`), which is empty if the
code had uncommitted changes. Rows that different runs have found have a digest each.

The longest runs keep the figures so far, and `RESUME=1` continues from them if the digest is still the same.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.covers import DEFAULT, PRODUCT, cover_of
from tests.git_tree import RECORDING, committed_tree, git, working_tree

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "docs" / "evidence"
ROOMS = {*PRODUCT, "bench", "tests"}
"""Folders that hold modules of the project."""


def folder() -> Path:
    """Where this run's evidence goes."""
    return RECORDED if os.environ.get("RECORD") == "1" else ROOT / "build" / "evidence"


def write(
    name: str,
    *,
    command: str,
    passed: bool,
    figures: dict[str, Any],
    of: Sequence[str] | None = None,
) -> Path:
    """Write the figures of one run as `<name>.json`.

    `command`: shows them again; `of`: the code that they cover, by default that of the registry.
    """
    path = folder() / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    covers = cover_paths(name) if of is None else sorted(of)
    found = {
        "name": name,
        "command": command,
        "passed": passed,
        **_state(covers),
        "covers": covers,
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


def origin(of: Sequence[str]) -> dict[str, str]:
    """Return commit, digest and time of a row, for evidence whose rows are not all of one run."""
    return _state(of)


def rows(name: str, key: str) -> list[dict[str, Any]]:
    """Return a list of the recorded evidence, each row with its origin; empty where nothing was recorded.

    The origin is that of the evidence, unless the row has its own.
    """
    found = read(name)
    if found is None:
        return []
    shared = {part: found[part] for part in ("commit", "code", "at")}
    return [row if "commit" in row else {**shared, **row} for row in found["figures"].get(key, ())]


def unfinished(name: str, of: Sequence[str] | None = None) -> dict[str, Any] | None:
    """Return the figures that a run of the same code has kept so far, if `RESUME=1` asks for them."""
    path = folder() / f"{name}.json"
    if os.environ.get("RESUME") != "1" or not path.exists():
        return None
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    figures: dict[str, Any] = found["figures"]
    now = code(cover_paths(name) if of is None else of)
    return figures if now and found.get("code") == now else None


def cover_paths(name: str) -> list[str]:
    """Return the cover of a proof that is being recorded."""
    cover = cover_of(name)
    return loaded() if cover.only_loaded else sorted(cover.paths)


def code(of: Sequence[str] = DEFAULT.paths) -> str:
    """Return the digest of this code; empty where it has changes that are not committed, or without git."""
    committed, now = committed_tree(ROOT), working_tree(ROOT).digest(of)
    return now if committed is not None and now == committed.digest(of) else ""


def loaded() -> list[str]:
    """Return the files of the project's own modules that this process has imported, relative to its root."""
    files = (
        Path(module.__file__) for module in list(sys.modules.values()) if getattr(module, "__file__", None)
    )
    own = (file.relative_to(ROOT) for file in files if file.is_relative_to(ROOT))
    return sorted({str(file) for file in own if file.parts[0] in ROOMS}.difference(RECORDING))


def _state(of: Sequence[str]) -> dict[str, str]:
    """Return commit, digest and time; a commit whose code had changes has a `+`."""
    digest_now = code(of)
    commit = git("describe", "--always", root=ROOT).strip()
    state = commit + ("" if digest_now else "+") if commit else "unknown"
    return {"commit": state, "code": digest_now, "at": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")}
