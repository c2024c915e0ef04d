"""One source topic as two sides: on a real broker, read as a worker does, and the simulator's."""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from random import Random
from types import SimpleNamespace
from typing import Any, Protocol

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from control_topic.clocks import wall_ms
from control_topic.messages import SourcePartition
from lockstep.brokers.source_topics import SourceTopics
from participant import events as ev
from participant.source.fetched import Fetched
from participant.source.fetcher import fetch_settings
from participant.source.native import open_fetcher
from participant.source.reading import SourceCallbacks, SourceThread
from participant.source.witnesses import Known, Remembered, last_before
from table.service.source_facts import SourceFacts
from tests.broker_fixture import create_topic, delete_topic
from tests.harness import await_that
from tests.simulation.chance import Chance
from tests.simulation.clocked import Clocked
from tests.simulation.faults import Faults
from tests.simulation.plane import Plane
from tests.simulation.scheduler import Scheduler
from tests.simulation.source_log import SourceLog
from tests.transactions import end_transaction

DEADLINE_S = 30.0
QUIET_MS = 20_000
REASONS = (
    r"retention removed the offsets from \d+ to \d+",
    r"offset \d+ is beyond the log's end \d+",
    r"the log lost its end and goes on to \d+ again",
)
"""What both sides say where reading cannot go on; what an operator is advised comes behind it."""

COMPACTABLE = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.001",
    "max.compaction.lag.ms": "100",
    "delete.retention.ms": "0",
}


@dataclass(frozen=True, slots=True)
class Seen:
    """Of one source partition: where reading stands, the records' offsets, the ranges that are given up."""

    next: int
    offsets: list[int]
    lost: list[tuple[int, int]]


class SourceReader(Protocol):
    """Reads source partition 0 from where it was told to."""

    def seen(self, next_offset: int) -> Seen:
        """What was delivered, once it reaches so far and nothing more comes by itself."""

    def stuck(self) -> str:
        """Why reading cannot go on."""

    def last_read(self) -> Known:
        """The last record that was delivered, as a commit of all that was would name it."""

    def hold(self) -> None:
        """Read nothing, and hear of nothing, until `go_on`."""

    def go_on(self) -> None: ...


class SourceSide(Protocol):
    partition: SourcePartition

    def produce(self, count: int) -> None: ...

    def produce_keys(self, keys: str) -> None:
        """One record a letter, each its key, and one more with a key of its own; then compaction."""

    def abort(self) -> None:
        """A transaction of one record, and its marker."""

    def begin(self) -> None:
        """A transaction of one record, which stays open."""

    def finish(self, *, commit: bool) -> None: ...

    def retain_from(self, low: int) -> None: ...

    def recreate(self) -> None: ...

    def delete(self) -> None: ...

    def add_partition(self) -> None: ...

    def facts(self) -> SourceFacts: ...

    def written(self) -> int:
        """Where the log of source partition 0 ends, what cannot be read yet included."""

    def bounds(self, number: int = 0) -> tuple[int, int]:
        """Earliest and end of a source partition. Raises `SourceUnreadable`."""

    def read(self, start: int, *, on_data_loss: str = "fail", known: Known | None = None) -> SourceReader:
        """`known`: what somebody has read before `start`."""


def reason(said: str) -> str:
    found = [match[0] for pattern in REASONS if (match := re.search(pattern, said))]
    return found[0] if found else said


# --- on a real broker -----------------------------------------------------------------------------------


