"""A real Lane (core, plane, files) under a hostile coordinator, group and source, each on its own thread.

What is committed of it is compared, file by file, with the ranges that it reported.
"""

from __future__ import annotations

import os
import random
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from control_topic import messages as m
from control_topic.clocks import monotonic_ms
from control_topic.messages import Message, SourcePartition
from participant import events as ev
from participant.records.raw import RawBatch, Values
from participant.source.fetched import Fetched
from participant.source.witnesses import Known
from participant.transitions import IllegalEvent, IllegalStep
from participant.worker.lane import Lane, LaneCallbacks
from participant.worker.spec import WorkerSpec
from table.port import TableLayout
from table.service.calls import Answer, Result
from tests.data_files import data_files
from tests.integration.planes import NOBODY

pytestmark = pytest.mark.integration
PARTITIONS = [SourcePartition("events", n) for n in range(4)]
ME = "me"
SEEDS = int(os.environ.get("SEEDS", "2"))
COMMITS = int(os.environ.get("COMMITS", "5"))
"""More of both for a night."""
DEADLINE_S = 60 + 10 * COMMITS


class Writer:
    def __init__(self) -> None:
        self.said: list[Any] = []
        self.lock = threading.Lock()

    def send(self, body: Any, *, epoch: int) -> None:
        with self.lock:
            self.said.append(body)

    def take(self) -> list[Any]:
        with self.lock:
            said, self.said = self.said, []
        return said

    def flush(self, _t: float) -> None: ...
    def close(self) -> None: ...


