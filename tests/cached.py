"""What tests install or build once for a machine, below Lockstep's cache."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from control_topic.cache_folder import default_cache

NOTHING_ELSE: Mapping[str, str] = {}


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Two processes of one test run want the same thing at once."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def once(name: str, inside: str, make: Callable[[Path], None]) -> Path:
    """What is `inside` the cache's folder `name`, which appears whole or not at all; of several processes one
    makes it. `make`: into the folder that it is given, which is not there yet.
    """
    cache = default_cache()
    target, scratch = cache / name, cache / f"making-{name}"
    if (target / inside).exists():
        return target / inside
    cache.mkdir(parents=True, exist_ok=True)
    with alone(cache / f"{name}.lock"):
        if not (target / inside).exists():
            shutil.rmtree(scratch, ignore_errors=True)
            make(scratch)
            shutil.rmtree(target, ignore_errors=True)
            scratch.rename(target)
    return target / inside


def last_words(
    command: Sequence[str],
    *,
    timeout_s: float,
    folder: Path | None = None,
    environment: Mapping[str, str] = NOTHING_ELSE,
) -> str:
    """Runs it. What it said last, where it failed; else empty. `environment`: what it has beside ours."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    return (done.stderr.strip().splitlines() or ["nothing"])[-1] if done.returncode else ""
