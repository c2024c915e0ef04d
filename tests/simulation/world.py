"""A whole pipeline in one process and one seed: drivers, workers, Kafka and the lake, with faults and a tail.

The cores, the ledger, the table service's transactions and the in-memory table are production code,
unchanged. A schedule has a fault phase and then a fault-free tail, in which the lag must return to zero.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from control_topic.messages import CoordinatorClaim, DataFile, SourcePartition
from coordinator import events as coordinator_events
from coordinator.core import Coordinator
from participant.core import Participant
from table.calls import Answer
from table.memory import MemoryInstant, MemoryTable, MemoryTimeline, Phase
from table.state import TableState, decode
from tests.simulation import faults as fault_kinds
from tests.simulation.bus import PIPELINE, Bus, Sender
from tests.simulation.chance import Chance
from tests.simulation.checkers import Checks, all_checkers
from tests.simulation.checkers.base import Violation
from tests.simulation.driver import Driver
from tests.simulation.group import Group
from tests.simulation.lake import FaultyTable, Storage
from tests.simulation.misfortune import Misfortune
from tests.simulation.scheduler import Process, Scheduler
from tests.simulation.source_log import SourceLog
from tests.simulation.transcript import Transcript
from tests.simulation.worker import Worker

TAIL_STEP_MS = 1_000
TAIL_MAX_MS = 120_000
SETTLED_STEPS = 3

logging.getLogger("table").setLevel(logging.CRITICAL + 1)  # faults are what is expected here


class ScheduleFailed(AssertionError):
    """What went wrong, as a sentence. The seed alone replays it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cores:
    """The cores under test: production's, or ones with a bug put in on purpose."""

    coordinator: Callable[[coordinator_events.Settings], Coordinator] = Coordinator
    participant: Callable[..., Participant] = Participant


class Timeline(MemoryTimeline):
    """The timeline, observed."""

    def __init__(self, observe: Callable[[MemoryInstant, TableState | None], None]) -> None:
        super().__init__()
        self._observe = observe

    def complete(
        self, instant: MemoryInstant, metadata: Mapping[str, str], files: Sequence[DataFile]
    ) -> None:
        super().complete(instant, metadata, files)
        self._observe(instant, decode(metadata, instant=instant.time))