class World:
    def __init__(self, path: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.path = path
        (path / ".hoodie").mkdir(parents=True)
        self.committed = dict.fromkeys(PARTITIONS, 0)
        self.lock = threading.Lock()
        self.positions: dict[SourcePartition, tuple[int, int]] = {}
        self.owned: set[SourcePartition] = set()
        self.paused = False
        self.writer = Writer()
        self.epoch, self.sequence, self.incarnation = 1, 0, "c1"
        self.commits = self.aborts = self.rows = 0
        self.open: dict[str, Any] | None = None
        self.stopping = False
        self.errors: list[str] = []
        self.number = 0
        layout = TableLayout(
            kind="hudi",
            path=str(path),
            key_fields=("id",),
            partition_fields=("day",),
            kafka_columns=True,
            target_file_bytes=1 << 16,
            ddl="id STRING, day STRING",
        )
        spec = WorkerSpec(
            pipeline="p",
            run="r",
            workers=1,
            kafka={},
            topics=("events",),
            control_topic="c",
            table_address="",
            token="",
            key=b"",
            layout=layout,
            interval_ms=200,
            write_timeout_ms=2000,
            memory_bytes=self.random.choice([1_000_000, 4_000_000, 64_000_000]),
        )
        self.lane = Lane(
            spec,
            slot=0,
            incarnation=ME,
            table=self,
            writer=self.writer,
            callbacks=LaneCallbacks(
                rewind=self.rewind,
                pause=self.pause,
                resume=self.resume,
                commit=lambda o: None,
                plane=NOBODY,
            ),
        )

    # the driver
    def offsets(self) -> Answer:
        if self.random.random() < 0.3:
            time.sleep(self.random.random() * 0.02)
        if self.random.random() < 0.2:
            return Answer(result=Result.UNAVAILABLE)
        return Answer(result=Result.OK, committed=dict(self.committed))

    # the source
    def rewind(self, p: SourcePartition, offset: int, generation: int, _known: Known | None) -> None:
        with self.lock:
            self.positions[p] = (offset, generation)

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    def source(self) -> None:
        rng = random.Random(self.random.random())
        while not self.stopping:
            with self.lock:
                live = [p for p in self.positions if p in self.owned]
                if not live or self.paused:
                    p = None
                else:
                    p = rng.choice(live)
                    start, generation = self.positions[p]
                    count = rng.choice([1, 3, 100, 1500])
                    gap = rng.choice([0, 0, 0, 5])
                    self.positions[p] = (start + count + gap, generation)
            if p is None:
                time.sleep(0.001)
                continue
            raw = None
            if rng.random() < 0.95:
                offsets = np.arange(start, start + count, dtype=np.int64)
                values = [b'{"id": "%d", "day": "d%d"}' % (o, o % 3) for o in offsets]
                raw = RawBatch(partition=p, offsets=offsets, timestamps_ms=offsets, values=Values.of(values))
            fetched = Fetched(
                partition=p, generation=generation, start=start, next=start + count + gap, raw=raw
            )
            while not self.lane.plane.deliver(fetched):
                if self.stopping or p not in self.owned:
                    break
            time.sleep(rng.random() * 0.004)

    # the coordinator, the bus and the group
    def say(self, body: Any, *, again: bool = False) -> None:
        if not again:
            self.sequence += 1
        if self.random.random() < 0.15 and not isinstance(body, m.CoordinatorClaim):
            return  # lost
        message = Message(
            pipeline="p",
            run="r",
            epoch=self.epoch,
            sender="coordinator@x",
            incarnation=self.incarnation,
            sequence=self.sequence,
            sent_at_ms=0,
            body=body,
        )
        for _ in range(self.random.choice([1, 1, 1, 2])):
            self.lane.post(ev.Received(now_ms=monotonic_ms(), message=message))

    def assign(self) -> None:
        free = [p for p in PARTITIONS if p not in self.owned]
        if not free:
            return
        some = self.random.sample(free, self.random.randint(1, len(free)))
        self.owned |= set(some)
        known = self.random.random() < 0.5
        offsets = {p: self.committed[p] if known else None for p in some}
        self.lane.post(ev.Assigned(now_ms=monotonic_ms(), offsets=offsets))

    def revoke(self) -> None:
        if not self.owned:
            return
        some = self.random.sample(sorted(self.owned), self.random.randint(1, len(self.owned)))
        with self.lock:
            self.owned -= set(some)
            for p in some:
                self.positions.pop(p, None)
        self.lane.post(ev.Revoked(now_ms=monotonic_ms(), partitions=tuple(some)))

    def files_of(self, instant: str) -> list[Path]:
        return data_files(self.path, f"*_{instant}.parquet")

    def give_up(self) -> None:
        if self.open is not None:
            for one in self.files_of(self.open["instant"]):  # as the driver does, before anybody hears of it
                one.unlink(missing_ok=True)
            self.aborts += 1
            self.open = None

    def begin(self) -> None:
        self.number += 1
        instant = f"2026010100{self.number:07d}"
        writers = {p: ME for p in self.owned} if self.random.random() < 0.9 else {p: ME for p in PARTITIONS}
        others = {p: "other" for p in PARTITIONS if p not in writers}
        if not writers:
            return
        self.open = {
            "id": f"t{self.number}",
            "instant": instant,
            "committed": dict(self.committed),
            "mine": set(writers),
            "ended": False,
            "at": time.monotonic(),
        }
        self.open["start"] = m.StartCommit(
            transaction=self.open["id"],
            instant=instant,
            committed=dict(self.committed),
            writers={**writers, **others},
            records_max=self.random.choice([0, 0, 500]),
        )
        self.say(self.open["start"])

    def hear(self) -> None:
        for body in self.writer.take():
            match body:
                case m.WriteStatus():
                    self.reported(body)
                case m.ParticipantLeave() if self.open and body.transaction == self.open["id"]:
                    tid = self.open["id"]
                    self.give_up()
                    self.say(m.AbortCommit(transaction=tid, reason="left"))
                case m.ParticipantLeave() if self.open:
                    self.open["mine"] -= set(body.partitions)
                case m.ParticipantJoin() if self.open:
                    self.say(self.open["start"])
                    if self.open["ended"]:
                        self.say(m.EndCommit(transaction=self.open["id"]))

    def reported(self, status: m.WriteStatus) -> None:
        if self.open is None or status.transaction != self.open["id"] or not self.open["ended"]:
            return
        if {r.partition for r in status.ranges} != self.open["mine"]:
            return
        if any(r.start != self.open["committed"][r.partition] for r in status.ranges):
            return
        tid, instant = self.open["id"], self.open["instant"]
        if self.random.random() < 0.25:
            self.give_up()
            self.say(m.AbortCommit(transaction=tid, reason="why not"))
            return
        # commit: what do the files hold?
        found: dict[tuple[int, int], int] = {}
        for file in status.files:
            place = self.path / file.path
            if not place.exists() or place.stat().st_size != file.size_bytes:
                self.errors.append(f"{tid}: {file.path} is not there as it was said")
                return
            table = pq.read_table(place, partitioning=None)
            for n, o in zip(
                table["_kafka_partition"].to_pylist(), table["_kafka_offset"].to_pylist(), strict=True
            ):
                found[n, o] = found.get((n, o), 0) + 1
        doubled = [k for k, v in found.items() if v > 1]
        records = sum(r.records for r in status.ranges)
        outside = [
            k
            for k in found
            if not any(r.partition.number == k[0] and r.start <= k[1] < r.next for r in status.ranges)
        ]
        if doubled or outside or records != sum(found.values()):
            self.errors.append(
                f"{tid}: doubled {doubled[:3]} outside {outside[:3]} records {records} rows {len(found)}"
            )
        for r in status.ranges:
            self.committed[r.partition] = r.next
        self.rows += records
        self.commits += 1
        self.open = None
        if self.random.random() < 0.8:
            self.say(m.AckCommit(transaction=tid, instant=instant, committed=dict(self.committed)))

    def step(self) -> None:
        self.hear()
        dice = self.random.random()
        if dice < 0.03:
            self.assign()
        elif dice < 0.045:
            self.revoke()
        elif dice < 0.055:  # another coordinator
            self.epoch += 1
            self.incarnation, self.sequence = f"c{self.epoch}", 0
            self.give_up()
            self.say(m.CoordinatorClaim())
        elif dice < 0.07 and self.open:
            tid = self.open["id"]
            self.give_up()
            self.say(m.AbortCommit(transaction=tid, reason="dice"))
        elif dice < 0.08:  # a late word
            self.say(
                self.random.choice(
                    [
                        m.EndCommit(transaction="t1"),
                        m.AbortCommit(transaction="t1", reason=""),
                        m.AckCommit(transaction="t1", instant="", committed=dict(self.committed)),
                    ]
                )
            )
        elif self.open is None and dice < 0.5:
            self.begin()
        elif self.open and time.monotonic() - self.open["at"] > self.random.random() * 0.3:
            self.open["ended"] = True
            self.say(m.EndCommit(transaction=self.open["id"]))
        if self.open and time.monotonic() - self.open["at"] > 2:
            tid = self.open["id"]
            self.give_up()
            self.say(m.AbortCommit(transaction=tid, reason="too long"))
        time.sleep(self.random.random() * 0.02)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_a_lane_reports_is_what_its_files_hold_whoever_interferes(tmp_path: Path, seed: int) -> None:
    world = World(tmp_path / "table", seed)
    lane = world.lane
    lane.start()
    failed: list[Exception] = []

    def protocol() -> None:
        try:
            while lane.ended is None and not world.stopping:
                lane.step()
        except (IllegalEvent, IllegalStep, AssertionError, OSError) as error:
            failed.append(error)

    threads = [threading.Thread(target=protocol), threading.Thread(target=world.source)]
    for one in threads:
        one.start()
    until = time.monotonic() + DEADLINE_S
    while not failed and not world.errors and lane.ended is None and world.commits < COMMITS:
        assert time.monotonic() < until, f"{world.commits} commits in {DEADLINE_S} s"
        world.step()
    world.stopping = True
    for one in threads:
        one.join(10)
    stopped = lane.plane.stop(20)
    assert not failed, failed
    assert not world.errors, world.errors
    assert lane.ended is None, lane.ended
    assert stopped
