"""Messages from behind authentication: every field at its extremes, against cores that are running.

Whoever has the run's key can say anything, a worker with a bug for one. No message may end a thread: neither
by what a core raises, nor by what it wants to say and nobody could write.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message as ProtoMessage

from control_topic.causes import COMMIT_PARTS
from control_topic.codec import encode
from control_topic.messages import EPOCH_LEAD_MAX, Message, SourcePartition
from control_topic.stubs import control_pb2 as pb
from control_topic.transport import Received, Receiver
from control_topic.trust import Trust, mark
from coordinator import events as cev
from coordinator.core import Coordinator
from lockstep.watch.topic_lines import as_json, as_text
from participant import events as pev
from participant.core import Participant
from table.checks import assemble
from table.errors import Refused
from table.service.ledger import Ledger
from table.state import TableState, decode
from table.state import encode as encode_state
from tests.fuzz.target import Target, require

KEY = bytes(range(32))
PIPELINE, RUN, COORDINATOR, WORKER = "p", "r", "c", "w0"
PARTITIONS = (SourcePartition("events", 0), SourcePartition("events", 1))
TABLE_EPOCHS = (0, 5, 2**63 - 3)
TRANSACTIONS = ("n0", "n1", "n2")
TEXTS = ("", *TRANSACTIONS, "events", "events", WORKER, COORDINATOR, "\x00", "é\U0001f600", "x" * 3_000)
EXTREMES = {
    FieldDescriptor.TYPE_UINT32: (0, 0, 1, 1, 2, 2**31 - 1, 2**31, 2**32 - 1),
    FieldDescriptor.TYPE_UINT64: (0, 0, 1, 3, 2**31, 2**63 - 1, 2**63, 2**64 - 1),
    FieldDescriptor.TYPE_INT64: (-(2**63), -1, 0, 1, 2**63 - 1),
    FieldDescriptor.TYPE_SINT64: (-(2**63), -(2**63) + 1, -1, 0, 1, 2**63 - 1),
    FieldDescriptor.TYPE_FIXED64: (0, 1, 2**63, 2**64 - 1),
    FieldDescriptor.TYPE_STRING: TEXTS,
}
STEP_MS = (0, 1, 50, 1_000, 60_000, 10**12)

Step = tuple[str, Any]
"""A record's value, or what else happens: ("message", bytes), ("tick", ms), ("answer", result), …"""


def _fill(random: Random, message: ProtoMessage, length: int) -> None:
    """Every field, at its extremes. Parallel arrays are mostly as long as each other."""
    for field in message.DESCRIPTOR.fields:
        repeated = field.is_repeated
        entry = field.message_type
        if entry is not None and entry.GetOptions().map_entry:
            words = random.sample((*COMMIT_PARTS, WORKER, COORDINATOR, *TEXTS[-3:]), length)
            values = EXTREMES[entry.fields_by_name["value"].type]
            getattr(message, field.name).update({word: random.choice(values) for word in words})
            continue
        count = (length if random.random() < 0.95 else 3) if repeated else 1
        for _ in range(count):
            if field.type == FieldDescriptor.TYPE_MESSAGE:
                target = getattr(message, field.name)
                _fill(random, target.add() if repeated else target, random.choice((0, 1, 1, 2)))
                continue
            value: Any = random.choice(EXTREMES[field.type])
            if repeated:
                getattr(message, field.name).append(value)
            else:
                setattr(message, field.name, value)


def _record(random: Random, table_epoch: int) -> bytes:
    kinds = pb.Body.DESCRIPTOR.oneofs_by_name["kind"].fields
    body = pb.Body()
    kind = getattr(body, random.choice(kinds).name)
    kind.SetInParent()
    _fill(random, kind, random.choice((0, 1, 1, 2)))
    if random.random() < 0.7 and "transaction" in kind.DESCRIPTOR.fields_by_name:
        kind.transaction = random.choice(TRANSACTIONS)
    raw = body.SerializeToString()
    reach = table_epoch + EPOCH_LEAD_MAX
    epochs = (0, table_epoch, table_epoch + 1, table_epoch + 2, reach, reach + 1, 2**63 - 1, 2**64 - 1)
    return pb.Envelope(
        version=1,
        pipeline=random.choice((PIPELINE, PIPELINE, PIPELINE, random.choice(TEXTS))),
        run=random.choice((RUN, RUN, RUN, random.choice(TEXTS))),
        epoch=random.choice(epochs) if random.random() < 0.04 else random.choice(epochs[:2]),
        sender=random.choice(TEXTS),
        incarnation=random.choice((WORKER, COORDINATOR, "w1", "w2", random.choice(TEXTS))[:2000]),
        sequence=random.choice((random.randrange(1_000), *EXTREMES[FieldDescriptor.TYPE_UINT64])),
        sent_at_ms=random.choice(EXTREMES[FieldDescriptor.TYPE_INT64]),
        parts=1,
        digest=hashlib.sha256(raw).digest(),
        body=raw,
    ).SerializeToString()


