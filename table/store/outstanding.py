"""Native calls in daemon threads, and the end of the process.

When Python before 3.14 finalizes, a thread that returns from a native call is ended by `pthread_exit`, which
aborts the process where the client is in Rust (see `lockstep.launch.process_end`). A process of Lockstep does
not finalize. One of others that uses a store may: so it begins no call once it ends, and waits for those that
are outstanding, for a while. A call whose server hangs for longer may still abort it.
"""

from __future__ import annotations

import atexit
import threading
import time

END_S = 5.0
"""Bound of that wait, in seconds."""


class OutstandingCalls:
    """Calls that have begun and not returned. Safe to use from any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0
        self._known_to_exit = self._closed = False

    def begin(self) -> bool:
        """Count a call that begins now, unless the process ends. Return whether it may begin."""
        with self._changed:
            if self._closed:
                return False
            if not self._known_to_exit:
                self._known_to_exit = True
                atexit.register(self.close)
            self._count += 1
            return True

    def end(self) -> None:
        """Count a call as returned, in the thread that made it."""
        with self._changed:
            self._count -= 1
            self._changed.notify_all()

    def close(self, bound_s: float = END_S) -> bool:
        """Let no call begin any more. Return whether all have returned within `bound_s`."""
        ends_s = time.monotonic() + bound_s
        with self._changed:
            self._closed = True
            while self._count and (left_s := ends_s - time.monotonic()) > 0:
                self._changed.wait(left_s)
            return not self._count
