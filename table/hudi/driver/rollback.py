"""Rolling one instant back without ever touching a complete one.

The write client's plain `rollback` finds instants by their requested time, complete ones included, and takes
the lock itself; inside the lock it never returns. So the rollback is requested under the lock, after a reload
that proves the instant incomplete, and carried out when the lock is given back. A commit whose check refuses
an instant that a requested rollback names can then never meet it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from table.errors import Refused, Unavailable
from table.hudi.driver.asking import elements
from table.hudi.driver.fence import Fence
from table.hudi.driver.history import History, rollbacks
from table.hudi.driver.java import changing, reading
from table.hudi.driver.session import Session
from table.hudi.driver.watchdog import Watchdog

log = logging.getLogger(__name__)


@contextmanager
def table_lock(session: Session, watchdog: Watchdog) -> Iterator[None]:
    """Hudi's table lock, watched over. A dead holder is not waited for."""
    session.lock.holder.free_if_dead()
    with watchdog.armed(), session.locked():
        yield


def roll_back(session: Session, history: History, watchdog: Watchdog, fence: Fence, instant: str) -> bool:
    """Remove an instant of ours and its files; False where it proved to be complete. May be repeated."""
    doing = f"instant {instant} could not be rolled back"
    with changing(doing, session.lock.folder):
        with table_lock(session, watchdog):
            rollback = _request(session, history, instant, fence)
        complete = _is_complete(session, instant) or history.archived(instant) is not None
        if complete and rollback is not None:
            if fence.keep(instant):
                _withdraw(session, instant)
                return False
            take_back_late(session, watchdog, fence)  # its files may be gone already
        if rollback is None:
            return not complete
        service = session.client.getTableServiceClient()
        with watchdog.armed():  # Hudi takes the lock in the end, for its metadata table
            done = service.rollback(instant, session.some(rollback), False, False)
        if not done and instant in _open_rollbacks(session):
            raise Unavailable(f"{doing}: another process rolls it back, or died doing so within two minutes")
        session.let_die(instant)
    return True


def _request(session: Session, history: History, instant: str, fence: Fence) -> Any | None:
    """The rollback to carry out, requested now or found; None where there is nothing to roll back."""
    pending = {one.time: one for one in history.pending()}.get(instant)
    requested = rollbacks(session)
    if instant in requested:
        return requested[instant]
    if pending is None:
        return None
    if not history.ours(pending):
        raise Refused(f"instant {instant} is not one of this pipeline: it is left alone")
    fence.roll_back(instant)
    time = session.client.createNewInstantTime(False)
    plan = session.table().scheduleRollback(
        session.client.getEngineContext(), time, pending.instant, False, True, False
    )
    if not plan.isPresent():
        raise Unavailable(f"instant {instant}: Hudi planned no rollback; ask again")
    session.reload()
    return rollbacks(session)[instant]


def settle(session: Session, history: History, watchdog: Watchdog, fence: Fence) -> None:
    """Bring to its end what other drivers, or this one, have left of rollbacks."""
    if not fence.needed:
        return
    for instant in take_back_late(session, watchdog, fence):
        log.warning(
            "table %s: instant %s was completed by a driver that stood still, after it had been rolled back: "
            "it is taken off the timeline",
            *(session.path, instant),
            extra={"instant": instant},
        )
    for instant in take_back_requested(session, history, watchdog, fence):
        log.warning(
            "Removed the request of an instant that came after its rollback: table=%s instant=%s",
            *(session.path, instant),
            extra={"instant": instant},
        )
    finish(session, history, watchdog, fence)


def take_back_late(session: Session, watchdog: Watchdog, fence: Fence) -> list[str]:
    """Remove completions of commits that had been overruled; which they were.

    Their files are gone, or will be: readers of the timeline would look for them. Those whose inflight file
    is there still are open again, and rolled back like others.
    """
    suspects = fence.overruled()
    if not suspects or not (late := _late(session, suspects)):
        return []
    doing = "a completion that came too late could not be taken back"
    with changing(doing, session.lock.folder), table_lock(session, watchdog):
        late = _late(session, suspects)
        for instant in late.values():
            session.meta.getActiveTimeline().deleteInstantFileIfExists(instant)
    return sorted(late)


