"""A stranger who may write to the control topic: forged messages, and true ones said again."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition
from confluent_kafka import Message as Record

from control_topic.codec import MessageDecoder, encode
from control_topic.messages import (
    AbortCommit,
    AckCommit,
    Body,
    CoordinatorClaim,
    EndCommit,
    Halt,
    Message,
    Offsets,
    ParticipantJoin,
    ParticipantLeave,
    ParticipantReady,
    Range,
    RunAnnounce,
    StartCommit,
    WriteStatus,
)
from control_topic.trust import HEADER
from tests.faults import commits
from tests.faults.acts import CALM_PER_SECOND, goes_on, proved
from tests.faults.commits import wall_ms
from tests.faults.environment_kafka import control_topic
from tests.faults.scenario import Notes, Outcome, Scenario, put
from tests.faults.stage import Stage
from tests.harness import await_that

EPOCH_MAX = 2**63 - 1
SEQUENCE = 2**62
FORGED_S = 12.0
RECORDED_MAX = 400
REPLAY_EVERY_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgery:
    """A body in the name of whoever said `whose`, of this epoch, with a sequence number so much later."""

    whose: Message
    body: Body
    epoch: int
    later: int = SEQUENCE


Answer = Callable[[Message], Iterable[Forgery]]
"""What the stranger says when it hears a message."""


class Stranger:
    """Reads the control topic and writes to it, with no key.

    `replays`: whatever it has read is written again from time to time, byte by byte, mark and all.
    """

    def __init__(self, stage: Stage, answer: Answer, *, replays: bool = False) -> None:
        kafka = {"bootstrap.servers": stage.broker.bootstrap_servers}
        self._topic = control_topic(stage)
        self._answer = answer
        self._replays = replays
        self._producer = Producer(kafka)
        settings = {**kafka, "group.id": "a-stranger", "enable.auto.commit": False}
        self._reader = Consumer(settings)
        self._reader.assign([TopicPartition(self._topic, 0, OFFSET_END)])
        self._stopping = threading.Event()
        self._recorded: list[tuple[bytes, list[tuple[str, bytes]]]] = []
        self._own: set[bytes] = set()
        self.written = 0
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="stranger", daemon=True)

    def __enter__(self) -> Stranger:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(30)
        assert self._producer.flush(30) == 0
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        decoder, repeat_at = MessageDecoder(), 0.0
        try:
            while not self._stopping.is_set():
                for record in self._reader.consume(100, 0.02):
                    self._hear(decoder, record)
                if self._replays and self._recorded and time.monotonic() > repeat_at:
                    self._write(*secrets.choice(self._recorded))
                    repeat_at = time.monotonic() + REPLAY_EVERY_S
        except BaseException as error:  # noqa: BLE001 - raised again where the scenario ends
            self.error = error
        finally:
            self._reader.close()

    def _hear(self, decoder: MessageDecoder, record: Record) -> None:
        raw = record.value()
        if raw is None or raw in self._own:
            return
        message = decoder.feed(raw)
        if isinstance(message, Message):
            self._recorded = [*self._recorded[-RECORDED_MAX:], (raw, list(record.headers() or ()))]
            self._own.update(raw for raw, _ in self._recorded)  # heard again, it is a replay of ours
            for forgery in self._answer(message):
                self._write(_forged(forgery), [(HEADER, secrets.token_bytes(32))])

    def _write(self, raw: bytes, headers: list[tuple[str, bytes]]) -> None:
        self._own.add(raw)
        self._producer.produce(self._topic, raw, partition=0, headers=headers)
        self._producer.poll(0)
        self.written += 1


def _forged(forgery: Forgery) -> bytes:
    """In the name of somebody who is there, as if it were the newest thing that it says."""
    whose = forgery.whose
    message = replace(
        whose,
        epoch=forgery.epoch,
        sequence=whose.sequence + forgery.later,
        sent_at_ms=wall_ms(),
        body=forgery.body,
    )
    return encode(message)[0]


class ForgedReports:
    """Forges what the writers of each transaction report: nothing written, and read to the log's end."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._start: StartCommit | None = None
        self._ends: Offsets = {}
        self._said: dict[str, Message] = {}

    def __call__(self, heard: Message) -> Iterator[Forgery]:
        if isinstance(heard.body, StartCommit):
            self._start = heard.body
            self._ends = commits.log_ends(
                self._stage.broker.bootstrap_servers,
                self._stage.pipeline.topic,
                self._stage.pipeline.partitions,
            )
        elif isinstance(heard.body, EndCommit) and self._start is not None:
            for who in sorted(set(self._start.writers.values()) & self._said.keys()):
                status = WriteStatus(transaction=heard.body.transaction, ranges=self._ranges(who))
                yield Forgery(whose=self._said[who], body=status, epoch=heard.epoch, later=1)
        else:
            self._said[heard.incarnation] = heard

    def _ranges(self, who: str) -> tuple[Range, ...]:
        assert self._start is not None
        committed, writers = self._start.committed, sorted(self._start.writers.items())
        return tuple(
            Range(partition=p, start=committed.get(p, 0), next=self._ends[p])
            for p, writer in writers
            if writer == who
        )


