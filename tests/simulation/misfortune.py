"""What happens to a world from outside during its fault phase: kills, pauses, rebalances, new records."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from control_topic.messages import SourcePartition
from tests.simulation.driver import DRIVER_CLOCK_OFF_MAX_MS
from tests.simulation.group import ASSIGNOR
from tests.simulation.operator import Operator
from tests.simulation.source_log import FIELDS, TOPICS, ddl_of_fields
from tests.simulation.stranger import Stranger

if TYPE_CHECKING:
    from tests.simulation.world import World

PRODUCE_GAP_MS = 400
PARTITIONS_MAX = 7
WALL_JUMP_MAX_MS = 2 * 24 * 3_600_000


class Misfortune:
    """Begins with the fault phase and ends with it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._operator = Operator(world)
        self._over = False

    def begin(self) -> None:
        world, faults = self._world, self._world.faults
        stranger = Stranger(world)
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
            (faults.topic_truncated_gap_ms, world.bus.truncate),
            (faults.sender_stalled_gap_ms, world.bus.stall_sender),
            (faults.heartbeats_lost_gap_ms, self._lose_heartbeats),
            (faults.partition_unowned_gap_ms, self._withhold),
            (faults.retention_gap_ms, self._retain),
            (faults.source_away_gap_ms, self._source_away),
            (faults.wall_clock_jump_gap_ms, self._jump_wall_clock),
            (faults.forged_gap_ms, stranger.forge),
            (faults.replayed_gap_ms, stranger.replay),
            (faults.topic_cut_gap_ms, world.bus.lose_end),
            (faults.compaction_gap_ms, self._compact),
            (faults.transaction_open_gap_ms, self._open_transaction),
            (faults.driver_clock_jump_gap_ms, self._jump_driver_clock),
            (faults.foreign_member_gap_ms, self._foreign_member),
            (faults.order_gap_ms, self._operator.order),
            (faults.schema_gap_ms, self._change_schema),
            (faults.foreign_columns_gap_ms, self._foreign_columns),
        ):
            if gap_ms:
                self._every(gap_ms, do)
        if faults.second_driver:
            world.scheduler.at(world.chance.upto(world.fault_phase_ms), None, self._second_driver)
        if faults.partition_added:
            world.scheduler.at(world.chance.upto(world.fault_phase_ms), None, self._add_partition)
        if faults.batch_damaged:
            world.scheduler.at(world.chance.upto(world.fault_phase_ms), None, self._damage)
        if faults.topic_added:
            world.scheduler.at(world.chance.upto(world.fault_phase_ms), None, self._add_topic)
        if faults.poison_record:
            world.scheduler.at(world.chance.upto(world.fault_phase_ms // 2), None, self._poison)
        if faults.letters_forbidden:
            world.scheduler.at(world.chance.upto(world.fault_phase_ms), None, self._forbid_letters)
        if faults.source_replaced:
            world.scheduler.at(world.chance.upto(world.fault_phase_ms), None, self._replace_source)

    def end(self) -> None:
        """Whatever was taken away is given back; a pause under way still runs its course."""
        world = self._world
        self._over = True
        self._operator.leave()
        world.storage.timeline.available = world.log.available = True
        world.log.finish_all()
        for driver in world.drivers:
            if driver.wall_skew_ms:
                driver.set_clock(0)
        world.group.foreign_leaves()
        self._source_made_again()
        silent = world.chance.of(0.25) and not world.log.replaced  # nothing new makes anybody ask again
        for partition in () if silent else world.log.records:
            if world.log.replaced or world.chance.of(0.5):  # whoever reads on meets a new log
                world.log.produce(partition, world.chance.between(1, 20))

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
        world, log = self._world, self._world.log
        if not self._over and len(log.records) < PARTITIONS_MAX:
            self._added(log.add_partition(world.chance.random.choice(list(log.lives))))

    def _add_topic(self) -> None:
        """As a run does whose `source.topics` names one more; those that are under way see it as well."""
        log = self._world.log
        topic = next((topic for topic in TOPICS if topic not in log.lives), "")
        if topic and not self._over and not log.replaced:
            for partition in log.add_topic(topic, self._world.chance.between(1, 2)):
                self._added(partition)

    def _added(self, partition: SourcePartition) -> None:
        """It holds records before anybody here knows of it, and retention may have had some of them."""
        world, log, chance = self._world, self._world.log, self._world.chance
        log.produce(partition, 10)
        if chance.of(world.faults.log_begins_later):
            log.begins[partition] = chance.between(1, 10)
            log.retain_from(partition, log.begins[partition])
        world.note("source", "partition", f"{partition} is added, and begins at {log.lows[partition]}")

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

    def _change_schema(self) -> None:
        """Whoever produces into a source partition has records with one more field, and older ones too."""
        world, log = self._world, self._world.log
        partition = world.chance.random.choice(list(log.records))
        field = world.chance.random.choice(FIELDS)
        world.note("source", "schema", f"{partition} has {field} from {log.ends[partition]} on")
        log.newer_schema(partition, field)

    def _foreign_columns(self) -> None:
        """A writer that is not Lockstep adds a column, perhaps one that records have, too."""
        timeline = self._world.storage.timeline
        field = self._world.chance.random.choice(FIELDS)
        if timeline.available:
            self._world.note("table", "column", f"{field}, by somebody else")
            timeline.foreign_columns(ddl_of_fields([field]))

    def _jump(self) -> None:
        living = [w for w in self._world.workers if w.alive]
        if living:
            self._world.chance.random.choice(living).skew_ms += self._world.chance.upto(30_000)

    def _jump_driver_clock(self) -> None:
        living = [d for d in self._world.drivers if d.alive]
        if living:
            most_ms = DRIVER_CLOCK_OFF_MAX_MS
            driver = self._world.chance.random.choice(living)
            driver.set_clock(self._world.chance.between(-most_ms, most_ms))

    def _jump_wall_clock(self) -> None:
        """A worker's, forth or back, by up to two days."""
        world = self._world
        living = [w for w in world.workers if w.alive]
        if living:
            by_ms = world.chance.between(-WALL_JUMP_MAX_MS, WALL_JUMP_MAX_MS)
            world.chance.random.choice(living).wall_skew_ms += by_ms

    def _lose_heartbeats(self) -> None:
        world = self._world
        members = list(world.group.members.values())
        if members:
            worker, for_ms = world.chance.random.choice(members), world.chance.upto(10_000)
            world.note(worker.name, "cut off", f"from the group, {for_ms} ms")
            world.group.cut_off(worker, for_ms)

    def _foreign_member(self) -> None:
        """Somebody else's consumer names our group, and goes again."""
        world = self._world
        assignor = world.chance.random.choice((ASSIGNOR, "range"))
        for_ms = world.chance.upto(5_000)
        world.note("group", "foreign", f"a member with {assignor}, {for_ms} ms")
        world.group.foreign_joins(assignor)
        world.scheduler.at(for_ms, None, world.group.foreign_leaves)

    def _withhold(self) -> None:
        world = self._world
        partition = world.chance.random.choice(list(world.log.records))
        for_ms = world.chance.upto(5_000)
        world.note("group", "withholds", f"{partition}, {for_ms} ms")
        world.group.withhold(partition, for_ms)

    # --- what happens to the source -----------------------------------------------------------------

    def _retain(self) -> None:
        """Retention takes records, perhaps some that the table does not have yet."""
        world, log = self._world, self._world.log
        partition = world.chance.random.choice(list(log.records))
        low = world.chance.between(log.lows[partition], log.ends[partition])
        if world.chance.of(0.7):  # mostly only what is committed, as it should be
            low = min(low, world.committed.get(partition, 0))
        if low > log.lows[partition]:
            world.note("source", "retention", f"{partition} begins at {low} now")
            log.retain_from(partition, low)

    def _compact(self) -> None:
        """Compaction takes records, perhaps some that were read and are not committed yet."""
        world, log = self._world, self._world.log
        partition = world.chance.random.choice(list(log.records))
        share = world.chance.random.random()
        gone = [
            offset
            for offset in log.records[partition]
            if not log.is_bad(partition, offset) and world.chance.of(share)
        ]
        world.note("source", "compaction", f"{partition}: {len(gone)} records are gone")
        log.compact(partition, gone, committed=world.committed.get(partition, 0))

    def _open_transaction(self) -> None:
        """A producer's transaction, which holds back everything behind it for a while."""
        world, log = self._world, self._world.log
        free = [partition for partition in log.records if log.stable(partition) == log.ends[partition]]
        if free:
            partition, for_ms = world.chance.random.choice(free), world.chance.upto(4_000)
            world.note("source", "transaction", f"{partition}: open at {log.ends[partition]}, {for_ms} ms")
            log.begin(partition)
            world.scheduler.at(for_ms, None, self._end_transaction, partition)

    def _end_transaction(self, partition: SourcePartition) -> None:
        self._world.log.finish(partition, commit=self._world.chance.of(0.5))

    def _source_away(self) -> None:
        log = self._world.log
        log.available = False
        self._world.note("source", "away", None)
        self._world.scheduler.at(self._world.chance.upto(3_000), None, self._source_back)

    def _source_back(self) -> None:
        self._world.log.available = True

    def _poison(self) -> None:
        log, chance = self._world.log, self._world.chance
        partition = chance.random.choice(list(log.records))
        if not self._over and not log.replaced:
            log.produce(partition, chance.between(1, 10), bad=True)
            self._world.note("source", "poison", f"{partition} at {log.ends[partition] - 1}")

    def _forbid_letters(self) -> None:
        if self._world.chance.of(self._world.faults.letters_forbidden):
            self._world.note("dead letters", "forbidden", "until somebody mends that")
            self._world.letters.forbidden = True

    def _damage(self) -> None:
        world, log = self._world, self._world.log
        partition = world.chance.random.choice(list(log.records))
        if not self._over and not log.replaced:
            log.damage(partition)
            log.produce(partition, world.chance.between(1, 20))
            world.note("source", "damage", f"{partition} from {log.damaged[partition]} on")

    def _replace_source(self) -> None:
        """Another cluster, or a topic that is made anew; before the genesis there is nothing to refuse."""
        world, log, chance = self._world, self._world.log, self._world.chance
        if self._over:
            return
        if not world.has_genesis:
            world.scheduler.at(500, None, self._replace_source)
            return
        world.replaced_during_calls_of = {driver.run for driver in world.drivers if driver.busy}
        if chance.of(0.4):
            log.move()
            world.note("source", "replaced", "another Kafka cluster")
            world.bus.recreate()
            world.group.forget_everything()
        else:
            known = {p.topic for p in world.committed}  # of another one the table has nothing to compare
            topic = chance.random.choice([topic for topic in log.lives if topic in known])
            count = sum(p.topic == topic for p in log.records)
            before = set(log.records)
            log.recreate(topic, max(1, count + chance.between(-1, 1)))
            if before - log.records.keys() and chance.of(0.5):
                world.group.overlook(before - log.records.keys())
            world.note("source", "replaced", f"topic {topic} is made anew")
            if chance.of(0.3):
                log.missing = topic
                world.scheduler.at(chance.upto(2_000), None, self._source_made_again)
        for partition in log.records:
            log.produce(partition, chance.upto(60))

    def _source_made_again(self) -> None:
        self._world.log.missing = ""
