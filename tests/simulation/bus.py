"""The control topic: a log in total order that loses, repeats and delays, and readers that lag and replay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from control_topic.messages import Body, Message, RunAnnounce
from tests.simulation.chance import Chance
from tests.simulation.faults import Faults
from tests.simulation.scheduler import Channel, Process, Scheduler

PIPELINE = "p"
TAIL = 40
"""How many messages a new reader, or one whose position was lost, reads again."""


class Hearer(Protocol):
    def __call__(self, message: Message, *, again: bool) -> None: ...


class Reader:
    """One process's view of the log: everything, in order, some time. `again`: it was delivered before."""

    def __init__(self, process: Process, hear: Hearer) -> None:
        self.process = process
        self.hear = hear
        self.channel = Channel()
        self.seen: set[tuple[str, int]] = set()
        self.highest_epoch = 0


class Sender:
    """One sender's producer: in order, with its own sequence numbers."""

    def __init__(self, bus: Bus, process: Process, *, run: str, name: str, incarnation: str) -> None:
        self._bus = bus
        self._process = process
        self._run, self._name, self._incarnation = run, name, incarnation
        self._sequence = 0
        self._channel = Channel()

    def send(self, body: Body, epoch: int) -> Message:
        message = Message(
            pipeline=PIPELINE,
            run=self._run,
            epoch=epoch,
            sender=self._name,
            incarnation=self._incarnation,
            sequence=self._sequence,
            sent_at_ms=self._process.clock_ms(),
            body=body,
        )
        self._sequence += 1
        self._bus.produce(message, self._channel)
        return message


class Bus:
    """The log and its faults."""

    def __init__(
        self,
        scheduler: Scheduler,
        chance: Chance,
        faults: Callable[[], Faults],
        note: Callable[[str, str, object], None],
    ) -> None:
        self._scheduler = scheduler
        self._chance = chance
        self._faults = faults
        self._note = note
        self._log: list[Message] = []
        self._life = 0
        self.readers: list[Reader] = []

    def produce(self, message: Message, channel: Channel) -> None:
        chance, faults = self._chance, self._faults()
        if chance.of(faults.message_lost) and not isinstance(message.body, RunAnnounce):
            self._note("bus", "lost", message)
            return
        delay_ms = chance.upto(2_000) if chance.of(faults.message_delayed) else chance.upto(15)
        self._scheduler.through(channel, delay_ms, None, self._append, message)
        if chance.of(faults.message_repeated):
            self._scheduler.at(delay_ms + chance.upto(6_000), None, self._append, message)

    def attach(self, process: Process, hear: Hearer) -> Reader:
        """A new reader begins with the tail of what is there."""
        reader = Reader(process, hear)
        self.readers = [r for r in self.readers if r.process.alive]
        self.readers.append(reader)
        self._replay(reader)
        return reader

    def replay(self, reader: Reader) -> None:
        """The reader lost its position: it reads the tail again."""
        self._note(reader.process.name, "replays", None)
        self._replay(reader)

    def recreate(self) -> None:
        """The topic is deleted and made again: whatever was not read yet is gone."""
        self._note("bus", "recreated", None)
        self._log.clear()
        self._life += 1

    def _replay(self, reader: Reader) -> None:
        for message in self._log[-TAIL:]:
            self._deliver_later(reader, message)

    def _append(self, message: Message) -> None:
        self._note("bus", "log", message)
        self._log.append(message)
        for reader in self.readers:
            self._deliver_later(reader, message)

    def _deliver_later(self, reader: Reader, message: Message) -> None:
        slow = self._chance.of(self._faults().reader_slow)
        delay_ms = self._chance.upto(1_500) if slow else 1
        self._scheduler.through(
            reader.channel, delay_ms, reader.process, self._deliver, reader, message, self._life
        )

    def _deliver(self, reader: Reader, message: Message, life: int) -> None:
        if life != self._life and not isinstance(message.body, RunAnnounce):
            return
        key = (message.incarnation, message.sequence)
        again = key in reader.seen
        reader.seen.add(key)
        reader.highest_epoch = max(reader.highest_epoch, message.epoch)
        reader.hear(message, again=again)
