"""Where a driver leaves the address and the token of its live status, for `lockstep status` on this machine,
and the address of its page.

One file per pipeline, readable by its owner only, in the state directory: `$LOCKSTEP_STATE`, else
`$XDG_STATE_HOME/lockstep`, else `~/.local/state/lockstep`. A courtesy: nothing depends on it being there.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path

from control_topic.clocks import wall_ms

FILE_BYTES_MAX = 65_536
PREFIX = "run-"
RUN_FILES_MAX = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFile:
    """A driver that was alive when it wrote this."""

    pipeline: str
    run: str
    address: str
    token: str
    """A secret."""

    pid: int
    started_at_ms: int
    """Unix epoch."""

    page: str = ""
    """Where its page is; empty where there is none, or not yet."""

    config: str = ""
    """The file that it was started with, absolute."""

    sets: tuple[str, ...] = ()
    """And what its command line set beside, as `--set` spells it: never a secret."""

    def driver_is_there(self) -> bool:
        """Whether its process is. It stops answering some seconds before it is gone."""
        try:
            os.kill(self.pid, 0)
        except PermissionError:
            return True
        except (OSError, OverflowError):
            return False
        return self.pid > 0

    def __repr__(self) -> str:
        return f"RunFile(pipeline={self.pipeline!r}, run={self.run!r}, address={self.address!r})"


def state_dir() -> Path:
    """The state directory, whether it exists or not."""
    if explicit := os.environ.get("LOCKSTEP_STATE"):
        return Path(explicit)
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "lockstep"


def write_run_file(
    pipeline: str, run: str, address: str, token: str, *, config: Path | None = None, sets: Sequence[str] = ()
) -> Path:
    """Leave address and token of this process' run, in place of any earlier run's. Raises `OSError`."""
    entry = RunFile(
        pipeline=pipeline,
        run=run,
        address=address,
        token=token,
        pid=os.getpid(),
        started_at_ms=wall_ms(),
        config=str(config.absolute()) if config is not None else "",
        sets=tuple(sets),
    )
    return _write(entry)


def leave_page(pipeline: str, run: str, page: str) -> None:
    """Add where the page is to what `run` left, and to nobody else's. Raises `OSError`."""
    entry = read_run_file(pipeline)
    if entry is not None and entry.run == run:
        _write(replace(entry, page=page))


def _write(entry: RunFile) -> Path:
    path = _path(entry.pipeline)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # mkstemp makes it 0600 from the first moment; the rename makes it appear whole.
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".run-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(asdict(entry), file)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return path


def read_run_file(pipeline: str) -> RunFile | None:
    """What the pipeline's newest run on this machine left; None where there is nothing readable."""
    entry = _read(_path(pipeline))
    return entry if entry is not None and entry.pipeline == pipeline else None


def run_files() -> list[RunFile]:
    """What the newest run of each pipeline of this user left on this machine, by pipeline; the newest
    `RUN_FILES_MAX`. What somebody else has put there is not believed.

    An orderly end takes its own away: what is here goes on, or its driver was killed.
    """
    found = []
    for path in state_dir().glob(f"{PREFIX}*.json"):
        with suppress(OSError):  # taken away meanwhile
            left = path.lstat()
            if left.st_uid == os.getuid():
                found.append((left.st_mtime, path))
    read = (_read(path) for _, path in sorted(found, reverse=True)[:RUN_FILES_MAX])
    return sorted((entry for entry in read if entry is not None), key=lambda entry: entry.pipeline)


def _read(path: Path) -> RunFile | None:
    try:
        with path.open(encoding="utf-8") as file:
            values = json.loads(file.read(FILE_BYTES_MAX))
        return RunFile(
            pipeline=str(values["pipeline"]),
            run=str(values["run"]),
            address=str(values["address"]),
            token=str(values["token"]),
            pid=int(values["pid"]),
            started_at_ms=int(values["started_at_ms"]),
            page=str(values.get("page", "")),
            config=str(values.get("config", "")),
            sets=tuple(str(one) for one in values.get("sets", ())),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def remove_run_file(pipeline: str, run: str) -> None:
    """Take away what `run` left, and nobody else's."""
    entry = read_run_file(pipeline)
    if entry is not None and entry.run == run:
        _path(pipeline).unlink(missing_ok=True)


def _path(pipeline: str) -> Path:
    """A readable name that no other pipeline's id can lead to."""
    readable = re.sub(r"[^A-Za-z0-9._-]", "_", pipeline)[:100]
    return state_dir() / f"{PREFIX}{readable}-{sha256(pipeline.encode()).hexdigest()[:12]}.json"