class World:
    """One schedule. `run()` raises `ScheduleFailed` where an invariant does not hold or anything breaks."""

    def __init__(self, seed: int, *, cores: Cores | None = None, record: bool = False) -> None:
        self.seed = seed
        self.chance = Chance(seed)
        self.cores = cores or Cores()
        self.transcript = Transcript(record=record)
        self.scheduler = Scheduler()
        FaultyTable.depth = 0
        self.faults = fault_kinds.draw(self.chance.random)
        self._draw_shape()
        self.checks = Checks(self, all_checkers())
        self.committed: dict[SourcePartition, int] = {}
        self.storage = Storage()
        self.storage.timeline = Timeline(self._completed)
        self.log = SourceLog(self.chance.random, self.partitions)
        self.bus = Bus(self.scheduler, self.chance, lambda: self.faults, lambda *line: self.note(*line))
        self.group = Group(self)
        self.drivers: list[Driver] = []
        self.workers: list[Worker] = []
        self.tail_began_ms: int | None = None
        self._starting = False
        self.note("world", "seed", f"{seed}; faults: {self.faults.describe()}")

    def _draw_shape(self) -> None:
        pick = self.chance.random.choice
        self.slots = pick((1, 2, 2, 3))
        self.partitions = pick((1, 2, 3, 5))
        self.interval_ms = pick((400, 1_000, 2_500))
        self.write_timeout_ms = pick((1_500, 4_000))
        self.repeat_ms = pick((400, 1_000))
        self.tick_ms = pick((150, 300))
        self.memory_bytes = pick((200, 100_000, 100_000))
        self.records_max = pick((0, 0, 40))
        self.flush_ms = pick((20, 300, 1_200))
        self.fault_phase_ms = pick((5_000, 10_000, 20_000))
        self.until_first = self.chance.of(0.15)

    # --- the schedule -----------------------------------------------------------------------------

    def run(self) -> None:
        """The fault phase, the tail, the last checks."""
        try:
            self._run()
        except Violation as violation:
            raise ScheduleFailed(str(violation)) from violation
        except Exception as error:
            raise ScheduleFailed(f"{type(error).__name__}: {error}") from error

    def _run(self) -> None:
        misfortune = Misfortune(self)
        self.start_driver()
        misfortune.begin()
        self.scheduler.run_until(self.fault_phase_ms)
        misfortune.end()
        self.faults = self.faults.quiet()
        pauses = [process.paused_until_ms for process in (*self.drivers, *self.workers)]
        self.tail_began_ms = max([self.scheduler.now_ms, *pauses])
        self.note("world", "tail", "no more faults")
        settled = 0
        while settled < SETTLED_STEPS:
            self.scheduler.run_until(self.scheduler.now_ms + TAIL_STEP_MS)
            settled = settled + 1 if self._is_settled() else 0
            if self.scheduler.now_ms - self.tail_began_ms > TAIL_MAX_MS:
                break
        self._sweep()
        self.checks.at_end()

    def _is_settled(self) -> bool:
        return not self.lag() and not self.open_instants()

    def open_instants(self) -> list[str]:
        """Instants that a living run holds open."""
        living = {driver.run for driver in self.drivers if driver.alive}
        instants = self.storage.timeline.instants.values()
        return [i.time for i in instants if i.phase is Phase.INFLIGHT and i.run in living]

    def _sweep(self) -> None:
        MemoryTable(self.storage.timeline, PIPELINE).sweep(grace_ms=0)

    def lag(self) -> dict[SourcePartition, int]:
        """What the table still lacks of every log."""
        lags = {p: end - self.committed.get(p, 0) for p, end in self.log.ends.items()}
        return {p: lag for p, lag in lags.items() if lag}

    # --- drivers and workers ----------------------------------------------------------------------

    def start_driver(self) -> Driver:
        self._starting = False
        until = dict(self.log.ends) if self.until_first and not self.drivers else None
        run = f"run-{len(self.drivers) + 1}"
        self.note("world", "starts", f"{run}{' until ' + str(sum(until.values())) if until else ''}")
        driver = Driver(self, run, until)
        self.drivers.append(driver)
        return driver

    def start_driver_later(self) -> None:
        """Whoever runs the pipeline starts it again, unless another run is there already."""
        if not self._starting:
            self._starting = True
            self.scheduler.at(self.chance.between(200, 4_000), None, self._start_if_needed)

    def _start_if_needed(self) -> None:
        self._starting = False
        if not any(d.alive and d.outcome is None for d in self.drivers):
            self.start_driver()

    def driver_gone(self, driver: Driver) -> None:
        self.note(driver.name, "gone", None)
        self.start_driver_later()

    def start_worker(self, driver: Driver, slot: int) -> Worker:
        worker = Worker(self, driver, slot, self.chance.hex())
        self.note(worker.name, "starts", driver.run)
        self.workers = [w for w in self.workers if w.alive]
        self.workers.append(worker)
        return worker

    def bus_sender(self, process: Process, *, run: str, name: str, incarnation: str) -> Sender:
        return Sender(self.bus, process, run=run, name=name, incarnation=incarnation)

    def claim_from_nowhere(self) -> None:
        """Somebody who once owned source partition 0 claims an epoch and is never heard of again."""
        driver = self.chance.random.choice(self.drivers)
        known = max((w.reader.highest_epoch for w in self.workers), default=0)
        process = Process(self.scheduler, "nowhere")
        epoch = known + self.chance.between(0, 2)
        self.bus_sender(
            process, run=driver.run, name="coordinator@nowhere", incarnation=self.chance.hex()
        ).send(CoordinatorClaim(), epoch)

    # --- what is observed -------------------------------------------------------------------------

    def note(self, who: str, what: str, content: object = None) -> None:
        self.transcript.note(self.scheduler.now_ms, who, what, content)

    def _completed(self, instant: MemoryInstant, state: TableState | None) -> None:
        self.note("table", "completed", state if state is not None else "a foreign commit")
        if state is not None:
            self.committed = dict(state.offsets)
            self.checks.committed(instant, state)

    def served(self, driver: Driver, call: coordinator_events.Call, answer: Answer) -> None:
        self.note(driver.name, "answers", answer)
        self.checks.served(driver, call, answer)

    def group_committed(self, partition: SourcePartition, offset: int) -> None:
        self.note("group", "offset", f"{partition}={offset}")
        self.checks.group_committed(partition, offset)


def replay(seed: int, *, cores: Cores | None = None) -> tuple[list[str], ScheduleFailed | None]:
    """The transcript of one seed, and what it failed with."""
    world = World(seed, cores=cores, record=True)
    try:
        world.run()
    except ScheduleFailed as error:
        return world.transcript.lines(), error
    return world.transcript.lines(), None
