"""A consumer group as two sides: real members in processes of their own, and the simulator's group."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, Protocol

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewPartitions

from control_topic.messages import SourcePartition
from participant import events as ev
from tests.broker_fixture import create_topic, delete_topic
from tests.harness import await_that
from tests.simulation.chance import Chance
from tests.simulation.group import SESSION_MS, Group
from tests.simulation.plane import Position
from tests.simulation.scheduler import Channel, Process, Scheduler
from tests.simulation.source_log import SourceLog
from tests.simulation.worker import Worker

ROOT = Path(__file__).resolve().parents[2]
REAL_SESSION_MS = 10_000
"""Longer than a process needs to begin, and than a busy machine keeps one that beats from beating."""
DEADLINE_S = 40.0


class Member(Protocol):
    """What one worker believes of its membership."""

    owns: set[int]
    fenced: bool

    def prove(self, number: int) -> bool:
        """Whether the group itself counts it as the owner of a source partition."""

    @property
    def told(self) -> list[tuple[str, set[int]]]:
        """`assigned` or `revoked`, and what, in the order in which the worker hears it."""

    def freeze(self) -> None: ...

    def thaw(self) -> None: ...

    def kill(self) -> None: ...

    def leave(self) -> None: ...


class GroupSide(Protocol):
    session_s: float

    def join(self, slot: int, *, looks_at_topics: bool = True) -> Member:
        """A new process in this slot, which asks to be a member.

        `looks_at_topics`: it sees within a second which source partitions there are, not only when it joins.
        """

    def await_that(self, what: str, probe: Callable[[], object], *, within_s: float = DEADLINE_S) -> None:
        """By the side's own time."""

    def add_partition(self) -> None: ...

    def recreate(self, partitions: int, *, seen: bool) -> None:
        """`seen`: members see that the topic is missing before it is made again."""

    def foreign_joins(self, assignor: str) -> None:
        """Somebody who is no worker of ours joins the group."""

    def foreign_leaves(self) -> None: ...


# --- real ---------------------------------------------------------------------------------------------


