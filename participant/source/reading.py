"""Reading the source: a thread that takes records from the fetcher and hands them on, in offset order.

Each delivery is tagged with the generation of its position, so that whoever gets it can tell what was read
before a rewind. Orders (rewind, pause, resume, drop) come from other threads. Whether a source partition is
ours is the membership's; who may write what is decided elsewhere, and a wrong belief here costs only work.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException

from control_topic.messages import Lost, Offsets, SourcePartition
from control_topic.threads import guarded
from participant.errors import SourceUnreadable
from participant.records.raw import RawBatch
from participant.source.fetched import Fetched
from participant.source.fetcher import Fetcher, Notice, sentence
from participant.source.look import Cut, Look, NotYet, TurnTo
from participant.source.orders import Orders
from participant.source.position import (
    ENDS_BEFORE,
    LOST_ITS_END,
    OUT_OF_RANGE,
    OVERSIZED,
    SILENT,
    SKIP,
    UNPACKED,
    Position,
    at,
)
from participant.source.stalls import (
    ALARM_S,
    DAMAGED,
    DEAF_S,
    FORBIDDEN,
    OVERSIZED_MAX,
    RENEW_S,
    STALLED_MAX_S,
    Stalls,
    Standstill,
    before_damage,
)
from participant.source.witnesses import Known

log = logging.getLogger("lockstep.source")

PLACES_SAID_MAX = 5
FETCH_S = 0.1
"""The longest that an order waits behind a quiet source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCallbacks:
    """Whom the source tells, on its thread.

    `owned` answers what the group gives us. `deliver` answers False while there is no room. `stuck` names a
    source partition that cannot go on by configuration, and why.
    """

    owned: Callable[[], frozenset[SourcePartition]]
    deliver: Callable[[Fetched], bool]
    stuck: Callable[[SourcePartition, int, str], None]
    failed: Callable[[str], None]


