"""One schedule: processes that ask a store, in virtual time, and what strikes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any

from tests.simulation.bucket.errors import Violation
from tests.simulation.bucket.rules import RULES, Rules
from tests.simulation.bucket.server import CHANGES, Request, Unanswered
from tests.simulation.bucket.strikes import (
    DEATHS,
    DRIVERS_MAX,
    LATE_MAX_MS,
    PAUSES,
    SENT,
    SETTLED_MS,
    SLEEPS,
    STOPS,
    Kind,
    Shape,
    Strike,
    step_of,
)
from tests.simulation.bucket.tape import Effect, Sleep, Steps

SUSPECT_AFTER_MS = 5_000
"""A driver that stands still for longer is given a successor."""
HELD_MAX_MS = 40_000
"""A guardian ends whoever has renewed the table lock last so long ago (`watchdog.held_s` of 60 s)."""
SILENT_MAX_MS = 20_000
"""Or whose Python has been silent for so long while its JVM may hold it."""
GIVES_UP_MS = 1_000
"""After so long a client takes a request for unanswered."""
QUIET_MS = 60_000
"""Between all that goes wrong and the last driver."""
SOON = 0.97
"""So many of all answers."""
EVENTS_MAX = 30_000
HORIZON_MS = 3_600_000
BEGIN_MS = 1_767_225_600_000
"""1 January 2026, UTC: when each world begins."""


class Process:
    """A generator that is paused or killed as one. `parent`: whose fate it shares. `tenure`: the hold of the
    table lock that its guardian knows of; empty: none.
    """

    def __init__(
        self, name: str, steps: Steps[Any], *, parent: Process | None = None, number: int = 0
    ) -> None:
        self.name = name
        self.steps = steps
        self.parent = parent
        self.number = number
        self.steps_made: Counter[str] = Counter()
        self.over = False
        self.armed = False
        self.tenure = ""
        self.held_since_ms = 0
        self.interrupt: Exception | None = None
        self.died_ms = -1
        self.paused_until_ms = 0
        self.guardian_until_ms = 0

    @property
    def alive(self) -> bool:
        return self.head.died_ms < 0

    @property
    def head(self) -> Process:
        return self if self.parent is None else self.parent


class World:
    """`strikes`: what goes wrong. Raises `Violation` in `run`."""

    def __init__(
        self, shape: Shape, strikes: Sequence[Strike] = (), *, rules: Rules = RULES, record: bool = False
    ) -> None:
        self.shape = shape
        self.rules = rules
        self.now_ms = BEGIN_MS
        self.server = rules.server()
        self._draw = Random(f"world {shape.seed}").random
        self.lines: list[str] = []
        self.record = record
        self.struck: list[Strike] = []
        self.drivers: list[Any] = []
        self.processes: dict[str, Process] = {}
        self.beyond = False
        self.acked: list[tuple[str, int]] = []
        self.requests = 0
        self.counts_all = False
        self._strikes = {(one.who, one.step, one.at): one for one in strikes}
        self._named = {one.who for one in strikes}
        self._queue: list[tuple[int, int, Any, tuple[Any, ...]]] = []
        self._order = count()
        self._workers = count(1)

    # --- what processes ask of the world --------------------------------------------------------

    def note(self, who: str, text: str) -> None:
        if self.record:
            self.lines.append(f"{(self.now_ms - BEGIN_MS) / 1_000:9.3f}  {who:<6} {text}")

    def start(
        self, name: str, steps: Steps[Any], *, parent: Process | None = None, number: int = 0
    ) -> Process:
        process = self.processes[name] = Process(name, steps, parent=parent, number=number)
        self.at(0, self._step, process, None)
        return process

    def worker_name(self, *, last: bool) -> str:
        """Those of the last driver are not struck."""
        return f"{'v' if last else 'w'}{next(self._workers)}"

    def at(self, in_ms: int, do: Any, *arguments: Any) -> None:
        self._when(self.now_ms + in_ms, do, *arguments)

    def _when(self, at_ms: int, do: Any, *arguments: Any) -> None:
        heappush(self._queue, (at_ms, next(self._order), do, arguments))

    def start_driver(self, *, last: bool = False) -> None:
        number = DRIVERS_MAX if last else len(self.drivers)
        if not last and number >= DRIVERS_MAX:
            return
        made = self.rules.driver(self, number, last=last)
        self.drivers.append(made)
        self.note(made.name, f"starts on machine {made.machine}, its clock {made.skew_ms / 1_000:+.1f} s")
        made.process = self.start(made.name, made.life(), number=number)

    def hold(self, process: Process, tenure: str) -> None:
        """Its guardian hears that it holds the lock."""
        process.tenure, process.held_since_ms = tenure, self.now_ms
        self.at(HELD_MAX_MS, self._guard, process, tenure)

    def renewed(self, process: Process, tenure: str, sent_ms: int) -> None:
        """Its guardian hears that it holds the lock still, by what was sent at that time."""
        if process.tenure == tenure:
            process.held_since_ms = sent_ms

    def interrupt(self, process: Process, error: Exception) -> None:
        process.interrupt = error

    def is_dead(self, name: str) -> bool:
        return not self.processes[name].alive or self.processes[name].over

    # --- the schedule ---------------------------------------------------------------------------

    def run(self) -> None:
        """To the end, with one driver more when all others are over."""
        self.start_driver()
        if self.shape.rival_at_ms:
            self.at(self.shape.rival_at_ms, self._succeed, 1)
        self._drain()
        self.now_ms += LATE_MAX_MS + QUIET_MS
        self.start_driver(last=True)
        self._drain()
        self.rules.check(self)

    def _drain(self) -> None:
        events = 0
        while self._queue:
            self.now_ms, _, do, arguments = heappop(self._queue)
            events += 1
            if events > EVENTS_MAX or self.now_ms > BEGIN_MS + HORIZON_MS:
                raise Violation("nobody waits for ever: the schedule does not end")
            do(*arguments)

    def _step(self, process: Process, value: Any) -> None:
        """Send an answer, or raise what is an error, and perform what is asked for then."""
        if not process.alive or process.over:
            return
        paused_until_ms = process.head.paused_until_ms
        if paused_until_ms > self.now_ms:
            self._when(paused_until_ms + 1, self._step, process, value)
            return
        if process.interrupt is not None:
            value, process.interrupt = process.interrupt, None
        try:
            resume = process.steps.throw if isinstance(value, Exception) else process.steps.send
            effect = resume(value)
        except StopIteration:
            process.over = True
            return
        self._perform(process, effect)

    def _perform(self, process: Process, effect: Effect) -> None:
        if isinstance(effect, Sleep):
            self.at(effect.for_ms, self._step, process, None)
            return
        self.requests += 1
        strike = self._due(process, effect)
        if strike is None:
            self._send(process, effect)
            return
        self.struck.append(strike)
        self.note(process.name, f"*** {strike.kind}{f', {strike.ms:,} ms' if strike.ms else ''}: {effect}")
        self._strike(process, effect, strike)

    def _due(self, process: Process, request: Request) -> Strike | None:
        if not self.counts_all and process.name not in self._named:
            return None
        step = step_of(request)
        process.steps_made[step] += 1
        return self._strikes.get((process.name, step, process.steps_made[step]))

    def _strike(self, process: Process, request: Request, strike: Strike) -> None:
        kind = strike.kind
        if kind in DEATHS:
            self.kill(process.head, "dies")
        if kind in PAUSES:
            self._pause(process.head, strike)
        if kind is Kind.DIES_SENT:
            most_ms = SETTLED_MS if self._is_provable(process) else LATE_MAX_MS
            self.at(min(strike.ms, most_ms), self._arrive, process, request, False)
        elif kind in SENT or kind in PAUSES:
            # One that is paused before it sends asks for the same when it wakes up.
            if kind in SENT:
                self._send(process, request)
            else:
                self._when(process.head.paused_until_ms + 1, self._send_again, process, request)
        elif kind in (Kind.FAILS, Kind.LOST, Kind.LATE):
            if kind is Kind.LOST:
                self.at(self._latency_ms(), self._arrive, process, request, False)
            elif kind is Kind.LATE:
                self.beyond = self.beyond or bool(request.tenure)
                self.at(GIVES_UP_MS + strike.ms, self._arrive, process, request, False)
            self.at(GIVES_UP_MS, self._step, process, Unanswered(request.path))

    def _send_again(self, process: Process, request: Request) -> None:
        if process.alive and not process.over:
            self._send(process, request)

    def _send(self, process: Process, request: Request) -> None:
        self.at(self._latency_ms(), self._arrive, process, request, True)

    def _arrive(self, process: Process, request: Request, answered: bool) -> None:
        """It lands. `answered`: its sender hears of it, if he lives."""
        head = process.head
        if head.died_ms >= 0 and request.act in CHANGES:
            most_ms = SETTLED_MS + 100 if self._is_provable(process) else LATE_MAX_MS + 100
            self.beyond = self.beyond or self.now_ms - head.died_ms > most_ms
        try:
            value: Any = self.server.apply(request, self.now_ms)
        except FileNotFoundError as error:
            value = error
        if self.record:
            said = "" if answered else ", and nobody hears of it"
            self.note(process.name, f"{request} -> {_told(value)}{said}")
        if answered:
            self.at(self._latency_ms(), self._step, process, value)

    def kill(self, process: Process, why: str) -> None:
        if process.died_ms >= 0 or process.over:
            return
        process.died_ms = self.now_ms
        self.note(process.name, f"*** {why}")
        if process.name[0] == "d":
            self.at(self.shape.successor_ms, self._succeed, len(self.drivers))

    def _pause(self, process: Process, strike: Strike) -> None:
        process.paused_until_ms = self.now_ms + strike.ms
        if strike.kind in SLEEPS:
            process.guardian_until_ms = process.paused_until_ms + strike.lead_ms
        if strike.kind in STOPS and process.armed and strike.ms > SILENT_MAX_MS:
            self.at(SILENT_MAX_MS, self.kill, process, "is killed by its guardian: Python does not answer")
        # What is not promised: the metadata table may be written beside its next writer.
        self.beyond = self.beyond or bool(process.armed and (strike.lead_ms or not process.tenure))
        if process.name[0] == "d" and strike.ms > SUSPECT_AFTER_MS:
            self.at(SUSPECT_AFTER_MS, self._succeed, len(self.drivers))

    def _succeed(self, number: int) -> None:
        if number == len(self.drivers):
            self.start_driver()

    def _guard(self, process: Process, tenure: str) -> None:
        if process.tenure != tenure or not process.alive or process.over:
            return
        if process.guardian_until_ms > self.now_ms:
            self._when(process.guardian_until_ms, self._guard, process, tenure)
            return
        ends_ms = process.held_since_ms + HELD_MAX_MS
        if ends_ms > self.now_ms:
            self._when(ends_ms, self._guard, process, tenure)
            return
        self.kill(process, "is killed by its guardian: it has renewed the table lock 40 s ago")

    def _is_provable(self, process: Process) -> bool:
        return process.head.name[0] == "d" and self.shape.shares(process.head.number)

    def _latency_ms(self) -> int:
        """Half a request's way; now and then one takes much longer."""
        drawn = self._draw()
        return 2 + int(drawn * 30) if drawn < SOON else 100 + int((drawn - SOON) / (1 - SOON) * 800)


def _told(value: Any) -> str:
    if isinstance(value, OSError):
        return str(value.strerror)
    if value is None:
        return "no"
    return f"{len(value)} names" if isinstance(value, list) else str(getattr(value, "tag", value))