def take_back_requested(session: Session, history: History, watchdog: Watchdog, fence: Fence) -> list[str]:
    """Remove the requested files of instants of ours that have been rolled back. Return these instants.

    A store may carry out the request of an instant after its rollback. No rollback names the instant then, as
    no inflight file says whose it is, and no sweep removes its files, as it is pending.
    """
    if not (late := _requested_late(session, history, fence)):
        return []
    doing = "a request that came too late could not be removed"
    with changing(doing, session.lock.folder), table_lock(session, watchdog):
        late = _requested_late(session, history, fence)
        return [instant for instant in late if remove_requested(session, history, instant)]


def _requested_late(session: Session, history: History, fence: Fence) -> list[str]:
    """Instants without an inflight file that a driver of ours has decided over, and none is rolling back."""
    requested = [one.time for one in history.pending() if not one.instant.isInflight()]
    if not requested:
        return []
    with reading(f"table {session.path}: its timeline cannot be read"):
        rolled_back = rollbacks(session)
    decided = fence.decided()
    return [instant for instant in requested if instant in decided and instant not in rolled_back]


def remove_requested(session: Session, history: History, instant: str) -> bool:
    """Remove the requested file of an instant without an inflight file. Only inside the table lock.

    Return whether it is gone. Hudi looks for the first file before it makes the second: one that it makes all
    the same gets the first again, and is rolled back like others.
    """
    states = session.hudi.common.table.timeline.HoodieInstant.State
    requested = session.meta.createNewInstant(states.REQUESTED, history.action, instant)
    session.meta.getActiveTimeline().deleteInstantFileIfExists(requested)
    if any(one.time == instant for one in history.pending()):
        session.meta.getActiveTimeline().createNewInstant(requested)
        return False
    return True


def _late(session: Session, suspects: Sequence[str]) -> dict[str, Any]:
    with reading(f"table {session.path}: its timeline cannot be read"):
        complete = session.reload().getCommitsTimeline().filterCompletedInstants().getInstants()
        return {time: one for one in elements(complete) if (time := str(one.requestedTime())) in suspects}


def finish(session: Session, history: History, watchdog: Watchdog, fence: Fence) -> None:
    """Carry on with rollbacks of ours that `History.unfinished` says nothing of any more: whoever was at them
    had removed the inflight files, which say whose the instants are. What cannot be done now is left.
    """
    with reading(f"table {session.path}: its timeline cannot be read"):
        session.reload()
        requested = {
            instant
            for instant, pending in rollbacks(session).items()
            if str(pending.getRollbackPlan().getInstantToRollback().getAction()) == history.action
        }
    if not requested or not (begun := requested & fence.decided()):
        return
    for instant in sorted(begun - {one.time for one in history.pending() if one.instant.isInflight()}):
        try:
            roll_back(session, history, watchdog, fence, instant)
        except Unavailable as error:
            log.warning(
                "the rollback of instant %s is left half done, and gone on with later: %s",
                *(instant, error),
                extra={"instant": instant},
            )


def _withdraw(session: Session, instant: str) -> None:
    """Take back what was requested for an instant that has completed since: Hudi would carry it out one day.

    Its writer had checked before the request and was paused for longer than its lock lives.
    """
    session.meta.getActiveTimeline().deletePending(_open_rollbacks(session)[instant].getRollbackInstant())
    session.reload()


def _open_rollbacks(session: Session) -> dict[str, Any]:
    session.reload()
    return rollbacks(session)


def _is_complete(session: Session, instant: str) -> bool:
    timeline = session.reload()
    return bool(timeline.getCommitsTimeline().filterCompletedInstants().containsInstant(instant))