class SourceThread:
    """The fetcher's thread. `until`: where to stop; at the beginning for a source partition not in it."""

    def __init__(
        self,
        *,
        fetcher: Callable[[], Fetcher],
        until: Offsets | None,
        on_data_loss: str,
        callbacks: SourceCallbacks,
    ) -> None:
        self._make_fetcher = fetcher
        self._until = until
        self._on_data_loss = on_data_loss
        self._callbacks = callbacks
        self._orders = Orders()
        self._positions: dict[SourcePartition, Position] = {}
        self._turned: set[SourcePartition] = set()
        """Told to read from elsewhere since the last fetch: what else that one says is of before."""
        self._paused = False
        self._stalls = Stalls()
        self._stopping = threading.Event()
        self._closing: threading.Thread | None = None
        """The last client that another took the place of."""
        self.consume_s = 0.0
        """Spent on taking records from the client, which includes waiting for them."""
        self._fetcher: Fetcher
        self._thread = threading.Thread(
            target=guarded("source", self._run, callbacks.failed), name="source", daemon=True
        )

    @property
    def alarms(self) -> tuple[str, ...]:
        """What does not go on at the moment, sentences for people. From any thread."""
        return tuple(self._stalls.alarms.values())

    # --- orders -----------------------------------------------------------------------------------

    def start(self) -> None:
        self._thread.start()

    def rewind(
        self, partition: SourcePartition, offset: int, generation: int, known: Known | None = None
    ) -> None:
        """Read from `offset` on; everything delivered from now on carries `generation`.

        `known`: what was read before it; nothing is delivered where the log has something else there.
        """
        self._orders.give(lambda: self._rewind(partition, offset, generation, known))

    def drop(self, partitions: Sequence[SourcePartition]) -> None:
        """They are no longer ours."""
        self._orders.give(lambda: self._drop(partitions))

    def pause(self) -> None:
        self._orders.give(lambda: self._set_paused(True))

    def resume(self) -> None:
        self._orders.give(lambda: self._set_paused(False))

    def hold(self, partition: SourcePartition, generation: int, why: str) -> None:
        """Bring no more of it until it is released, rewound or dropped; `why` is said meanwhile."""
        self._orders.give(lambda: self._hold(partition, generation, why))

    def release(self, partition: SourcePartition, generation: int) -> None:
        self._orders.give(lambda: self._release(partition, generation))

    def stop(self, timeout_s: float) -> bool:
        """Deliver nothing more; True when the thread has ended in time."""
        self._stopping.set()
        if self._thread.ident is None:
            return True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    # --- the thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._fetcher = self._make_fetcher()
            try:
                while not self._stopping.is_set():
                    self._orders.obey()
                    self._read()
            finally:
                self._fetcher.close()
        except (KafkaException, SourceUnreadable) as error:
            self._callbacks.failed(f"the source cannot be read: {sentence(error)}")

    def _read(self) -> None:
        began = time.monotonic()
        taken = self._fetcher.fetch(FETCH_S)
        took_s = time.monotonic() - began
        self.consume_s += took_s
        self._turned.clear()
        for batch in before_damage(taken.batches, taken.notices):
            if batch.partition not in self._turned:
                self._on_records(batch)
        for notice in taken.notices:
            if notice.partition not in self._turned:
                self._on_notice(notice)
        if not self._paused and self._stalls.waited(took_s):
            self._look()

    # --- positions --------------------------------------------------------------------------------

    def _rewind(
        self, partition: SourcePartition, offset: int, generation: int, known: Known | None = None
    ) -> None:
        if partition not in self._callbacks.owned():
            return  # revoked meanwhile; where that comes after this line, so does its `drop`
        position = Position(
            generation=generation, next=offset, still=Standstill(since_s=self._stalls.waited_s)
        )
        self._positions[partition] = position
        self._stalls.clear(partition)
        until = self._end_of(partition)
        if until is not None and offset >= until:
            position.at_end = True
            self._fetcher.drop(partition)
        elif known is not None:
            position.look = Look(known=known, next=offset)
            self._read_from(partition, position.look.start)
        else:
            self._read_from(partition, offset)

    def _read_from(self, partition: SourcePartition, offset: int) -> None:
        self._turned.add(partition)
        self._fetcher.read_from(partition, offset)
        if self._paused or self._positions[partition].held:
            self._fetcher.pause([partition])

    def _drop(self, partitions: Sequence[SourcePartition]) -> None:
        for partition in partitions:
            if partition not in self._callbacks.owned():  # else it has been given to us again
                self._positions.pop(partition, None)
                self._stalls.clear(partition)
                self._fetcher.drop(partition)

    def _hold(self, partition: SourcePartition, generation: int, why: str) -> None:
        position = self._positions.get(partition)
        if position is None or position.generation != generation:
            return  # it is read from elsewhere by now
        position.held = True
        if position.live:
            self._fetcher.pause([partition])
        log.warning("%s", why, extra=at(partition, position))
        self._stalls.raise_alarm(partition, why)

    def _release(self, partition: SourcePartition, generation: int) -> None:
        position = self._positions.get(partition)
        if position is None or position.generation != generation:
            return
        position.held = False
        self._came(partition, position)
        if position.live and not self._paused:
            self._fetcher.resume([partition])

    def _set_paused(self, paused: bool) -> None:
        self._paused = paused
        live = [p for p, position in self._positions.items() if position.live and not position.held]
        if live:
            (self._fetcher.pause if paused else self._fetcher.resume)(live)

    def _end_of(self, partition: SourcePartition) -> int | None:
        return None if self._until is None else self._until.get(partition, 0)

    def _live(self, partition: SourcePartition) -> Position | None:
        position = self._positions.get(partition)
        return position if position is not None and position.live else None

    # --- records ----------------------------------------------------------------------------------

    def _on_records(self, batch: RawBatch) -> None:
        position = self._live(batch.partition)
        if position is None:
            return
        if position.look is not None:
            self._look_at(batch, position, position.look)
            return
        if batch.offsets[0] < position.next:
            raise SourceUnreadable(
                f"{batch.partition}: the consumer delivered offset {batch.offsets[0]} where {position.next} "
                "or later was due; the worker is restarted"
            )
        until = self._end_of(batch.partition)
        next_offset = int(batch.offsets[-1]) + 1
        if until is not None and next_offset > until:
            batch, next_offset = batch.head(int(np.searchsorted(batch.offsets, until))), until
        self._advance(batch.partition, position, next_offset, raw=batch if len(batch) else None)

    def _look_at(self, batch: RawBatch, position: Position, look: Look) -> None:
        partition, verdict = batch.partition, look.at(batch)
        match verdict:
            case NotYet():
                pass
            case Cut():
                _, high = self._fetcher.bounds(partition)
                self._stick(partition, position, LOST_ITS_END.format(high=high, why=verdict.why))
            case TurnTo():
                self._turn(partition, position, verdict.offset)
            case _:
                position.look = None
                self._on_records(verdict.batch)

    def _turn(self, partition: SourcePartition, position: Position, offset: int) -> None:
        """As the look says. It is over where what is behind it comes next."""
        if position.look is not None and position.look.passed:
            position.look = None
        self._read_from(partition, offset)

    def _advance(
        self,
        partition: SourcePartition,
        position: Position,
        next_offset: int,
        *,
        raw: RawBatch | None = None,
        lost: tuple[Lost, ...] = (),
    ) -> None:
        fetched = Fetched(
            partition=partition,
            generation=position.generation,
            start=position.next,
            next=next_offset,
            raw=raw,
            lost=lost,
        )
        position.next = next_offset
        self._came(partition, position)
        until = self._end_of(partition)
        if until is not None and next_offset >= until:
            position.at_end = True
            self._fetcher.drop(partition)
        while not self._callbacks.deliver(fetched):  # it waits a while itself
            if self._stopping.is_set() or partition not in self._callbacks.owned():
                return

    # --- what the broker says instead -----------------------------------------------------------------

    def _on_notice(self, notice: Notice) -> None:
        partition = notice.partition
        position = self._live(partition)
        if position is None:
            return
        if notice.code == KafkaError._PARTITION_EOF:
            self._came(partition, position)
            self._on_end(partition, position, notice.offset)
        elif notice.code in OUT_OF_RANGE:
            self._on_out_of_range(partition, position, notice.text)
        elif notice.code in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION):
            self._stick(partition, position, "the topic or partition no longer exists at the broker")
        elif notice.code in DAMAGED:
            self._on_damage(partition, position, notice.code, notice.text)
        elif notice.code in FORBIDDEN:
            self._stick(
                partition,
                position,
                f"the broker does not let this worker read it ({notice.text}): give the pipeline's user the "
                "right to read the topic and its group, and start again",
            )
        else:
            log.warning(
                "%s at offset %d: %s", partition, position.next, notice.text, extra=at(partition, position)
            )

    def _on_end(self, partition: SourcePartition, position: Position, end: int | None) -> None:
        """The end of the log: what lies between is markers and aborted records, a range without rows."""
        if position.look is not None and (turn := position.look.at_end(end)) is not None:
            self._turn(partition, position, turn.offset)
            return
        until = self._end_of(partition)
        if end is None or end == OFFSET_INVALID or end <= position.next:
            return
        position.look = None
        self._advance(partition, position, end if until is None else min(end, until))

    def _on_out_of_range(self, partition: SourcePartition, position: Position, text: str) -> None:
        """The client reads it no more until it is told from where. A whole log refuses nothing within it."""
        if position.look is not None and (turn := position.look.refused()) is not None:
            self._turn(partition, position, turn.offset)
            return
        position.look = None
        low, high = self._fetcher.bounds(partition)
        if position.next < low and self._on_data_loss == "earliest":
            log.warning(
                "%s: retention removed offsets %d to %d; going on at %d",
                partition,
                position.next,
                low - 1,
                low,
                extra=at(partition, position),
            )
            lost = Lost(partition=partition, start=position.next, next=low)
            self._read_from(partition, low)
            self._advance(partition, position, low, lost=(lost,))
        elif position.next < low:
            self._stick(
                partition,
                position,
                f"retention removed the offsets from {position.next} to {low - 1} before they were read; "
                f'accept the loss with source.on_data_loss = "earliest" or '
                f"lockstep offsets --set {partition}={low}",
            )
        elif position.next > high:
            self._stick(
                partition,
                position,
                f"offset {position.next} is beyond the log's end {high}: the topic was truncated or made "
                "anew; see lockstep offsets --adopt",
            )
        else:
            damaged = (
                f". It came damaged there before: {SKIP}"
                if position.still.damaged_at == position.next
                else ""
            )
            self._stick(
                partition,
                position,
                LOST_ITS_END.format(high=high, why=text) + damaged,
            )

    # --- what does not go on ----------------------------------------------------------------------

    def _came(self, partition: SourcePartition, position: Position) -> None:
        position.still.came(self._stalls.waited_s)
        self._stalls.heard()
        if not position.held:
            self._stalls.clear(partition)

    def _on_damage(self, partition: SourcePartition, position: Position, code: int, text: str) -> None:
        """Read again what came damaged; where it is so each time, that is how it lies in the log."""
        if position.look is not None and not position.look.asks:
            position.look = None  # what would be looked at is damaged, and may be taken out
            self._read_from(partition, position.next)
            return
        if position.still.is_final(position.next):
            self._stick(
                partition,
                position,
                f"the log cannot be read there, at each attempt ({text}); "
                f"{UNPACKED if code == KafkaError._BAD_COMPRESSION else ''}{SKIP}",
            )
            return
        log.warning(
            "%s at offset %d: %s; it is read again",
            *(partition, position.next, text),
            extra=at(partition, position),
        )
        self._read_from(partition, position.next)

    def _look(self) -> None:
        """Whether there is lag where nothing comes. A broker that is away says nothing of its logs.

        What could not be asked for is the last to be asked the next time: one leader that is missing neither
        hides the others nor is waited for more than once.
        """
        waited_s = self._stalls.waited_s
        reading = {p: o for p, o in self._positions.items() if o.live and not o.held}
        quiet = {p: o for p, o in reading.items() if waited_s - o.still.since_s >= ALARM_S}
        if self._is_oversized(quiet):
            return
        while quiet:
            partition, position = next(iter(quiet.items()))
            try:
                _low, high = self._fetcher.bounds(partition)
            except SourceUnreadable as error:
                for unknown in quiet.values():  # while the broker is away nothing stands still by itself
                    unknown.still.since_s = waited_s - ALARM_S
                self._positions[partition] = self._positions.pop(partition)
                self._alarm(partition, position, f"{error}; it is waited for")
                if self._stalls.is_deaf:
                    self._renew(f"nothing could be read or asked for {DEAF_S:.0f} s")
                return
            self._stalls.heard()
            if high == position.next:
                self._came(partition, position)
            elif high < position.next:
                self._alarm(partition, position, ENDS_BEFORE.format(high=high))
            elif self._renews(position, waited_s - position.still.since_s):
                self._renew(f"nothing of {partition} was read for {RENEW_S:.0f} s, and its log goes on")
                return
            else:
                self._stand_still(partition, position, high, waited_s - position.still.since_s)
            del quiet[partition]

    def _is_oversized(self, quiet: Mapping[SourcePartition, Position]) -> bool:
        """Whether an answer is larger than the client takes, which closes the connection each time.

        It cannot be told which source partition's batch that is: others of the broker are in the same answer.
        """
        why = self._fetcher.too_large()
        if not why or not quiet:
            self._stalls.oversized = 0 if not quiet else self._stalls.oversized
            return False
        self._stalls.oversized += 1
        places = ", ".join(f"{p} at offset {o.next}" for p, o in list(quiet.items())[:PLACES_SAID_MAX])
        partition, position = next(iter(quiet.items()))
        said = OVERSIZED.format(why=why, places=places)
        if self._stalls.oversized >= OVERSIZED_MAX:
            self._stick(partition, position, said)
        else:
            self._alarm(partition, position, said)
        return True

    def _renews(self, position: Position, still_s: float) -> bool:
        """Return whether to try another client before the standstill counts as final."""
        return still_s >= RENEW_S and not position.still.renewed

    def _renew(self, why: str) -> None:
        """Create another client, where this one may hang and not its broker. It continues where this one was.

        A thread closes that one, which may never end: then there is no third client.
        """
        self._stalls.heard()
        for position in self._positions.values():
            position.still.renewed = True
        if self._closing is not None and self._closing.is_alive():
            return
        log.warning("Created another Kafka client: %s", why)
        self._closing = threading.Thread(target=self._fetcher.close, name="deaf-source", daemon=True)
        self._closing.start()
        self._fetcher = self._make_fetcher()
        for partition, position in self._positions.items():
            if position.live:
                if position.look is not None:
                    position.look = Look(known=position.look.known, next=position.next)
                self._read_from(partition, position.look.start if position.look else position.next)

    def _stand_still(self, partition: SourcePartition, position: Position, high: int, still_s: float) -> None:
        held = f"the log goes on to offset {high}, and nothing of it could be read for {still_s:.0f} s"
        if still_s >= STALLED_MAX_S:
            self._stick(partition, position, f"{held}; {SILENT}")
        else:
            self._alarm(partition, position, f"{held}; after {STALLED_MAX_S:.0f} s the run halts")

    def _alarm(self, partition: SourcePartition, position: Position, why: str) -> None:
        sentence = f"{partition} at offset {position.next}: {why}"
        if not position.still.said:
            position.still.said = sentence
            log.warning("%s", sentence, extra=at(partition, position))
        self._stalls.raise_alarm(partition, sentence)

    def _stick(self, partition: SourcePartition, position: Position, reason: str) -> None:
        position.stuck = True
        self._stalls.clear(partition)
        self._fetcher.drop(partition)
        self._callbacks.stuck(
            partition, position.generation, f"{partition} at offset {position.next}: {reason}"
        )
