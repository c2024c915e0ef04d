"""Something is looked at from time to time, beside everything else."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Looking:
    """A thread that calls `look` every `every_s`, first after that time, while it answers True."""

    def __init__(self, name: str, look: Callable[[], bool], *, every_s: float, join_s: float) -> None:
        self._look, self._every_s, self._join_s = look, every_s, join_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Wait for a look that goes on, for `join_s` at most."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(self._join_s)

    def _run(self) -> None:
        while not self._stopping.wait(self._every_s) and self._look():
            pass
