"""The coordinator's thread: it feeds the core and does what the core asks. It holds no protocol state.

It lives in the worker that owns partition 0 of the first source topic, for as long as that belief lasts.
Calls to the table service run one at a time on a second thread, so that messages are heard meanwhile.
A fenced core is replaced by a new claim only after the consumer group itself has confirmed the ownership.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TypedDict

from control_topic.controls import Controls, Tuning
from control_topic.log_fields import FIELDS
from control_topic.messages import Message
from control_topic.threads import guarded
from coordinator.core import Coordinator
from coordinator.events import (
    Abort,
    Action,
    Begin,
    Call,
    Commit,
    Completed,
    Directed,
    Event,
    Find,
    Launch,
    Prove,
    Received,
    Recover,
    Register,
    Result,
    RunMode,
    Send,
    Settings,
    Snapshot,
    Stop,
    Survey,
    Tick,
    WorkerDied,
)
from coordinator.ports import ControlSender, TableCalls
from coordinator.times import ByTheClock
from coordinator.transitions import State

log = logging.getLogger("lockstep.coordinator")

TICK_S = 0.05
QUEUE_MAX = 50_000
RECLAIM_S = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Waits before the next proof of ownership after being fenced; the last one repeats."""


class Stamp(TypedDict):
    """See `coordinator.events.Event`."""

    now_ms: int
    wall_ms: int
    nonce: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What the shell lends the core."""

    sender: Callable[[str], ControlSender]
    """Makes a writer for one claim, of the incarnation that it is given."""
    table: TableCalls
    prove: Callable[[Prove], None]
    """Ask the group whether it still counts us as the owner; `answer(ok, reason)` may come from another
    thread.
    """
    topic_epoch: Callable[[], int]
    """The highest epoch the control topic has shown."""
    failed: Callable[[str], None]
    """This coordinator met what it cannot go on from; its worker ends."""
    now_ms: Callable[[], int]
    wall_ms: Callable[[], int]
    nonce: Callable[[], str]
    by_the_clock: Callable[[Tuning], ByTheClock]
    """What schedule and alignment that operators have set amount to."""

    def stamp(self) -> Stamp:
        """What every event brings with it."""
        return {"now_ms": self.now_ms(), "wall_ms": self.wall_ms(), "nonce": self.nonce()}


class Runner:
    """Start it when source partition 0 is assigned, stop it when it is taken away."""

    def __init__(self, settings: Settings, environment: Environment) -> None:
        self._settings = settings
        self._env = environment
        self._events: queue.Queue[Callable[[], Event]] = queue.Queue(QUEUE_MAX)
        self._directive: tuple[RunMode, str, Controls | None] = (RunMode.RUN, "", None)
        self._incarnation = ""
        self._dropped = 0
        self._tick_at_s = 0.0
        self._stopping = threading.Event()
        self._snapshot: Snapshot | None = None
        self._thread = threading.Thread(
            target=guarded("coordinator", self._run, environment.failed), name="coordinator", daemon=True
        )

    # --- from other threads -----------------------------------------------------------------------

    def start(self) -> None:
        self._thread.start()

    def received(self, message: Message) -> None:
        self._offer(lambda: Received(**self._env.stamp(), message=message))

    def directed(self, mode: RunMode, reason: str, controls: Controls | None = None) -> None:
        if (mode, reason, controls) == self._directive:
            return
        self._directive = (mode, reason, controls)
        self._offer(partial(self._event_directed, mode, reason, controls))

    def _event_directed(self, mode: RunMode, reason: str, controls: Controls | None) -> Directed:
        tuning = controls.tuning if controls is not None else None
        return Directed(
            **self._env.stamp(),
            mode=mode,
            reason=reason,
            controls=controls,
            by_the_clock=self._env.by_the_clock(tuning) if tuning is not None else None,
        )

    def died(self, incarnations: Iterable[str], reasons: Mapping[str, str]) -> None:
        """`reasons`: of those whose death is known to have one."""
        for incarnation in incarnations:
            self._offer(partial(self._death, incarnation, reasons.get(incarnation, "")))

    def _death(self, incarnation: str, reason: str) -> WorkerDied:
        return WorkerDied(**self._env.stamp(), incarnation=incarnation, reason=reason)

    def snapshot(self) -> Snapshot | None:
        return self._snapshot

    def stop(self, timeout_s: float = 5) -> None:
        self._stopping.set()
        self._thread.join(timeout_s)

    def _offer(self, make: Callable[[], Event]) -> None:
        """The bus may lose: a coordinator that cannot keep up drops, and hears the repeat."""
        try:
            self._events.put_nowait(make)
        except queue.Full:
            self._dropped += 1
            if not self._dropped & (self._dropped - 1):  # each time that they have doubled
                log.warning(
                    "the coordinator's queue is full (%d events); dropped so far: %d",
                    QUEUE_MAX,
                    self._dropped,
                )

    # --- the thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        fenced = 0
        while not self._stopping.is_set():
            stop = self._run_claim()
            if stop is None or not stop.fenced or self._directive[0] is RunMode.STOP:
                return
            log.warning("no longer the coordinator: %s", stop.reason)
            while not self._stopping.wait(RECLAIM_S[min(fenced, len(RECLAIM_S) - 1)]):
                fenced += 1
                if self._prove():
                    break

    def _prove(self) -> bool:
        answered = threading.Event()
        verdict: list[bool] = []

        def answer(ok: bool, reason: str) -> None:
            verdict.append(ok)
            if not ok:
                log.warning("the group does not confirm that source partition 0 is ours: %s", reason)
            answered.set()

        self._env.prove(answer)
        return answered.wait(30) and verdict[0]

    def _run_claim(self) -> Stop | None:
        """One claim, from its survey to its end; None when the runner was stopped."""
        self._incarnation = incarnation = self._env.nonce()
        core = Coordinator(replace(self._settings, incarnation=incarnation))
        sender = self._env.sender(incarnation)
        calls = ThreadPoolExecutor(max_workers=1, thread_name_prefix="table-call")
        directed = self._event_directed(*self._directive)
        try:
            stop = self._feed(core, sender, calls, self._event_launch())
            if directed.mode is not RunMode.RUN or directed.controls is not None:
                stop = stop or self._feed(core, sender, calls, directed)
            while stop is None and not self._stopping.is_set():
                stop = self._feed(core, sender, calls, self._next_event())
            return stop
        finally:
            self._snapshot = (
                replace(core.snapshot(), state="stopped") if self._stopping.is_set() else core.snapshot()
            )
            calls.shutdown(wait=False, cancel_futures=True)
            sender.flush(2)
            sender.close()

    def _event_launch(self) -> Launch:
        return Launch(**self._env.stamp(), topic_epoch=self._env.topic_epoch())

    def _next_event(self) -> Event:
        """What comes, and a tick when it is time, however much comes."""
        left_s = self._tick_at_s - time.monotonic()
        if left_s > 0:
            with contextlib.suppress(queue.Empty):
                return self._events.get(timeout=left_s)()
        self._tick_at_s = time.monotonic() + TICK_S
        return Tick(**self._env.stamp())

    def _feed(
        self, core: Coordinator, sender: ControlSender, calls: ThreadPoolExecutor, event: Event
    ) -> Stop | None:
        before = core.state
        stop: Stop | None = None
        for action in core.handle(event):
            if isinstance(action, Stop):
                stop = action
            else:
                self._perform(action, sender, calls, core.settings.incarnation)
        if core.state is not before or isinstance(event, Received | Directed):
            self._snapshot = core.snapshot()
        if core.state is State.RECOVERING and before is State.REGISTERING:
            log.info("the coordinator is here, with epoch %d", core.epoch, extra={"epoch": core.epoch})
        if core.state is not before:
            log.debug(
                "%s -> %s on %s",
                *(before.name, core.state.name, type(event).__name__),
                extra={name: getattr(self._snapshot, name, None) for name in FIELDS},
            )
        return stop

    def _perform(
        self, action: Action, sender: ControlSender, calls: ThreadPoolExecutor, incarnation: str
    ) -> None:
        if isinstance(action, Send):
            sender.send(action.body, epoch=action.epoch)
        elif not isinstance(action, Stop):
            calls.submit(self._call, action, incarnation)

    def _call(self, call: Call, incarnation: str) -> None:
        """Every call is answered by one completion; the client turns every failure into a result."""
        completed = self._answer(call, incarnation)
        if completed.result not in (Result.OK, Result.COMMITTED):
            said = (
                completed.wait_ms > 0 or completed.result is Result.HALTED
            )  # by the driver, which knows why
            log.log(
                logging.DEBUG if said else logging.WARNING,
                "%s: %s%s",
                type(call).__name__.lower(),
                completed.result.name,
                f" ({completed.reason})" if completed.reason else "",
                extra={name: value for name in FIELDS if (value := getattr(call, name, None)) is not None},
            )
        self._events.put(lambda: self._stamp(completed, incarnation))

    def _stamp(self, completed: Completed, incarnation: str) -> Event:
        """An answer to an earlier claim's call is nobody's any more."""
        if incarnation != self._incarnation:
            return Tick(**self._env.stamp())
        return replace(completed, **self._env.stamp())

    def _answer(self, call: Call, incarnation: str) -> Completed:
        table = self._env.table
        if isinstance(call, Survey):
            answer = table.survey()
        elif isinstance(call, Register):
            answer = table.register(call.epoch, incarnation)
        elif isinstance(call, Recover):
            answer = table.recover(call.epoch)
        elif isinstance(call, Begin):
            answer = table.begin(call.epoch, call.transaction)
        elif isinstance(call, Commit):
            answer = table.commit(call.epoch, call.transaction, call.instant, call.expected, call.statuses)
        elif isinstance(call, Find):
            answer = table.find(call.transaction, call.ranges)
        else:
            assert isinstance(call, Abort)
            answer = table.abort(call.epoch, call.transaction, call.instant, call.reason, call.fault)
        return Completed(
            now_ms=0,
            call=call.call,
            result=answer.result,
            reason=answer.reason,
            wait_ms=answer.wait_ms,
            instant=answer.instant,
            epoch=answer.epoch,
            committed=answer.committed,
            partitions=frozenset(answer.partitions),
            took_ms=answer.took_ms,
            witnesses=answer.witnesses,
            watermark_ms=answer.watermark_ms,
        )
