"""The consumer group: static membership, cooperative rebalances, sessions that end, and members it fenced.

What the group believes and what a worker believes differ for a while: that is the point. `held` is the
group's belief.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from control_topic.messages import SourcePartition

if TYPE_CHECKING:
    from tests.simulation.worker import Worker
    from tests.simulation.world import World

SESSION_MS = 3_000
HEARTBEAT_MS = 400
FOREIGN = 1 << 30
"""The slot of a member that is no worker of ours."""
ASSIGNOR = "cooperative-sticky"


class Group:
    """The broker's side of the group."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.members: dict[int, Worker] = {}
        self.held: dict[SourcePartition, Worker | None] = {}
        self.offsets: dict[SourcePartition, int] = {}
        self._target: dict[SourcePartition, int] = {}
        self._revoking: set[SourcePartition] = set()
        self._heard_ms: dict[int, int] = {}
        self._withheld: set[SourcePartition] = set()
        self._overlooked: set[SourcePartition] = set()
        self._foreign = ""
        world.scheduler.at(HEARTBEAT_MS, None, self._watch)

    # --- membership -------------------------------------------------------------------------------

    def join(self, worker: Worker) -> None:
        """Subscribe. A member of the same instance id is fenced; the newcomer gets its source partitions."""
        if self._foreign not in ("", ASSIGNOR):  # refused, and asked again
            self._world.scheduler.at(HEARTBEAT_MS, worker, self.join, worker)
            return
        old = self.members.get(worker.slot)
        if old is worker:
            return
        self.members[worker.slot] = worker
        self._heard_ms[worker.slot] = self._world.scheduler.now_ms
        self._notice_partitions()
        for partition, holder in self.held.items():
            if old is not None and holder is old:
                self.held[partition] = None
                self._revoking.discard(partition)
        if old is not None and old.alive:
            self._world.scheduler.at(self._world.chance.upto(1_500), old, old.on_fenced)
        self.rebalance()

    def leave(self, worker: Worker) -> None:
        """Unsubscribe, after its source partitions were revoked."""
        if self.members.get(worker.slot) is worker:
            del self.members[worker.slot]
            self._forget(worker)
            self.rebalance()

    def is_owner(self, worker: Worker, partition: SourcePartition) -> bool:
        return self.members.get(worker.slot) is worker and self.held.get(partition) is worker

    def commit(self, worker: Worker, partition: SourcePartition, offset: int) -> bool:
        """The group's offset; only its real member succeeds."""
        if not self.is_owner(worker, partition) or self._unreachable_ms(worker):
            return False
        self.offsets[partition] = offset
        self._world.group_committed(partition, offset)
        return True

    def revoked(self, worker: Worker, partition: SourcePartition) -> None:
        """The worker gave a source partition up. What another one holds is not its to give up."""
        if self.held.get(partition) is not worker:
            return
        self.held[partition] = None
        self._revoking.discard(partition)
        self._advance()

    # --- what befalls it ----------------------------------------------------------------------------

    def cut_off(self, worker: Worker, for_ms: int) -> None:
        """A member's heartbeats do not arrive; it goes on working until it hears that it is none."""
        worker.cut_off_until_ms = self._world.scheduler.now_ms + for_ms

    def withhold(self, partition: SourcePartition, for_ms: int) -> None:
        """Nobody is given this source partition for a while."""
        self._withheld.add(partition)
        self._world.scheduler.at(for_ms, None, self._give_back, partition)
        self._advance()

    def _give_back(self, partition: SourcePartition) -> None:
        self._withheld.discard(partition)
        self._advance()

    def overlook(self, partitions: Collection[SourcePartition]) -> None:
        """No member sees that a topic made anew has these no more: who holds them keeps them.

        So does librdkafka's assignor, at every rebalance, where it never saw the topic missing.
        """
        self._overlooked |= set(partitions)

    def foreign_joins(self, assignor: str) -> None:
        """Somebody else's member: with our assignor it gets its share, with another one it is refused where
        any of ours is a member, and keeps all of ours out where none is.
        """
        if assignor == ASSIGNOR or not self.members:
            self._foreign = assignor
            self.rebalance()

    def foreign_leaves(self) -> None:
        self._foreign = ""
        self.rebalance()

    def forget_everything(self) -> None:
        """Another cluster answers: no members, no offsets. Who was a member joins anew."""
        self.offsets.clear()
        for slot, worker in list(self.members.items()):
            self._expire(slot, worker)

    # --- who gets what ----------------------------------------------------------------------------

    def rebalance(self, *, shuffle: bool = False) -> None:
        """A new target: as it is where that can be, evenly, at random where asked."""
        self._notice_partitions()
        slots = sorted(self.members)
        if not slots:
            self._target.clear()
            return
        if self._foreign == ASSIGNOR:
            slots.append(FOREIGN)
        chance = self._world.chance
        least, larger = divmod(len(self.held), len(slots))
        load = dict.fromkeys(slots, 0)
        target = {p: holder.slot for p in sorted(self._overlooked) if (holder := self.held[p]) is not None}
        for slot in target.values():
            load[slot] += 1
        for partition in sorted(self.held.keys() - target.keys()):
            slot = self._target.get(partition)
            if slot not in load or (shuffle and chance.of(0.6)):
                continue
            if not shuffle and load[slot] >= least:
                if load[slot] > least or not larger:
                    continue
                larger -= 1
            target[partition] = slot
            load[slot] += 1
        for partition in sorted(self.held.keys() - target.keys()):
            slot = chance.random.choice(slots) if shuffle else min(slots, key=lambda s: (load[s], s))
            target[partition] = slot
            load[slot] += 1
        self._target = target
        self._advance()

    def _notice_partitions(self) -> None:
        """Those that are new, and those that a topic made anew has no more."""
        world = self._world
        for partition in world.log.records:
            if partition not in self.held:
                self.held[partition] = None
        gone = self.held.keys() - world.log.records.keys()
        self._overlooked &= {partition for partition in gone if self.held[partition] is not None}
        for partition in sorted(gone - self._overlooked):
            holder = self.held.pop(partition)
            self._target.pop(partition, None)
            self._revoking.discard(partition)
            if holder is not None:
                delay_ms = max(world.chance.upto(300), self._unreachable_ms(holder))
                world.scheduler.through(holder.group_channel, delay_ms, holder, holder.on_revoke, partition)

    def _advance(self) -> None:
        """Ask the old owners to give up; what nobody holds goes to its new owner."""
        world = self._world
        given: dict[int, list[SourcePartition]] = {}
        for partition, holder in sorted(self.held.items()):
            slot = self._target.get(partition)
            wanted = self.members.get(slot) if slot is not None else None
            if partition in self._withheld:
                wanted = None
            if holder is wanted:
                continue
            if holder is None:
                assert wanted is not None and slot is not None
                self.held[partition] = wanted
                given.setdefault(slot, []).append(partition)
            elif partition not in self._revoking:
                self._revoking.add(partition)
                delay_ms = max(world.chance.upto(300), self._unreachable_ms(holder))
                world.scheduler.through(holder.group_channel, delay_ms, holder, holder.on_revoke, partition)
        for slot, partitions in given.items():
            worker = self.members[slot]
            world.scheduler.through(
                worker.group_channel, world.chance.upto(400), worker, worker.on_assign, tuple(partitions)
            )

    # --- sessions ---------------------------------------------------------------------------------

    def _watch(self) -> None:
        now_ms = self._world.scheduler.now_ms
        for slot, worker in list(self.members.items()):
            if worker.alive and not worker.paused and not self._unreachable_ms(worker):
                self._heard_ms[slot] = now_ms
            elif now_ms - self._heard_ms[slot] > SESSION_MS:
                self._expire(slot, worker)
        if self._world.log.records.keys() != self.held.keys() - self._overlooked:
            self.rebalance()
        self._world.scheduler.at(HEARTBEAT_MS, None, self._watch)

    def _expire(self, slot: int, worker: Worker) -> None:
        """The session ends: others get its source partitions, and it learns of it when it wakes up."""
        self._world.note("group", "expires", worker.name)
        del self.members[slot]
        lost = self._forget(worker)
        if worker.alive:
            delay_ms = self._unreachable_ms(worker)
            self._world.scheduler.through(worker.group_channel, delay_ms, worker, worker.on_expired, lost)
        self.rebalance()

    def _unreachable_ms(self, worker: Worker) -> int:
        """For how long the group and this member will not hear of each other."""
        return max(0, worker.cut_off_until_ms - self._world.scheduler.now_ms)

    def _forget(self, worker: Worker) -> tuple[SourcePartition, ...]:
        lost = tuple(p for p, holder in self.held.items() if holder is worker)
        for partition in lost:
            self.held[partition] = None
            self._revoking.discard(partition)
        return lost
