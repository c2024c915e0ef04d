"""What an observer remembers of a pipeline, within bounds: runs, transactions, what went wrong. Pure.

Each run has a fold of its own, so that what led to a restart does not go with it. Which run is the newest the
table's folder says (`placed`); before that is known, their announcements do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from control_topic.messages import EPOCH_LEAD_MAX, Offsets, RunAnnounce, StartCommit
from control_topic.spelling import short_line
from lockstep.watch.counters import Counters
from lockstep.watch.rates import Rates
from lockstep.watch.told import (
    DETAILS_MAX,
    LINES_MAX,
    REASON_LENGTH_MAX,
    SOURCE_PARTITIONS_MAX,
    Aborted,
    Claimed,
    Committed,
    Heard,
    Joined,
    Left,
    Line,
    News,
    RunHalted,
    RunIsUp,
    Transaction,
    dated,
)
from lockstep.watch.topic_fold import Fold
from lockstep.watch.topic_lines import content

TRANSACTIONS_MAX = 2_000
"""Of the newest run."""
EARLIER_MAX = 300
"""Of each run before it."""
RUNS_MAX = 6
DETAILED = 50
"""So many of the newest run's transactions are kept with their ranges and all their messages."""
DETAILED_EARLIER = 5
EARLIER_SHARE = 10
"""Of a run that is not the newest a tenth of source partitions and details is kept: anybody can begin one."""
LINES_OLDER_MAX = 8
LINE_LENGTH_MAX = 200
TROUBLES_MAX = 100
COORDINATORS_MAX = 20
SENDERS_MAX = 4_096
ID_SHOWN = 8


class Trouble(NamedTuple):
    """Something that went wrong. `kind`: abort, death, coordinator, halt, outage or alarm."""

    time_ms: int
    kind: str
    text: str


class Led(NamedTuple):
    """A coordinator, since it claimed its epoch."""

    epoch: int
    name: str
    since_ms: int


@dataclass(slots=True, kw_only=True)
class RunHeard:
    """What was heard of one run."""

    fold: Fold
    whole: bool
    """From its announcement on."""

    heard: Counters = field(default_factory=Counters)
    """Everything that was heard of it."""

    followed: Counters | None = None
    """What was heard since the topic was read up to its end; None before."""

    coordinators: deque[Led] = field(default_factory=lambda: deque(maxlen=COORDINATORS_MAX))
    """Oldest first."""

    troubles: deque[Trouble] = field(default_factory=lambda: deque(maxlen=TROUBLES_MAX))

    def trouble(self, time_ms: int, kind: str, text: str) -> None:
        """Remember one."""
        self.troubles.append(Trouble(time_ms, kind, short_line(text, REASON_LENGTH_MAX)))


