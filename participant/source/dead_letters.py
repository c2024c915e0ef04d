"""Rejected records go to the dead-letter topic, durable before their offset can move.

A dead letter is the record as it came: its value, its headers, and in headers of ours its key, its timestamp,
where it was and why it is no row. Its own key is `topic-partition-offset`: it is sent at least once, and a
reader tells by it what was sent again. Its own timestamp is when it was rejected, so that the topic's
retention counts from there, however old the record is.

They are sent in pieces, and what the broker has of them counts at once: however slow the topic is, whoever
waits sees that it gets on, and nothing that it has taken is sent a second time by the same worker.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from confluent_kafka import KafkaError

from control_topic.messages import SourcePartition
from participant.errors import DeadLetterError, DeadLetterRefused, DeadLetterUnavailable
from participant.records.rejects import HeldRejects
from participant.source.letter_senders import (
    BATCH_BYTES_MAX,
    PIECE_RECORDS_MAX,
    PIECES_MAX,
    PieceAnswer,
    Sender,
    open_sender,
    producer_settings,
)

SILENCE_S = 30.0
"""So long may the broker take nothing. A worker may be silent for longer: so it is said what is silent."""
LOOK_S = 0.1
RECORD_BYTES = 1_024
"""What librdkafka holds of a record beyond its content: the message, a list of headers and their copies."""
FIRST_BYTES = 128 * 1_024
PIECES = 4
"""A piece is so small a part of what may be on its way, so that there is always another one to be taken."""
TOO_LARGE = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE})
OF_A_BATCH = TOO_LARGE | {KafkaError.INVALID_RECORD, KafkaError.POLICY_VIOLATION}
"""Said of a whole batch: which of its records is meant, or none, shows when each is sent alone."""
FINAL = OF_A_BATCH | {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED}
"""What every fresh worker would be told again, until somebody changes the topic or the rights."""
PASSING = frozenset(
    {
        KafkaError._MSG_TIMED_OUT,
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.UNKNOWN_TOPIC_ID,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.THROTTLING_QUOTA_EXCEEDED,
    }
)
"""The broker's fault, or that of the way to it: what is waited out as an outage is."""
MESSAGE_BYTES_DEFAULT = 1_048_588
"""Kafka's, of a topic that says nothing."""
MESSAGE_BYTES_MAX = 2**31 - 1


def wanted_bytes(size_bytes: int) -> int:
    """What a topic is to take so that a record of this size passes; never less than Kafka's own default."""
    return min(MESSAGE_BYTES_MAX, max(2 * size_bytes + 65_536, MESSAGE_BYTES_DEFAULT))


