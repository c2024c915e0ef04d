"""Real CoordinatorHosts and Runners, one after the other and beside each other, on real Transactions over the
reference table: started and stopped at hostile moments, on a bus that loses and repeats."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest

from control_topic import messages as m
from control_topic.clocks import monotonic_ms, wall_ms
from control_topic.messages import Message, Range, SourcePartition
from coordinator.events import Settings
from coordinator.runner import Environment
from coordinator.times import ByTheClock
from lockstep.verify.chain import follow
from participant.worker.coordinator_host import CoordinatorHost
from table.errors import OutcomeUnknown, Unavailable
from table.memory.table import Interruption, MemoryTable
from table.memory.timeline import MemoryTimeline
from table.service.calls import Answer, Directive, Result, RunMode
from table.service.ledger import Ledger
from table.service.source_facts import SourceFacts
from table.service.transactions import Transactions

P = [SourcePartition("events", n) for n in range(3)]
SEEDS = int(os.environ.get("SEEDS", "2"))
COMMITS = int(os.environ.get("COMMITS", "4"))
"""More of both for a night."""
DEADLINE_S = 60 + 20 * COMMITS
OWNERS = {P[0]: "w0", P[1]: "w0", P[2]: "w1"}


class Topics:
    def facts(self) -> SourceFacts:
        return SourceFacts(cluster="c", topics={"events": "id"}, partitions=tuple(P))

    def earliest(self, partitions: Sequence[SourcePartition]) -> dict[SourcePartition, int]:
        return dict.fromkeys(partitions, 0)

    def end(self, partitions: Sequence[SourcePartition]) -> dict[SourcePartition, int]:
        return dict.fromkeys(partitions, 1 << 40)


class World:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.timeline = MemoryTimeline()
        self.table = MemoryTable(self.timeline, "p", at=self.trouble)
        self.ledger = Ledger(run="r", now_ms=monotonic_ms())
        self.guard, self.one = threading.Lock(), threading.Lock()
        self.service = Transactions(
            table=self.table,
            ledger=self.ledger,
            guard=self.guard,
            source=Topics(),
            pipeline="p",
            run="r",
            rows_are_records=True,
            starting_offsets="earliest",
            on_data_loss="fail",
            rejects_max=None,
            clock_ms=monotonic_ms,
            new_id=lambda: os.urandom(8).hex(),
        )
        self.epoch = 0
        self.acked: list[m.AckCommit] = []
        self.failed: list[str] = []
        self.seq: dict[str, int] = {}
        self.bus_lock = threading.Lock()
        self.sent: list[Message] = []
        self.hosts = [self.host(n) for n in range(2)]

    def trouble(self, step: Interruption) -> None:
        dice = self.random.random()
        if dice < 0.03:
            time.sleep(dice)
        if dice < 0.01 and step is not Interruption.COMMIT_COMPLETED:
            raise Unavailable("dice")
        if dice > 0.98 and step in (Interruption.COMMIT_COMPLETED, Interruption.COMMIT_CHECKED):
            raise OutcomeUnknown("dice")

    def host(self, n: int) -> CoordinatorHost:
        world = self

        class Calls:
            def __getattr__(self, name: str) -> Any:
                method = getattr(world.service, name)

                def call(*args: Any) -> Answer:
                    with world.one:
                        world.timeline.now_ms += 7
                        answer = method(*args)
                    if world.random.random() < 0.05:  # the answer is lost
                        lost = Result.UNKNOWN if name in ("begin", "commit", "abort") else Result.UNAVAILABLE
                        return Answer(result=lost, reason="lost")
                    return answer

                return call

        class Sender:
            def __init__(self, incarnation: str) -> None:
                self.incarnation = incarnation

            def send(self, body: Any, *, epoch: int) -> None:
                world.publish(f"coordinator@{n}", self.incarnation, body, epoch)

            def flush(self, _t: float) -> bool:
                return True

            def close(self) -> None: ...

        def prove(answer: Any) -> None:
            threading.Thread(target=lambda: answer(world.random.random() < 0.7, "dice"), daemon=True).start()

        return CoordinatorHost(
            Settings(
                pipeline="p",
                run="r",
                incarnation="",
                interval_ms=100,
                write_timeout_ms=1_000,
                repeat_ms=100,
                settle_ms=100,
                retry_ms=30,
            ),
            Environment(
                sender=Sender,
                table=Calls(),
                prove=prove,
                topic_epoch=lambda: world.epoch if world.random.random() < 0.7 else 0,
                failed=self.failed.append,
                now_ms=monotonic_ms,
                wall_ms=wall_ms,
                nonce=lambda: os.urandom(8).hex(),
                by_the_clock=lambda _tuning: ByTheClock(),
            ),
        )

    def publish(self, sender: str, incarnation: str, body: Any, epoch: int) -> None:
        with self.bus_lock:
            sequence = self.seq[incarnation] = self.seq.get(incarnation, -1) + 1
            message = Message(
                pipeline="p",
                run="r",
                epoch=epoch,
                sender=sender,
                incarnation=incarnation,
                sequence=sequence,
                sent_at_ms=0,
                body=body,
            )
            if self.random.random() < 0.07:
                return
            self.sent.append(message)
            for _ in range(self.random.choice([1, 1, 1, 2])):
                self.deliver(message)
            if self.random.random() < 0.05:
                self.deliver(self.random.choice(self.sent[-200:]))  # an old one, mark and all

    def deliver(self, message: Message) -> None:
        self.epoch = max(self.epoch, message.epoch)
        for host in self.hosts:
            host.received(message)
        body, who = message.body, {w: [p for p, o in OWNERS.items() if o == w] for w in ("w0", "w1")}
        if isinstance(body, m.CoordinatorClaim | m.AckCommit | m.AbortCommit):
            if isinstance(body, m.AckCommit):
                self.acked.append(body)
            for w, owned in who.items():
                self.later(w, m.ParticipantJoin(partitions=tuple(owned)))
                self.later(w, m.ParticipantReady())
        if isinstance(body, m.StartCommit):
            self.start = body
        if (
            isinstance(body, m.EndCommit)
            and getattr(self, "start", None)
            and self.start.transaction == body.transaction
        ):
            for w in who:
                mine = [p for p, writer in self.start.writers.items() if writer == w]
                if mine and self.random.random() < 0.9:
                    ranges = tuple(
                        Range(
                            partition=p,
                            start=self.start.committed[p],
                            next=self.start.committed[p] + self.random.randint(0, 9),
                            records=0,
                        )
                        for p in sorted(mine)
                    )
                    self.later(
                        w,
                        m.WriteStatus(
                            transaction=body.transaction, ranges=ranges, files=(), rejects=(), lost=()
                        ),
                    )

    def later(self, w: str, body: Any) -> None:
        threading.Timer(self.random.random() * 0.05, self.publish, (w, w, body, self.epoch)).start()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_coordinators_that_come_and_go_commit_a_chain_and_acknowledge_what_is_committed(seed: int) -> None:
    world = World(seed)
    until = time.monotonic() + DEADLINE_S
    while not world.failed and len(world.acked) < COMMITS:
        assert time.monotonic() < until, f"{len(world.acked)} commits in {DEADLINE_S} s"
        one = world.random.choice(world.hosts)
        world.random.choice([one.start, one.start, one.stop])()
        for w in ("w0", "w1"):
            world.publish(
                w, w, m.ParticipantJoin(partitions=tuple(p for p, o in OWNERS.items() if o == w)), world.epoch
            )
            world.publish(w, w, m.ParticipantReady(), world.epoch)
        with world.guard:
            directive = world.ledger.directive(monotonic_ms(), "idle")
        for host in world.hosts:
            host.directed(
                Directive(mode=RunMode.RUN, dead=("ghost",), died_of={"ghost": "x"})
                if directive.mode is RunMode.RUN
                else directive
            )
        time.sleep(world.random.choice([0.01, 0.2, 0.6]))
    for host in world.hosts:
        host.stop()
    states = sorted(world.timeline.states("p"), key=lambda s: (s.epoch, sum(s.offsets.values()), s.instant))
    chain = follow(states)
    assert not world.failed, world.failed
    assert not chain.broken, chain.broken
    assert {a.transaction for a in world.acked} <= {s.transaction for s in states}