def forged_answers(heard: Message) -> Iterator[Forgery]:
    """Whatever is said is answered in its sender's name with what would stop, fence or mislead somebody."""
    said = partial(Forgery, whose=heard)
    if isinstance(heard.body, ParticipantJoin | ParticipantReady):
        yield said(body=ParticipantReady(), epoch=EPOCH_MAX)
        yield said(body=ParticipantReady(), epoch=EPOCH_MAX - 2)
        yield said(body=ParticipantLeave(partitions=()), epoch=heard.epoch)
    elif isinstance(heard.body, StartCommit):
        start, reason = heard.body, "a stranger says so"
        far = {p: offset + 1_000_000 for p, offset in start.committed.items()}
        ack = AckCommit(transaction=start.transaction, instant=start.instant, committed=far)
        yield said(body=Halt(reason=reason), epoch=heard.epoch)
        yield said(body=AbortCommit(transaction=start.transaction, reason=reason), epoch=heard.epoch)
        yield said(body=ack, epoch=heard.epoch)
        yield said(body=CoordinatorClaim(), epoch=EPOCH_MAX)
        yield said(body=CoordinatorClaim(), epoch=heard.epoch + 1)
        yield said(body=RunAnnounce(table_epoch=EPOCH_MAX, started_at_ms=EPOCH_MAX), epoch=heard.epoch)


def _reports_forged(stage: Stage) -> Notes:
    with Stranger(stage, ForgedReports(stage)) as stranger:
        _while_forged(stage, stranger)
    return {"forged": stranger.written}


def _while_forged(stage: Stage, stranger: Stranger) -> None:
    """Commits go on all the while, or the load's records could not be told from what is held up."""
    until = time.monotonic() + FORGED_S
    await_that("forged messages", lambda: stranger.written > 0, deadline_s=60)
    while time.monotonic() < until:
        stage.await_commit_after(wall_ms())


def _everything_forged(stage: Stage) -> Outcome:
    run = stage.start(per_second=CALM_PER_SECOND)
    with Stranger(stage, forged_answers, replays=True) as stranger:
        _while_forged(stage, stranger)
        recovery_s = stage.recovery_s(wall_ms())
        assert run.stop() == 0, run.text()[-4_000:]
        stage.restart()  # its tail of the topic is full of what was forged
        stage.await_commit_after(wall_ms())
    return proved(stage, stage.current, recovery_s=recovery_s, forged=stranger.written)


put(
    "Kafka",
    Scenario(
        "forged_write_statuses",
        "whoever may write to the control topic reports, in the workers' names and before them, that they "
        "have read to the log's end and written nothing",
        "nobody takes it for the workers' word: not one record is missing",
        partial(goes_on, fault=_reports_forged),
        20,
    ),
    Scenario(
        "forged_messages_of_every_kind",
        "whoever may write to the control topic answers everything with forged HALTs, ABORTs, ACKs, claims "
        "and READYs of the last epochs that there are, and repeats what others have said",
        "it costs time and no more; the next run starts as ever",
        _everything_forged,
        20,
        in_tests=True,
    ),
)
