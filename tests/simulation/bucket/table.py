"""What a driver does with the table: table/hudi/table.py and rollback.py, and Hudi's own steps, one by one.

Production's own are the fence, the comparison of clocks, the sweep, the chain of commits. The rest follows
the code line by line; where it is Hudi's, it follows Hudi 1.2.0: what a rollback does after its request, and
in which order, is `BaseRollbackActionExecutor.finishRollback`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from table.chain import follows, newest_of
from table.errors import OutcomeUnknown, Refused, TableError, Unavailable
from table.state import PREFIX, TableState, owner
from tests.simulation.bucket import timeline
from tests.simulation.bucket.files import Files
from tests.simulation.bucket.lock import LEASE_MS, Lost
from tests.simulation.bucket.server import Act, Request, Thing
from tests.simulation.bucket.tape import Sleep, Steps, TapedStore
from tests.simulation.bucket.timeline import View, view
from tests.simulation.bucket.worker import MARKERS

if TYPE_CHECKING:
    from tests.simulation.bucket.world import World

T = TypeVar("T")
PIPELINE = "p"
METADATA = ".hoodie/metadata"
HEARTBEATS = ".hoodie/.heartbeat"
HEARTBEAT_LIVES_MS = 120_000
"""So long Hudi believes that whoever has begun a rollback is at it."""


class Superseded(TableError):
    """A driver of a higher epoch has committed."""


class Table(Files):
    """One driver's. Methods raise as those of `table.hudi.table.HudiTable`, and `OSError`."""

    def __init__(self, world: World, number: int) -> None:
        super().__init__(world, number)
        rules = world.rules
        self.store = TapedStore(rules.put_if, rules.new_mark, patient=self.patient)
        store: Any = self.store
        self.lock = rules.lock(self)  # type: ignore[arg-type]
        self.fence = rules.fence(
            store,
            0,
            lease_s=LEASE_MS // 1_000,
            clock_s=self._clock_s,
            process_of=lambda _pid: {"pid": self.name, "machine": str(self.machine)},
            is_dead=lambda process, _here: self.proves_dead(process["pid"]),
        )
        self.clock = rules.clock(
            store, lease_s=LEASE_MS // 1_000, clock_s=self._clock_s, steady_s=self._steady_s
        )
        self.timelines = TapedTimelines(self.store)
        self.sweeper = rules.sweeper(store, self.timelines, lambda: False, clock_s=self._clock_s)
        self.armed_unasked = True
        self._read: dict[str, bytes] = {}

    def _clock_s(self) -> float:
        return self.store.tape.once(lambda: self.clock_ms() / 1_000)

    def _steady_s(self) -> float:
        return self.store.tape.once(lambda: self.world.now_ms / 1_000)

    def proves_dead(self, name: str) -> bool:
        """Whether this machine sees that the process is gone."""
        there = next(one for one in self.world.drivers if one.name == name)
        return there.machine == self.machine and self.world.is_dead(name)

    # --- the timeline -----------------------------------------------------------------------------

    def look(self) -> Steps[View]:
        return view((yield from self.ask(Request(Act.NAMES, timeline.FOLDER))))

    def states(self, seen: View) -> Steps[list[TableState]]:
        """Of all that is complete; each is read once."""
        found = []
        for instant, name in seen.complete.items():
            found.append(timeline.commit_of((yield from self.once(name)), instant)[0])
        return found

    def once(self, name: str) -> Steps[bytes]:
        if name not in self._read:
            self._read[name] = yield from self.read(f"{timeline.FOLDER}/{name}")
        return self._read[name]

    def newest(self) -> Steps[TableState | None]:
        """Nothing follows from a commit that may be overruled yet."""
        while True:
            newest = newest_of((yield from self.states((yield from self.look()))))
            if newest is None or (yield from self.keeps(newest.instant)):
                return newest

    def find(self, transaction: str) -> Steps[TableState | None]:
        states = yield from self.states((yield from self.look()))
        done = [one for one in states if one.transaction == transaction]
        return done[0] if done and (yield from self.keeps(done[0].instant)) else None

    def keeps(self, instant: str) -> Steps[bool]:
        """Whether a completion counts; where it does not it is taken off the timeline."""
        if (yield from self.store.call(lambda: self.fence.keep(instant), self.fence)):
            return True
        yield from self.take_back_late()
        return False

    def owner_of(self, instant: str) -> Steps[dict[str, str]]:
        words: dict[str, str] = json.loads((yield from self.once(f"{instant}.inflight")))
        return words

    def targets(self, names: dict[str, str]) -> Steps[dict[str, str]]:
        """Instants that these rollbacks are of, with the rollbacks' own."""
        found: dict[str, str] = {}
        for instant, name in names.items():
            target = timeline.plan_of((yield from self.once(name)))[0]
            found.setdefault(target, instant)
        return found

    # --- the table lock ---------------------------------------------------------------------------

    def locked(self, body: Steps[T], *, watched: bool = True) -> Steps[T]:
        """`watched`: its guardian hears at once that it is held. It watches for silence in any case."""
        yield from self.store.call(self.clock.check, self.clock)
        self.process.armed = watched or self.armed_unasked
        try:
            yield from self.lock.acquire()
        except Unavailable:
            self.process.armed = False
            raise
        self.tenure = self.lock.tenure
        if watched:
            self.world.hold(self.process, self.tenure)
        try:
            done = yield from body
        except (TableError, OSError):
            yield from self.give_back()
            raise
        if not (yield from self.give_back()):
            raise Unavailable("the table lock could not be given back")  # Hudi throws when all is done
        return done

    def give_back(self) -> Steps[bool]:
        self.tenure = self.process.tenure = ""
        self.process.interrupt = None
        done = yield from self.lock.release()
        self.process.armed = False
        return done

    def lose_lock(self) -> None:
        """Told by whoever renews it."""
        if self.tenure:
            self.note("has lost the table lock")
            self.world.interrupt(self.process, Lost("the table lock is another's"))

    def new_instant(self, seen: View) -> Steps[str]:
        """The clock is waited for where it is behind what the timeline bears."""
        while (instant := timeline.spelled(self.clock_ms())) <= seen.newest:
            yield Sleep(500)
        return instant

    # --- a transaction ----------------------------------------------------------------------------

    def begin(self, run: str, transaction: str) -> Steps[str]:
        instant: str = yield from self.locked(self._request())
        try:
            words = json.dumps(owner(PIPELINE, run, transaction)).encode()
            yield from self.make(timeline.inflight(instant), words)
        except OSError:
            yield from self._take_back(instant)
            raise
        return instant

    def _request(self) -> Steps[str]:
        instant: str = yield from self.new_instant((yield from self.look()))
        try:
            yield from self.make(timeline.requested(instant), b"")
        except OSError:
            yield from self._take_back(instant)
            raise
        return instant

    def _take_back(self, instant: str) -> Steps[None]:
        for path in (timeline.inflight(instant), timeline.requested(instant)):
            try:
                yield from self.delete(path)
            except OSError:
                return

    def commit(
        self, state: TableState, instant: str, expected: dict[Any, int], files: Sequence[str]
    ) -> Steps[None]:
        yield from self.check_files(files)
        decided: list[str] = []
        words = timeline.commit_words(state, files)
        try:
            yield from self.locked(self._complete(state, instant, expected, words, decided), watched=False)
        except (Refused, Superseded):
            raise
        except (TableError, OSError) as error:
            yield from self._settle(state.transaction, decided, error)
        try:
            yield from self.ask(Request(Act.DELETE_BELOW, f"{MARKERS}/{instant}"))
        except OSError:
            self.note(f"leaves markers of {instant}")

    def check_files(self, files: Sequence[str]) -> Steps[None]:
        for path in files:
            if (yield from self.ask(Request(Act.LOOK, path))) is None:
                raise Refused(f"file {path} is not there")

    def _complete(
        self, state: TableState, instant: str, expected: dict[Any, int], words: bytes, decided: list[str]
    ) -> Steps[None]:
        self.world.hold(self.process, self.tenure)  # Hudi calls back
        yield from self._check(state, instant, expected)
        yield from self.store.call(self.clock.check, self.clock)
        yield from self.store.call(lambda: self.fence.commit(instant), self.fence)
        decided.append(instant)
        yield from self._write_metadata(instant)
        if (yield from self.ask(Request(Act.LOOK, timeline.inflight(instant)))) is None:
            raise Unavailable(f"instant {instant} is not inflight any more")
        yield from self.make(timeline.completed(instant, timeline.spelled(self.clock_ms())), words)

    def _write_metadata(self, instant: str) -> Steps[None]:
        """Its timeline's begin, and its end: nobody else writes between them."""
        yield from self.put(f"{METADATA}/{instant}.inflight", b"")
        yield from self.put(f"{METADATA}/{instant}.done", b"")

    def _check(self, state: TableState, instant: str, expected: dict[Any, int]) -> Steps[None]:
        seen = yield from self.look()
        if not seen.open.get(instant, False):
            raise Refused(f"{instant} is not inflight any more")
        if instant in (yield from self.targets(seen.pending_rollbacks)):
            raise Refused(f"the rollback of {instant} is requested")
        for other in [one for one, is_inflight in seen.open.items() if is_inflight and one != instant]:
            if (yield from self.owner_of(other))[PREFIX + "pipeline"] == PIPELINE:
                raise Refused(f"{other} is open beside {instant}")
        newest = newest_of((yield from self.states(seen)))
        if newest is not None and not (
            yield from self.store.call(lambda: self.fence.keep(newest.instant), self.fence)
        ):
            raise Refused(f"{newest.instant} has landed too late")
        if newest is not None and newest.epoch > state.epoch:
            raise Superseded(f"epoch {newest.epoch} has committed")
        if dict(newest.offsets if newest else {}) != expected or not follows(newest, state):
            raise Refused("the table has moved on")

    def _settle(self, transaction: str, decided: list[str], error: Exception) -> Steps[None]:
        """The call failed: return where it is complete all the same, and counts."""
        try:
            done = (yield from self.find(transaction)) is not None
        except (TableError, OSError):
            raise OutcomeUnknown(f"{error}; and then the table could not be read") from error
        if not done and decided:
            raise OutcomeUnknown(str(error)) from error
        if not done:
            raise Unavailable(str(error)) from error

    # --- rolling back -----------------------------------------------------------------------------

    def roll_back(self, instant: str) -> Steps[bool]:
        """False where it proved to be complete."""
        rollback = yield from self.locked(self._request_rollback(instant))
        is_complete = instant in (yield from self.look()).complete
        if is_complete and rollback is not None:
            if (yield from self.store.call(lambda: self.fence.keep(instant), self.fence)):
                yield from self._withdraw(instant, rollback)
                return False
            yield from self.take_back_late()
        if rollback is None:
            return not is_complete
        yield from self.carry_out(instant, rollback)
        return True

    def _withdraw(self, instant: str, rollback: str) -> Steps[None]:
        self.note(f"withdraws the rollback of {instant}")
        for phase in ("inflight", "requested"):
            yield from self.delete(timeline.rollback(rollback, phase))

    def _request_rollback(self, instant: str) -> Steps[str | None]:
        seen = yield from self.look()
        requested = yield from self.targets(seen.pending_rollbacks)
        if instant in requested:
            return requested[instant]
        if instant not in seen.open:
            return None
        yield from self.store.call(lambda: self.fence.roll_back(instant), self.fence)
        rollback: str = yield from self.new_instant(seen)
        markers: list[str] = yield from self.ask(Request(Act.WALK, f"{MARKERS}/{instant}"))
        files = [one.rpartition("/")[2].removesuffix(".marker.CREATE") for one in markers]
        plan = timeline.plan_words(instant, files)
        yield from self.make(timeline.rollback(rollback, "requested"), plan)
        return rollback

    def carry_out(self, instant: str, rollback: str) -> Steps[None]:
        """Hudi's part of it. Nobody's guardian hears of the lock that it takes in the end."""
        yield from self._claim_heart(rollback)
        plan = yield from self.read(timeline.rollback(rollback, "requested"))
        yield from self.put(timeline.rollback(rollback, "inflight"), plan)
        seen = yield from self.look()
        if instant in seen.complete:  # Hudi makes it inflight again
            yield from self.delete(f"{timeline.FOLDER}/{seen.complete[instant]}")
        for path in timeline.plan_of(plan)[1]:
            yield from self.delete(path)
        yield from self.locked(self._finish(instant, rollback, plan), watched=False)
        yield from self.ask(Request(Act.DELETE_BELOW, f"{MARKERS}/{instant}"))
        yield from self.delete(f"{HEARTBEATS}/{rollback}")

    def _claim_heart(self, rollback: str) -> Steps[None]:
        beat: Thing | None = yield from self.ask(Request(Act.LOOK, f"{HEARTBEATS}/{rollback}"))
        others = beat if beat is not None and beat.data != self.name.encode() else None
        if others is not None and self.clock_ms() - others.modified_ms < HEARTBEAT_LIVES_MS:
            raise Unavailable("another process rolls it back, or died doing so within two minutes")
        yield from self.put(f"{HEARTBEATS}/{rollback}", self.name.encode())

    def _finish(self, instant: str, rollback: str, plan: bytes) -> Steps[None]:
        yield from self._write_metadata(rollback)
        yield from self.delete(timeline.inflight(instant))
        yield from self.delete(timeline.requested(instant))
        if (yield from self.ask(Request(Act.LOOK, timeline.rollback(rollback, "inflight")))) is None:
            raise Unavailable("the rollback is not inflight any more")
        at = timeline.spelled(self.clock_ms())
        yield from self.make(timeline.rolled_back(rollback, at), plan)

    # --- opening and sweeping ---------------------------------------------------------------------

    def open(self) -> Steps[None]:
        yield from self.take_back_late()
        yield from self.take_back_requested()
        yield from self.finish_rollbacks()

    def take_back_late(self) -> Steps[None]:
        """Completions that were overruled: `table.hudi.driver.rollback.take_back_late`."""
        suspects = yield from self.store.call(self.fence.overruled, self.fence)
        if suspects and not (yield from self.look()).complete.keys().isdisjoint(suspects):
            yield from self.locked(self._take_off(suspects))

    def _take_off(self, suspects: Sequence[str]) -> Steps[None]:
        seen = yield from self.look()
        for name in (seen.complete[one] for one in suspects if one in seen.complete):
            self.note(f"takes {name} off the timeline")
            yield from self.delete(f"{timeline.FOLDER}/{name}")

    def take_back_requested(self) -> Steps[None]:
        """Requests that came after a rollback: `table.hudi.driver.rollback.take_back_requested`."""
        if (yield from self._requested_late()):
            yield from self.locked(self._remove_requested())

    def _requested_late(self) -> Steps[list[str]]:
        seen = yield from self.look()
        requested = [one for one, is_inflight in seen.open.items() if not is_inflight]
        if not requested:
            return []
        rolled_back = yield from self.targets(seen.pending_rollbacks)
        decided = yield from self.store.call(self.fence.decided, self.fence)
        return [one for one in requested if one in decided and one not in rolled_back]

    def _remove_requested(self) -> Steps[None]:
        for instant in (yield from self._requested_late()):
            self.note(f"removes the request of {instant}, which came late")
            yield from self.delete(timeline.requested(instant))

    def finish_rollbacks(self) -> Steps[None]:
        """Of instants of ours that `unfinished` lists no more: `table.hudi.driver.rollback.finish`."""
        seen = yield from self.look()
        if not seen.pending_rollbacks:
            return
        decided = yield from self.store.call(self.fence.decided, self.fence)
        for target in (yield from self.targets(seen.pending_rollbacks)):
            if target in decided and not seen.open.get(target, False):
                try:
                    yield from self.roll_back(target)
                except Unavailable as error:
                    self.note(f"leaves the rollback of {target}: {error}")

    def sweep(self) -> Steps[None]:
        removed = yield from self.store.call(
            lambda: self.sweeper.sweep(grace_ms=0).removed, self.sweeper._candidates
        )
        self.note(f"has swept {removed} files")
        yield from self.take_back_late()
        yield from self.take_back_requested()
        yield from self.finish_rollbacks()


class TapedTimelines:
    """Implements `table.hudi.upkeep.sweep.Timelines`."""

    def __init__(self, store: TapedStore) -> None:
        self._store = store
        self._seen = View()

    def pending(self) -> Container[str]:
        self._seen = view(self._store.names(timeline.FOLDER))
        return self._seen.pending()

    def named(self, instant: str, *, carried_out: bool) -> Container[str] | None:
        name = self._seen.complete.get(instant)
        if name is None:
            return None
        data = self._store.read(f"{timeline.FOLDER}/{name}", bytes_max=1 << 20)
        return timeline.commit_of(data, instant)[1]

    def named_in_archive(
        self, instants: Collection[str], carried_out: Container[str]
    ) -> Mapping[str, Container[str]]:
        return {}

    def rolled_back(self, instants: Collection[str]) -> Collection[str]:
        plans = [
            self._store.read(f"{timeline.FOLDER}/{name}", bytes_max=1 << 20)
            for name in self._seen.rollbacks.values()
        ]
        return set(instants) & {timeline.plan_of(plan)[0] for plan in plans}
