"""What compactions and clusterings have in common: how they are planned, and taken away from a dead driver.

A driver that dies leaves one pending, or one that is paused goes on with it after its successor has begun. So
a successor takes what is pending of its pipeline away, under the table lock, and plans anew. Who completes
one looks, under the same lock, whether it is still there: Hudi does so too late (table/hudi/guard.py). Plans
of others are left alone, and so are those of `schedule`, which are for others to carry out.

A paused driver may write files for what was taken away once it goes on, and those of a clustering have names
of Hudi's own, by which the sweep cannot tell whose they are: so the instant is noted, for a week.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from table.errors import Refused, Unavailable
from table.hudi.clock import await_clock
from table.hudi.guard import guarded
from table.hudi.history import rollbacks
from table.hudi.java import changing, reading
from table.hudi.session import Session
from table.state import PREFIX

log = logging.getLogger(__name__)

NOTES = Path(".hoodie", ".lockstep", "taken_away")
"""Empty files, named as the instants; Hudi has no use for this folder."""
NOTED_S = 7 * 24 * 3600

OWNER = PREFIX + "compaction"
"""In a plan's metadata, of clusterings, too: the pipeline whose driver carries it out."""

T = TypeVar("T")


class Pending(NamedTuple):
    """A plan that is not complete. `owner`: see `OWNER`, empty where it is others'. `plan`: Hudi's own."""

    instant: str
    owner: str
    plan: Any


def schedule(
    session: Session, action: str, owner: str, ask: Callable[[Any], Any], about: Callable[[str], T]
) -> T | None:
    """Plan one for what is committed; what `about` says of its instant, None where Hudi finds nothing due.

    `ask`: Hudi's client for it. `owner`: the pipeline that carries it out, empty where it is left to others.
    """
    marked = session.java_map({OWNER: owner} if owner else {})
    await_clock(session)
    with changing(f"table {session.path}: no {action} could be planned", session.lock_folder):
        session.reload()
        planned = ask(session.some(marked))
        if not planned.isPresent():
            return None
        session.reload()
        return about(str(planned.get()))


@contextmanager
def completing(session: Session, action: str, instant: str) -> Iterator[None]:
    """What Hudi completes inside is completed only if it was not taken away: looked up under the table lock.

    Raises `Refused` where it was.
    """

    def look() -> None:
        session.holder.note()
        with reading(f"table {session.path}: its timeline cannot be read"):
            opened = session.reload().filterInflights().getInstants()
            held = any((one.getAction(), one.requestedTime()) == (action, instant) for one in opened)
            if not held or instant in rollbacks(session):
                raise Refused(f"{action} {instant} of table {session.path} was taken away by a later run")

    with guarded(session, look):
        yield


def abandon(
    session: Session,
    action: str,
    pipeline: str,
    pending: Callable[[], Iterable[Pending]],
    folders: Callable[[Any], set[str]],
) -> list[str]:
    """Take away what is pending of this pipeline and the files that were made for it; the instants.

    `pending`: everybody's, asked under the table lock. `folders`: the table partitions of a plan.
    """
    doing = f"table {session.path}: a {action} that was left behind could not be taken away"
    with changing(doing, session.lock_folder):
        session.holder.free_if_dead()
        with session.locked():
            session.reload()
            ours = [one for one in pending() if one.owner == pipeline]
            begun = {one.instant: _stop(session, action, one.instant) for one in ours}
        for one in ours:
            _roll_back(session, begun[one.instant])
            with session.locked():
                session.reload()
                session.remove_pending(action, one.instant)
                _note(session, one.instant)  # not before: until now it could have been completed
                remove_files(session, folders(one.plan), one.instant)
            log.warning("%s %s was begun and not completed: it is taken away", action, one.instant)
    return [one.instant for one in ours]


def _stop(session: Session, action: str, instant: str) -> tuple[Any, Any] | None:
    """From here on it cannot be completed: its rollback, requested where there is none, and what it is of.

    None where nobody has begun to carry the plan out. Under the table lock, after a reload.
    """
    states = session.hudi.common.table.timeline.HoodieInstant.State
    inflight = session.meta.createNewInstant(states.INFLIGHT, action, instant)
    requested = rollbacks(session).get(instant)
    if requested is not None:
        return requested.getRollbackInstant().requestedTime(), inflight
    if not session.meta.getActiveTimeline().containsInstant(inflight):
        return None
    time = session.client.createNewInstantTime(False)
    engine = session.client.getEngineContext()
    planned = session.table().scheduleRollback(engine, time, inflight, False, False, False)
    if not planned.isPresent():
        raise Unavailable(f"{action} {instant}: Hudi planned no rollback; it will be asked again")
    return time, inflight


def _roll_back(session: Session, begun: tuple[Any, Any] | None) -> None:
    """Also out of the metadata table, which Hudi writes first: whoever was killed in between is in it."""
    if begun is not None:
        time, inflight = begun
        session.table().rollback(session.client.getEngineContext(), time, inflight, True, False)


def remove_files(session: Session, folders: Iterable[str], instant: str) -> None:
    """Remove base files and markers, in these table partitions, of an instant that is on no timeline."""
    for folder in folders:
        for path in (Path(session.path) / folder).glob(f"*_{instant}.parquet"):
            path.unlink(missing_ok=True)
    shutil.rmtree(Path(session.path) / ".hoodie" / ".temp" / instant, ignore_errors=True)


def taken_away(path: Path) -> set[str]:
    """The instants that were taken away from this table within the week."""
    found: set[str] = set()
    with contextlib.suppress(FileNotFoundError):
        for note in (path / NOTES).iterdir():
            if note.stat().st_mtime > time.time() - NOTED_S:
                found.add(note.name)
            else:
                note.unlink(missing_ok=True)
    return found


def _note(session: Session, instant: str) -> None:
    note = Path(session.path) / NOTES / instant
    note.parent.mkdir(parents=True, exist_ok=True)
    note.touch()
