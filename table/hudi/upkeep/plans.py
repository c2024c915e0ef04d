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

A paused driver may write files for what was taken away once it goes on, and an executor that was taken for
lost for what was completed without it. Those of a clustering have names of Hudi's own, by which the sweep
cannot tell whose they are: so the instants are noted, for a week.
"""

from __future__ import annotations

import contextlib
import logging
import posixpath
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from table.errors import Refused, Unavailable
from table.hudi.columns import has_all
from table.hudi.driver.asking import elements
from table.hudi.driver.clock import await_clock
from table.hudi.driver.guard import guarded
from table.hudi.driver.history import rollbacks
from table.hudi.driver.java import changing, reading
from table.hudi.driver.rollback import table_lock
from table.hudi.driver.session import Session
from table.hudi.driver.watchdog import Watchdog
from table.hudi.layout import META_FOLDER
from table.state import PREFIX
from table.store.port import Stat, Store

log = logging.getLogger(__name__)

NOTES = f"{META_FOLDER}/.lockstep/taken_away"
"""Empty files, named as the instants; Hudi has no use for this folder."""
NOTED_S = 7 * 24 * 3600

BEGUN = f"{META_FOLDER}/.lockstep/begun"
"""Files named as the instants that a driver of ours was about to carry out, as old as that."""
BEGINS_WITHIN_S = 30
"""Hudi marks a plan as begun so soon after its client was told to carry it out."""

OWNER = PREFIX + "compaction"
"""In a plan's metadata, of clusterings, too: the pipeline whose driver carries it out."""

T = TypeVar("T")


class PendingPlan(NamedTuple):
    """A plan that is not complete."""

    instant: str
    owner: str
    """See `OWNER`, empty where it is others'."""
    plan: Any
    """Hudi's own."""


def schedule(
    session: Session, action: str, owner: str, ask: Callable[[Any], Any], about: Callable[[str], T]
) -> T | None:
    """Plan one for what is committed; what `about` says of its instant, None where Hudi finds nothing due.

    `ask`: Hudi's client for it. `owner`: the pipeline that carries it out, empty where it is left to others.
    """
    marked = session.java_map({OWNER: owner} if owner else {})
    await_clock(session)
    with changing(f"table {session.path}: no {action} could be planned", session.lock.folder):
        session.reload()
        planned = ask(session.some(marked))
        if not planned.isPresent():
            return None
        session.reload()
        return about(str(planned.get()))


