"""The control topic as three sides: in Kafka, in memory, and the simulator's. One small driver for all."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import ExitStack, closing
from types import SimpleNamespace
from typing import Any, Protocol

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from control_topic.codec import encode
from control_topic.kafka import ControlReader, ControlWriter
from control_topic.memory import MemoryReader, MemoryTopic, MemoryWriter
from control_topic.messages import EndCommit, Message
from control_topic.transport import Reader, Received
from control_topic.trust import HEADER, Trust
from tests.broker_fixture import create_topic, delete_topic
from tests.harness import await_that
from tests.simulation.bus import TAIL, Bus, Record, key_of
from tests.simulation.chance import Chance
from tests.simulation.clocked import Clocked
from tests.simulation.cores import Cores
from tests.simulation.faults import Faults
from tests.simulation.scheduler import Scheduler

DEADLINE_S = 30.0
NEVER_MS = 1_000_000
MARK = "mark-"
RUN = "r"
KEY = key_of(RUN)
TRUST = Trust(pipeline="p", run=RUN, key=KEY)


class BusReader(Protocol):
    """A reader that stands where it last read up to; it may be held, so that it reads nothing meanwhile."""

    def hold(self) -> None: ...

    def heard(self, mark: str) -> list[str]:
        """The transactions in what it has heard since it was asked last, once it has heard `mark`, which is
        not told."""


class BusSide(Protocol):
    """One topic, all of whose messages are END_COMMITs with chosen transactions."""

    def reader(self, *, trust: Trust | None = None) -> BusReader:
        """A new one, which has read what there was, from the last `TAIL` records on."""

    def send(self, *transactions: str, sender: str = "w") -> None: ...

    def append(self, raw: bytes, mac: bytes = b"") -> None:
        """A record of somebody's, with this mark."""

    def remove_before(self, offset: int) -> None: ...

    def recreate(self) -> None: ...


_marks = itertools.count()


def read(side: BusSide, *readers: BusReader) -> list[list[str]]:
    """What each of the readers hears up to now."""
    mark = f"{MARK}{next(_marks)}"
    side.send(mark, sender="marks")
    return [reader.heard(mark) for reader in readers]


def told(message: Message) -> str:
    return message.body.transaction if isinstance(message.body, EndCommit) else message.type_name


def raw_message(transaction: str, *, parts_of_bytes: int = 0) -> list[bytes]:
    """A message as the codec writes it, in parts of at most so many bytes where that is not 0."""
    message = message_of(transaction)
    return encode(message, body_bytes_max=parts_of_bytes) if parts_of_bytes else encode(message)


def message_of(transaction: str) -> Message:
    return Message(
        pipeline="p",
        run=RUN,
        epoch=1,
        sender="raw",
        incarnation="raw",
        sequence=0,
        sent_at_ms=0,
        body=EndCommit(transaction=transaction),
    )


# --- readers of production's interface -----------------------------------------------------------------


class PolledReader:
    """One that production's loop polls."""

    def __init__(self, reader: Reader, hold: Callable[[], None], release: Callable[[], None]) -> None:
        self._reader = reader
        self.hold, self._release = hold, release
        self._heard: list[str] = []
        await_that("end of the topic", lambda: self._poll() or reader.caught_up, deadline_s=DEADLINE_S)

    def heard(self, mark: str) -> list[str]:
        self._release()
        await_that(mark, lambda: self._poll() or mark in self._heard, deadline_s=DEADLINE_S)
        at = self._heard.index(mark)
        found, self._heard = self._heard[:at], self._heard[at + 1 :]
        return [one for one in found if not one.startswith(MARK)]

    def _poll(self) -> None:
        received: list[Received] = self._reader.poll(0.02)
        self._heard += [told(one.content) for one in received if isinstance(one.content, Message)]


class MemorySide:
    """control_topic/memory.py."""

    def __init__(self) -> None:
        self._topic = MemoryTopic(clock_ms=lambda: 42)
        self._writers: dict[str, MemoryWriter] = {}

    def reader(self, *, trust: Trust | None = None) -> BusReader:
        reader = MemoryReader(self._topic, tail_messages=TAIL, trust=trust)
        return PolledReader(reader, lambda: None, lambda: None)

    def send(self, *transactions: str, sender: str = "w") -> None:
        if sender not in self._writers:
            self._writers[sender] = MemoryWriter(
                self._topic,
                pipeline="p",
                run=RUN,
                sender=sender,
                incarnation=sender,
                clock_ms=lambda: 1,
                key=KEY,
            )
        for transaction in transactions:
            self._writers[sender].send(EndCommit(transaction=transaction), epoch=1)

    def append(self, raw: bytes, mac: bytes = b"") -> None:
        self._topic.append(raw, mac)

    def remove_before(self, offset: int) -> None:
        self._topic.truncate(offset)

    def recreate(self) -> None:
        self._topic.recreate()


