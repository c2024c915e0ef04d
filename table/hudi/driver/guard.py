"""A look at the table inside the lock that Hudi takes to complete a compaction or a clustering.

Hudi 1.2.0 writes to the metadata table first, and looks for the instant on the timeline only then. One that
was taken away meanwhile fails there, and the metadata table names its files for ever: readers then miss what
was committed after it. A commit has a place for a check (the `preCommitFunc` of `commitStats`), these have
none; so the lock itself asks. Hudi drops a lock provider with each unlock: a guard is for one completion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from table.errors import TableError
from table.hudi.driver.java import FAILED
from table.hudi.driver.session import Session
from table.hudi.driver.watchdog import Watchdog


class Guard:
    """Implements Hudi's `LockProvider`: the real one, and `look`, which raises where nothing may be
    completed; `before` does so where the lock is not to be taken. Takes no Python lock.

    Hudi unlocks and closes also where it was refused the lock, and a file lock then removes anybody's file:
    so that is passed on only while this one holds it.
    """

    def __init__(
        self,
        provider: Any,
        look: Callable[[], None],
        watchdog: Watchdog,
        before: Callable[[], None] = lambda: None,
    ) -> None:
        self._provider = provider
        self._before = before
        self._look = look
        self._watchdog = watchdog
        self._watched = ExitStack()
        self._held = False
        self.asked = 0
        self.objection: TableError | None = None

    def tryLock(self, time: int, unit: Any) -> bool:
        self._watched.close()
        try:
            self._before()
        except TableError as error:
            self.objection = error
            raise
        self._watched.enter_context(self._watchdog.armed())
        if not self._provider.tryLock(time, unit):
            return False
        self._held = True
        self.asked += 1
        try:
            self._look()
        except TableError as error:
            self.objection = error
            self.unlock()
            raise
        self.objection = None  # of an earlier look, after which Hudi has asked again
        return True

    def unlock(self) -> None:
        if self._held:
            self._held = False
            try:
                self._provider.unlock()
            finally:
                self._provider.close()  # also where it could not be given back: else it counts as held here
        self._watched.close()

    def close(self) -> None:
        self.unlock()

    def getLock(self) -> Any:
        return self._provider.getLock()

    def getCurrentOwnerLockInfo(self) -> str:
        return str(self._provider.getCurrentOwnerLockInfo())

    class Java:
        implements = ("org.apache.hudi.common.lock.LockProvider",)


@contextmanager
def guarded(
    session: Session, look: Callable[[], None], before: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """What the session's table services complete inside is completed after `look`, in the same lock.

    `before`: a look that takes longer, before the lock is taken, which is tried again.

    A driver that is stopped while it holds that lock is killed, as at a commit, and so is one whose JVM holds
    it for nearly as long as it lives. Raises what `look` raised.
    """
    manager = session.client.getTableServiceClient().getTransactionManager().getLockManager()
    provider = manager.getLockProvider()
    watchdog = Watchdog(session.jvm_pid())

    def first() -> None:
        before()
        session.lock.clock.check()

    guard = Guard(provider, look, watchdog, first)
    field = manager.getClass().getDeclaredField("lockProvider")
    field.setAccessible(True)
    field.set(manager, guard)
    try:
        yield
    except FAILED as error:
        if guard.objection is not None:
            raise guard.objection from error
        raise
    finally:
        guard.close()
        watchdog.close()
        # Hudi drops it with an unlock, but not with one that failed.
        field.set(manager, None if guard.asked else provider)
    if not guard.asked:
        raise RuntimeError("Hudi has completed it without the table lock that asks first")
