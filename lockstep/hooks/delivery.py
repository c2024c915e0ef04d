"""What one hook has to do next: which commit is due, when it is tried again, what is remembered. Pure.

Commits are delivered in the order of the chain, each until it is taken; then its place is noted, at most once
a second. After a restart the hook goes on behind the place that was noted: so each commit is delivered at
least once. A hook that wants the newest commit only leaves out those that came meanwhile.

Times are milliseconds that never go back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from lockstep.hooks.commits import Commit, Mark

COMMITS_MAX = 10_000
HELD_BYTES_MAX = 16 * 1024 * 1024
"""What waits in memory; the rest is read from the timeline again."""
NOTE_EVERY_MS = 1_000
BACKOFF_MS, BACKOFF_MAX_MS = 1_000, 60_000
READ_AGAIN_MS = 5_000
SETTLES_MS = 1_000
"""A commit that was seen and is not on the timeline yet, as it was listed."""
LOOK_MS = 200
FAILS_FOR_GOOD = 2
"""So often in a row it is an outage, and no hiccup: it is said in the log."""
WORD_CHARACTERS_MAX = 300


@dataclass(frozen=True, slots=True)
class Begin:
    """Say that a run has begun, or make ready."""


@dataclass(frozen=True, slots=True)
class Read:
    """Read the commits after this one, the oldest first: so many, and so many bytes of them."""

    after: Mark
    upto: Mark
    """The newest one that is known: there may be more."""
    count_max: int
    bytes_max: int
    newest_only: bool = False
    """The newest one instead."""


@dataclass(frozen=True, slots=True)
class Deliver:
    commit: Commit


@dataclass(frozen=True, slots=True)
class Note:
    """Remember that all is delivered up to this commit."""

    mark: Mark


@dataclass(frozen=True, slots=True)
class Rest:
    for_ms: int


@dataclass(frozen=True, slots=True)
class End:
    """Say that the run has ended: nothing is open."""


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing is left to be done, or to be tried."""


