"""A whole pipeline in one process and one seed: drivers, workers, Kafka and the lake, with faults and a tail.

The cores, the ledger, the table service's transactions and the in-memory table are production code,
unchanged. A schedule has a fault phase and then a fault-free tail, in which the lag must return to zero, or
runs must halt and say why it cannot. Some schedules then start anew with nothing but the table.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random

from control_topic.messages import REJECTS_LISTED_MAX, CoordinatorClaim, DataFile, SourcePartition
from coordinator import events as coordinator_events
from coordinator.times import Times
from participant.rejects_max import NO_LIMIT, RejectsMax
from table.memory.timeline import InstantPhase, MemoryInstant, MemoryTimeline
from table.service.calls import Answer
from table.state import TableState
from table.watermark import MarkRule
from tests.simulation import faults as fault_kinds
from tests.simulation.bus import PIPELINE, Bus, Sender
from tests.simulation.by_the_clock import clocks_hold, draw_times
from tests.simulation.chance import Chance
from tests.simulation.checkers import Checks, all_checkers
from tests.simulation.checkers.base import Violation
from tests.simulation.clocked import Clocked
from tests.simulation.cores import Cores
from tests.simulation.driver import Driver
from tests.simulation.ending import Ending
from tests.simulation.exchange import SEEDS as EXCHANGING
from tests.simulation.exchange import Network
from tests.simulation.group import Group
from tests.simulation.hazards import SPOTS, Spot
from tests.simulation.lake import Storage
from tests.simulation.letters import DeadLetterTopic
from tests.simulation.misfortune import Misfortune
from tests.simulation.overrides import NO_OVERRIDES, Overrides
from tests.simulation.plane import ENDING_BESIDE
from tests.simulation.scheduler import Scheduler
from tests.simulation.source_log import EVENT_SPREAD_MS, TOPICS, SourceLog
from tests.simulation.transcript import Transcript
from tests.simulation.worker import Worker

__all__ = ["Cores", "ScheduleFailed", "World", "replay"]

TAIL_STEP_MS = 1_000
TAIL_MAX_MS = 120_000
TAIL_MOVING_MS = 20_000
TAIL_LONGEST_MS = 600_000
"""A world whose writers are slow may take longer than the tail, as long as its lag goes on to shrink."""

SETTLED_STEPS = 3
MEMORY_SMALL_BYTES = 200
REJECTS_JUDGED_FROM = 4
MARK_RULE = MarkRule(of="at", lateness_ms=EVENT_SPREAD_MS, idle_after_ms=3_000)


@contextmanager
def _quiet() -> Iterator[None]:
    """Nothing of the table's log while a world goes on: faults are what is expected here."""
    table = logging.getLogger("table")
    before = table.level
    table.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        table.setLevel(before)


def _say_nothing(_who: str, _what: str, _content: object = None) -> None:
    """Stands for `World.note` where nobody reads the transcript."""


class ScheduleFailed(AssertionError):
    """What went wrong, as a sentence. The seed alone replays it."""


class Timeline(MemoryTimeline):
    """The timeline, observed."""

    def __init__(
        self, scheduler: Scheduler, observe: Callable[[MemoryInstant, TableState | None], None]
    ) -> None:
        self._scheduler = scheduler
        super().__init__()
        self._observe = observe
        self._newest_time: str | None = None

    @property
    def now_ms(self) -> int:  # type: ignore[override]
        return self._scheduler.now_ms

    @now_ms.setter
    def now_ms(self, _value: int) -> None:
        """The world's time is the scheduler's."""

    def newest_time(self) -> str:
        """The same, looked for once: it changes with a new instant and with a completion."""
        if self._newest_time is None:
            self._newest_time = super().newest_time()
        return self._newest_time

    def new_instant(self, time: str) -> MemoryInstant:
        self._newest_time = None
        return super().new_instant(time)

    def complete(
        self,
        instant: MemoryInstant,
        metadata: Mapping[str, str],
        files: Sequence[DataFile],
        *,
        at: str,
        columns: str = "",
    ) -> None:
        super().complete(instant, metadata, files, at=at, columns=columns)
        self._newest_time = None
        self._observe(instant, instant.state)