class KafkaReader:
    def __init__(
        self, side: KafkaSourceSide, start: int, on_data_loss: str, known: Known | None = None
    ) -> None:
        self._delivered: list[Fetched] = []
        self._stuck: list[str] = []
        self._failed: list[str] = []
        self._held = threading.Event()
        kafka = {**side.kafka, "topic.metadata.refresh.interval.ms": "500"}
        settings = fetch_settings(kafka, group="conformance", queue_bytes_max=1 << 20)
        self.source = SourceThread(
            fetcher=lambda: open_fetcher(settings, "plain"),
            until=None,
            on_data_loss=on_data_loss,
            callbacks=SourceCallbacks(
                owned=lambda: frozenset([side.partition]),
                deliver=self._deliver,
                stuck=lambda _partition, _generation, why: self._stuck.append(why),
                failed=self._failed.append,
            ),
        )
        self.source.start()
        self.source.rewind(side.partition, start, 1, known)

    def _deliver(self, fetched: Fetched) -> bool:
        self._delivered.append(fetched)
        return True

    def seen(self, next_offset: int) -> Seen:
        def probe() -> bool:
            assert not self._failed and not self._stuck, (self._failed, self._stuck)
            return bool(self._delivered) and self._delivered[-1].next >= next_offset

        await_that(f"delivery up to {next_offset}", probe, deadline_s=DEADLINE_S)
        found = list(self._delivered)
        return Seen(
            found[-1].next,
            [int(o) for one in found if one.raw is not None for o in one.raw.offsets],
            [(lost.start, lost.next) for one in found for lost in one.lost],
        )

    def stuck(self) -> str:
        return reason(await_that("reason", lambda: self._stuck, deadline_s=DEADLINE_S)[0])

    def last_read(self) -> Known:
        found = [last_before(one.raw, one.next) for one in self._delivered if one.raw is not None][-1]
        assert found is not None
        return Known(found, self._delivered[-1].next)

    def hold(self) -> None:
        self._held.clear()
        holds = threading.Event()

        def stand_still() -> None:
            holds.set()
            self._held.wait()  # a broker that is started again meanwhile may take its time

        self.source._orders.give(stand_still)
        assert holds.wait(DEADLINE_S)

    def go_on(self) -> None:
        self._held.set()

    def close(self) -> None:
        self._held.set()
        assert self.source.stop(DEADLINE_S)


class KafkaSourceSide:
    """lockstep/brokers/source_topics.py and participant/source/reading.py."""

    def __init__(self, bootstrap_servers: str, make_topic: Callable[..., str], opened: ExitStack) -> None:
        self._servers, self._make_topic, self._opened = bootstrap_servers, make_topic, opened
        self.kafka = {"bootstrap.servers": bootstrap_servers}
        self._admin = AdminClient(self.kafka)
        self._transaction: Producer
        self._use(make_topic())

    def _use(self, topic: str) -> None:
        self._topic = topic
        self.partition = SourcePartition(topic, 0)
        self._topics = SourceTopics(self.kafka, [topic], timeout_s=6)

    def produce(self, count: int) -> None:
        producer = Producer(self.kafka)
        for number in range(count):
            producer.produce(self._topic, f"{number}", partition=0)
        assert producer.flush(DEADLINE_S) == 0

    def produce_keys(self, keys: str) -> None:
        """The last record comes a minute after the others, by its own clock: it begins a segment, and only
        segments that are full are compacted.
        """
        self._use(self._make_topic(config=COMPACTABLE))
        producer = Producer(self.kafka)
        now_ms = wall_ms()
        for key in keys:
            producer.produce(self._topic, "x", key=key, partition=0, timestamp=now_ms - 60_000)
        assert producer.flush(DEADLINE_S) == 0
        producer.produce(self._topic, "x", key="its own", partition=0, timestamp=now_ms)
        assert producer.flush(DEADLINE_S) == 0

        def is_compacted() -> bool:
            reader = KafkaReader(self, 0, "fail")
            try:
                return len(reader.seen(len(keys) + 1).offsets) == len(set(keys)) + 1
            finally:
                reader.close()

        await_that("compaction", is_compacted, deadline_s=DEADLINE_S)

    def abort(self) -> None:
        self.begin()
        self.finish(commit=False)

    def begin(self) -> None:
        self._transaction = Producer({**self.kafka, "transactional.id": uuid.uuid4().hex})
        self._transaction.init_transactions(DEADLINE_S)
        self._transaction.begin_transaction()
        self._transaction.produce(self._topic, "inside", partition=0)
        assert self._transaction.flush(DEADLINE_S) == 0

    def finish(self, *, commit: bool) -> None:
        end_transaction(self._transaction, self._topic, self.kafka, commit=commit)

    def retain_from(self, low: int) -> None:
        place = TopicPartition(self._topic, 0, low)
        self._admin.delete_records([place])[place].result(DEADLINE_S)

    def recreate(self) -> None:
        self.delete()
        create_topic(self._servers, self._topic)

    def delete(self) -> None:
        delete_topic(self._servers, self._topic)

    def add_partition(self) -> None:
        count = len(self._topics.facts().partitions) + 1
        self._admin.create_partitions([NewPartitions(self._topic, count)])[self._topic].result(DEADLINE_S)
        await_that("partition", lambda: len(self._topics.facts().partitions) == count)

    def facts(self) -> SourceFacts:
        return self._topics.facts()

    def written(self) -> int:
        only = SourcePartition(self._topic, 0)
        return self._topics.end([only], read_committed=False)[only]

    def bounds(self, number: int = 0) -> tuple[int, int]:
        partition = SourcePartition(self._topic, number)
        low = self._topics.earliest([partition])[partition]
        return low, self._topics.end([partition])[partition]

    def read(self, start: int, *, on_data_loss: str = "fail", known: Known | None = None) -> SourceReader:
        reader = KafkaReader(self, start, on_data_loss, known)
        self._opened.callback(reader.close)
        return reader