def make_life(random: Random, size: int) -> dict[str, Any]:
    """What befalls a coordinator and a participant, in order."""
    table_epoch = random.choice(TABLE_EPOCHS)
    steps: list[Step] = []
    results = [result.value for result in cev.Result]
    while len(steps) < size:
        match random.randrange(16):
            case 0 | 1:
                steps.append(("tick", random.choice(STEP_MS)))
            case 2 | 3 | 4:
                steps.append(("answer", random.choice(("ok", "ok", "ok", "committed", *results))))
            case 5 | 6 | 7:
                steps.append(("read", ""))
            case 8 | 9:
                steps.append(("buffer", random.randrange(len(PARTITIONS))))
            case 10 | 11:
                steps.append(("flush", ""))
            case _:
                steps.append(("message", _record(random, table_epoch)))
    return {"table_epoch": table_epoch, "steps": steps}


def check_life(case: dict[str, Any]) -> int:
    life = _Life(case["table_epoch"])
    for what, value in case["steps"]:
        getattr(life, what)(value)
    return len(case["steps"])


class _Life:
    """The cores of one worker, and a driver's ledger, fed by one reader with the run's trust."""

    def __init__(self, table_epoch: int) -> None:
        self.table_epoch = table_epoch
        trust = Trust(pipeline=PIPELINE, run=RUN, key=KEY, table_epoch=table_epoch)
        self.receiver = Receiver(pipeline=PIPELINE, surface_parts=False, trust=trust)
        self.shown = Receiver(pipeline="", surface_parts=True)
        self.ledger = Ledger(run=RUN, now_ms=0)
        self.now_ms = 0
        self.nonces = 0
        self.flushes: list[int] = []
        self.said: list[tuple[str, Any, int]] = []
        self.new_coordinator()
        self.new_participant()

    # --- what befalls them ------------------------------------------------------------------------

    def message(self, raw: bytes) -> None:
        offset = self.nonces
        times = EXTREMES[FieldDescriptor.TYPE_INT64]
        time_ms = times[len(raw) % len(times)]
        shown = self.shown.receive(offset=offset, time_ms=time_ms, raw=raw, mac=mark(KEY, raw))
        assert shown is not None
        as_json(shown), as_text(shown)
        if isinstance(shown.content, Message):
            self._tell_ledger(shown.content.epoch)
        received = self.receiver.receive(offset=offset, time_ms=0, raw=raw, mac=mark(KEY, raw))
        self._hear(received)

    def tick(self, ms: int) -> None:
        self.now_ms += ms
        self.coordinate(cev.Tick(now_ms=self.now_ms, nonce=self.nonce()))
        self.participate(pev.Tick(now_ms=self.now_ms))

    def answer(self, result: str) -> None:
        call = self.coordinator.pending
        if call is None or self.coordinator.machine.retry_ms is not None:
            return  # nothing is out
        if isinstance(call, cev.Commit):
            self._check_commit(call)
        self.coordinate(
            cev.Completed(
                now_ms=self.now_ms,
                nonce=self.nonce(),
                call=call.call,
                result=cev.Result(result),
                instant="i",
                epoch=self.table_epoch,
                committed=dict.fromkeys(PARTITIONS, 3),
                partitions=frozenset(PARTITIONS),
                took_ms={"write": 2**63 - 1, "lock": 0},
            )
        )

    def read(self, _value: str) -> None:
        """What coordinator and participant have said is read back."""
        said, self.said = self.said, []
        for who, body, epoch in said:
            for raw in encode(self._message(body, epoch, who)):
                self._hear(self.receiver.receive(offset=0, time_ms=0, raw=raw, mac=mark(KEY, raw)))

    def buffer(self, number: int) -> None:
        owned = self.participant.owned.get(PARTITIONS[number])
        if owned is not None and owned.resolved and owned.next < 2**62:
            self.participate(
                pev.Buffered(
                    now_ms=self.now_ms,
                    partition=PARTITIONS[number],
                    generation=owned.generation,
                    start=owned.next,
                    next=owned.next + 4,
                    records=3,
                    size_bytes=30,
                )
            )

    def flush(self, _value: str) -> None:
        for _ in range(len(self.flushes)):
            if self.flushes:  # a participant that has ended is owed no answer
                self.participate(pev.Flushed(now_ms=self.now_ms, call=self.flushes.pop(0)))

    # --- the cores --------------------------------------------------------------------------------

    def new_coordinator(self) -> None:
        settings = cev.Settings(
            pipeline=PIPELINE, run=RUN, incarnation=COORDINATOR, interval_ms=1_000, write_timeout_ms=5_000
        )
        self.coordinator = Coordinator(settings)
        epoch = self.receiver.highest_epoch
        self.coordinate(cev.Launch(now_ms=self.now_ms, nonce=self.nonce(), topic_epoch=epoch))
        self.answer("ok")

    def new_participant(self) -> None:
        settings = pev.Settings(
            pipeline=PIPELINE, run=RUN, incarnation=WORKER, interval_ms=1_000, memory_bytes_max=500
        )
        self.participant = Participant(settings)
        self.flushes.clear()
        self.participate(pev.Assigned(now_ms=self.now_ms, offsets=dict.fromkeys(PARTITIONS, 3)))

    def nonce(self) -> str:
        self.nonces += 1
        return TRANSACTIONS[self.nonces % len(TRANSACTIONS)]

    def coordinate(self, event: cev.Event) -> None:
        actions = self.coordinator.handle(event)
        self._speak(actions, COORDINATOR)
        if any(isinstance(action, cev.Stop) for action in actions):
            self.new_coordinator()

    def participate(self, event: pev.Event) -> None:
        actions = self.participant.handle(event)
        self._speak(actions, WORKER)
        self.flushes += [action.call for action in actions if isinstance(action, pev.Flush)]
        if any(isinstance(action, pev.Stop) for action in actions):
            self.new_participant()

    def _hear(self, received: Received | None) -> None:
        if received is None or not isinstance(received.content, Message):
            return
        message = received.content
        self.coordinate(cev.Received(now_ms=self.now_ms, nonce=self.nonce(), message=message))
        self.participate(pev.Received(now_ms=self.now_ms, message=message))

    def _speak(self, actions: Iterable[Any], who: str) -> None:
        """Whatever a core wants said can be written."""
        for action in actions:
            if isinstance(action, cev.Send | pev.Send):
                encode(self._message(action.body, action.epoch, who))
                self.said.append((who, action.body, action.epoch))

    def _message(self, body: Any, epoch: int, who: str) -> Message:
        self.nonces += 1
        return Message(
            pipeline=PIPELINE,
            run=RUN,
            epoch=epoch,
            sender=who,
            incarnation=who,
            sequence=self.nonces,
            sent_at_ms=0,
            body=body,
        )

    # --- the driver -------------------------------------------------------------------------------

    def _tell_ledger(self, epoch: int) -> None:
        """Whatever epoch is asked for, it leads what is known by no more than it may."""
        known = max(self.ledger.highest_epoch, self.table_epoch)
        if self.ledger.register(epoch, COORDINATOR, self.table_epoch):
            require(epoch <= known + EPOCH_LEAD_MAX, "an epoch that is nobody's is registered", epoch)
        newest = _state(self.table_epoch)
        if not self.ledger.fence(epoch)(newest):
            require(epoch <= newest.epoch + EPOCH_LEAD_MAX, "an epoch that is nobody's may commit", epoch)

    def _check_commit(self, call: cev.Commit) -> None:
        """It is refused in a sentence, or can be stored and read again."""
        for rows_are_records in (True, False):
            try:
                plan = assemble(
                    call.transaction, call.expected, call.statuses, rows_are_records=rows_are_records
                )
            except Refused as refused:
                require(bool(str(refused)), "refused without a word", call)
                continue
            state = replace(_state(call.epoch), offsets=plan.offsets, ranges=plan.ranges, lost=plan.lost)
            again = decode(encode_state(state))
            require(again == state, f"{state} reads {again} when it is read again", call)


def _state(epoch: int) -> TableState:
    return TableState(pipeline=PIPELINE, run=RUN, epoch=epoch, transaction="t", offsets={})


TARGETS = (
    Target(
        name="running cores",
        promise="no message of somebody with the key ends a core, or makes it say what nobody can write",
        make=make_life,
        check=check_life,
        size=300,
        seeds=20,
    ),
)
