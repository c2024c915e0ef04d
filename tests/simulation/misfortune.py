"""What happens to a world from outside during its fault phase: kills, pauses, rebalances, new records."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from control_topic.messages import SourcePartition
from tests.simulation.source_log import TOPIC

if TYPE_CHECKING:
    from tests.simulation.world import World

PRODUCE_GAP_MS = 400
PARTITIONS_MAX = 7


class Misfortune:
    """Begins with the fault phase and ends with it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._over = False

    def begin(self) -> None:
        world, faults = self._world, self._world.faults
        self._every(PRODUCE_GAP_MS, self._produce)
        for gap_ms, do in (
            (faults.worker_killed_gap_ms, self._kill_worker),
            (faults.worker_paused_gap_ms, self._pause_worker),
            (faults.driver_killed_gap_ms, self._kill_driver),
            (faults.driver_paused_gap_ms, self._pause_driver),
            (faults.stop_asked_gap_ms, self._ask_to_stop),
            (faults.rebalance_gap_ms, self._rebalance),
            (faults.reader_replays_gap_ms, self._replay),
            (faults.topic_recreated_gap_ms, world.bus.recreate),
            (faults.storage_away_gap_ms, self._storage_away),
            (faults.foreign_commit_gap_ms, self._foreign_commit),
            (faults.clock_jump_gap_ms, self._jump),
            (faults.claim_from_nowhere_gap_ms, world.claim_from_nowhere),
        ):
            if gap_ms:
                self._every(gap_ms, do)
        if faults.second_driver:
            world.scheduler.at(world.chance.upto(world.fault_phase_ms), None, self._second_driver)
        if faults.partition_added:
            world.scheduler.at(world.chance.upto(world.fault_phase_ms), None, self._add_partition)

    def end(self) -> None:
        """Whatever was taken away is given back; a pause under way still runs its course."""
        world = self._world
        self._over = True
        world.storage.timeline.available = True
        for partition in world.log.records:
            world.log.produce(partition, world.chance.upto(20))

    def _every(self, gap_ms: int, do: Callable[[], None]) -> None:
        def again() -> None:
            if not self._over:
                do()
                self._world.scheduler.at(self._world.chance.gap(gap_ms), None, again)

        self._world.scheduler.at(self._world.chance.gap(gap_ms), None, again)

    # --- what happens -----------------------------------------------------------------------------

    def _produce(self) -> None:
        log, chance = self._world.log, self._world.chance
        for partition in log.records:
            if chance.of(0.4):
                log.produce(partition, chance.upto(25))

    def _kill_worker(self) -> None:
        living = [w for w in self._world.workers if w.alive]
        if living:
            self._world.chance.random.choice(living).kill("SIGKILL")

    def _pause_worker(self) -> None:
        living = [w for w in self._world.workers if w.alive]
        if living:
            worker = self._world.chance.random.choice(living)
            for_ms = self._world.chance.upto(8_000)
            self._world.note(worker.name, "paused", f"{for_ms} ms")
            worker.pause(for_ms)

    def _kill_driver(self) -> None:
        living = [d for d in self._world.drivers if d.alive]
        if living:
            self._world.chance.random.choice(living).die()

    def _pause_driver(self) -> None:
        living = [d for d in self._world.drivers if d.alive]
        if living:
            driver = self._world.chance.random.choice(living)
            for_ms = self._world.chance.upto(8_000)
            self._world.note(driver.name, "paused", f"{for_ms} ms")
            driver.pause(for_ms)

    def _ask_to_stop(self) -> None:
        living = [d for d in self._world.drivers if d.alive]
        if living:
            self._world.note(living[-1].name, "signalled", "SIGTERM")
            living[-1].ledger.request_stop("SIGTERM")

    def _second_driver(self) -> None:
        if not self._over:
            self._world.start_driver()

    def _add_partition(self) -> None:
        log = self._world.log
        if not self._over and len(log.records) < PARTITIONS_MAX:
            log.add_partition(len(log.records))
            log.produce(SourcePartition(TOPIC, len(log.records) - 1), 10)
            self._world.note("source", "partition", f"{len(log.records) - 1} is added")

    def _rebalance(self) -> None:
        self._world.note("group", "rebalances", None)
        self._world.group.rebalance(shuffle=True)

    def _replay(self) -> None:
        living = [w for w in self._world.workers if w.alive]
        if living:
            self._world.bus.replay(self._world.chance.random.choice(living).reader)

    def _storage_away(self) -> None:
        timeline = self._world.storage.timeline
        timeline.available = False
        self._world.note("table", "away", None)
        self._world.scheduler.at(self._world.chance.upto(3_000), None, self._storage_back)

    def _storage_back(self) -> None:
        self._world.storage.timeline.available = True

    def _foreign_commit(self) -> None:
        self._world.storage.timeline.foreign_commit()

    def _jump(self) -> None:
        living = [w for w in self._world.workers if w.alive]
        if living:
            self._world.chance.random.choice(living).skew_ms += self._world.chance.upto(30_000)
