"""Bugs put into the world of the object store, one each: schedules must find them, or they prove nothing.

Each replaces a rule of production's, or of what stands for Hudi or the store, and names what it violates.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from table.hudi.driver.fence import FOLDER, VERDICT, Fence
from table.hudi.driver.file_clock import ClockDifference
from table.hudi.driver.lease import LeaseClock
from table.hudi.upkeep.sweep import Sweeper, Timelines
from tests.simulation.bucket import timeline
from tests.simulation.bucket.driver import Driver
from tests.simulation.bucket.explore import Schedule, kind_of
from tests.simulation.bucket.lock import Held, Lock
from tests.simulation.bucket.rules import RULES, Rules
from tests.simulation.bucket.server import Act, Request, Server
from tests.simulation.bucket.tape import Sleep, Steps

SCHEDULES_MAX = 6_000
ONCE = "every record once"
LEFT = "nothing is left for ever"
BOTH = "completed or rolled back"
MISSING = "no named file is missing"
ALONE = "one writer of the metadata table"
FAR = "far clocks take no lock"
STAYS = "what was acknowledged stays"
ENDS = "nobody waits for ever"


class DecidedWithoutCondition(Fence):
    """The decision over an instant is put without a condition: who comes second overwrites who was first."""

    def _create(self, instant: str, what: str) -> bool:
        words = {"for": what, "by": self._by, "process": self._process}
        self._store.put(f"{FOLDER}/{instant}", json.dumps(words).encode())
        return True


class LeaseTrusted(Fence):
    """Who holds the lease goes on: no fence is asked."""

    def commit(self, instant: str) -> None:
        return None

    def roll_back(self, instant: str, *, noting: bool = True) -> None:
        return None


class NotNoted(Fence):
    """That a commit was overruled is not written down."""

    def roll_back(self, instant: str, *, noting: bool = True) -> None:
        super().roll_back(instant, noting=False)


class CompletionBelieved(Fence):
    """What is complete on the timeline counts, whatever was said of it, as before there were verdicts."""

    def keep(self, instant: str) -> bool:
        return True


class VerdictPutOver(Fence):
    """A verdict is put without a condition."""

    def _verdict(self, instant: str, wanted: str, why: str = "") -> str:
        if instant not in self._verdicts or self._verdicts[instant] != wanted:
            words = {"for": wanted, "why": why}
            self._store.put(f"{FOLDER}/{instant}{VERDICT}", json.dumps(words).encode())
            self._verdicts[instant] = wanted
        return wanted


class NobodyWaitedFor(Fence):
    """A commit that somebody may be completing is overruled at once."""

    def _why_over(self, instant: str, said: Any) -> str:
        return "nobody was asked"


def failed_where_unanswered(bucket: Any, key: str, data: Any, condition: Any, **_how: Any) -> bool:
    """A put on condition that is not answered is taken for failed."""
    try:
        return bool(bucket.put_if(key, data, "", condition))
    except OSError:
        return False


def done_where_unanswered(bucket: Any, key: str, data: Any, condition: Any, **_how: Any) -> bool:
    """A put on condition that is not answered is taken for done."""
    try:
        return bool(bucket.put_if(key, data, "", condition))
    except OSError:
        return True


class RollbackUnwatched(Driver):
    """While Hudi carries a rollback out, and takes the lock for it, the guardian watches for nothing."""

    def __init__(self, world: Any, number: int, *, last: bool) -> None:
        super().__init__(world, number, last=last)
        self.armed_unasked = False


class FarClocksTaken(LeaseClock):
    """Nobody compares clocks before the lock is taken."""

    def check(self) -> None:
        return None


class DateOfAnothersBelieved(LeaseClock):
    """The clock is read before the look at the date, which another driver may have made meanwhile."""

    def apart(self) -> ClockDifference:
        found = super().apart()
        if self._looked_s is None:
            return found
        return found._replace(most_s=self._looked_s - found.theirs_s)

    def __init__(self, store: Any, *, lease_s: int, clock_s: Any, steady_s: Any) -> None:
        super().__init__(store, lease_s=lease_s, clock_s=clock_s, steady_s=steady_s)
        self._looked_s: float | None = None
        self._store = _Looking(store, self)

    def look(self) -> None:
        self._looked_s = self._clock_s()


class _Looking:
    def __init__(self, store: Any, clock: DateOfAnothersBelieved) -> None:
        self._clock = clock
        self._store = store
        self.put = store.put
        self.place = store.place

    def stat(self, path: str) -> Any:
        self._clock.look()
        return self._store.stat(path)


class DeadHoldersLockTakenAtOnce(Lock):
    """The lock of a holder that is dead is taken over without the wait for what it had sent."""

    def settle(self) -> Steps[None]:
        yield Sleep(0)


class LockTakenWithoutCondition(Lock):
    """The lock is put over whatever is there."""

    def condition(self, before: Held | None) -> str:
        return ""


class CompletedAfterAbort(Server):
    """An upload that is completed after its abort counts."""

    def __init__(self) -> None:
        super().__init__()
        self._gone: dict[str, Any] = {}

    def apply(self, request: Request, now_ms: int) -> Any:
        if request.act is Act.ABORT and request.number in self.uploads:
            self._gone[request.number] = self.uploads[request.number]
        return super().apply(request, now_ms)

    def of_none(self, request: Request, now_ms: int) -> Any:
        upload = self._gone.pop(request.number, None)
        if upload is None or request.act is not Act.COMPLETE:
            return super().of_none(request, now_ms)
        return self._set(upload.path, upload.data, upload.mark, upload.begun_ms, "")


class AbortsNothing(Sweeper):
    """Uploads that nobody ends are left where they are."""

    def _aborted(self, upload: Any) -> bool:
        return True


class ByItsOwnClock(Sweeper):
    """What is old by this machine's clock is over, and was rolled back, whatever the timeline says. With it
    goes the look at the files of a commit, which would refuse it.
    """

    OLD_MS = 50

    def __init__(self, store: Any, timelines: Timelines, in_local_time: Any, *, clock_s: Any) -> None:
        super().__init__(store, _Recent(timelines, clock_s, self.OLD_MS), in_local_time, clock_s=clock_s)


class FilesNotLookedAt(Driver):
    """A commit names files that nobody has looked for."""

    def check_files(self, files: Sequence[str]) -> Steps[None]:
        yield Sleep(0)


class _Recent:
    def __init__(self, timelines: Timelines, clock_s: Callable[[], float], old_ms: int) -> None:
        self._timelines = timelines
        self._clock_s = clock_s
        self._old_ms = old_ms
        self.named = timelines.named
        self.named_in_archive = timelines.named_in_archive

    def rolled_back(self, instants: Collection[str]) -> Collection[str]:
        return instants

    def pending(self) -> Container[str]:
        since = timeline.spelled(round(1_000 * self._clock_s()) - self._old_ms)
        pending: Any = self._timelines.pending()
        return {one for one in pending if one > since}


@dataclass(frozen=True, slots=True)
class Mutant:
    """`parts`: which of `Rules` are replaced. `violates`: one of these must be said. `focus`: of drivers'
    steps those where strikes are to be, so that it is found soon; empty: all.
    """

    parts: Mapping[str, Any]
    violates: tuple[str, ...]
    focus: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return str(next(iter(self.parts.values())).__name__)

    @property
    def bug(self) -> str:
        """In a sentence or two."""
        return " ".join(str(next(iter(self.parts.values())).__doc__).split())

    @property
    def rules(self) -> Rules:
        return replace(RULES, **self.parts)


class NotFound(AssertionError):
    """A seeded bug lived through all schedules."""


def find(mutant: Mutant, schedules_max: int = SCHEDULES_MAX) -> tuple[int, Schedule]:
    """After how many schedules it is found, and by which, which passes without it. Raises `NotFound`."""
    for seed in range(schedules_max):
        schedule = Schedule.of(seed, focus=mutant.focus)
        failure = schedule.fails(mutant.rules)
        if failure and kind_of(failure) in mutant.violates and not schedule.fails():
            return seed + 1, schedule
    raise NotFound(f"{mutant.name} lived through {schedules_max} schedules")


DECIDING = (
    "put decision",
    "put metadata",
    "look at inflight",
    "look at completed",
    "put completed",
    "put plan",
)
AT_WORK = ("put metadata", "put decision")
SWEEPING = ("walk table", "list timeline", "look at file", "put completed")
WRONG = (ONCE, BOTH, MISSING)

_ALL = (
    Mutant({"fence": DecidedWithoutCondition}, WRONG, DECIDING),
    Mutant({"fence": LeaseTrusted}, WRONG, DECIDING),
    Mutant({"fence": NotNoted}, WRONG, DECIDING),
    Mutant({"fence": CompletionBelieved}, WRONG, DECIDING),
    Mutant({"fence": VerdictPutOver}, WRONG, DECIDING),
    Mutant({"put_if": done_where_unanswered}, WRONG, ("put decision", "put completed")),
    Mutant({"clock": FarClocksTaken}, (FAR,)),
    Mutant({"clock": DateOfAnothersBelieved}, (FAR,), ("look at clock",)),
    Mutant({"lock": DeadHoldersLockTakenAtOnce}, (ALONE,), ("put metadata",)),
    Mutant({"lock": LockTakenWithoutCondition}, (ALONE, *WRONG), ("put lock", *AT_WORK)),
    Mutant({"driver": RollbackUnwatched}, (ALONE,), ("put metadata", "put decision")),
    Mutant({"sweeper": AbortsNothing}, (LEFT,)),
    Mutant({"sweeper": ByItsOwnClock, "driver": FilesNotLookedAt}, WRONG, SWEEPING),
)

HARMLESS: Mapping[Any, str] = {
    failed_where_unanswered: "put_if",
    CompletedAfterAbort: "server",
    NobodyWaitedFor: "fence",
}
"""Bugs that violate nothing, each for a reason of its own.

Whoever takes his own decision for another's reads it, and it says whose it is. A file that comes to be though
its upload was aborted has a name of an instant that is over, which the next sweep takes. A verdict says what
counts, so that to wait until a driver is gone keeps only the metadata table from two writers, and to have the
table lock does that as well.
"""

MUTANTS = {mutant.name: mutant for mutant in _ALL}
