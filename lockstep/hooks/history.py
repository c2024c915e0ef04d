"""The pipeline's commits after a given one, as the timeline has them. Shared by all hooks of a run."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from threading import Lock

from lockstep.hooks.commits import Commit, Mark, commit_of
from table.errors import TableError
from table.port import TableReader
from table.state import StateError, TableState

log = logging.getLogger("lockstep.hooks")

DATA, ADMISSION = "data", "admission"
"""Kinds of commits that begin where the one before ended."""
GAP_LOOKS_MAX = 30
"""So often a gap between two commits is read again. Then it is taken for what the timeline has lost."""
TAIL_MAX = 256
TAIL_BYTES_MAX = 4 * 1024 * 1024
"""Kept of what was read last, so that several hooks do not read the same commit each."""


class Unreadable(Exception):
    """The timeline, now. The sentence is the table's."""


class History:
    """`open_reader`: of the table. Any thread may ask."""

    def __init__(self, open_reader: Callable[[], TableReader], pipeline: str) -> None:
        self._open_reader, self._pipeline = open_reader, pipeline
        self._reader: TableReader | None = None
        self._lock = Lock()
        self._tail: deque[Commit] = deque()
        self._tail_after: Mark | None = None
        """`_tail` has all commits after this one, up to its last."""
        self._gap: tuple[str, str] | None = None
        """The one that was met last: the instants before and after it."""
        self._gap_looks = 0

    def after(self, mark: Mark, upto: Mark, *, count_max: int, bytes_max: int) -> list[Commit]:
        """The first ones after `mark`, oldest first; `upto`: a commit that is there. Raises `Unreadable`."""
        with self._lock:
            if self._tail_after is None or mark < self._tail_after:
                found = self._walked(mark, count_max, bytes_max)
                self._remember(mark, found)
                return found
            until = self._tail[-1].mark if self._tail else self._tail_after
            whole = list(self._tail)
            if until < upto:  # else another hook has read it
                whole += self._walked(until, TAIL_MAX, TAIL_BYTES_MAX)
                self._remember(self._tail_after, whole)
            return _first([one for one in whole if one.mark > mark], count_max, bytes_max)

    def newest(self, mark: Mark) -> list[Commit]:
        """The newest one where it is after `mark`, and nothing else."""
        with self._lock:
            return [] if (found := next(self._commits(mark), None)) is None else [found]

    def _remember(self, after: Mark, commits: list[Commit]) -> None:
        held = sum(one.held_bytes for one in commits)
        self._tail, self._tail_after = deque(commits), after
        while len(self._tail) > TAIL_MAX or (held > TAIL_BYTES_MAX and len(self._tail) > 1):
            dropped = self._tail.popleft()
            held -= dropped.held_bytes
            self._tail_after = dropped.mark

    def _walked(self, mark: Mark, count_max: int, bytes_max: int) -> list[Commit]:
        """The timeline is read from its end: what is held of it are the oldest so far."""
        held: deque[Commit] = deque()
        held_bytes = 0
        for commit in self._commits(mark):
            held.append(commit)
            held_bytes += commit.held_bytes
            while len(held) > count_max or (held_bytes > bytes_max and len(held) > 1):
                held_bytes -= held.popleft().held_bytes
        return list(reversed(held))

    def _commits(self, mark: Mark) -> Iterator[Commit]:
        """Those after `mark`, newest first: a pipeline's commits are completed in the order of its chain."""
        later: TableState | None = None
        try:
            reader = self._reader = self._reader or self._open_reader()
            for instant in reader.completed():
                state = instant.state
                if state is None or state.pipeline != self._pipeline:
                    continue
                if later is not None and not _goes_on(state, later):
                    self._met_gap(state, later)
                later = state
                if Mark.of(state) <= mark:
                    return
                yield commit_of(instant, state, completed_ms=reader.time_ms(instant.completed))
        except (TableError, StateError) as error:
            self._reader = None
            raise Unreadable(str(error)) from error

    def _met_gap(self, state: TableState, later: TableState) -> None:
        """While instants are archived, some are neither here nor there to whoever reads."""
        gap = (state.instant, later.instant)
        self._gap_looks = self._gap_looks + 1 if gap == self._gap else 1
        self._gap = gap
        what = f"commits between instants {state.instant} and {later.instant} are not on the timeline"
        if self._gap_looks <= GAP_LOOKS_MAX:
            self._reader = None
            raise Unreadable(f"{what} now")
        if self._gap_looks == GAP_LOOKS_MAX + 1:
            log.warning("hooks: %s, and are not told", what)


def _goes_on(state: TableState, later: TableState) -> bool:
    """Whether no commit is missing between them, as far as the later one tells."""
    if later.kind not in (DATA, ADMISSION):
        return True  # an operator moves offsets to wherever he wants
    before, after = state.offsets, later.offsets
    read = {one.partition: one for one in later.ranges}
    return all(
        read[one].start == before.get(one, 0) if one in read else before[one] == after.get(one, before[one])
        for one in {*read, *before}
    )


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
