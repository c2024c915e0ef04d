"""What an observer has seen so far, and what follows from it: status, page. Pure.

Thread-safe is who uses it: `lockstep.watch.observer` guards it with a lock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from control_topic.causes import DRAIN, REACHED_END
from control_topic.messages import Offsets, SourcePartition
from lockstep.config.sections import TransactionSection
from lockstep.driver.stands import ours, sentence, strangers
from lockstep.offsets.standing import OffsetRow, compare
from lockstep.watch.driver_seen import DriverSeen, deceased
from lockstep.watch.history import History
from lockstep.watch.lag import EndSamples
from lockstep.watch.looks import SourceLook, TableLook
from lockstep.watch.metric_values import MetricsSeen
from lockstep.watch.next_end import next_end
from lockstep.watch.page import PageSeen, Sources, TableFacts, page_document, source_partition_entries
from lockstep.watch.page_table import Counted
from lockstep.watch.run_seen import ignored_sentence
from lockstep.watch.status import LastCommit, Observed, Status, conclude
from lockstep.watch.told import Phase, Transaction
from lockstep.watch.watermarks import newest_watermark
from table.census import Census
from table.state import StateError, TableState, flatten

TOPIC, BROKER, TABLE, DRIVER = "topic", "broker", "table", "driver"
FILES = "table's files"
ENDS_RUN = (DRAIN, REACHED_END)
"""Of a transaction's end: after it the run ends by itself."""
BROKER_OLD_MS = 120_000
"""A look that nobody answers takes a minute until it has failed."""
LAG_OLD_MS = 180_000
"""What a broker said so long ago says nothing of now. Longer than a slow look and the rest after it take, and
than one that fails: lag that comes and goes would silence whoever alerts by it."""
LIVE_KEPT_MS = 4_000
"""One answer that is late is no driver that is gone."""
LIVE_OLD_MS = 15_000
"""An answer is that old where the next look fails, or hangs: nobody answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What an observer takes from the configuration."""

    pipeline: str
    group: str
    control_topic: str
    table_path: str
    table_format: str
    interval_ms: int
    write_timeout_ms: int
    workers: int
    version: str
    shows_values: bool = False
    transaction: TransactionSection = field(default_factory=TransactionSection)
    """What ends transactions by the clock."""


