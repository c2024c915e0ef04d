"""Nothing is requested or completed while this machine's clock is behind what is on the table's timeline, or
too far ahead of the file system's (table/hudi/driver/file_clock.py).

Hudi names instants by the clock of the JVM, and orders by those names: file slices, merges of a key's
changes, what is cleaned and archived. Its own generator waits for a clock that was set back as well, but
inside the table lock, in a loop without an end, and only for times that this process has given out. So the
service waits before it takes the lock: briefly here, and longer by saying that the table is not available.

The names are in the table's time zone, which Hudi keeps in a static of the JVM: local time until somebody
creates a table. So each look sets it to what this table says.

A clock that is set back between that look and the completion, some tenths of a second, still gives a
completion time that is too early. Which commit is newest does not depend on it (table/chain.py).
"""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

from control_topic.spelling import lasting
from table.errors import ClockBehind
from table.hudi.driver.java import reading
from table.hudi.driver.session import Session

WAIT_MS = 1_000
"""Waited for within a call: clocks of several machines differ by that much in peace."""
ATTEMPTS_MAX = 3
FOLD_MARGIN_MS = 60_000
_FORMAT = "%Y%m%d%H%M%S%f"


def await_clock(session: Session, *, loaded: bool = False) -> None:
    """Return when the clock is past all that the timeline bears. Raises `ClockBehind`, `Unavailable`, and
    `ClockAhead` where it is not one by which the lock may be taken. `loaded`: the timeline was, just now.

    Not to be called inside the table lock.
    """
    for _ in range(ATTEMPTS_MAX):
        behind_ms, newest = _look(session, session.meta.getActiveTimeline if loaded else session.reload)
        if not newest:
            session.lock.clock.check()
            return
        if behind_ms > WAIT_MS:
            break
        time.sleep(behind_ms / 1_000)
        loaded = False
    raise _behind(session, behind_ms, newest)


def check_clock(session: Session) -> None:
    """As `await_clock`, without waiting and without loading the timeline anew: under the table lock.

    A clock that was set forth since may have taken that lock from somebody.
    """
    behind_ms, newest = _look(session, session.meta.getActiveTimeline)
    if newest:
        raise _behind(session, behind_ms, newest)
    session.lock.clock.check()


def check_requested(session: Session, timeline: Any, instant: str) -> None:
    """Raise `ClockBehind` unless the new instant's time is greater than all others: it alone orders them."""
    newest = newest_time(timeline)
    if newest >= instant:
        raise _behind(session, _apart_ms(instant, newest) + 1, newest)


def _look(session: Session, timeline: Any) -> tuple[int, str]:
    """How far the clock is behind, ms, and behind which time; that is empty where it is not behind."""
    with reading(f"table {session.path}: its timeline cannot be read"):
        session.keep_zone()
        newest, now = max(newest_time(timeline()), _given_out(session)), _now(session)
    return (_apart_ms(now, newest) + 1, newest) if newest >= now else (0, "")


def newest_time(timeline: Any) -> str:
    """The greatest requested or completion time on a timeline, empty where nothing is on it."""
    last, completed = timeline.lastInstant(), timeline.filterCompletedInstants().getLatestCompletionTime()
    requested = str(last.get().requestedTime()) if last.isPresent() else ""
    return max(requested, str(completed.get()) if completed.isPresent() else "")


def _given_out(session: Session) -> str:
    """The last requested time that this process has made, be it on the timeline or not."""
    return str(session.hudi.common.table.timeline.HoodieInstantTimeGenerator.getLastInstantTime())


def _now(session: Session) -> str:
    """What Hudi would name an instant now."""
    generator = session.hudi.common.table.timeline.HoodieInstantTimeGenerator
    return str(generator.formatDateBasedOnTimeZone(session.jvm.java.util.Date()))


def _behind(session: Session, behind_ms: int, newest: str) -> ClockBehind:
    fold_ms = _fold_left_ms(session)
    said = (
        f"the clock is {lasting(behind_ms)} behind the table: table {session.path} bears the time {newest}, "
        f"and here it is {_now(session)}"
    )
    if fold_ms >= behind_ms:
        return ClockBehind(
            f"{said}, since summer time ended and the table's timeline is in local time; it is waited for",
            patience_ms=behind_ms + FOLD_MARGIN_MS,
        )
    return ClockBehind(
        f"{said}. It is waited for; set right what is wrong, this clock or the one that wrote that, or have "
        "Hudi's procedures called in UTC (Clocks, in docs/operations.md)"
    )


def _fold_left_ms(session: Session) -> int:
    """For how long local times will come for the second time, ms; 0 where they do not, or nobody asks."""
    if not session.in_local_time():
        return 0
    times = session.jvm.java.time
    now = times.Instant.now()
    last = times.ZoneId.systemDefault().getRules().previousTransition(now)
    if last is None or not last.isOverlap():
        return 0
    length_ms = -int(last.getDuration().toMillis())
    since_ms = int(now.toEpochMilli()) - int(last.getInstant().toEpochMilli())
    return max(0, length_ms - since_ms)


def _apart_ms(earlier: str, later: str) -> int:
    return round((_parsed(later) - _parsed(earlier)).total_seconds() * 1_000)


def _parsed(instant: str) -> datetime:
    return datetime.strptime(instant[:17].ljust(17, "0"), _FORMAT)
