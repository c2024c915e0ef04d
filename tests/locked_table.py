"""A table lock that somebody else has, for tests in which nothing may be committed."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.harness import await_that

LOCK_TOUCH_S = 5.0
END_S = 30.0


@contextmanager
def locked(table: Path) -> Iterator[None]:
    """Somebody else holds Hudi's table lock and is alive: the lock file is kept from expiring."""
    lock = table / ".hoodie" / ".locks" / "lock"
    lock = lock if lock.parent.is_dir() else table / ".hoodie" / "lock"
    released = threading.Event()

    def take() -> bool:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            return False
        return True

    def keep() -> None:
        while not released.wait(LOCK_TOUCH_S):
            os.utime(lock)

    await_that("moment in which the table lock is free", take)
    keeper = threading.Thread(target=keep, daemon=True)
    keeper.start()
    try:
        yield
    finally:
        released.set()
        keeper.join(END_S)
        lock.unlink()