class Tidied(NamedTuple):
    taken: list[str]
    """The instants that were taken away."""
    left: list[str]
    """Those that somebody else carries out."""

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

    Raises `Refused` where somebody else has begun, `Unavailable` where Hudi would merge by other columns than
    the table has.
    """
    if _inflight(session, action, instant) is not None:
        raise Refused(f"{action} {instant} of table {session.path} is carried out by somebody else already")
    _use_columns(session, f"{action} {instant}")
    session.store.make_folder(BEGUN)
    session.store.put(f"{BEGUN}/{instant}", action.encode(), durable=True)


def _use_columns(session: Session, what: str) -> None:
    """What is carried out says the columns that the table has now, and reads by them: Hudi asks the table."""
    session.reload()
    columns = session.columns()
    if not has_all(session.columns_taken(), columns):
        raise Unavailable(
            f"{what} of table {session.path}: what somebody else has completed says other columns than the "
            "newest commit does; the next commit says them again"
        )
    if columns:
        session.use_schema(columns)
    session.begun_with = columns


def check_columns(session: Session, action: str, instant: str) -> None:
    """Raise `Unavailable` where columns have come since it was begun. Under the table lock, after a reload.

    What it would say is what readers, and the next run, took for the table's columns; and what is merged by
    fewer would have lost what is in the others.
    """
    with reading(f"table {session.path}: its timeline cannot be read"):
        if not has_all(session.begun_with, session.columns()):
            raise Unavailable(
                f"{action} {instant} of table {session.path}: columns came meanwhile; it is begun anew"
            )


def check_held(session: Session, action: str, instant: str) -> None:
    """Raise `Refused` where what is carried out here was taken away."""
    with reading(f"table {session.path}: its timeline cannot be read"):
        opened = elements(session.reload().filterInflights().getInstants())
        held = any((one.getAction(), one.requestedTime()) == (action, instant) for one in opened)
        if not held or instant in rollbacks(session):
            raise Refused(f"{action} {instant} of table {session.path} was taken away by a later run")


@contextmanager
def completing(
    session: Session, action: str, instant: str, before: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """What Hudi completes inside is completed only if it was not taken away: looked up under the table lock.

    Raises `Refused` where it was, and what `before` raised, which looks at what was written for it.
    """

    def look() -> None:
        session.lock.holder.check()
        check_held(session, action, instant)
        check_columns(session, action, instant)
        session.fence.commit(instant)

    with guarded(session, look, before):
        yield


def abandon(
    session: Session,
    action: str,
    pipeline: str,
    pending: Callable[[], Iterable[PendingPlan]],
    folders: Callable[[Any], set[str]],
) -> Tidied:
    """Take away what is pending of this pipeline and the files that were made for it.

    `pending`: everybody's, asked under the table lock. `folders`: the table partitions of a plan.
    """
    taken: list[str] = []
    left: list[str] = []
    doing = f"table {session.path}: a {action} that was left behind could not be taken away"
    watchdog = Watchdog(session.jvm_pid())
    with contextlib.closing(watchdog), changing(doing, session.lock.folder):
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
            log.warning(
                "%s %s was begun and not completed: it is taken away",
                *(action, one.instant),
                extra={"instant": one.instant},
            )
    return Tidied(taken, left)


def _inflight(session: Session, action: str, instant: str) -> Stat | None:
    """The file that says that somebody has begun to carry the plan out; it stays when that is complete.

    One that is made anew differs in its identity at least.
    """
    return session.store.stat(f"{timeline_folder(session)}/{instant}.{action}.inflight")


def timeline_folder(session: Session) -> str:
    name = session.meta.getTableConfig().propsMap().get("hoodie.timeline.path")
    return f"{META_FOLDER}/{name or 'timeline'}"


def _is_ours(session: Session, instant: str, inflight: Stat | None) -> bool:
    """Whether nobody but a driver of this pipeline has begun to carry a plan of this pipeline out."""
    if inflight is None:
        return True
    note = session.store.stat(f"{BEGUN}/{instant}")
    if note is None or not 0 <= inflight.modified_s - note.modified_s <= BEGINS_WITHIN_S:
        return False
    rolled_back = _rolled_back(session, instant)
    return rolled_back is None or inflight.modified_s < rolled_back.modified_s


def _rolled_back(session: Session, instant: str) -> Stat | None:
    """When a rollback of this pending instant was completed last: somebody made it ready to begin anew."""
    timeline = session.meta.getActiveTimeline()
    complete = timeline.getRollbackTimeline().filterCompletedInstants()
    for one in elements(complete.getReverseOrderedInstants()):
        if str(one.requestedTime()) < instant:
            break
        if instant in timeline.readRollbackMetadata(one).getCommitsRollback():
            name = session.meta.getInstantFileNameGenerator().getFileName(one)
            return session.store.stat(f"{timeline_folder(session)}/{name}")
    return None


def _remove(session: Session, action: str, instant: str, seen: Stat | None) -> bool:
    """Take a plan off the timeline; False where somebody has begun, or begun anew, since it was looked at.

    Under the table lock, which nobody needs to begin: so the plan goes first, and the look follows.
    """
    store, folder, name = session.store, timeline_folder(session), f"{instant}.{action}.requested"
    plan, aside = f"{folder}/{name}", f"{BEGUN}/{name}"
    kept = _content(store, plan)
    if kept is not None:  # a copy outlives us: not every store can rename
        store.make_folder(BEGUN)
        store.put(aside, kept, durable=True)
        store.delete(plan)
    if _inflight(session, action, instant) not in (seen, None):
        if kept is not None:
            store.put(plan, kept, durable=True)
            store.delete(aside)
        return False
    session.remove_pending(action, instant)
    store.delete(aside)
    store.delete(f"{folder}/.{name}.crc")  # Hadoop's, where it keeps checksums
    return True


def _content(store: Store, path: str) -> bytes | None:
    """The whole of a plan, which Hudi holds in memory as well; None where it is not there."""
    try:
        with store.source(path) as file:
            return file.read()
    except FileNotFoundError:
        return None


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
    session.fence.roll_back(instant, noting=False)  # others may carry it out anew, and complete it
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
    store = session.store
    for folder in folders:
        for name in names_in(store, folder):
            if name.endswith(f"_{instant}.parquet"):
                store.delete(posixpath.join(folder, name))
    store.delete_folder(f"{META_FOLDER}/.temp/{instant}")


def names_in(store: Store, folder: str) -> list[str]:
    """Of what is in it; none where it is not there."""
    try:
        return store.names(folder)
    except FileNotFoundError:
        return []


def taken_away(store: Store) -> set[str]:
    """The instants that were taken away from this table within the week."""
    return _within_the_week(store, NOTES)


def carried_out(store: Store) -> set[str]:
    """The instants that drivers of ours have begun to carry out; those of the last week are among them."""
    return {name for name in names_in(store, BEGUN) if name.isdigit()}


def _forget(session: Session) -> None:
    """Notes of what was begun long ago."""
    _within_the_week(session.store, BEGUN)


def _within_the_week(store: Store, folder: str) -> set[str]:
    """The names in this folder; older ones are removed."""
    found: set[str] = set()
    for name in names_in(store, folder):
        note = store.stat(f"{folder}/{name}")
        if note is not None and note.modified_s > time.time() - NOTED_S:
            found.add(name)
        else:
            store.delete(f"{folder}/{name}")
    return found


def _note(session: Session, instant: str) -> None:
    session.store.make_folder(NOTES)
    if not session.store.create(f"{NOTES}/{instant}"):
        session.store.date(f"{NOTES}/{instant}")
