"""The control topic: a log in total order that loses, repeats and delays, and readers that lag and replay."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from control_topic.codec import MessageDecoder, Unreadable, encode, read_body, read_envelope
from control_topic.messages import (
    AckCommit,
    Body,
    CoordinatorClaim,
    Message,
    RunAnnounce,
    StartCommit,
    WriteStatus,
)
from control_topic.parts import Part
from control_topic.stubs import control_pb2 as pb
from control_topic.trust import Trust, mark
from tests.simulation.clocked import Clocked
from tests.simulation.scheduler import Channel, Process

if TYPE_CHECKING:
    from tests.simulation.world import World

PIPELINE = "p"
TAIL = 40
"""How many records a new reader, or one whose position was lost, reads again."""

IN_PARTS = (StartCommit, WriteStatus, AckCommit)
"""Bodies that grow with the pipeline: where the world has a tiny limit, these travel in parts."""

SAID_KEPT = 60
"""Records that a stranger remembers, and may write again."""


class Record(NamedTuple):
    """What the log holds: a whole message as it is, or one part of one as the codec wrote it.

    `raw`: the bytes that are marked: the part, or what stands for the message. `mac`: their mark.
    """

    content: Message | bytes
    raw: bytes
    mac: bytes
    message: Message


@lru_cache(maxsize=100)
def key_of(run: str) -> bytes:
    """The key that a run's driver draws. Nobody else in the world can know it."""
    return sha256(run.encode()).digest()


mark_once = lru_cache(maxsize=10_000)(mark)
"""The same function, computed once: every reader of a run asks for the mark of every record."""


class ReadersTrust(Trust):
    """Production's, where the readers of a world share what is the same for all of them."""

    def _mark(self, raw: bytes) -> bytes:
        return mark_once(self.key, raw)


read_envelope_once = lru_cache(maxsize=1_000)(read_envelope)
read_body_once = lru_cache(maxsize=1_000)(read_body)
"""The same functions, computed once: every reader of a run decodes every record."""


class ReadersDecoder(MessageDecoder):
    """Production's, where the readers of a world share what is the same for all of them. Each joins parts."""

    def _read_envelope(self, raw: bytes) -> tuple[pb.Envelope, Part]:
        return read_envelope_once(raw)

    def _read_body(self, raw: bytes) -> Body:
        return read_body_once(raw)


def stand_in(message: Message) -> bytes:
    """The bytes that a whole message would be written as, as far as marks care."""
    return f"{message.incarnation}/{message.sequence}".encode()


READ_MS = 5
"""What is appended is read this much later, where the reader is not slow."""


class Reader:
    """One process's view of the log: everything, in order, some time, and perhaps again.

    With `trust`, what is not the run's own word is dropped before anything is made of it.

    `waiting`: what was appended and not read yet: when it is due, the record, its offset and the log's life.
    `position`: the offset that it reads next, in the log's life that it knows.
    """

    def __init__(
        self, process: Process, hear: Callable[[Message], None], decoder: MessageDecoder, trust: Trust | None
    ) -> None:
        self.process = process
        self.trust = trust
        self.hear = hear
        self.decoder = decoder
        self.waiting: deque[tuple[int, Record, int, int]] = deque()
        self.highest_epoch = 0
        self.position = 0
        self.life = 0


class Sender:
    """One sender's producer: in order, with its own sequence numbers."""

    def __init__(self, bus: Bus, process: Clocked, *, run: str, name: str, incarnation: str) -> None:
        self._bus = bus
        self.process = process
        self._run, self._name, self._incarnation = run, name, incarnation
        self.key = key_of(run)
        self._sequence = 0
        self.channel = Channel()
        self.dies_with_process: bool | None = None

    def send(self, body: Body, epoch: int) -> Message:
        message = Message(
            pipeline=PIPELINE,
            run=self._run,
            epoch=epoch,
            sender=self._name,
            incarnation=self._incarnation,
            sequence=self._sequence,
            sent_at_ms=self.process.wall_ms(),
            body=body,
        )
        self._sequence += 1
        self._bus.produce(message, self)
        return message


