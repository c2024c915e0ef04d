"""Letters go back to their source topics: each at most once, whoever is killed, and whoever else tries.

A transaction of Kafka's holds records that are sent back, and their marks. Its transactional id belongs to
the dead-letter topic, so that whoever begins ends all others, and what they had open is aborted: what is
marked is read after that, and by then nobody else can mark any more. Whoever is killed has sent what it has
marked, and no more.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from control_topic.clocks import wall_ms
from control_topic.spelling import some
from lockstep.brokers.questions import PROPERTIES_REFUSED
from lockstep.errors import Failed
from lockstep.letters.letter import Letter
from lockstep.letters.marks import By, SentBack, mark_topic, mark_value

_client_log = logging.getLogger(f"{__name__}.librdkafka")

ID_PREFIX = "lockstep-replay-"
TRANSACTION_S = 60
"""So long may one be open: a source partition's readers wait for what a killed replay has left open."""
DELIVERY_S = 20
BEGIN_S = 90.0
"""Longer than a transaction may be open, which somebody else may have left so."""
COMMIT_S = 45.0
ABORT_S = 15.0
POLL_S = 0.1
MARK_PARTITION = 0
BATCH_BYTES_MAX = 1_000_000
BATCH_HEAD_BYTES = 1_024
FENCED = frozenset(
    {
        KafkaError._FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
        KafkaError.INVALID_TXN_STATE,
        KafkaError.PRODUCER_FENCED,
    }
)
"""Somebody else has begun, or the broker has ended a transaction that stood still for too long."""
NO_RIGHTS = frozenset(
    {
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """`by_key`: the key chooses the source partition, as for producers of Java's; else it is the same as
    before. `new_time`: the record has the time of its sending; else it has its own.
    """

    by_key: bool = False
    new_time: bool = False


def producer_settings(
    kafka: Mapping[str, str], dead_letter_topic: str, *, message_bytes_max: int = 0
) -> dict[str, Any]:
    """librdkafka's, for letters of this topic. `message_bytes_max`: what the topics take, 0 where that is not
    known: a batch that is larger is refused as a record is.
    """
    batch_bytes = max(1, min(BATCH_BYTES_MAX, (message_bytes_max or BATCH_BYTES_MAX) - BATCH_HEAD_BYTES))
    return {
        "linger.ms": 5,
        "compression.type": "lz4",
        "partitioner": "murmur2_random",
        **kafka,
        "acks": "all",
        "enable.idempotence": True,
        "transactional.id": f"{ID_PREFIX}{dead_letter_topic}",
        "transaction.timeout.ms": TRANSACTION_S * 1_000,
        "delivery.timeout.ms": DELIVERY_S * 1_000,
        "message.max.bytes": 1_000_000_000,
        "batch.size": batch_bytes,
        "queue.buffering.max.kbytes": 2_097_151,
        "allow.auto.create.topics": False,
        "log_level": 0,  # what it says is in the errors
    }


class Replay:
    """Of one dead-letter topic, whose topic of marks is there. Not for several threads. Raises `Failed`."""

    def __init__(
        self,
        kafka: Mapping[str, str],
        dead_letter_topic: str,
        by: By,
        how: How | None = None,
        *,
        message_bytes_max: int = 0,
    ) -> None:
        self._topic, self._by, self._how = dead_letter_topic, by, how or How()
        self._open = False
        self._sent = 0
        self._heard: KafkaError | None = None
        try:
            settings = producer_settings(kafka, dead_letter_topic, message_bytes_max=message_bytes_max)
            self._producer = Producer({**settings, "error_cb": self._hear}, logger=_client_log)
        except KafkaException as error:
            raise Failed(PROPERTIES_REFUSED) from error

    def _hear(self, error: KafkaError) -> None:
        """For instance that no broker answers, which nothing else says."""
        self._heard = error

    def begin(self) -> None:
        """From here on nobody else sends letters of this topic. To be called before marks are read."""
        try:
            _again(self._producer.init_transactions, BEGIN_S)
        except KafkaException as error:
            raise self._failed(error.args[0], "Nothing was sent.") from error

    def send(self, letters: Sequence[Letter]) -> list[SentBack]:
        """All of them and their marks, or none. Where each went."""
        try:
            self._producer.begin_transaction()
        except KafkaException as error:
            raise self._failed(error.args[0], self._so_far()) from error
        self._open = True
        try:
            went = self._records(letters)
            self._marks(letters, went)
        except Failed:
            self._abort()
            raise
        self._commit(letters)
        self._sent += len(letters)
        return went

    def close(self) -> None:
        """What is open is aborted."""
        if self._open:
            with suppress(Failed):
                self._abort()

    def _records(self, letters: Sequence[Letter]) -> list[SentBack]:
        now_ms = wall_ms()
        answers = _Answers(len(letters))
        for place, letter in enumerate(letters):
            self._produce(
                answers,
                place,
                topic=letter.partition.topic,
                value=letter.value,
                key=letter.key,
                headers=list(letter.headers),
                partition=-1 if self._how.by_key else letter.partition.number,
                timestamp=now_ms if self._how.new_time else max(0, letter.timestamp_ms),
            )
        self._wait(answers, [letter.name for letter in letters], "its source topic")
        return [
            SentBack(number=number, offset=offset, time_ms=now_ms)
            for number, offset in answers.places.values()
        ]

    def _marks(self, letters: Sequence[Letter], went: Sequence[SentBack]) -> None:
        answers = _Answers(len(letters))
        for place, (letter, where) in enumerate(zip(letters, went, strict=True)):
            self._produce(
                answers,
                place,
                topic=mark_topic(self._topic),
                value=mark_value(letter, where, self._by),
                key=letter.mark.encode(),
                partition=MARK_PARTITION,
            )
        self._wait(answers, [f"the mark of {letter.name}" for letter in letters], mark_topic(self._topic))

    def _produce(self, answers: _Answers, place: int, **record: Any) -> None:
        while True:
            try:
                return self._producer.produce(**record, on_delivery=answers.taker(place))
            except BufferError:
                self._poll()
            except KafkaException as error:
                return answers.fail(place, error.args[0])

    def _wait(self, answers: _Answers, names: Sequence[str], where: str) -> None:
        """Until all are taken."""
        until_s = time.monotonic() + DELIVERY_S + ABORT_S
        while answers.left and not answers.failed and time.monotonic() < until_s:
            self._poll()
        if answers.failed:
            place, error = next(iter(answers.failed.items()))
            raise self._failed(error, f"{names[place]} is not taken by {where}. {self._so_far()}")
        if answers.left:
            why = f": {self._heard.str()}" if self._heard is not None else ""
            raise Failed(f"The broker does not take {names[0]} within {DELIVERY_S} s{why}. {self._so_far()}")

    def _poll(self) -> None:
        try:
            self._producer.poll(POLL_S)
        except KafkaException as error:  # what is fatal
            raise self._failed(error.args[0], self._so_far()) from error

    def _commit(self, letters: Sequence[Letter]) -> None:
        try:
            _again(self._producer.commit_transaction, COMMIT_S)
        except KafkaException as error:
            reason = error.args[0]
            if reason.txn_requires_abort():
                self._abort()
                raise self._failed(reason, self._so_far()) from error
            self._open = False  # the next to begin ends it, one way or the other
            names = some([letter.name for letter in letters], shown_max=1)
            raise self._failed(
                reason, f"Whether {names} went back with this transaction is not known. {self._so_far()}"
            ) from error
        self._open = False

    def _abort(self) -> None:
        """Raises `Failed` where somebody else has done so."""
        self._open = False
        try:
            _again(self._producer.abort_transaction, ABORT_S)
        except KafkaException as error:
            if error.args[0].code() in FENCED or error.args[0].fatal():
                raise self._failed(error.args[0], self._so_far()) from error

    def _so_far(self) -> str:
        before = f"{self._sent:,} were sent before" if self._sent else "None was sent before"
        return f"{before}; begin again: what went back is marked, and is not sent twice."

    def _failed(self, error: KafkaError, then: str) -> Failed:
        code = error.code()
        if code in FENCED or error.fatal():
            why = (
                f"Another replay of {self._topic} has begun and ended this one, or this one stood still for "
                "more than "
                f"{TRANSACTION_S} s."
            )
        elif code in NO_RIGHTS:
            why = (
                f"These credentials may not send letters of {self._topic} back: {error.str()}. Wanted are "
                "Write on the "
                f"source topics and {mark_topic(self._topic)}, and Write on the transactional id "
                f"{ID_PREFIX}{self._topic}."
            )
        else:
            heard = f" ({self._heard.str()})" if self._heard is not None and error.retriable() else ""
            why = f"Letters of {self._topic} were not sent back: {error.str()}{heard}."
        return Failed(f"{why} {then}")


class _Answers:
    """To records of one transaction, by their places."""

    def __init__(self, count: int) -> None:
        self.left = count
        self.failed: dict[int, KafkaError] = {}
        self.places: dict[int, tuple[int, int]] = dict.fromkeys(range(count), (-1, -1))

    def fail(self, place: int, error: KafkaError) -> None:
        self.left -= 1
        self.failed[place] = error

    def taker(self, place: int) -> Callable[[KafkaError | None, Message], None]:
        def take(error: KafkaError | None, record: Message) -> None:
            if error is not None:
                return self.fail(place, error)
            self.left -= 1
            self.places[place] = (record.partition() or 0, record.offset() or 0)
            return None

        return take


def _again(call: Callable[[float], Any], at_most_s: float) -> None:
    """Until it is done, fails for good, or the time is over. librdkafka waits between tries of its own."""
    until_s = time.monotonic() + at_most_s
    while True:
        try:
            call(max(1.0, until_s - time.monotonic()))
            return
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() >= until_s:
                raise
            time.sleep(POLL_S)
