"""The pipeline's commits after a given one, as the timeline has them. Shared by all hooks of a run."""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

from lockstep.hooks.commits import Commit, Mark, commit_of
from table.chain import continues
from table.errors import TableError
from table.instants import Instant
from table.port import TableReader
from table.state import StateError, TableState
from table.watermark import Watermark

log = logging.getLogger("lockstep.hooks")

GAP_LOOKS_MAX = 30
"""So often a gap between two commits is read again. Then it is taken for what the timeline has lost."""
GAPS_MAX = 10_000
"""Remembered; those that nobody has met for the longest time are forgotten first."""
TAIL_MAX = 256
TAIL_BYTES_MAX = 4 * 1024 * 1024
"""Kept of what was read last."""


class Unreadable(Exception):
    """The timeline, now. The sentence is the table's."""


@dataclass(frozen=True, slots=True)
class Kept:
    """All commits after this one, up to the last of them, so that several hooks do not read the same each."""

    after: Mark
    commits: tuple[Commit, ...]

    @property
    def upto(self) -> Mark:
        return self.commits[-1].mark if self.commits else self.after

    def goes_on_at(self, mark: Mark) -> bool:
        """Whether what follows it is here, or follows what is here."""
        return self.after <= mark <= self.upto

    def tail(self) -> Kept:
        """The last ones: so many, and so many bytes of them."""
        after, left = self.after, deque(self.commits)
        held = sum(one.held_bytes for one in left)
        while len(left) > TAIL_MAX or (held > TAIL_BYTES_MAX and len(left) > 1):
            dropped = left.popleft()
            held -= dropped.held_bytes
            after = dropped.mark
        return Kept(after, tuple(left))


class Gaps:
    """Commits between two others that are not on the timeline: while instants are archived, some are neither
    here nor there to whoever reads. Each gap is waited for by itself. Any thread may ask.
    """

    def __init__(self) -> None:
        self._guard = Lock()
        self._looks: OrderedDict[tuple[str, str], int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._looks)

    def met(self, before: str, after: str) -> str:
        """What is missing between these instants; empty where that was so for too long to be waited for."""
        what = f"commits between instants {before} and {after} are not on the timeline"
        with self._guard:
            looks = self._looks[before, after] = self._looks.pop((before, after), 0) + 1
            while len(self._looks) > GAPS_MAX:
                self._looks.popitem(last=False)
        if looks <= GAP_LOOKS_MAX:
            return what
        if looks == GAP_LOOKS_MAX + 1:
            log.warning("hooks: %s, and are not told; the next commit reports their stretches", what)
        return ""


class History:
    """`open_reader`: of the table. Any thread may ask, and none waits for what another one reads, but where
    both lack the same newest commits, which one of them reads for both.
    """

    def __init__(self, open_reader: Callable[[], TableReader], pipeline: str) -> None:
        self._open_reader, self._pipeline = open_reader, pipeline
        self._gaps = Gaps()
        self._going_on = Lock()
        """Of who reads on from the end of what is kept."""
        self._guard = Lock()
        """Of what follows. Nothing is read under it."""
        self._readers: list[TableReader] = []
        """Those that nobody reads with."""
        self._kept: Kept | None = None

    def after(self, mark: Mark, upto: Mark, *, count_max: int, bytes_max: int) -> list[Commit]:
        """The first ones after `mark`, oldest first; `upto`: a commit that is there. Raises `Unreadable`."""
        kept = self._kept
        if kept is not None and kept.goes_on_at(mark) and kept.upto < upto:
            kept = self._read_on(upto)
        if kept is not None and kept.goes_on_at(mark):  # another hook has read it
            return _first([one for one in kept.commits if one.mark > mark], count_max, bytes_max)
        found = self._walked(mark, count_max, bytes_max)
        self._keep(Kept(mark, tuple(found)))
        return found

    def newest(self, mark: Mark) -> list[Commit]:
        """The newest one where it is after `mark`, and nothing else."""
        with self._reading() as reader:
            found = next(self._commits(reader, mark), None)
        return [] if found is None else [found]

    def _read_on(self, upto: Mark) -> Kept | None:
        """Once, whoever lacks it."""
        with self._going_on:
            kept = self._kept
            if kept is None or kept.upto >= upto:
                return kept
            more = self._walked(kept.upto, TAIL_MAX, TAIL_BYTES_MAX)
            whole = Kept(kept.after, (*kept.commits, *more))
            self._keep(whole)
            return whole

    def _keep(self, read: Kept) -> None:
        """The newest of it. What somebody far behind has read takes no other's place."""
        with self._guard:
            if self._kept is None or read.upto > self._kept.upto:
                self._kept = read.tail()

    def _walked(self, mark: Mark, count_max: int, bytes_max: int) -> list[Commit]:
        """The timeline is read from its end: what is held of it are the oldest so far."""
        held: deque[Commit] = deque()
        held_bytes = 0
        with self._reading() as reader:
            for commit in self._commits(reader, mark):
                held.append(commit)
                held_bytes += commit.held_bytes
                while len(held) > count_max or (held_bytes > bytes_max and len(held) > 1):
                    held_bytes -= held.popleft().held_bytes
        return list(reversed(held))

    @contextmanager
    def _reading(self) -> Iterator[TableReader]:
        """A reader of one's own, which is read with again where it has served."""
        with self._guard:
            reader = self._readers.pop() if self._readers else None
        try:
            reader = reader or self._open_reader()
            yield reader
        except (TableError, StateError) as error:
            raise Unreadable(str(error)) from error
        with self._guard:
            self._readers.append(reader)

    def _commits(self, reader: TableReader, mark: Mark) -> Iterator[Commit]:
        """Those after `mark`, newest first: a pipeline's commits are completed in the order of its chain.

        All gaps between them are looked at, whichever is met first: to wait for one is to wait for all.
        """
        later: tuple[Instant, TableState] | None = None
        missing = ""
        for instant in reader.completed():
            state = instant.state
            if state is None or state.pipeline != self._pipeline:
                continue
            if later is not None:
                is_gap = not continues(state, later[1])
                if is_gap:
                    lacks = self._gaps.met(state.instant, later[1].instant)
                    missing = missing or lacks
                yield _commit(reader, *later, before_lost=state.watermark if is_gap else None)
            later = instant, state
            if Mark.of(state) <= mark:
                later = None
                break
        if later is not None:
            yield _commit(reader, *later)
        if missing:
            raise Unreadable(f"{missing} now")


def _commit(
    reader: TableReader, instant: Instant, state: TableState, *, before_lost: Watermark | None = None
) -> Commit:
    completed_ms = reader.time_ms(instant.completed)
    return commit_of(instant, state, completed_ms=completed_ms, before_lost=before_lost)


def _first(commits: list[Commit], count_max: int, bytes_max: int) -> list[Commit]:
    """No more than that, but one at least."""
    taken: list[Commit] = []
    held = 0
    for commit in commits[:count_max]:
        held += commit.held_bytes
        if taken and held > bytes_max:
            break
        taken.append(commit)
    return taken
