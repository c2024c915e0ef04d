"""What compactions and clusterings have in common: how they are planned, and taken away from a dead driver.

A driver that dies leaves one pending, or one that is paused goes on with it after its successor has begun. So
a successor takes what is pending of its pipeline away, under the table lock, and plans anew. Who completes
one looks, under the same lock, whether it is still there: Hudi does so too late (table/hudi/driver/guard.py).
Plans of others are left alone, and so are those of `schedule`, which are for others to carry out.

Anybody's CALL run_compaction or run_clustering carries out every plan that is pending, ours too, and knows of
no look: were one taken away under its hands, it would write to the metadata table and fail after that. So a
driver of ours notes which plan it is about to carry out, and what somebody else has begun is left to them:
an inflight file that no note of ours precedes by moments, or that was made after our own was rolled back.
Times of files are compared with each other only: one file server has made them all.

A paused driver may write files for what was taken away once it goes on, and those of a clustering have names
of Hudi's own, by which the sweep cannot tell whose they are: so the instant is noted, for a week.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from table.errors import Refused, Unavailable
from table.hudi.driver.clock import await_clock
from table.hudi.driver.guard import guarded
from table.hudi.driver.history import rollbacks
from table.hudi.driver.java import changing, reading
from table.hudi.driver.rollback import table_lock
from table.hudi.driver.session import Session
from table.hudi.driver.watchdog import Watchdog
from table.state import PREFIX

log = logging.getLogger(__name__)

NOTES = Path(".hoodie", ".lockstep", "taken_away")
"""Empty files, named as the instants; Hudi has no use for this folder."""
NOTED_S = 7 * 24 * 3600

BEGUN = Path(".hoodie", ".lockstep", "begun")
"""Files named as the instants that a driver of ours was about to carry out, as old as that."""
BEGINS_WITHIN_S = 30
"""Hudi marks a plan as begun so soon after its client was told to carry it out."""

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


class Tidied(NamedTuple):
    """`taken`: the instants that were taken away. `left`: those that somebody else carries out."""

    taken: list[str]
    left: list[str]

    def objection(self, action: str) -> str:
        """What is to be said of those that were left; empty where none was."""
        if not self.left:
            return ""
        return (
            f"{action} {', '.join(self.left)} was planned by this pipeline and begun by somebody else, so it "
            "is theirs to complete: until it is, its file groups wait and nothing after it is archived. If "
            f"nobody is at it any more, CALL run_{action}(op => 'execute') completes it"
        )


def begin(session: Session, action: str, instant: str) -> None:
    """Note that a driver of this pipeline carries the plan out; right before it does.

    Raises `Refused` where somebody else has begun.
    """
    if _inflight(session, action, instant) is not None:
        raise Refused(f"{action} {instant} of table {session.path} is carried out by somebody else already")
    note = Path(session.path) / BEGUN / instant
    note.parent.mkdir(parents=True, exist_ok=True)
    with note.open("w", encoding="ascii") as file:
        file.write(action)
        file.flush()
        os.fsync(file.fileno())


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
) -> Tidied:
    """Take away what is pending of this pipeline and the files that were made for it.

    `pending`: everybody's, asked under the table lock. `folders`: the table partitions of a plan.
    """
    taken: list[str] = []
    left: list[str] = []
    doing = f"table {session.path}: a {action} that was left behind could not be taken away"
    watchdog = Watchdog(session.jvm_pid())
    with contextlib.closing(watchdog), changing(doing, session.lock_folder):
        with table_lock(session, watchdog):
            session.reload()
            found = [one for one in pending() if one.owner == pipeline]
            seen = {one.instant: _inflight(session, action, one.instant) for one in found}
            ours = [one for one in found if _is_ours(session, one.instant, seen[one.instant])]
            begun = {one.instant: _stop(session, action, one.instant) for one in ours}
            _forget(session)
        left += [one.instant for one in found if one not in ours]
        for one in ours:
            _roll_back(session, begun[one.instant])
            with table_lock(session, watchdog):
                session.reload()
                if not _remove(session, action, one.instant, seen[one.instant]):
                    left.append(one.instant)
                    continue
                _note(session, one.instant)  # not before: until now it could have been completed
                remove_files(session, folders(one.plan), one.instant)
            taken.append(one.instant)
            log.warning("%s %s was begun and not completed: it is taken away", action, one.instant)
    return Tidied(taken, left)


class Made(NamedTuple):
    """Which file it is: one that is made anew differs in the times at least, Unix epoch."""

    inode: int
    changed_ns: int
    modified_ns: int


def _made(path: Path) -> Made | None:
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return Made(stat.st_ino, stat.st_ctime_ns, stat.st_mtime_ns)


def _inflight(session: Session, action: str, instant: str) -> Made | None:
    """The file that says that somebody has begun to carry the plan out; it stays when that is complete."""
    return _made(_timeline(session) / f"{instant}.{action}.inflight")


def _timeline(session: Session) -> Path:
    name = session.meta.getTableConfig().propsMap().get("hoodie.timeline.path")
    return Path(session.path) / ".hoodie" / str(name or "timeline")


def _is_ours(session: Session, instant: str, inflight: Made | None) -> bool:
    """Whether nobody but a driver of this pipeline has begun to carry a plan of this pipeline out."""
    if inflight is None:
        return True
    note = _made(Path(session.path) / BEGUN / instant)
    if note is None or not 0 <= inflight.modified_ns - note.modified_ns <= BEGINS_WITHIN_S * 10**9:
        return False
    rolled_back = _rolled_back(session, instant)
    return rolled_back is None or inflight.modified_ns < rolled_back.modified_ns


def _rolled_back(session: Session, instant: str) -> Made | None:
    """When a rollback of this pending instant was completed last: somebody made it ready to begin anew."""
    timeline = session.meta.getActiveTimeline()
    for one in timeline.getRollbackTimeline().filterCompletedInstants().getReverseOrderedInstants().toArray():
        if str(one.requestedTime()) < instant:
            break
        if instant in timeline.readRollbackMetadata(one).getCommitsRollback():
            name = session.meta.getInstantFileNameGenerator().getFileName(one)
            return _made(_timeline(session) / str(name))
    return None


def _remove(session: Session, action: str, instant: str, seen: Made | None) -> bool:
    """Take a plan off the timeline; False where somebody has begun, or begun anew, since it was looked at.

    Under the table lock, which nobody needs to begin: so the plan goes first, and the look follows.
    """
    plan = _timeline(session) / f"{instant}.{action}.requested"
    aside = Path(session.path) / BEGUN / plan.name
    aside.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        plan.rename(aside)
    if _inflight(session, action, instant) not in (seen, None):
        with contextlib.suppress(FileNotFoundError):
            aside.rename(plan)
        return False
    session.remove_pending(action, instant)
    aside.unlink(missing_ok=True)
    plan.with_name(f".{plan.name}.crc").unlink(missing_ok=True)  # Hadoop's, where it keeps checksums
    return True


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
        session.table().rollback(session.client.getEngineContext(), time, inflight, False, False)


def remove_files(session: Session, folders: Iterable[str], instant: str) -> None:
    """Remove base files and markers, in these table partitions, of an instant that is on no timeline."""
    for folder in folders:
        for path in (Path(session.path) / folder).glob(f"*_{instant}.parquet"):
            path.unlink(missing_ok=True)
    shutil.rmtree(Path(session.path) / ".hoodie" / ".temp" / instant, ignore_errors=True)


def taken_away(path: Path) -> set[str]:
    """The instants that were taken away from this table within the week."""
    return _within_the_week(path / NOTES)


def _forget(session: Session) -> None:
    """Notes of what was begun long ago."""
    _within_the_week(Path(session.path) / BEGUN)


def _within_the_week(folder: Path) -> set[str]:
    """The names in this folder; older ones are removed."""
    found: set[str] = set()
    with contextlib.suppress(FileNotFoundError):
        for note in folder.iterdir():
            if note.stat().st_mtime > time.time() - NOTED_S:
                found.add(note.name)
            else:
                note.unlink(missing_ok=True)
    return found


def _note(session: Session, instant: str) -> None:
    note = Path(session.path) / NOTES / instant
    note.parent.mkdir(parents=True, exist_ok=True)
    note.touch()
