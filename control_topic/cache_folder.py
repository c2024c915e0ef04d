"""Where what was downloaded, and is worth keeping, stands on this machine."""

from __future__ import annotations

import os
from pathlib import Path


def default_cache() -> Path:
    """`$LOCKSTEP_CACHE`, or `lockstep` in the user's cache folder."""
    if explicit := os.environ.get("LOCKSTEP_CACHE"):
        return Path(explicit)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lockstep"
