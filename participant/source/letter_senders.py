"""Producers of dead letters, two that do the same: through participant/source/_fetcher.c, and with
confluent-kafka.

What is handed over at once is a piece. Pieces have numbers in a row; each is waited for by its number.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from participant.errors import DeadLetterError, SourceUnreadable
from participant.records.headers import sendable
from participant.records.raw import Values
from participant.records.rejects import HeldRejects
from participant.source.native import native_module, texts

log = logging.getLogger("lockstep.dead_letters")

DELIVERY_S = 600
"""librdkafka's own end of a record that nobody answers. Who waits hears of silence long before."""
BATCH_BYTES_MAX = 1_000_000
PIECES_MAX = 256
"""Of so many pieces in a row the first must be answered before the last is handed over."""
PIECE_RECORDS_MAX = 1 << 20
POLL_S = 0.05


class PieceAnswer(NamedTuple):
    """On one piece."""

    left: int
    """So many of its records are without an answer."""
    failed: int
    """So many have failed. Of the first that did:"""
    code: int
    """librdkafka's."""
    place: int
    """Its index in the piece."""
    size_bytes: int
    """Of its value, key and headers."""
    delivered: int
    """Records of all pieces, ever."""


class Sender(Protocol):
    """Not for several threads. How much may be on its way at once is the caller's to bound."""

    def send(self, piece: int, topic: str, held: HeldRejects, first: int, end: int) -> None:
        """Hand over the records `[first, end)`, as the piece of this number; what fails, its answer says."""

    def wait(self, piece: int, timeout_s: float) -> PieceAnswer:
        """What is known of the piece, once all of it is answered or the time is over."""

    def close(self) -> None:
        """What has no answer yet is given up."""


def producer_settings(
    kafka: Mapping[str, str], *, batch_bytes_max: int, alone: bool = False
) -> dict[str, object]:
    """librdkafka's settings; `alone`: each record is a batch of its own. Headers repeat, and compress well.

    How much may be on its way is bounded by whoever sends, since librdkafka's own queue refuses for ever a
    record that is larger than all of it.

    A topic that somebody deletes is not made by asking for it, with the broker's own retention: the driver
    makes it again, to be kept.
    """
    return {
        "linger.ms": 5,
        "compression.type": "lz4",
        **kafka,
        "acks": "all",
        "enable.idempotence": True,
        "delivery.timeout.ms": DELIVERY_S * 1_000,
        "message.max.bytes": 1_000_000_000,
        "allow.auto.create.topics": False,
        "batch.size": max(1, min(BATCH_BYTES_MAX, batch_bytes_max)),
        "queue.buffering.max.messages": 10_000_000,
        "queue.buffering.max.kbytes": 2_097_151,
        **({"batch.num.messages": 1} if alone else {}),
    }


class NativeSender:
    """Without a Python object per record: the Python side of `Sender` in participant/source/_fetcher.c."""

    def __init__(self, settings: Mapping[str, object], run: str = "") -> None:
        self._module = native_module()
        try:
            self._sender = self._module.Sender(texts(settings), run)
        except self._module.Failure as error:
            raise DeadLetterError(f"the dead letters' producer cannot be made: {error}") from error

    def send(self, piece: int, topic: str, held: HeldRejects, first: int, end: int) -> None:
        self._sender.send(
            piece,
            topic,
            held.partition.topic,
            held.partition.number,
            end - first,
            held.offsets[first:end].tobytes(),
            held.timestamps_ms[first:end].tobytes(),
            held.codes[first:end].tobytes(),
            tuple(reason.encode("utf-8", "replace") for reason in held.reasons),
            _column(held.values, first, end),
            _column(held.keys, first, end),
            _column(held.headers, first, end),
        )

    def wait(self, piece: int, timeout_s: float) -> PieceAnswer:
        return PieceAnswer(*self._sender.wait(piece, int(timeout_s * 1_000)))

    def close(self) -> None:
        self._sender.close()


def _column(column: Values | None, first: int, end: int) -> tuple[bytes, bytes, bytes | None] | None:
    if column is None:
        return None
    nulls = None if column.nulls is None else column.nulls[first:end].tobytes()
    return column.data, column.starts[first : end + 1].tobytes(), nulls


@dataclass(slots=True)
class _Piece:
    """As `PieceAnswer`."""

    left: int = 0
    failed: int = 0
    code: int = 0
    index: int = 0
    size_bytes: int = 0

    def fail(self, code: int, index: int, size_bytes: int) -> None:
        self.failed += 1
        if self.failed == 1:
            self.code, self.index, self.size_bytes = code, index, size_bytes


class PlainSender:
    """With nothing but confluent-kafka."""

    def __init__(self, settings: Mapping[str, object], run: str = "") -> None:
        self._run: list[tuple[str, str | bytes | None]] = [("lockstep.run", run)] if run else []
        self._pieces: dict[int, _Piece] = defaultdict(_Piece)
        self._delivered = 0
        self._producer = Producer(dict(settings), logger=logging.getLogger("lockstep.source"))

    def send(self, piece: int, topic: str, held: HeldRejects, first: int, end: int) -> None:
        if piece < 0 or self._pieces[piece % PIECES_MAX].left:
            raise ValueError("so many pieces may not be on their way")
        told = self._pieces[piece % PIECES_MAX] = _Piece()
        place = f"{held.partition.topic}-{held.partition.number}"
        where: list[tuple[str, str | bytes | None]] = [
            ("lockstep.topic", held.partition.topic),
            ("lockstep.partition", str(held.partition.number)),
        ]
        sizes = held.record_bytes()
        for i in range(first, end):
            key, offset = held.keys[i] if held.keys is not None else None, held.offsets[i]
            headers = [
                *sendable((held.headers[i] if held.headers is not None else None) or b""),
                *where,
                ("lockstep.offset", str(offset)),
                ("lockstep.timestamp", str(held.timestamps_ms[i])),
                *([("lockstep.key", key)] if key is not None else ()),
                ("lockstep.reason", held.reasons[held.codes[i]]),
                *self._run,
            ]
            self._produce(told, i - first, int(sizes[i]), topic, f"{place}-{offset}", held.values[i], headers)

    def _produce(
        self,
        told: _Piece,
        index: int,
        size_bytes: int,
        topic: str,
        key: str,
        value: bytes | None,
        headers: list[tuple[str, str | bytes | None]],
    ) -> None:
        def delivered(error: KafkaError | None, _: Message) -> None:
            told.left -= 1
            if error is None:
                self._delivered += 1
            else:
                told.fail(error.code(), index, size_bytes)

        while True:
            try:
                self._producer.produce(topic, key=key, value=value, headers=headers, on_delivery=delivered)
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                return told.fail(error.args[0].code(), index, size_bytes)
            else:
                told.left += 1
                return None

    def wait(self, piece: int, timeout_s: float) -> PieceAnswer:
        told = self._pieces[piece % PIECES_MAX]
        deadline = time.monotonic() + timeout_s
        self._producer.poll(0)
        while told.left and time.monotonic() < deadline:
            self._producer.poll(POLL_S)
        return PieceAnswer(told.left, told.failed, told.code, told.index, told.size_bytes, self._delivered)

    def close(self) -> None:
        self._producer.purge()
        self._producer.flush(1)


def open_sender(settings: Mapping[str, object], run: str = "") -> Sender:
    """Open the compiled sender where it is built. `run`: of the header `lockstep.run`; empty: no header."""
    try:
        return NativeSender(settings, run)
    except (ImportError, SourceUnreadable) as error:
        log.debug("dead letters are sent by confluent-kafka alone: %s", error)
        return PlainSender(settings, run)