# --- the simulator's ------------------------------------------------------------------------------------


class SimulatedSourceReader:
    """tests/simulation/plane.py, of a worker that does nothing else."""

    def __init__(self, side: SimulatedSourceSide, start: int, on_data_loss: str, known: Known | None) -> None:
        self._scheduler = side.scheduler
        self._stuck: list[str] = []
        world = SimpleNamespace(
            scheduler=side.scheduler,
            chance=Chance(0),
            faults=Faults(),
            log=side.log,
            network=None,
            on_data_loss=on_data_loss,
            on_error="fail",
            note=lambda *_: None,
            checks=SimpleNamespace(held=lambda *_: None),
        )
        worker: Any = Clocked(side.scheduler, "worker")
        driver = SimpleNamespace(until=None, columns=frozenset())
        worker.world, worker.driver, worker.post = world, driver, self._post
        worker.witnesses = Remembered()
        if known is not None:
            worker.witnesses.note([known.witness], {side.partition: known.nothing_until})
        self._side, self._partition = side, side.partition
        self._plane = Plane(worker)
        self._plane.assign((side.partition,))
        self._plane.order(ev.Rewind(partition=side.partition, offset=start, generation=1))
        side.settle()

    def _post(self, event: ev.Event) -> None:
        if isinstance(event, ev.Blocked):
            self._stuck.append(event.reason)

    def _settle(self) -> None:
        self._scheduler.run_until(self._scheduler.now_ms + QUIET_MS)

    def seen(self, next_offset: int) -> Seen:
        self._settle()
        chunks = self._plane._lanes[self._partition].chunks
        assert not self._stuck, self._stuck
        assert chunks[-1].next >= next_offset
        return Seen(
            chunks[-1].next,
            [offset for chunk in chunks for offset in chunk.rows],
            [(lost.start, lost.next) for chunk in chunks for lost in chunk.lost],
        )

    def stuck(self) -> str:
        self._settle()
        return reason(self._stuck[0])

    def last_read(self) -> Known:
        chunks = self._plane._lanes[self._partition].chunks
        found = [chunk.witness for chunk in chunks if chunk.rows][-1]
        assert found is not None
        return Known(found, chunks[-1].next)

    def hold(self) -> None:
        self._side.holds = True

    def go_on(self) -> None:
        self._side.holds = False


class SimulatedSourceSide:
    """tests/simulation/source_log.py."""

    def __init__(self) -> None:
        self.scheduler = Scheduler()
        self.log = SourceLog(Random(0), {"events": 1})
        self.log._gaps = 0.0
        self.partition = self.log.first
        self.holds = False

    def settle(self) -> None:
        if not self.holds:
            self.scheduler.run_until(self.scheduler.now_ms + QUIET_MS)

    def produce(self, count: int) -> None:
        self.log.produce(self.partition, count)
        self.settle()

    def produce_keys(self, keys: str) -> None:
        self.log.produce(self.partition, len(keys) + 1)
        self.log.compact(self.partition, [n for n, key in enumerate(keys) if key in keys[n + 1 :]])

    def abort(self) -> None:
        self.log.skip(self.partition, 2)

    def begin(self) -> None:
        self.log.begin(self.partition)

    def finish(self, *, commit: bool) -> None:
        self.log.finish(self.partition, commit=commit)

    def retain_from(self, low: int) -> None:
        self.log.retain_from(self.partition, low)

    def recreate(self) -> None:
        self.log.recreate("events", 1)

    def delete(self) -> None:
        self.log.missing = "events"

    def add_partition(self) -> None:
        self.log.add_partition("events")

    def facts(self) -> SourceFacts:
        return self.log.facts()

    def written(self) -> int:
        return self.log.end([self.partition], read_committed=False)[self.partition]

    def bounds(self, number: int = 0) -> tuple[int, int]:
        partition = SourcePartition("events", number)
        return self.log.earliest([partition])[partition], self.log.end([partition])[partition]

    def read(self, start: int, *, on_data_loss: str = "fail", known: Known | None = None) -> SourceReader:
        return SimulatedSourceReader(self, start, on_data_loss, known)