class KafkaSide:
    """control_topic/kafka.py, on a real broker."""

    def __init__(self, bootstrap_servers: str, topic: str, opened: ExitStack) -> None:
        self._servers, self._topic, self._opened = bootstrap_servers, topic, opened
        self._kafka = {"bootstrap.servers": bootstrap_servers}
        self._admin = AdminClient(self._kafka)

    def reader(self, *, trust: Trust | None = None) -> BusReader:
        reader = self._opened.enter_context(
            closing(ControlReader(self._kafka, self._topic, tail_messages=TAIL, trust=trust))
        )
        place = [TopicPartition(self._topic, 0)]
        return PolledReader(
            reader, lambda: reader._consumer.pause(place), lambda: reader._consumer.resume(place)
        )

    def send(self, *transactions: str, sender: str = "w") -> None:
        """By a writer of its own: one that outlives its topic may lose what it says next."""
        made = ControlWriter(
            self._kafka,
            self._topic,
            pipeline="p",
            run=RUN,
            sender=sender,
            incarnation=sender,
            clock_ms=lambda: 1,
            key=KEY,
        )
        with closing(made) as writer:
            for transaction in transactions:
                writer.send(EndCommit(transaction=transaction), epoch=1)
            assert writer.flush(DEADLINE_S)
            assert writer.failures == 0

    def append(self, raw: bytes, mac: bytes = b"") -> None:
        producer = Producer(self._kafka)
        producer.produce(self._topic, raw, partition=0, headers=[(HEADER, mac)])
        assert producer.flush(DEADLINE_S) == 0

    def remove_before(self, offset: int) -> None:
        place = TopicPartition(self._topic, 0, offset)
        self._admin.delete_records([place])[place].result(DEADLINE_S)

    def recreate(self) -> None:
        delete_topic(self._servers, self._topic)
        create_topic(self._servers, self._topic)


# --- the simulator's ------------------------------------------------------------------------------------


class SimulatedReader:
    def __init__(self, side: SimulatedSide, trust: Trust | None) -> None:
        self._side = side
        self._heard: list[str] = []
        self._process = Clocked(side.scheduler, "reader")
        side.bus.attach(self._process, lambda message: self._heard.append(told(message)), trust)
        side.settle()

    def hold(self) -> None:
        self._process.pause(NEVER_MS)

    def heard(self, mark: str) -> list[str]:
        if self._process.paused:
            self._side.scheduler.run_until(self._process.paused_until_ms)
        self._side.settle()
        at = self._heard.index(mark)
        found, self._heard = self._heard[:at], self._heard[at + 1 :]
        return [one for one in found if not one.startswith(MARK)]


class SimulatedSide:
    """tests/simulation/bus.py, in a world that holds nothing else and in which nothing is lost by itself."""

    def __init__(self, seed: int = 0) -> None:
        self.scheduler = Scheduler()
        self._faults = Faults()
        world: Any = SimpleNamespace(
            scheduler=self.scheduler,
            chance=Chance(seed),
            faults=self._faults,
            cores=Cores(),
            note=lambda *_: None,
        )
        self.bus = Bus(world, part_bytes_max=0)
        self._process = Clocked(self.scheduler, "sender")
        self._senders: dict[str, Any] = {}

    def settle(self) -> None:
        self.scheduler.run_until(self.scheduler.now_ms + 10_000)

    def reader(self, *, trust: Trust | None = None) -> BusReader:
        return SimulatedReader(self, trust)

    def _sender(self, name: str) -> Any:
        if name not in self._senders:
            self._senders[name] = self.bus.sender(self._process, run=RUN, name=name, incarnation=name)
        return self._senders[name]

    def send(self, *transactions: str, sender: str = "w") -> None:
        for transaction in transactions:
            self._sender(sender).send(EndCommit(transaction=transaction), 1)
        self.settle()

    def append(self, raw: bytes, mac: bytes = b"") -> None:
        self.bus.append(Record(raw, raw, mac, message_of("raw")))
        self.settle()

    def remove_before(self, offset: int) -> None:
        self.bus.remove_before(offset)

    def recreate(self) -> None:
        self.bus.recreate()
