"""The observer: it looks at topic, table, broker and driver, each on a thread of its own, and makes pages.

A thread that cannot look says why, once in the log and as a problem on the page, and tries again: whatever is
away must neither end the observer nor hide what else can be seen. Nothing here holds up a run: it writes
nothing, and makes a document only where somebody asks for one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from control_topic.clocks import monotonic_ms, wall_ms
from control_topic.errors import ControlTopicError
from control_topic.kafka import ControlReader, ControlTopic
from control_topic.messages import Reject
from lockstep.brokers.one_record import read_value
from lockstep.brokers.source_topics import SourceTopics
from lockstep.config import Config
from lockstep.errors import LockstepError
from lockstep.installed import version_of
from lockstep.ui.errors import Hidden
from lockstep.watch.counting import FileCounts
from lockstep.watch.looks import SourceLook, TableLooks, look_at_source, placed_run
from lockstep.watch.metric_values import MetricsSeen
from lockstep.watch.metrics import exposed
from lockstep.watch.page import page_document, source_partition_entries
from lockstep.watch.page_rows import story, value_entry
from lockstep.watch.seen import BROKER, DRIVER, FILES, TABLE, TOPIC, Seen, Settings, metrics_seen
from lockstep.watch.tail import as_heard
from table.errors import TableError
from table.service.source_facts import SourceTopicsError
from table.state import StateError

log = logging.getLogger("lockstep.observer")

MESSAGES_MAX = 10_000
"""So many of the control topic's newest messages are read at the start."""
POLL_S = 0.5
HEAR_S = 0.05
BREATH_S = 0.001
LOOK_EVERY_S = 5.0
LOOK_SHARE = 20
"""A look that takes long is made less often: its thread rests so many times as long as it took."""
LOOK_EVERY_MAX_S = 60.0
COUNT_FIRST_S = 30.0
"""A run that begins has better things to do than to list files."""
COUNT_EVERY_S = 300.0
COUNT_AGAIN_S = 60.0
"""After a count that failed."""
COUNT_EVERY_MAX_S = 3_600.0
TABLE_FIRST_S = 15.0
"""The table says whose messages count: the topic waits so long for its first look."""
TABLE_QUIET_S = 60.0
"""Between looks at a table of which all is known: its driver tells of each commit, or nobody of any."""
ASK_DRIVER_EVERY_S = 1.0
ASK_S = 10.0
TOPIC_ASK_S = 5.0
VALUE_S = 10.0
PAST_S = (60, 600, 3_600, 6 * 3_600, 24 * 3_600, 7 * 24 * 3_600)
"""Ages for which a broker is asked where logs ended then, for records that are older than the observer."""
PAST_EVERY_S = 600.0
PAGE_EVERY_S = 1.0
PAGE_AGES_S = 5.0
"""A page grows old though nothing happens: a new one says how old."""
JOIN_S = 5.0
CLOCK_SET_MS = 1_000
"""A wall clock that parts from the other one by so much was set."""

EXPECTED = (ControlTopicError, LockstepError, SourceTopicsError, TableError, StateError, OSError)
"""What a look may fail with; whatever else is a bug, and is logged as one."""


@dataclass(frozen=True, slots=True)
class Page:
    """`number` grows with every change."""

    number: int
    document: dict[str, Any]


