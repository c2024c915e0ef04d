"""OpenLineage's events, to a server or into a file.

The events are made by OpenLineage's own library. Sent they are by ours: that library's client follows
redirects, and takes settings, and more of what it says, from the environment and from files that it finds.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from control_topic.clocks import wall_ms
from lockstep.config.hooks import host_of
from lockstep.errors import ConfigError
from lockstep.hooks.commits import Commit
from lockstep.hooks.port import Ending, SinkError
from lockstep.hooks.post import Poster

if TYPE_CHECKING:
    from lockstep.hooks.lineage import Lineage

ENDPOINT = "/api/v1/lineage"
"""Of OpenLineage's HTTP API."""
TIMEOUT_S = 10.0
FILE_MODE = 0o640


class LineageSink:
    """See `lockstep.hooks.port.Sink`. `make`: of the events' maker; its library is imported then."""

    name = "openlineage"
    newest_only = False
    every_ms = 0
    patience_s = 2 * TIMEOUT_S

    def __init__(self, address: str, key: str, make: Callable[[], Lineage], *, run: str) -> None:
        check_library()
        self._make, self._run = make, run
        self._lineage: Lineage | None = None
        self._began_ms = wall_ms()
        self._send = _appending(address) if address.startswith("file://") else _posting(address, key)
        self.place = host_of(address)

    def begin(self) -> None:
        self._lineage = self._lineage or self._make()
        self._send(self._lineage.began(self._run, self._began_ms))

    def deliver(self, commit: Commit) -> None:
        assert self._lineage is not None
        self._send(self._lineage.committed(commit))

    def end(self, ending: Ending) -> None:
        assert self._lineage is not None
        self._send(self._lineage.ended(self._run, wall_ms(), ending))

    def close(self) -> None:
        """Nothing is held open."""


def check_library() -> None:
    """Raises `ConfigError` where it is missing."""
    if find_spec("openlineage") is None:
        raise ConfigError(
            'hooks.openlineage: OpenLineage\'s library is not installed: pip install "lockstep[openlineage]"'
        )


def endpoint_of(address: str) -> str:
    """Where events are sent to."""
    return address if urlsplit(address).path.strip("/") else address.rstrip("/") + ENDPOINT


def _posting(address: str, key: str) -> Callable[[str], None]:
    headers = {"Content-Type": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    poster = Poster(endpoint_of(address), headers, timeout_s=TIMEOUT_S)
    return lambda event: poster.post(event.encode(), {})


def _appending(address: str) -> Callable[[str], None]:
    """An event a line. Opened for each, so that the file may be moved away at any time."""
    path = address.removeprefix("file://")

    def append(event: str) -> None:
        try:
            file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, FILE_MODE)
            try:
                line = event.encode() + b"\n"
                if os.write(file, line) < len(line):
                    raise OSError(errno.ENOSPC, "a part of an event could be written")
            finally:
                os.close(file)
        except OSError as error:
            raise SinkError(f"{path}: {error.strerror}") from error

    return append