@dataclass(slots=True)
class Seen:
    """`tried`: which of the places were looked at, well or not."""

    settings: Settings
    asks_driver: bool
    history: History = field(default_factory=History)
    sources: Sources = field(default_factory=Sources)
    table: TableLook | None = None
    counted: Counted | None = None
    source: SourceLook | None = None
    rows: list[OffsetRow] | None = None
    samples: EndSamples = field(default_factory=EndSamples)
    written_ms: dict[SourcePartition, int] = field(default_factory=dict)
    """When the oldest record was written that is not committed, where that is known."""
    opened_ms: dict[SourcePartition, int] = field(default_factory=dict)
    """When the oldest open producer transaction wrote its first record, where that is known."""

    live: Mapping[str, Any] | None = None
    driver: DriverSeen = field(default_factory=DriverSeen)
    answered_by: str = ""
    """The run whose driver has answered."""

    answered_mode: str = ""
    """What it was to do then."""

    tried: set[str] = field(default_factory=set)
    problems: dict[str, str] = field(default_factory=dict)
    """By place: why it cannot be looked at now."""

    # --- what was looked at -----------------------------------------------------------------------

    def failed(self, place: str, problem: str) -> bool:
        """A look failed; whether that is news."""
        self.tried.add(place)
        is_news = self.problems.get(place) != problem
        self.problems[place] = problem
        return is_news

    def looked_at_topic(self, now_ms: int, problem: str = "") -> None:
        """The control topic was read as far as it goes."""
        self._well(TOPIC, problem)
        self.sources = replace(self.sources, topic_ms=now_ms)

    def looked_at_table(self, now_ms: int, look: TableLook, placed: str) -> None:
        """What the table says; `placed`: the run that started last."""
        self._well(TABLE)
        self.sources = replace(self.sources, table_ms=now_ms)
        self.table = look
        self.history.placed = placed or self.history.placed
        if look.state is not None:
            self.history.table_epoch = max(self.history.table_epoch, look.state.epoch)

    def counted_files(self, now_ms: int, census: Census | None) -> None:
        """What the table is made of: the same as before where nothing changed, None where there is none."""
        self._well(FILES)
        if census is None:
            self.counted = None
        elif self.counted is not None and self.counted.census is census:
            self.counted = replace(self.counted, checked_ms=now_ms)
        else:
            self.counted = Counted(census=census, at_ms=now_ms, checked_ms=now_ms)

    def looked_at_broker(self, now_ms: int, look: SourceLook, state: TableState | None, known: bool) -> None:
        """What the broker says. `state`: the table's, as it was known before the broker was asked; `known`:
        whether it was, for nothing is said of a table that nobody has read."""
        self._well(BROKER)
        self.sources = replace(self.sources, broker_ms=now_ms)
        self.source = look
        self.samples.add(now_ms, {**look.view.end, **look.view.written})
        self.rows = compare(state, look.view) if known else None
        self._date()

    def looked_into_the_past(self, at_ms: int, ends: Offsets) -> None:
        """Where logs ended at an earlier time, as the broker knows it by records' times."""
        self.samples.add(at_ms, ends)
        self._date()

    def looked_at_driver(self, now_ms: int, live: Mapping[str, Any] | None) -> None:
        """What the driver answers; None: it did not."""
        self.tried.add(DRIVER)
        if live is None:
            if self.live is not None and now_ms - (self.sources.driver_ms or 0) > LIVE_KEPT_MS:
                self.live = None
            return
        self.live, self.answered_by = live, str(live.get("run", ""))
        self.answered_mode = str(live.get("mode", ""))
        self.sources = replace(self.sources, driver_ms=now_ms)
        for kind, text in self.driver.hear(live):
            self.history.trouble(now_ms, kind, text)
            if kind == "death" and (found := deceased(text)) is not None:
                self.history.died(*found)

    def _well(self, place: str, problem: str = "") -> None:
        self.tried.add(place)
        self.problems.pop(place, None)
        if problem:
            self.problems[place] = problem

    # --- what follows -----------------------------------------------------------------------------

    def as_of(self, now_ms: int) -> None:
        """What is asked next is asked now: an answer of the driver that is too old is none."""
        self.history.now_ms = now_ms
        if now_ms - (self.sources.driver_ms or 0) > LIVE_OLD_MS:
            self.live = None

    def clock_was_set(self, by_ms: int) -> None:
        """The wall clock was, by so much: nothing is older or younger for it."""
        told = {name: at_ms + by_ms for name, at_ms in self.sources.to_json().items() if at_ms is not None}
        self.sources = replace(self.sources, **told)
        if self.counted is not None:
            self.counted = self.counted.shifted(by_ms)
        self.samples.shift(by_ms)
        self._date()

    def committed(self) -> tuple[TableState | None, bool]:
        """The table's state as it is known, from the driver where that is newer; and whether it is known."""
        state = self.table.state if self.table is not None else None
        told = self._told()
        if told:
            state = (
                replace(state, offsets=told)
                if state is not None
                else TableState(
                    pipeline=self.settings.pipeline, run="", epoch=0, transaction="", offsets=told
                )
            )
        return state, self.table is not None or bool(told)

    def _told(self) -> Offsets:
        """Committed offsets as the driver has them; empty where they are not newer than the table's own."""
        if self.live is None or not self.live.get("committed"):
            return {}
        state = self.table.state if self.table is not None else None
        if state is not None and self.live.get("newest", {}).get("instant", "") < state.instant:
            return {}
        try:
            return flatten(self.live["committed"])
        except (StateError, ValueError, TypeError, AttributeError):
            return {}

    def mode(self) -> str | None:
        """What the newest run is to do, or was to do last: as its driver says, or as the topic tells."""
        if self.live is not None:
            return self.answered_mode
        fold = self.history.run.fold
        if fold.halted is not None:
            return "HALT"
        last = fold.transactions[-1] if fold.transactions else None
        if last is not None and last.end_reason in ENDS_RUN:
            return "DRAIN" if last.is_open else "STOP"
        if fold.left_in_peace:
            return "STOP"
        ordered_ms = fold.paused[1] if fold.paused is not None else fold.resumed_ms
        ordered = "PAUSE" if fold.paused is not None else "RUN"
        if self.answered_by == fold.run and self.answered_mode:
            newer = ordered_ms > (self.sources.driver_ms or 0) and self.answered_mode in ("PAUSE", "RUN")
            return ordered if newer else self.answered_mode
        return ordered if fold.heard_ms else None

    @property
    def heard_commit(self) -> Transaction | None:
        """The newest transaction of the newest run that the control topic says is committed."""
        transactions = reversed(self.history.run.fold.transactions)
        return next((one for one in transactions if one.phase is Phase.COMMITTED), None)

    def table_is_stale(self) -> bool:
        """Whether it is to be read again: a run has come up since, or of the newest commit only the control
        topic tells, to which anybody may write."""
        history, newest = self.history, self.heard_commit
        if history.announced not in ("", history.placed):
            return True
        if self.live is not None:
            return str(self.live.get("run", "")) != history.placed
        state = self.table.state if self.table is not None else None
        return newest is not None and (state is None or state.transaction != newest.id)

    def last_commit(self, now_ms: int) -> LastCommit | None:
        """The newest that table, driver or topic tell of; of one and the same, what the table says."""
        self.as_of(now_ms)
        told = (self._table_commit(now_ms), self._driver_commit(now_ms), self._topic_commit(now_ms))
        found = [one for one in told if one is not None]
        newest = min(found, key=lambda one: one.age_ms, default=None)
        return next((one for one in found if newest and one.transaction == newest.transaction), None)

    def status(self, now_ms: int) -> Status:
        """As `lockstep status` concludes it; not known before every place was looked at once."""
        self.as_of(now_ms)
        settings = self.settings
        source = self.source_now(now_ms)
        guests = strangers(source.members, settings.group) if source is not None else []
        found = conclude(
            Observed(
                pipeline=settings.pipeline,
                now_ms=now_ms,
                fold=self.history.run.fold,
                last_commit=self.last_commit(now_ms),
                offsets=self.rows if source is not None else None,
                members=self.members(now_ms),
                watermark=newest_watermark(self.table.state if self.table is not None else None, self.live),
                strangers=sentence(guests, settings.group) if guests else "",
                interval_ms=settings.interval_ms,
                write_timeout_ms=settings.write_timeout_ms,
                next_end=next_end(settings.transaction, now_ms, self.live),
                live=self.live,
                problems=tuple(self._problems(now_ms)),
            )
        )
        if found.halted is None and (missing := self._not_looked_at()):
            problem = f"Not everything was looked at yet: {', '.join(missing)}."
            return replace(found, state="unknown", advice=(), problems=(*found.problems, problem))
        return found

    def source_now(self, now_ms: int) -> SourceLook | None:
        """What the broker said, where it has answered lately."""
        fresh = now_ms - (self.sources.broker_ms or 0) < BROKER_OLD_MS
        return self.source if fresh and BROKER not in self.problems else None

    def members(self, now_ms: int) -> int | None:
        """Workers in the group; None where the broker has not said lately."""
        source = self.source_now(now_ms)
        return ours(source.members, self.settings.group) if source is not None else None

    def page(self, now_ms: int) -> PageSeen:
        """What a document is made of."""
        self.as_of(now_ms)
        settings = self.settings
        return PageSeen(
            now_ms=now_ms,
            status=self.status(now_ms),
            history=self.history,
            sources=self.sources,
            table=TableFacts(
                path=settings.table_path,
                format=settings.table_format,
                mode=self.table.mode if self.table is not None else None,
                counted=self.counted,
            ),
            interval_ms=settings.interval_ms,
            write_timeout_ms=settings.write_timeout_ms,
            mode=self.mode(),
            rows=self.rows,
            rows_are_old=now_ms - (self.sources.broker_ms or 0) >= LAG_OLD_MS,
            written_ms=self.written_ms,
            opened_ms=self.opened_ms,
            live=self.live,
            shows_values=settings.shows_values,
        )

    def _date(self) -> None:
        """When that was written which waits."""
        self.written_ms, self.opened_ms = {}, {}
        for row in self.rows or ():
            place = SourcePartition(row.topic, row.partition)
            if row.lag and row.committed is not None:
                at_ms = self.samples.written_ms(place, row.committed)
                if at_ms is not None:
                    self.written_ms[place] = at_ms
            if row.undecided and row.end is not None:
                at_ms = self.samples.written_ms(place, row.end)
                if at_ms is not None:
                    self.opened_ms[place] = at_ms

    def of_unknown_age(self) -> bool:
        """Whether something is behind, and how old it is cannot be told yet."""
        return sum(1 for row in self.rows or () if row.lag) > len(self.written_ms)

    def _not_looked_at(self) -> Sequence[str]:
        missing = [place for place in (TOPIC, BROKER) if place not in self.tried]
        if self.table is None and (self.live is None or not self.live.get("committed")):
            missing.append(TABLE)  # what it holds is not known, and nothing may be concluded from that
        return missing

    def _problems(self, now_ms: int) -> Sequence[str]:
        told = list(dict.fromkeys(self.problems.values()))  # table and its files are away for one reason
        if self.table is not None and (forgotten := self.table.savepoint_problem(now_ms)):
            told.append(forgotten)
        if self.history.ignored:
            told.append(ignored_sentence(self.history.ignored, self.settings.control_topic))
        answered_ms = self.sources.driver_ms
        if self.asks_driver and self.live is None and answered_ms and self.answered_by == self._run():
            told.append(
                f"The driver of run {self.answered_by} has not answered for"
                f" {(now_ms - answered_ms) // 1_000:,} s."
            )
        return told

    def _run(self) -> str:
        return self.history.run.fold.run

    def _table_commit(self, now_ms: int) -> LastCommit | None:
        return self.table.last_commit(now_ms) if self.table is not None else None

    def _driver_commit(self, now_ms: int) -> LastCommit | None:
        if self.live is None or self.live.get("last_commit_age_ms") is None:
            return None
        newest = self.live["newest"]
        known = self.history.find(newest["transaction"])
        answered_ago_ms = max(0, now_ms - (self.sources.driver_ms or 0))
        return LastCommit(
            transaction=newest["transaction"],
            instant=newest["instant"],
            kind="data",
            epoch=int(newest.get("epoch", self.live["epoch"])),
            rows=known.records if known is not None else 0,
            age_ms=max(0, int(self.live["last_commit_age_ms"])) + answered_ago_ms,
        )

    def _topic_commit(self, now_ms: int) -> LastCommit | None:
        """An ACK that was heard since the table was last read. A driver that answers knows better."""
        newest = self.heard_commit
        if self.live is not None or newest is None or newest.ended_ms <= (self.sources.table_ms or 0):
            return None
        return LastCommit(
            transaction=newest.id,
            instant=newest.instant,
            kind="data",
            epoch=newest.epoch,
            rows=newest.records,
            age_ms=max(0, now_ms - newest.ended_ms),
        )


def metrics_seen(seen: Seen, now_ms: int) -> MetricsSeen:
    """What metrics are made of."""
    page = seen.page(now_ms)
    partitions = source_partition_entries(page)
    return MetricsSeen(
        document=page_document(page, partitions),
        partitions=partitions,
        counters=seen.history.counters,
        live=seen.live,
        members=seen.members(now_ms),
        aborts=seen.history.run.fold.aborts if seen.history.caught_up else None,
        workers=seen.settings.workers,
        group=seen.settings.group,
        version=seen.settings.version,
    )