class History:
    """`placed` and `table_epoch`: as `Fold` has them; to be set when the table was looked at."""

    def __init__(self) -> None:
        self.placed = ""
        self.table_epoch = 0
        self.now_ms = 0  # by the observer's clock, where that is known
        self.ignored = 0
        self.caught_up = False
        self.rates = Rates()
        self._troubles: deque[Trouble] = deque(maxlen=TROUBLES_MAX)  # those that no message told of
        self.last_deaths: dict[str, str] = {}
        self._runs: dict[str, RunHeard] = {}  # the one that was heard last at the end
        self._newest = ""
        self._sequences: dict[tuple[str, str], int] = {}
        self._heard_before: dict[tuple[str, str], int] = {}

    @property
    def run(self) -> RunHeard:
        """The newest."""
        name = self._newest_name()
        return self._runs.get(name) or RunHeard(fold=Fold(placed=name, run=name), whole=False)

    @property
    def counters(self) -> Counters | None:
        """Of the newest run, whole or since the topic has been followed; None before either is known."""
        run = self.run
        if not self.caught_up:
            return None
        return run.heard if run.whole else run.followed

    @property
    def announced(self) -> str:
        """The run that was announced last, as the announcements themselves have it; empty where none was."""
        announced = [run.fold for run in self._runs.values() if run.fold.run_ms]
        return max(announced, key=lambda fold: fold.run_order).run if announced else ""

    def transactions(self, count_max: int) -> list[Transaction]:
        """The newest of all runs, newest last."""
        of_all = [one for run in self._runs.values() for one in run.fold.transactions[-count_max:]]
        return sorted(of_all, key=lambda one: one.started_ms)[-count_max:]

    def find(self, transaction: str) -> Transaction | None:
        """Of any run."""
        found = (run.fold.book.find(transaction) for run in reversed(self._runs.values()))
        return next((one for one in found if one is not None), None)

    def names(self, run: str) -> Mapping[str, str]:
        """Incarnation -> worker, of this run."""
        known = self._runs.get(run)
        return known.fold.names if known is not None else {}

    def hear(self, heard: Heard) -> None:
        """The next message, in topic order."""
        heard = dated(heard, self.now_ms)
        message = heard.message
        if not heard.marked or message.epoch > self.table_epoch + EPOCH_LEAD_MAX:
            self.ignored += 1
            return
        if not self._is_new(heard):
            return
        run = self._run_of(heard)
        run.fold.table_epoch = self.table_epoch
        run.fold.book.places_max = self._share(SOURCE_PARTITIONS_MAX, message.run == self._newest_name())
        news = run.fold.hear(heard)
        run.heard.hear(news)
        if run.followed is not None:
            run.followed.hear(news)
        self._note_line(run.fold, heard)
        newest = self._newest_name()
        if newest != self._newest:
            self._newest_changed(newest)
        self._note(run, news, heard.time_ms, is_newest=message.run == newest)
        if isinstance(message.body, StartCommit):
            self._forget_details(run, is_newest=message.run == newest)
            self._settle_earlier(run, message.epoch, message.body.committed, heard.time_ms)

    def caught_up_now(self) -> None:
        """The topic was read up to its end: from here on nothing of any run is missed."""
        self.caught_up = True
        for run in self._runs.values():
            run.followed = Counters(leads=bool(run.fold.epoch), workers=run.fold.workers)

    def begins_again(self) -> None:
        """The log was cut off or made again: what comes now may have been heard before."""
        self._heard_before = dict(self._sequences)

    def trouble(self, time_ms: int, kind: str, text: str) -> None:
        """Remember what no message tells of."""
        self._troubles.append(Trouble(time_ms, kind, short_line(text, REASON_LENGTH_MAX)))

    def troubles(self) -> list[Trouble]:
        """Of all runs, newest first."""
        told = [one for run in self._runs.values() for one in run.troubles]
        return sorted([*self._troubles, *told], key=lambda one: one.time_ms, reverse=True)[:TROUBLES_MAX]

    def coordinators(self) -> list[Led]:
        """Of all runs, newest first."""
        led = [one for run in self._runs.values() for one in run.coordinators]
        fold = self.run.fold
        if fold.coordinator and all(one.epoch != fold.epoch for one in led):
            led.append(Led(fold.epoch, fold.coordinator, 0))  # its claim is older than all that was read
            return sorted(led, key=lambda one: one.epoch, reverse=True)[:COORDINATORS_MAX]
        return sorted(led, key=lambda one: one.since_ms, reverse=True)[:COORDINATORS_MAX]

    def died(self, worker: str, reason: str) -> None:
        """What a worker died of last."""
        self.last_deaths.pop(worker, None)
        self.last_deaths[worker] = short_line(reason, REASON_LENGTH_MAX)
        while len(self.last_deaths) > SENDERS_MAX:
            del self.last_deaths[next(iter(self.last_deaths))]

    # --- whose message it is ----------------------------------------------------------------------

    def _is_new(self, heard: Heard) -> bool:
        sender = (heard.message.sender, heard.message.incarnation)
        sequence = heard.message.sequence
        if sequence <= self._heard_before.get(sender, -1):
            return False
        self._sequences[sender] = max(sequence, self._sequences.pop(sender, -1))
        while len(self._sequences) > SENDERS_MAX:
            del self._sequences[next(iter(self._sequences))]
        return True

    def _run_of(self, heard: Heard) -> RunHeard:
        name, body = heard.message.run, heard.message.body
        run = self._runs.pop(name, None)
        if run is None:
            run = RunHeard(
                fold=Fold(placed=name, run=name, transactions_max=TRANSACTIONS_MAX), whole=self.caught_up
            )
        if isinstance(body, RunAnnounce) and heard.message.sequence == 0:
            run.whole = True
        self._runs[name] = run
        if len(self._runs) > RUNS_MAX:
            newest = self._newest_name()
            del self._runs[next(one for one in self._runs if one not in (newest, name))]
        return run

    def _share(self, count: int, is_newest: bool) -> int:
        return count if is_newest else count // EARLIER_SHARE

    def _newest_name(self) -> str:
        return self.placed or self.announced or next(reversed(self._runs), "")

    def _newest_changed(self, newest: str) -> None:
        self._newest = newest
        for name, run in self._runs.items():
            if name != newest:
                run.fold.forget_places(self._share(SOURCE_PARTITIONS_MAX, False))
                transactions = run.fold.transactions
                del transactions[:-EARLIER_MAX]
                for one in transactions[:-DETAILED_EARLIER]:
                    one.reduce(lines_max=LINES_OLDER_MAX)
                self._forget_details(run, is_newest=False)

    # --- what is remembered -----------------------------------------------------------------------

    def _note_line(self, fold: Fold, heard: Heard) -> None:
        message = heard.message
        transaction = fold.book.find(message.transaction) if message.transaction else None
        if transaction is None:
            return
        if len(transaction.lines) >= LINES_MAX:
            del transaction.lines[1]  # START stays
        transaction.lines.append(
            Line(
                heard.offset,
                heard.time_ms,
                message.type_name,
                short_line(message.sender, LINE_LENGTH_MAX),
                content(message, length_max=LINE_LENGTH_MAX),
            )
        )

    def _forget_details(self, run: RunHeard, *, is_newest: bool) -> None:
        """Of older transactions only sums are kept."""
        keep = DETAILED if is_newest else DETAILED_EARLIER
        for one in run.fold.transactions[-keep - 2 : -keep]:
            one.reduce(lines_max=LINES_OLDER_MAX)
        details = 0
        for one in reversed(run.fold.transactions[-keep:]):
            details += one.details
            if details > self._share(DETAILS_MAX, is_newest):
                one.reduce(lines_max=LINES_OLDER_MAX)
        if not is_newest:
            del run.fold.transactions[:-EARLIER_MAX]

    def _settle_earlier(self, run: RunHeard, epoch: int, committed: Offsets, time_ms: int) -> None:
        """What a run left open is decided where one after it begins a transaction. Nobody decides that of the
        newest run but itself."""
        for name, other in self._runs.items():
            opened = other.fold.open_transaction
            if other is run or name == self._newest or opened is None or opened.epoch >= epoch:
                continue
            news = other.fold.book.settle(committed, time_ms)
            other.heard.hear(news)
            self._note_ends(other, news)

    def _note(self, run: RunHeard, news: Iterable[News], time_ms: int, *, is_newest: bool) -> None:
        self._note_ends(run, news)
        for one in news:
            match one:
                case Claimed(coordinator, epoch) if (
                    not run.coordinators or epoch > run.coordinators[-1].epoch
                ):
                    if run.coordinators:
                        run.trouble(time_ms, "coordinator", f"{coordinator} took over with epoch {epoch}")
                    run.coordinators.append(Led(epoch, coordinator, time_ms))
                case RunIsUp(name) if is_newest and len(self._runs) > 1:
                    run.trouble(time_ms, "coordinator", f"run {name} is up, after another one")
                case Left(worker, reason):
                    self.died(worker, reason)
                    run.trouble(time_ms, "death", f"{worker} ended: {reason}")
                case Joined(worker, True, _) if restarts := run.fold.restarts.get(worker, 0):
                    run.trouble(time_ms, "death", f"{worker} was started anew (restart {restarts:,})")
                case RunHalted(reason):
                    run.trouble(time_ms, "halt", reason)

    def _note_ends(self, run: RunHeard, news: Iterable[News]) -> None:
        for one in news:
            if isinstance(one, Committed):
                done = one.transaction
                self.rates.add(done.ended_ms, done.records, done.size_bytes, now_ms=self.now_ms)
            elif isinstance(one, Aborted):
                lost = one.transaction
                text = f"transaction {lost.id[:ID_SHOWN]} was aborted: {lost.reason}"
                run.trouble(lost.ended_ms, "abort", text)