class Window:
    """How many bytes may be on their way: no more than are answered within some seconds. Times in seconds.

    What is answered sooner than `quick_s` after it was sent lets it grow, later than `slow_s` shrink: once
    for all that was on its way meanwhile.
    """

    def __init__(self, bytes_max: int, *, quick_s: float, slow_s: float) -> None:
        self._least, self._most = min(FIRST_BYTES, bytes_max), bytes_max
        self._quick_s, self._slow_s = quick_s, slow_s
        self._changed_s = 0.0
        self.size_bytes = self._least

    def answered(self, sent_s: float, now_s: float) -> None:
        if sent_s < self._changed_s:
            return
        took_s, before = now_s - sent_s, self.size_bytes
        if took_s < self._quick_s:
            self.size_bytes = min(self._most, 2 * before)
        elif took_s > self._slow_s:
            self.size_bytes = max(self._least, before // 2)
        if self.size_bytes != before:
            self._changed_s = now_s


@dataclass(slots=True)
class _Line:
    """A sender, the number of its next piece, and how many records it has delivered."""

    sender: Sender
    piece: int = 0
    delivered: int = 0


@dataclass(slots=True, kw_only=True)
class _Piece:
    """On its way: all rejects of a source partition from offset `after` to before `next`."""

    number: int
    partition: SourcePartition
    after: int
    next: int
    held: HeldRejects | None
    """Where they are, as `[first, end)`; None where they are no longer wanted."""
    first: int
    end: int
    size_bytes: int
    sent_s: float


class DeadLetters:
    """`topic` empty: `<source topic>.dlq` per source topic.

    `bytes_max`: so many may be on their way at once. `message_bytes_max`: of what the topics take, 0 where
    that is not known. `silence_s`: so long may a topic take nothing before that is an error. `run`: of the
    letters' header `lockstep.run`, which relates them to the commits of that run; empty: they have none.
    """

    def __init__(
        self,
        kafka: Mapping[str, str],
        topic: str,
        *,
        bytes_max: int,
        message_bytes_max: int = 0,
        silence_s: float = SILENCE_S,
        run: str = "",
    ) -> None:
        self._kafka, self._run = kafka, run
        self._topic = topic
        self._silence_s = silence_s
        self._batch_bytes = message_bytes_max or BATCH_BYTES_MAX
        self._batches_too_large = False
        self._window = Window(bytes_max, quick_s=silence_s / 30, slow_s=silence_s / 6)
        self._line: _Line | None = None
        self._pending: deque[_Piece] = deque()
        self._pending_bytes = 0
        self._durable: dict[SourcePartition, int] = {}
        self._heard_s = 0.0
        self._step: Callable[[int], None] = lambda _: None

    def send(self, rejected: Iterable[HeldRejects], step: Callable[[int], None] = lambda _: None) -> None:
        """Send all and wait until the broker has them. `step` is called some times a second with the number
        of records that it has taken since; what it raises ends the waiting.

        Raises `DeadLetterUnavailable` where the topic takes nothing, `DeadLetterRefused` where it never will.
        """
        self._step, self._heard_s = step, time.monotonic()
        handed: dict[SourcePartition, int] = {}
        try:
            self._settle_all()  # what a transaction that was given up has left on its way
            for held in rejected:
                self._hand_over(held, handed)
            self._settle_all()
        finally:
            for piece in self._pending:
                piece.held = None

    def _hand_over(self, held: HeldRejects, handed: dict[SourcePartition, int]) -> None:
        """All that is not `handed` over or durable. What it has on its way is in pieces within the window."""
        partition = held.partition
        ends = np.cumsum(held.record_bytes() + RECORD_BYTES)
        first = int(np.searchsorted(held.offsets, handed.get(partition, self._durable.get(partition, 0))))
        while first < len(held):
            end, size_bytes = self._cut(ends, first)
            while self._pending and (self._batches_too_large or not self._has_room(size_bytes)):
                self._settle()
            line = self._open()
            after = handed.get(partition, self._durable.get(partition, 0))
            piece = _Piece(
                number=line.piece,
                partition=partition,
                after=after,
                next=int(held.offsets[end - 1]) + 1,
                held=held,
                first=first,
                end=end,
                size_bytes=size_bytes,
                sent_s=time.monotonic(),
            )
            line.sender.send(piece.number, self.topic_for(partition), held, first, end)
            line.piece += 1
            self._pending.append(piece)
            self._pending_bytes += size_bytes
            handed[partition], first = piece.next, end

    def _cut(self, ends: npt.NDArray[np.int64], first: int) -> tuple[int, int]:
        """Where a piece that begins there ends, and its bytes; `ends`: the bytes up to each record's end."""
        before = int(ends[first - 1]) if first else 0
        end = int(np.searchsorted(ends, before + self._window.size_bytes // PIECES, side="right"))
        end = min(max(end, first + 1), first + PIECE_RECORDS_MAX)
        return end, int(ends[end - 1]) - before

    def _has_room(self, size_bytes: int) -> bool:
        fits = self._pending_bytes + size_bytes <= self._window.size_bytes
        return fits and len(self._pending) < PIECES_MAX - 1

    def _open(self) -> _Line:
        """Made when there is something to send: most workers never have."""
        if self._batches_too_large and not self._pending:
            self.close()
            self._batch_bytes, self._batches_too_large = max(1, self._batch_bytes // 4), False
        if self._line is None:
            settings = producer_settings(self._kafka, batch_bytes_max=self._batch_bytes)
            self._line = _Line(open_sender(settings, self._run))
        return self._line

    def _settle_all(self) -> None:
        while self._pending:
            self._settle()

    def _settle(self) -> None:
        """Wait for the oldest piece."""
        piece, line = self._pending[0], self._open()
        answer = self._answer(line, piece.number, piece.partition)
        self._pending.popleft()
        self._pending_bytes -= piece.size_bytes
        self._window.answered(piece.sent_s, time.monotonic())
        if not answer.failed:
            self._taken(piece)
        elif piece.held is not None:
            if answer.code not in OF_A_BATCH:
                raise self._error(piece.held, piece.first, answer)
            self._send_alone(piece, piece.held)

    def _answer(self, line: _Line, number: int, partition: SourcePartition) -> PieceAnswer:
        while True:
            answer = line.sender.wait(number, LOOK_S)
            taken, line.delivered = answer.delivered - line.delivered, answer.delivered
            now_s = time.monotonic()
            if taken:
                self._heard_s = now_s
            self._step(taken)
            if not answer.left:
                return answer
            if now_s - self._heard_s > self._silence_s:
                raise DeadLetterUnavailable(
                    f"the dead-letter topic {self.topic_for(partition)} has taken no rejected record for "
                    f"{self._silence_s:.0f} s; their offsets do not move. See that the topic is there, that "
                    "each of its partitions has a leader and enough replicas in sync, and that no quota "
                    "(producer_byte_rate) holds this client back"
                )

    def _taken(self, piece: _Piece) -> None:
        """One after another: what lies behind a piece that was not taken is sent again with it."""
        if piece.after <= self._durable.get(piece.partition, 0):
            self._durable[piece.partition] = piece.next

    def _send_alone(self, piece: _Piece, held: HeldRejects) -> None:
        """Of a batch that was refused each record in a batch of its own; batches are smaller from then on.

        The topic's limit is not always known, and compression may make a batch larger.
        """
        settings = producer_settings(self._kafka, batch_bytes_max=1, alone=True)
        with closing(open_sender(settings, self._run)) as sender:
            sender.send(0, self.topic_for(piece.partition), held, piece.first, piece.end)
            answer = self._answer(_Line(sender), 0, piece.partition)
        if answer.failed:
            raise self._error(held, piece.first, answer)
        self._taken(piece)
        self._batches_too_large = True

    def _error(self, held: HeldRejects, first: int, answer: PieceAnswer) -> DeadLetterError:
        """Of the record that the answer names, in the piece that begins there."""
        partition, topic = held.partition, self.topic_for(held.partition)
        key = f"{partition.topic}-{partition.number}-{held.offsets[first + answer.place]}"
        about = f"the rejected record {key} ({answer.size_bytes:,} bytes)"
        why = KafkaError(answer.code).str()
        if answer.code == KafkaError.MSG_SIZE_TOO_LARGE:
            return DeadLetterRefused(
                f"{about} is larger than the dead-letter topic {topic} takes: its offset does not move. Set "
                f"the topic's max.message.bytes to {wanted_bytes(answer.size_bytes)} (kafka-configs.sh "
                f"--alter --entity-type topics --entity-name {topic} --add-config ...) and start again"
            )
        if answer.code in FINAL:
            return DeadLetterRefused(
                f"{about} is refused by the dead-letter topic {topic}: {why}. Its offset does not move. "
                "Mend the topic or the rights to it, and start again"
            )
        kind = DeadLetterUnavailable if answer.code in PASSING else DeadLetterError
        return kind(
            f"rejected records did not reach the dead-letter topic {topic} ({key}: {why}); their offsets do "
            "not move. See that the topic is there and the broker well"
        )

    def topic_for(self, partition: SourcePartition) -> str:
        return self._topic or f"{partition.topic}.dlq"

    def close(self) -> None:
        """What is on its way is given up."""
        line, self._line = self._line, None
        if line is not None:
            line.sender.close()