class World:
    """One schedule. `run()` raises `ScheduleFailed` where an invariant does not hold or anything breaks."""

    schedule: Times | None
    align: Times | None
    drivers_ahead_ms: int

    def __init__(
        self,
        seed: int,
        *,
        cores: Cores | None = None,
        record: bool = False,
        overrides: Overrides = NO_OVERRIDES,
    ) -> None:
        self.seed = seed
        self.note = self._note if record else _say_nothing
        self.chance = Chance(seed)
        self.cores = cores or Cores()
        self.transcript = Transcript(record=record)
        self.scheduler = Scheduler()
        self.faults = fault_kinds.draw(self.chance.random)
        self._draw_shape()
        self._draw_writers()
        if seed in EXCHANGING:
            self.slots, self.partitions = max(2, self.slots), max(2, self.partitions)
            self.faults.schema_gap_ms = 0  # as the configuration refuses both together
        draw_times(self)
        overrides.apply(self)
        self.clocks_hold = clocks_hold(self)
        self.checks = Checks(self, all_checkers())
        self.committed: dict[SourcePartition, int] = {}
        self.storage = Storage(Timeline(self.scheduler, self._completed))
        self.log = SourceLog(self.chance.random, self._topics())
        self.log.bad_share = self.faults.bad_records if self.on_error == "dead_letter" else 0.0
        self.bus = Bus(self, part_bytes_max=self.part_bytes_max if self.faults.parts else 0)
        self.group = Group(self)
        self.drivers: list[Driver] = []
        self.workers: list[Worker] = []
        self.tail_began_ms: int | None = None
        self.network = Network(self) if seed in EXCHANGING else None
        """Over which workers hand rows over to each other; None where none does."""
        self.ends_beside = seed in ENDING_BESIDE
        """Whether workers decode while files of theirs are being ended."""
        self.ending = Ending(self)
        self.has_genesis = False
        self.restarted = False
        self.replaced_during_calls_of: set[str] = set()
        self.letters = DeadLetterTopic(seed, self.faults.reject_refused)
        self.crashed: set[Spot] = set()
        self.paused: set[Spot] = set()
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
        self.memory_bytes = pick((MEMORY_SMALL_BYTES, 100_000, 100_000))
        self.records_max = pick((0, 0, 40))
        self.flush_ms = pick((20, 300, 1_200))
        self.fault_phase_ms = pick((5_000, 10_000, 20_000))
        self.until_first = self.chance.of(0.15)
        self.topics = pick((1, 1, 1, 2))
        self.starting_offsets = pick(("earliest", "earliest", "latest"))
        self.on_data_loss = pick(("earliest", "fail"))
        self.part_bytes_max = pick((24, 64, 200))
        self.spot = SPOTS[self.seed % len(SPOTS)]
        if self.faults.crash_at_spot or self.faults.pause_at_spot:
            self._lead_to_spot()
        self.on_error = "fail" if self.faults.poison_record else "dead_letter"
        self.rejects_max = NO_LIMIT
        if self.faults.bad_records and self.on_error == "dead_letter" and self.seed % 4 == 1:
            self.rejects_max = RejectsMax(count=self.seed // 4 % 8)
        if self.faults.bad_records and self.on_error == "dead_letter" and self.seed % 4 == 3:
            share = (0.02, 0.1, 0.3)[self.seed // 4 % 3]
            self.rejects_max = RejectsMax(share=share, share_judged_from=REJECTS_JUDGED_FROM)
        self.restarts_at_end = self.chance.of(0.15)
        self.moves_at_end = self.chance.of(0.4)

    def _draw_writers(self) -> None:
        """How long the rows of a transaction take to write; most are written in no time."""
        own = Random(f"writers {self.seed}")
        self.row_ms = own.choice((0, 0, 0, 5, 15, 40))
        self.write_limit_ms = 4 * self.write_timeout_ms
        fault_kinds.draw_late(self.faults, own)
        if self.faults.bad_records and own.random() < 0.5:
            self.memory_bytes = MEMORY_SMALL_BYTES  # rejects and little memory are rare together otherwise
        self.rejects_listed_max = own.choice((1, 4, REJECTS_LISTED_MAX))
        self.mark_rule = MARK_RULE if Random(f"event times {self.seed}").random() < 0.7 else None

    def _lead_to_spot(self) -> None:
        """Some actions follow from faults only."""
        leads = {
            "Find": ("commit_reply_lost", 0.8),
            "Poison": ("poison_record", 1.0),
            "Discard": ("rebalance_gap_ms", 2_000),
            "Abort": ("worker_killed_gap_ms", 1_000),
            "Stop": ("stop_asked_gap_ms", 3_000),
        }
        if self.spot[1] in ("Pause", "Resume"):
            self.memory_bytes = MEMORY_SMALL_BYTES
        fault, value = leads.get(self.spot[1], ("", 0))
        if fault and not getattr(self.faults, fault):
            setattr(self.faults, fault, value)

    def _topics(self) -> dict[str, int]:
        """Source partitions per topic, in the order that the configuration names the topics."""
        first = self.partitions if self.topics == 1 else max(1, self.partitions // 2)
        counts = {TOPICS[0]: first}
        if self.topics > 1:
            counts[TOPICS[1]] = max(1, self.partitions - first)
        return counts

    # --- the schedule -----------------------------------------------------------------------------

    @property
    def idle_bytes(self) -> int:
        """What a worker may hold while no file is open."""
        return 2 * self.memory_bytes

    def run(self) -> None:
        """The fault phase, the tail, the last checks."""
        try:
            with _quiet():
                self._run()
        except Violation as violation:
            raise ScheduleFailed(str(violation)) from violation
        except Exception as error:
            raise ScheduleFailed(f"{type(error).__name__}: {error}") from error

    def dissolve(self) -> None:
        """Break the cycles through this world, which is over, so that its parts go without a collection."""
        self.__dict__.clear()

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
        if self.moves_at_end:  # in peace, and perhaps when nothing more is to come
            self.scheduler.at(self.chance.upto(4_000), None, self._produce_last)
            self.scheduler.at(self.chance.upto(8_000), None, self._move)
        self._settle()
        if self.ending.undeliverable():
            self.checks.settled()
            self.note("world", "mends", "the dead-letter topic takes what it refused")
            self.letters.mend()
            self._settle()
        if self.restarts_at_end and not self.ending.obstacles():
            self._restart_from_table()
            self._settle()
        self._sweep()
        self.checks.at_end()

    def _produce_last(self) -> None:
        self.log.produce(self.chance.random.choice(list(self.log.records)), self.chance.between(1, 20))

    def _move(self) -> None:
        self.note("group", "rebalances", "in peace")
        self.group.rebalance(shuffle=True)

    def _settle(self) -> None:
        settled, began_ms = 0, self.scheduler.now_ms
        least, moved_ms = sum(self.lag().values()), began_ms
        while settled < SETTLED_STEPS:
            self.scheduler.run_until(self.scheduler.now_ms + TAIL_STEP_MS)
            settled = settled + 1 if self._is_settled() else 0
            now_ms, lag = self.scheduler.now_ms, sum(self.lag().values())
            if lag < least:
                least, moved_ms = lag, now_ms
            moves = now_ms - moved_ms <= TAIL_MOVING_MS and now_ms - began_ms <= TAIL_LONGEST_MS
            if now_ms - began_ms > TAIL_MAX_MS and not moves:
                break

    def _is_settled(self) -> bool:
        if self.ending.obstacles():
            return bool(self.ending.refusals())
        return not self.lag() and not self.open_instants() and not self.orders_left()

    def orders_left(self) -> list[str]:
        """Living runs that have orders which are not done."""
        return [
            driver.run
            for driver in self.drivers
            if driver.alive and driver.outcome is None and not driver.ledger.stopping
            if driver.ledger.orders.settled < driver.ledger.orders.number
        ]

    def _restart_from_table(self) -> None:
        """Everything ends and is forgotten but the source and the table; then the pipeline starts anew."""
        self.note("world", "restarts", "the control topic is empty, the group knows nothing")
        self.restarted = True
        for driver in self.drivers:
            driver.die()
        for worker in self.workers:
            worker.kill("everything ends")
        self.bus.recreate()
        self.group.forget_everything()
        for partition in self.log.records:
            self.log.produce(partition, self.chance.upto(20))

    def open_instants(self) -> list[str]:
        """Instants that a living run holds open."""
        living = {driver.run for driver in self.drivers if driver.alive}
        instants = self.storage.timeline.instants.values()
        return [i.time for i in instants if i.phase is InstantPhase.INFLIGHT and i.run in living]

    def clock_is_behind(self) -> bool:
        """Whether a living driver's wall clock is not past what the table holds."""
        newest_ms = int(self.storage.timeline.newest_time() or 0)
        return any(driver.alive and driver.wall_ms() <= newest_ms for driver in self.drivers)

    def _sweep(self) -> None:
        self.cores.table(self.storage.timeline, PIPELINE).sweep(grace_ms=0)

    def lag(self) -> dict[SourcePartition, int]:
        """What the table still lacks of every log."""
        lags = {p: end - self.committed.get(p, 0) for p, end in self.log.ends.items()}
        return {p: lag for p, lag in lags.items() if lag}

    # --- drivers and workers ----------------------------------------------------------------------

    def start_driver(self) -> Driver:
        self._starting = False
        until = self._ends() if self.until_first and not self.drivers else None
        run = f"run-{len(self.drivers) + 1}"
        self.note("world", "starts", f"{run}{' until ' + str(sum(until.values())) if until else ''}")
        driver = Driver(self, run, until)
        self.drivers.append(driver)
        return driver

    def _ends(self) -> dict[SourcePartition, int]:
        return {partition: self.log.stable(partition) for partition in self.log.ends}

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

    def bus_sender(self, process: Clocked, *, run: str, name: str, incarnation: str) -> Sender:
        return self.bus.sender(process, run=run, name=name, incarnation=incarnation)

    def claim_from_nowhere(self) -> None:
        """Somebody who once owned source partition 0 claims an epoch and is never heard of again."""
        driver = self.chance.random.choice(self.drivers)
        known = max((w.reader.highest_epoch for w in self.workers), default=0)
        process = Clocked(self.scheduler, "nowhere")
        epoch = known + self.chance.between(0, 2)
        self.bus_sender(
            process, run=driver.run, name="coordinator@nowhere", incarnation=self.chance.hex()
        ).send(CoordinatorClaim(), epoch)

    # --- what is observed -------------------------------------------------------------------------

    def _note(self, who: str, what: str, content: object = None) -> None:
        self.transcript.note(self.scheduler.now_ms, who, what, content)

    def _completed(self, instant: MemoryInstant, state: TableState | None) -> None:
        self.note("table", "completed", state if state is not None else "a foreign commit")
        if state is not None:
            self.committed = dict(state.offsets)
            self.has_genesis = True
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
