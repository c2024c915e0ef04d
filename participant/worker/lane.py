"""What a worker has of one table: the participant's core, the plane that decodes and writes for it, and the
writer by which it is heard on the control topic.

Everything for the core comes through one queue. What concerns all of a worker (its membership, the consumer
that reads for it) is not the lane's: it asks for that through `LaneCallbacks`.
"""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from control_topic.clocks import monotonic_ms
from control_topic.kafka import ControlWriter
from control_topic.messages import Message, Offsets, SourcePartition, StartCommit, WriteStatus
from control_topic.threads import guarded
from participant import events as ev
from participant.core import Participant
from participant.exchange.exchange import Exchange
from participant.source.dead_letters import SILENCE_S, DeadLetters
from participant.source.look_back import TopicLookBack
from participant.source.witnesses import Known, Remembered
from participant.worker.plane import Plane, PlaneCallbacks
from participant.worker.spec import WorkerSpec
from participant.worker.stages import stages
from table.service.calls import Result
from table.service.client import TableClient

log = logging.getLogger("lockstep.worker")

TICK_S = 0.05
EVENTS_MAX = 100_000
PROGRESS_MS = 1_000
"""How often a worker that closes files says how far it is; oftener where it is not waited for so long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneCallbacks:
    """What a lane asks of its worker, from the protocol's thread.

    `rewind(source partition, offset, generation, known)`: read it from there on, as this generation, once it
    is seen that the log is what it is known to be.
    `commit(offsets)`: tell the consumer group what the table holds. `plane`: of `PlaneCallbacks`, from the
    plane's thread.
    """

    rewind: Callable[[SourcePartition, int, int, Known | None], None]
    pause: Callable[[], None]
    resume: Callable[[], None]
    commit: Callable[[Offsets], None]
    plane: PlaneCallbacks


class Lane:
    """`core` is fed by `step` alone, in one thread; `post`, `failed` and `committed` are safe from any.

    `incarnation`: this worker's, as others know it. `writer`: closed with the lane; `table` and `exchange`
    are not.
    """

    def __init__(
        self,
        spec: WorkerSpec,
        *,
        slot: int,
        incarnation: str,
        table: TableClient,
        writer: ControlWriter,
        callbacks: LaneCallbacks,
        exchange: Exchange | None = None,
    ) -> None:
        self._table = table
        self._writer = writer
        self._callbacks = callbacks
        self._events: queue.Queue[ev.Event] = queue.Queue(EVENTS_MAX)
        self._calls = ThreadPoolExecutor(max_workers=1, thread_name_prefix="offsets")
        self._next_tick_s = time.monotonic()
        self._witnesses = Remembered()
        self.poison = ""
        """Why no worker can go on: what others hold is committed, and the run halts. Empty: nothing."""
        self.ended: ev.Stop | None = None
        takes_at = exchange.address if exchange is not None else ""
        self.core = Participant(_settings(spec, incarnation, takes_at))
        self.plane = Plane(
            stages=stages(
                layout=spec.layout,
                slot=slot,
                incarnation=incarnation,
                memory=spec.memory,
                record=spec.record,
                storage=spec.storage,
                look_back=TopicLookBack(spec.kafka, group=spec.group),
            ),
            queued_bytes_max=spec.memory.queued_bytes,
            buffered_bytes_max=spec.memory.idle_bytes,
            dead_letters=_dead_letters(spec),
            post=self.post,
            now_ms=monotonic_ms,
            callbacks=callbacks.plane,
            exchange=exchange,
        )

    # --- from other threads -----------------------------------------------------------------------

    def post(self, event: ev.Event) -> None:
        self._events.put(event)

    def failed(self, reason: str) -> None:
        """Something failed that a fresh worker may overcome."""
        self.post(ev.EffectFailed(now_ms=monotonic_ms(), reason=reason))

    def committed(self) -> Offsets | None:
        """What the table holds, None where the driver does not say. Waits for its answer."""
        answer = self._table.offsets()
        if answer.result is not Result.OK:
            return None
        self._witnesses.table_has(answer.witnesses, answer.committed)
        return answer.committed

    # --- the protocol's thread --------------------------------------------------------------------

    def start(self) -> None:
        self.plane.start()
        self._next_tick_s = time.monotonic()

    def step(self) -> None:
        """Feed the core the next event, or a tick where it is time for one."""
        timeout_s = self._next_tick_s - time.monotonic()
        try:
            event = self._events.get(timeout=max(0.0, timeout_s)) if timeout_s > 0 else None
        except queue.Empty:
            event = None
        if event is None:
            self._next_tick_s = time.monotonic() + TICK_S
            event = ev.Tick(now_ms=monotonic_ms())
        self._feed(event)

    def stop(self, timeout_s: float) -> None:
        """End the plane after the orders that it has, and let what was said be heard."""
        self.plane.stop(timeout_s)
        self._writer.flush(5)

    def close(self) -> None:
        self._calls.shutdown(wait=False, cancel_futures=True)
        self._writer.close()

    def _feed(self, event: ev.Event) -> None:
        before = self.core.state
        if isinstance(event, ev.Received):
            self._look_for_witnesses(event.message)
        for action in self.core.handle(event):
            self._perform(action)
        if self.core.state is not before:
            work = self.core.work
            log.debug(
                "%s -> %s on %s",
                *(before.name, self.core.state.name, type(event).__name__),
                extra={"epoch": self.core.epoch, "transaction": work.id if work is not None else ""},
            )

    def _look_for_witnesses(self, message: Message) -> None:
        """Before the core obeys: what it has read again, begins behind them."""
        if isinstance(message.body, StartCommit):
            self._witnesses.note(message.body.witnesses.values(), message.body.committed)

    def _perform(self, action: ev.Action) -> None:
        match action:
            case ev.Send():
                if isinstance(action.body, WriteStatus):
                    self._witnesses.wrote(action.body)
                self._writer.send(action.body, epoch=action.epoch)
            case ev.FetchOffsets():
                self._calls.submit(guarded("offsets", partial(self._fetch_offsets, action.call), self.failed))
            case ev.Rewind():
                self.plane.order(action)  # first, so that it knows the generation when records come
                known = self._witnesses.before(action.partition, action.offset)
                self._callbacks.rewind(action.partition, action.offset, action.generation, known)
            case ev.Drop() | ev.Open() | ev.Write() | ev.Flush() | ev.Discard():
                self.plane.order(action)
            case ev.CommitGroup():
                self._callbacks.commit(action.offsets)
            case ev.Pause():
                self._callbacks.pause()
            case ev.Resume():
                self._callbacks.resume()
            case ev.Poison():
                self.poison = self.poison or action.reason
            case ev.Stop():
                self.ended = action

    def _fetch_offsets(self, call: int) -> None:
        committed = self.committed()
        self.post(
            ev.OffsetsFetched(
                now_ms=monotonic_ms(),
                call=call,
                outcome=ev.Outcome.SUCCEEDED if committed is not None else ev.Outcome.UNKNOWN,
                committed=committed or {},
            )
        )


def _settings(spec: WorkerSpec, incarnation: str, takes_at: str) -> ev.Settings:
    return ev.Settings(
        pipeline=spec.pipeline,
        run=spec.run,
        incarnation=incarnation,
        interval_ms=spec.interval_ms,
        memory_bytes_max=spec.memory.buffered_bytes,
        idle_bytes_max=spec.memory.idle_bytes,
        records_max=spec.records_max,
        bytes_max=spec.bytes_max,
        until=spec.until or {},
        progress_ms=min(PROGRESS_MS, spec.write_timeout_ms // 4),
        rejects_max=spec.rejects_max,
        takes_at=takes_at,
    )


def _dead_letters(spec: WorkerSpec) -> DeadLetters | None:
    if spec.on_error != "dead_letter":
        return None
    return DeadLetters(
        spec.kafka,
        spec.dead_letter_topic,
        bytes_max=spec.memory.letters_bytes,
        message_bytes_max=spec.dead_letter_bytes_max,
        silence_s=min(SILENCE_S, spec.write_timeout_ms / 2_000),
        run=spec.run,
    )
