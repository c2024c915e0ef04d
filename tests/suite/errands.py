"""Commands that run beside the tests: what they say is kept, and shown where they fail."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from typing import IO


class Errand:
    """One command, started at once."""

    def __init__(self, command: str) -> None:
        self.command = command
        self._outcome = ""
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._process = subprocess.Popen(
            shlex.split(command),
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=subprocess.STDOUT,
        )

    @property
    def code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    @property
    def done(self) -> bool:
        return self.code == 0

    def wait(self, timeout_s: float) -> None:
        """Wait until it ends. After `timeout_s` it is killed, and has failed."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            self._outcome = f"did not end within {timeout_s:.0f} s"

    def failure(self) -> str:
        """Empty while it runs and where it succeeded; else what it said."""
        if not self.code:
            return ""
        self._said.seek(0)
        said = self._said.read().decode(errors="replace").strip()
        return f"{self.command} {self._outcome or f'ended with {self.code}'}:\n{said}"

    def close(self) -> None:
        """It is ended where it still runs."""
        self._process.kill()
        self._process.wait()
        self._said.close()