Step: TypeAlias = Begin | Read | Deliver | Note | Rest | End | Done


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a hook does not get on."""

    why: str
    since_ms: int
    failures: int
    """In a row."""

    @property
    def back_off_ms(self) -> int:
        """Before it is tried again: longer each time."""
        return min(BACKOFF_MAX_MS, BACKOFF_MS << min(self.failures - 1, 10))


class Delivery:
    """One hook's. `sent`: the commit up to which all was delivered before. `newest_only`: commits that
    another one followed are left out; `every_ms`: not more often than that.
    """

    def __init__(self, sent: Mark, *, newest_only: bool = False, every_ms: int = 0) -> None:
        self._sent = self._noted = self._newest = sent
        self._newest_only, self._every_ms = newest_only, every_ms
        self._queue: deque[Commit] = deque()
        self._held_bytes = 0
        self._begun = self._ended = self._last_try = self._given_up = False
        self._until_ms: int | None = None
        self._next_ms = self._next_read_ms = self._next_note_ms = self._not_before_ms = 0
        self._trouble: Trouble | None = None
        self._unread: Trouble | None = None

    # --- what is seen ---------------------------------------------------------------------------

    @property
    def sent(self) -> Mark:
        """All is delivered up to this commit."""
        return self._sent

    @property
    def trouble(self) -> Trouble | None:
        return self._trouble or (self._unread if self._behind else None)

    @property
    def waiting(self) -> int:
        """Commits that are not delivered, as far as known: there may be more of them than in memory."""
        if self._newest_only:
            return int(self._newest > self._sent)
        return len(self._queue) + self._behind

    @property
    def _behind(self) -> bool:
        """There are commits that are not read yet."""
        return self._newest > (self._queue[-1].mark if self._queue else self._sent)

    def saw(self, newest: Mark) -> None:
        """The newest commit of the table, as far as it is known now."""
        self._newest = max(self._newest, newest)

    def stop(self, now_ms: int, until_ms: int) -> None:
        """The run ends: deliver what is open, until then. Whoever did not take any is asked once more."""
        self._until_ms = until_ms
        self._last_try = self._trouble is not None and self._trouble.failures >= FAILS_FOR_GOOD
        self._next_ms = self._next_read_ms = self._not_before_ms = now_ms

    # --- what is due ----------------------------------------------------------------------------

    def next(self, now_ms: int) -> Step:
        due = self._due(now_ms)
        over = isinstance(due, Done | End)
        if self._noted != self._sent and (over or now_ms >= self._next_note_ms):
            return Note(self._sent)
        return due

    def _due(self, now_ms: int) -> Step:
        stopping = self._until_ms is not None
        if self._ended or self._given_up or (self._until_ms is not None and now_ms >= self._until_ms):
            return Done()
        if self._due_to_read(now_ms):
            return self._read()
        if now_ms < self._next_ms:
            return Rest(min(LOOK_MS, self._next_ms - now_ms))
        if not self._begun:
            return Begin()
        if self._queue and now_ms >= self._not_before_ms:
            return Deliver(self._queue[0])
        return End() if stopping and not self._behind else Rest(LOOK_MS)

    def _due_to_read(self, now_ms: int) -> bool:
        if not self._behind or now_ms < self._next_read_ms:
            return False
        if self._newest_only:  # not before it can be delivered: another one may be the newest then
            return not self._queue and now_ms >= max(self._next_ms, self._not_before_ms)
        if self._queue and now_ms >= self._next_ms:
            return False  # deliver first: a commit may come with each look
        # Also while the hook does not take any: it is known then how many wait.
        return len(self._queue) < COMMITS_MAX and self._held_bytes < HELD_BYTES_MAX

    def _read(self) -> Read:
        after = self._queue[-1].mark if self._queue else self._sent
        if self._newest_only:
            return Read(after, self._newest, 1, HELD_BYTES_MAX, newest_only=True)
        return Read(after, self._newest, COMMITS_MAX - len(self._queue), HELD_BYTES_MAX - self._held_bytes)

    # --- what came of it ------------------------------------------------------------------------

    def read(self, now_ms: int, commits: Sequence[Commit]) -> None:
        """Of a `Read`."""
        self._unread = None
        if not commits:
            self._next_read_ms = now_ms + SETTLES_MS
        for commit in commits:
            self._queue.append(commit)
            self._held_bytes += commit.held_bytes
            self.saw(commit.mark)

    def not_read(self, now_ms: int, why: str) -> None:
        """The timeline could not be read."""
        self._unread = again(self._unread, now_ms, why)
        self._next_read_ms = now_ms + READ_AGAIN_MS

    def began(self) -> None:
        self._begun, self._trouble = True, None

    def delivered(self, now_ms: int) -> None:
        commit = self._queue.popleft()
        self._held_bytes -= commit.held_bytes
        self._sent = max(self._sent, commit.mark)
        self._trouble = None
        self._not_before_ms = now_ms if self._until_ms is not None else now_ms + self._every_ms

    def ended(self) -> None:
        self._ended = True

    def noted(self, now_ms: int, mark: Mark) -> None:
        self._noted = mark
        self._next_note_ms = now_ms + NOTE_EVERY_MS

    def not_noted(self, now_ms: int) -> None:
        """Once more later; at the end it is left: the next run delivers again what is not noted."""
        self._next_note_ms = now_ms + READ_AGAIN_MS
        if self._until_ms is not None:
            self._noted = self._sent

    def failed(self, now_ms: int, why: str) -> None:
        """Of a `Begin`, a `Deliver` or an `End`: it is tried again, later each time."""
        self._trouble = again(self._trouble, now_ms, why)
        back_off_ms = self._trouble.back_off_ms
        if self._until_ms is not None:
            back_off_ms, self._given_up = BACKOFF_MS, self._last_try
        self._next_ms = now_ms + back_off_ms
        if self._newest_only:  # another one may be the newest by then
            self._queue.clear()
            self._held_bytes = 0


def again(before: Trouble | None, now_ms: int, why: str) -> Trouble:
    """The same trouble once more, or a new one."""
    since_ms, failures = (before.since_ms, before.failures) if before is not None else (now_ms, 0)
    return Trouble(why[:WORD_CHARACTERS_MAX], since_ms, failures + 1)