class Observer:
    """`kafka`: librdkafka properties with secrets resolved. `ask_live`: the driver's own status, None where
    it does not answer. May be used from any thread.
    """

    def __init__(
        self, config: Config, kafka: Mapping[str, str], *, ask_live: Callable[[], Mapping[str, Any] | None]
    ) -> None:
        self._config, self._kafka, self._ask_live = config, dict(kafka), ask_live
        self._seen = Seen(settings=_settings(config), asks_driver=True)
        self._guard = threading.Lock()
        self._changed = threading.Condition(self._guard)
        self._ahead_ms = wall_ms() - monotonic_ms()
        self._changes = 0
        self._since_ms = wall_ms()
        self._building = threading.Lock()
        self._page = Page(0, {})
        self._page_changes = -1
        self._page_at_s = 0.0
        self._stopping = threading.Event()
        self._table_stale = threading.Event()
        self._table_tried = threading.Event()
        self._reader: ControlReader | None = None
        self._recoveries = 0
        self._topic_due_s = 0.0
        self._asked_s: float | None = None  # where the topic ends, and it was not read so far yet
        self._past_due_s = 0.0
        self._source: SourceTopics | None = None
        self._control_topic: ControlTopic | None = None
        self._table_looks = TableLooks(config)
        self._counts = FileCounts(config, is_over=self._stopping.is_set)
        looks = {
            TOPIC: (self._follow_topic, 0.0),
            TABLE: (self._look_at_table, LOOK_EVERY_S),
            BROKER: (self._look_at_broker, LOOK_EVERY_S),
            DRIVER: (self._ask_driver, ASK_DRIVER_EVERY_S),
            FILES: (self._count_files, COUNT_EVERY_S),
        }
        self._threads = [
            threading.Thread(
                target=partial(self._keep_looking, place, look, every_s), name=f"observe-{place}", daemon=True
            )
            for place, (look, every_s) in looks.items()
        ]

    def start(self) -> None:
        """Begin to look."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Look no more. Waits for looks that go on, for some seconds at most."""
        self._stopping.set()
        self._table_stale.set()
        self._table_tried.set()
        until_s = time.monotonic() + JOIN_S
        if self._changed.acquire(timeout=JOIN_S):  # else who waits wakes by itself, a little later
            self._changed.notify_all()
            self._changed.release()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(0.0, until_s - time.monotonic()))

    # --- what it is asked -------------------------------------------------------------------------

    def page(self) -> Page:
        """The newest page: at most one a second is made anew."""
        with self._building:
            now_s = time.monotonic()
            age_s = now_s - self._page_at_s
            with self._guard:
                changes = self._changes
                due = changes != self._page_changes or age_s >= PAGE_AGES_S
                if self._page.number and (not due or age_s < PAGE_EVERY_S):
                    return self._page
                document = page_document(self._seen.page(self._now_ms()))
            self._page = Page(self._page.number + 1, document)
            self._page_changes, self._page_at_s = changes, now_s
            return self._page

    def wait(self, number: int, timeout_s: float) -> Page:
        """A page that is newer than `number`, or the newest there is when the time is over."""
        until_s = time.monotonic() + timeout_s
        while True:
            page = self.page()
            left_s = until_s - time.monotonic()
            if page.number > number or left_s <= 0 or self._stopping.is_set():
                return page
            with self._changed:
                if self._changes == self._page_changes:
                    self._changed.wait(min(left_s, PAGE_EVERY_S))
                    continue
            self._stopping.wait(min(left_s, max(0.01, self._page_at_s + PAGE_EVERY_S - time.monotonic())))

    def story(self, transaction: str) -> dict[str, Any] | None:
        """One transaction, whole; None where it is not remembered."""
        with self._guard:
            history = self._seen.history
            found = history.find(transaction)
            return story(found, history.names(found.run)) if found is not None else None

    def dead_letter(self, topic: str, partition: int, offset: int) -> dict[str, Any] | None:
        """See `lockstep.ui.port.Watched`. Of source topics only, whatever others say was a dead letter."""
        if not self._config.ui.show_values:
            raise Hidden(
                "Values are not shown: ui.show_values = true would let readers of the page see them."
            )
        with self._guard:
            known = self._seen.history.run.heard.rejects.sample
            found = next((one for one, _ in known if _is_at(one, topic, partition, offset)), None)
        if found is None or topic not in self._config.source.topics:
            return None
        return value_entry(
            read_value(self._kafka, self._config.group_id, found.partition, offset, timeout_s=VALUE_S)
        )

    def source_partitions(self) -> list[dict[str, Any]]:
        """All of them, as the page has the worst."""
        with self._guard:
            return source_partition_entries(self._seen.page(self._now_ms()))

    def metrics(self, *, openmetrics: bool) -> bytes:
        """The text of /metrics."""
        return exposed(self.metrics_seen, as_openmetrics=openmetrics)

    def metrics_seen(self) -> MetricsSeen:
        """What metrics are made of, now."""
        with self._guard:
            return replace(metrics_seen(self._seen, self._now_ms()), since_ms=self._since_ms)

    def ask_driver(self) -> None:
        """Now, and not when it is due."""
        self._ask_driver()

    # --- looking ----------------------------------------------------------------------------------

    def _keep_looking(self, place: str, look: Callable[[], None], every_s: float) -> None:
        again_s, rest_max_s = LOOK_EVERY_S, LOOK_EVERY_MAX_S
        if place == FILES:
            again_s, rest_max_s = COUNT_AGAIN_S, COUNT_EVERY_MAX_S
            self._stopping.wait(COUNT_FIRST_S)
        while not self._stopping.is_set():
            began_s, rest_s, well = time.monotonic(), every_s, False
            try:
                look()
                well = True
            except EXPECTED as error:
                self._note_failure(place, str(error))
                rest_s = again_s
            except Exception as error:  # without its thread a place would never be looked at again
                log.exception("looking at the %s failed unexpectedly; it is tried again", place)
                self._note_failure(place, f"The {place} could not be looked at: {error!r}.")
                rest_s = again_s
            if place == TABLE:
                self._table_tried.set()
            if place in (TABLE, BROKER, FILES):
                took_s = time.monotonic() - began_s
                rest_s = max(rest_s, min(LOOK_SHARE * took_s, rest_max_s))
            if rest_s:
                self._stopping.wait(rest_s)
            if place == TABLE and well and self._seen.committed()[0] is not None:
                self._table_stale.wait(TABLE_QUIET_S - LOOK_EVERY_S)
        self._close(place)

    def _close(self, place: str) -> None:
        if place == TOPIC and self._reader is not None:
            self._reader.close()
        if place == BROKER and self._source is not None:
            self._source.close()

    def _note_failure(self, place: str, problem: str) -> None:
        with self._changed:
            is_news = self._seen.failed(place, problem)
            self._note_change()
        if is_news:
            log.warning("%s", problem)

    def _now_ms(self) -> int:
        """The wall clock's, with the lock held. That somebody sets it makes nothing older or younger."""
        now_ms = wall_ms()
        ahead_ms = now_ms - monotonic_ms()
        if abs(ahead_ms - self._ahead_ms) > CLOCK_SET_MS:
            self._seen.clock_was_set(ahead_ms - self._ahead_ms)
            self._since_ms += ahead_ms - self._ahead_ms
            self._ahead_ms = ahead_ms
        return now_ms

    def _note_change(self) -> None:
        self._changes += 1
        self._changed.notify_all()

    def _follow_topic(self) -> None:
        """Once: what has arrived, waited for for a moment."""
        self._table_tried.wait(TABLE_FIRST_S)
        if time.monotonic() >= self._topic_due_s:
            self._ask_for_topic()
        reader = self._reader
        if reader is None:
            self._stopping.wait(POLL_S)
            return
        arrived = reader.poll(POLL_S)
        heard = [one for one in (as_heard(each, self._config.pipeline.id) for each in arrived) if one]
        with self._changed:
            history = self._seen.history
            if reader.recoveries != self._recoveries:
                self._recoveries = reader.recoveries
                history.begins_again()
        began_s = time.monotonic()
        for one in heard:  # each for itself: there may be thousands, and a page or the end waits
            with self._changed:
                self._seen.as_of(self._now_ms())
                history.hear(one)
            if time.monotonic() - began_s > HEAR_S:
                if self._stopping.wait(BREATH_S):  # a lock is not given to who has waited longest
                    return
                began_s = time.monotonic()
        with self._changed:
            self._seen.as_of(self._now_ms())
            catches_up = reader.caught_up and not history.caught_up
            if catches_up:
                history.caught_up_now()
                self._topic_due_s = 0.0
            self._note_end_reached(reader)
            if heard or catches_up:
                self._note_change()
            is_stale = self._seen.table_is_stale()
        if is_stale:
            self._table_stale.set()

    def _ask_for_topic(self) -> None:
        """Whether the topic is there, and so whether it is true that nothing more has arrived."""
        name = self._config.control.topic
        self._control_topic = self._control_topic or ControlTopic(self._kafka, name)
        asked_s = time.monotonic()
        exists = self._control_topic.describe(timeout_s=TOPIC_ASK_S).exists
        self._topic_due_s = time.monotonic() + LOOK_EVERY_S
        if exists and self._reader is None:
            self._reader = ControlReader(
                self._kafka,
                name,
                start="tail",
                tail_messages=MESSAGES_MAX,
                pipeline=self._config.pipeline.id,
            )
        if self._asked_s is None and exists and self._reader is not None and self._seen.history.caught_up:
            self._reader.ask_for_end(TOPIC_ASK_S)
            self._asked_s = asked_s
        with self._changed:
            if not exists:
                if self._reader is None:
                    self._seen.history.caught_up_now()
                if self._seen.history.caught_up:
                    missing = f"The control topic {name} does not exist: no run has been here yet."
                    self._seen.looked_at_topic(self._now_ms(), missing)
            elif self._reader is not None:
                self._note_end_reached(self._reader)
            self._note_change()

    def _note_end_reached(self, reader: ControlReader) -> None:
        """With the lock held. The topic was looked at when that was asked up to which it was read by now."""
        if self._asked_s is not None and reader.caught_up:
            ago_ms = round(1_000 * (time.monotonic() - self._asked_s))
            self._seen.looked_at_topic(self._now_ms() - ago_ms)
            self._asked_s = None

    def _look_at_table(self) -> None:
        self._table_stale.clear()
        look = self._table_looks.look()
        placed = placed_run(self._config) if look.exists else ""
        with self._changed:
            self._seen.looked_at_table(self._now_ms(), look, placed)
            self._note_change()

    def _count_files(self) -> None:
        census = self._counts.look()
        with self._changed:
            self._seen.counted_files(self._now_ms(), census)
            self._note_change()

    def _look_at_broker(self) -> None:
        if self._source is None:
            self._source = SourceTopics(
                self._kafka, self._config.source.topics, timeout_s=ASK_S, keeps_consumer=True
            )
        with self._guard:
            self._seen.as_of(self._now_ms())
            state, known = self._seen.committed()
        look = look_at_source(self._source, self._config.group_id)
        with self._changed:
            self._seen.looked_at_broker(self._now_ms(), look, state, known)
            unknown = self._seen.of_unknown_age()
            self._note_change()
        if unknown and time.monotonic() >= self._past_due_s:
            self._look_into_the_past(self._source, look)

    def _look_into_the_past(self, source: SourceTopics, look: SourceLook) -> None:
        """How old what is behind is, where it was there before this observer: by the records' own times."""
        self._past_due_s = time.monotonic() + PAST_EVERY_S
        now_ms = wall_ms()
        for age_s in PAST_S:
            at_ms = now_ms - 1_000 * age_s
            ends = {**look.view.end, **source.at_time(look.view.partitions, at_ms)}
            with self._changed:
                self._seen.looked_into_the_past(at_ms, ends)
                self._note_change()

    def _ask_driver(self) -> None:
        live = self._ask_live()
        with self._changed:
            answered = self._seen.live is not None
            self._seen.looked_at_driver(self._now_ms(), live)
            if live is not None or answered:
                self._note_change()
            is_stale = self._seen.table_is_stale()
        if is_stale:
            self._table_stale.set()


def _is_at(one: Reject, topic: str, partition: int, offset: int) -> bool:
    return (one.partition.topic, one.partition.number, one.offset) == (topic, partition, offset)


def _settings(config: Config) -> Settings:
    return Settings(
        pipeline=config.pipeline.id,
        group=config.group_id,
        control_topic=config.control.topic,
        table_path=config.table.path,
        table_format=config.table.format,
        interval_ms=config.transaction.interval_ms,
        write_timeout_ms=config.transaction.write_timeout_ms,
        transaction=config.transaction,
        workers=config.pipeline.workers,
        shows_values=config.ui.show_values,
        version=version_of("lockstep") or "unknown",
    )