class Bus:
    """The log and its faults. `part_bytes_max`: the largest body that travels whole, 0 for any."""

    def __init__(self, world: World, *, part_bytes_max: int) -> None:
        self._world = world
        self._scheduler = world.scheduler
        self._chance = world.chance
        self._part_bytes_max = part_bytes_max
        self._log: list[Record] = []
        self._low = 0
        self._life = 0
        self.parts = 0
        self.readers: list[Reader] = []
        self.senders: list[Sender] = []
        self.said: deque[Record] = deque(maxlen=SAID_KEPT)

    # --- what processes do --------------------------------------------------------------------------

    def sender(self, process: Clocked, *, run: str, name: str, incarnation: str) -> Sender:
        sender = Sender(self, process, run=run, name=name, incarnation=incarnation)
        self.senders = [s for s in self.senders if s.process.alive]
        self.senders.append(sender)
        return sender

    def produce(self, message: Message, sender: Sender) -> None:
        if self._part_bytes_max and isinstance(message.body, IN_PARTS):
            records = encode(message, body_bytes_max=self._part_bytes_max)
            self.parts += len(records)
            for part in records:
                self._produce(Record(part, part, mark_once(sender.key, part), message), sender)
        else:
            raw = stand_in(message)
            self._produce(Record(message, raw, mark_once(sender.key, raw), message), sender)

    def _produce(self, record: Record, sender: Sender) -> None:
        message = record.message
        chance, faults = self._chance, self._world.faults
        lost, delayed, repeated = faults.message_lost, faults.message_delayed, faults.message_repeated
        if lost and chance.of(lost) and not isinstance(message.body, RunAnnounce):
            self._world.note("bus", "lost", message)
            return
        delay_ms = chance.upto(2_000) if delayed and chance.of(delayed) else chance.upto(15)
        self._scheduler.through(sender.channel, delay_ms, None, self._append, record, sender)
        if repeated and chance.of(repeated):
            self._scheduler.at(delay_ms + chance.upto(6_000), None, self._append, record, sender)

    def attach(self, process: Process, hear: Callable[[Message], None], trust: Trust | None = None) -> Reader:
        """A new reader begins with the tail of what is there."""
        reader = Reader(process, hear, ReadersDecoder(self._world.cores.assembler()), trust)
        self.readers = [r for r in self.readers if r.process.alive]
        self.readers.append(reader)
        self._replay(reader)
        return reader

    # --- what befalls the topic ---------------------------------------------------------------------

    def replay(self, reader: Reader) -> None:
        """The reader lost its position: it reads the tail again."""
        self._world.note(reader.process.name, "replays", None)
        self._replay(reader)

    def recreate(self) -> None:
        """The topic is deleted and made again: whatever was not read yet is gone."""
        self._world.note("bus", "recreated", None)
        self._log.clear()
        self._low = 0
        self._life += 1

    def truncate(self) -> None:
        """The log's head is removed, perhaps all of it."""
        self.remove_before(self._high - self._chance.upto(5))

    def remove_before(self, offset: int) -> None:
        """Retention: a reader that still wanted what is gone goes on with the tail of what is left."""
        self._world.note("bus", "truncated", None)
        removed = offset - self._low
        if removed > 0:
            del self._log[:removed]
            self._low += removed

    def lose_end(self) -> None:
        """A leader that lacked the newest few records takes over."""
        self.cut_from(self._high - self._chance.upto(3))

    def cut_from(self, offset: int) -> None:
        """The records from `offset` on are gone. Who had read them notices, and reads the tail again."""
        self._world.note("bus", "cut", f"from {offset}")
        self._cut_from(max(self._low, offset))
        for reader in self.readers:
            if reader.life == self._life and reader.position > self._high:
                self._replay(reader)

    def _cut_from(self, offset: int) -> None:
        del self._log[offset - self._low :]
        for reader in self.readers:
            lost = [entry for entry in reader.waiting if entry[3] == self._life and entry[2] >= offset]
            for entry in lost:
                reader.waiting.remove(entry)

    def stall_sender(self) -> None:
        """One sender's messages are held up, in order, while everybody else's pass them."""
        living = [s for s in self.senders if s.process.alive]
        if living:
            sender = self._chance.random.choice(living)
            for_ms = self._chance.upto(5_000)
            self._world.note(sender.process.name, "stalled", f"its messages wait for {for_ms} ms")
            sender.channel.last_ms = max(sender.channel.last_ms, self._scheduler.now_ms + for_ms)

    # --- the log ------------------------------------------------------------------------------------

    @property
    def _high(self) -> int:
        return self._low + len(self._log)

    def _replay(self, reader: Reader) -> None:
        """Whatever still waits is in the tail, or was skipped."""
        reader.waiting.clear()
        tail = self._log[-TAIL:]
        reader.life, reader.position = self._life, self._high - len(tail)
        for offset, record in enumerate(tail, reader.position):
            self._deliver_later(reader, record, offset)

    def _append(self, record: Record, sender: Sender) -> None:
        message = record.message
        if not sender.process.alive and self._died_with(sender) and not isinstance(message.body, RunAnnounce):
            self._world.note("bus", "unsent", message)
            return
        self.said.append(record)
        self.append(record)
        faults = self._world.faults
        if isinstance(message.body, CoordinatorClaim) and self._chance.of(faults.topic_lost_at_claim):
            self._chance.random.choice((self.recreate, self.truncate, self.lose_end))()

    def append(self, record: Record) -> None:
        """Whoever may write can: at the end of the log."""
        message = record.message
        whole = record.content is message
        self._world.note("bus", "log", message if whole else f"a part of {message.type_name}")
        offset = self._high
        self._log.append(record)
        for reader in self.readers:
            self._deliver_later(reader, record, offset)

    def _died_with(self, sender: Sender) -> bool:
        """Whether what a dead process had not sent yet died with it."""
        if sender.dies_with_process is None:
            sender.dies_with_process = self._chance.of(0.5)
        return sender.dies_with_process

    def _deliver_later(self, reader: Reader, record: Record, offset: int) -> None:
        slow = self._world.faults.reader_slow
        delay_ms = self._chance.upto(1_500) if slow and self._chance.of(slow) else READ_MS
        due_ms = self._scheduler.now_ms + delay_ms
        waiting = reader.waiting
        if not waiting:
            self._scheduler.at(delay_ms, reader.process, self._read, reader)
        elif waiting[-1][0] > due_ms:
            due_ms = waiting[-1][0]
        waiting.append((due_ms, record, offset, self._life))

    def _read(self, reader: Reader) -> None:
        waiting, now_ms, deliver = reader.waiting, self._scheduler.now_ms, self._deliver
        while waiting and waiting[0][0] <= now_ms:
            _due_ms, record, offset, life = waiting.popleft()
            deliver(reader, record, offset, life)
        if waiting:
            self._scheduler.at(waiting[0][0] - now_ms, reader.process, self._read, reader)

    def _reaches(self, reader: Reader, offset: int, life: int) -> bool:
        """Whether this reader, where it stands, gets to see a record that was appended for it."""
        if life != self._life:
            return False
        if reader.life != life:
            reader.life = life
            if reader.position > self._high:  # out of range, which is noticed; else nothing is
                reader.position = max(self._low, self._high - TAIL)
        elif reader.position < self._low:
            reader.position = max(self._low, self._high - TAIL)
        if offset < reader.position:
            return False
        reader.position = offset + 1
        return True

    def _deliver(self, reader: Reader, record: Record, offset: int, life: int) -> None:
        if life == self._life == reader.life and offset >= reader.position >= self._low:
            reader.position = offset + 1
        elif not self._reaches(reader, offset, life):
            return
        trust = reader.trust
        if trust is not None and not trust.authentic(record.raw, record.mac):
            return
        message = record.content
        if isinstance(message, bytes):
            content = reader.decoder.feed(message)
            if isinstance(content, Unreadable):
                self._world.note(reader.process.name, "unreadable", content.reason)
            if not isinstance(content, Message):
                return
            message = content
        if trust is not None and trust.objection(message):
            return
        if message.epoch > reader.highest_epoch:
            reader.highest_epoch = message.epoch
        reader.hear(message)
