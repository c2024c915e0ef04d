"""The file that receives the standard error of the processes that run tests, and of their children."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import IO


class StderrLog:
    """Each run has a file of its own, so that a second run in the same checkout does not overwrite it.

    The path names the file of the run that started last. Without a writable path, the file has no name.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log: IO[bytes] | None = None
        self._original: int | None = None

    def divert(self) -> None:
        """Let processes that start from now on inherit the file as their standard error."""
        self._log = self._create()
        self._original = os.dup(2)
        os.dup2(self._log.fileno(), 2)

    def restore(self) -> None:
        """Give this process its standard error back."""
        if self._original is not None:
            os.dup2(self._original, 2)
            os.close(self._original)
            self._original = None

    def lines(self) -> list[str]:
        """Return what the file has received so far."""
        if self._log is None:
            return []
        number = self._log.fileno()
        return os.pread(number, os.fstat(number).st_size, 0).decode(errors="replace").splitlines()

    def _create(self) -> IO[bytes]:
        try:
            self._path.parent.mkdir(exist_ok=True)
            self._path.unlink(missing_ok=True)
            return self._path.open("x+b")
        except OSError:
            return tempfile.TemporaryFile()
