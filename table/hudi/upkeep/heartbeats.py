"""Heartbeats of instants that are complete: Hudi removes each with its commit, and goes on where it cannot.

Nobody reads what is left of them. But where one may not be removed nothing else may, and cleaning and sweeps
come later: it is the first that an operator can learn of a permission that somebody has taken away.
"""

from __future__ import annotations

import logging
from collections import deque

from table.hudi.layout import HEARTBEATS
from table.store.port import Store

LEFT_MAX = 10_000
"""Of those that could not be removed: a day, at a commit every ten seconds. Older ones stay."""
AT_ONCE_MAX = 20
"""Of them: whoever wants the table waits meanwhile, and each is two requests."""

log = logging.getLogger(__name__)


class Heartbeats:
    """Of this process's commits."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._left: deque[str] = deque(maxlen=LEFT_MAX)
        self._refused = False

    def completed(self, instant: str) -> None:
        self._left.append(instant)

    def clear(self) -> None:
        """Remove some of what Hudi has left. What may not be removed is said once, and tried again."""
        for _ in range(min(len(self._left), AT_ONCE_MAX)):
            path = f"{HEARTBEATS}/{self._left[0]}"
            try:
                self._store.delete(path)
            except OSError as error:
                if not self._refused:
                    self._refused = True
                    log.warning(
                        "%s, of an instant that is complete, could not be removed: %s. Commits go on, but "
                        "nothing can be cleaned up until it can; it is tried again with each commit",
                        *(self._store.place(path), error.strerror),
                    )
                return
            self._left.popleft()
            if self._refused:
                self._refused = False
                log.info("heartbeats of instants that are complete can be removed again")