class KafkaMember:
    def __init__(self, servers: str, topic: str, slot: int, refresh_ms: int) -> None:
        self.owns: set[int] = set()
        self.told: list[tuple[str, set[int]]] = []
        self.fenced = False
        self._proofs: list[bool] = []
        command = [sys.executable, "-m", "tests.conformance.member_process", servers, topic, f"slot-{slot}"]
        self._process = subprocess.Popen(
            [*command, str(REAL_SESSION_MS), str(refresh_ms)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            what, content = json.loads(line)
            if what in ("assigned", "revoked"):
                self.told.append((what, set(content)))
            if what == "assigned":
                self.owns |= set(content)
            elif what == "revoked":
                self.owns -= set(content)
            elif what in ("fenced", "failed"):
                self.fenced = True
            elif what == "proved":
                self._proofs.append(content)

    def _order(self, order: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(order + "\n")
        self._process.stdin.flush()

    def prove(self, number: int) -> bool:
        asked = len(self._proofs)
        self._order(f"prove {number}")
        await_that("proof", lambda: len(self._proofs) > asked, deadline_s=DEADLINE_S)
        return self._proofs[-1]

    def freeze(self) -> None:
        os.kill(self._process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self._process.pid, signal.SIGCONT)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(DEADLINE_S)

    def leave(self) -> None:
        self._order("leave")
        self._process.wait(DEADLINE_S)

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait(DEADLINE_S)
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(BrokenPipeError):
                assert pipe is not None
                pipe.close()


class KafkaGroupSide:
    """participant/source/membership.py, on a real broker."""

    session_s = REAL_SESSION_MS / 1_000

    def __init__(self, servers: str, topic: str, opened: ExitStack) -> None:
        self._servers, self._topic, self._opened = servers, topic, opened
        self._admin = AdminClient({"bootstrap.servers": servers})
        self._members: list[KafkaMember] = []
        self._foreign: Consumer | None = None
        self._foreign_thread: threading.Thread
        self._foreign_is_in = threading.Event()

    def join(self, slot: int, *, looks_at_topics: bool = True) -> Member:
        refresh_ms = 500 if looks_at_topics else 600_000
        member = KafkaMember(self._servers, self._topic, slot, refresh_ms)
        self._members.append(member)
        self._opened.callback(member.close)
        return member

    def await_that(self, what: str, probe: Callable[[], object], *, within_s: float = DEADLINE_S) -> None:
        await_that(what, probe, deadline_s=within_s)

    def add_partition(self) -> None:
        count = len(self._admin.list_topics(self._topic, timeout=DEADLINE_S).topics[self._topic].partitions)
        wanted = [NewPartitions(self._topic, count + 1)]
        self._admin.create_partitions(wanted)[self._topic].result(DEADLINE_S)

    def recreate(self, partitions: int, *, seen: bool) -> None:
        delete_topic(self._servers, self._topic)
        if seen:
            await_that("revocation", lambda: not any(m.owns for m in self._members), deadline_s=DEADLINE_S)
        create_topic(self._servers, self._topic, partitions=partitions)

    def foreign_joins(self, assignor: str) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": f"group-{self._topic}",
                "partition.assignment.strategy": assignor,
                "session.timeout.ms": REAL_SESSION_MS,
            }
        )
        self._foreign = consumer
        consumer.subscribe([self._topic], on_assign=lambda *_: self._foreign_is_in.set())
        self._foreign_thread = threading.Thread(target=self._poll_foreign, args=(consumer,), daemon=True)
        self._foreign_thread.start()
        self._opened.callback(self.foreign_leaves)
        assert self._foreign_is_in.wait(DEADLINE_S)

    def _poll_foreign(self, consumer: Consumer) -> None:
        while self._foreign is not None:
            consumer.poll(0.1)
        consumer.close()

    def foreign_leaves(self) -> None:
        if self._foreign is not None:
            self._foreign = None
            self._foreign_thread.join(DEADLINE_S)


# --- the simulator's ----------------------------------------------------------------------------------


class SimulatedMember(Worker):
    """A worker of the simulator, of which there is nothing but its membership."""

    def __init__(self, side: SimulatedGroupSide, slot: int) -> None:
        Process.__init__(self, side.scheduler, f"member-{slot}")
        self.world, self.slot, self.incarnation = side.world, slot, f"{slot}"
        self.driver: Any = SimpleNamespace(newest=lambda: None)
        self.plane: Any = SimpleNamespace(positions={}, assign=self._assign, stop=lambda: None)
        self.group_channel = Channel()
        self.assigned = Counter()
        self.claims = None
        self.first = SourcePartition("nobody's", 0)
        self.cut_off_until_ms = 0
        self.fenced = False
        self.told: list[tuple[str, set[int]]] = []
        self._leaving = False
        side.scheduler.at(0, self, side.group.join, self)

    def _assign(self, partitions: tuple[SourcePartition, ...]) -> None:
        self.told.append(("assigned", {partition.number for partition in partitions}))
        self.plane.positions.update({partition: Position() for partition in partitions})

    def post(self, event: ev.Event) -> None:
        """There is no core."""
        if isinstance(event, ev.Revoked):
            self.told.append(("revoked", {partition.number for partition in event.partitions}))

    @property
    def owns(self) -> set[int]:
        return {partition.number for partition in self.plane.positions}

    def prove(self, number: int) -> bool:  # type: ignore[override]
        partition = SourcePartition("events", number)
        return partition in self.plane.positions and self.world.group.commit(self, partition, 0)

    def freeze(self) -> None:
        self.paused_until_ms = 1 << 60

    def thaw(self) -> None:
        self.paused_until_ms = 0
        heap = self.scheduler._heap
        for index, (due_ms, *rest) in enumerate(heap):
            if due_ms == 1 << 60:
                heap[index] = (self.scheduler.now_ms, *rest)  # type: ignore[assignment]
        heap.sort()

    def kill(self) -> None:  # type: ignore[override]
        self.alive = False

    def leave(self) -> None:
        self._leaving = True
        for partition in list(self.plane.positions):
            self.plane.positions.pop(partition)
            self.world.group.revoked(self, partition)
        self.world.group.leave(self)


class SimulatedGroupSide:
    """tests/simulation/group.py, and what of tests/simulation/worker.py is membership."""

    session_s = SESSION_MS / 1_000

    def __init__(self) -> None:
        self.scheduler = Scheduler()
        self.log = SourceLog(Random(0), {"events": 4})
        self.world: Any = SimpleNamespace(
            scheduler=self.scheduler,
            chance=Chance(0),
            log=self.log,
            note=lambda *_: None,
            group_committed=lambda *_: None,
        )
        self.group = self.world.group = Group(self.world)

    def join(self, slot: int, *, looks_at_topics: bool = True) -> Member:
        return SimulatedMember(self, slot)

    def await_that(self, what: str, probe: Callable[[], object], *, within_s: float = DEADLINE_S) -> None:
        until_ms = self.scheduler.now_ms + int(within_s * 1_000)
        while not probe():
            assert self.scheduler.now_ms < until_ms, f"within {within_s} s there was no {what}"
            self.scheduler.run_until(self.scheduler.now_ms + 20)

    def add_partition(self) -> None:
        self.log.add_partition("events")

    def recreate(self, partitions: int, *, seen: bool) -> None:
        before = set(self.log.records)
        self.log.recreate("events", partitions)
        if not seen:
            self.group.overlook(before - self.log.records.keys())

    def foreign_joins(self, assignor: str) -> None:
        self.group.foreign_joins(assignor)

    def foreign_leaves(self) -> None:
        self.group.foreign_leaves()
