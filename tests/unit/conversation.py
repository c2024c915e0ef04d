"""Conversations with one core: what its shell promises, in as few words as a test needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from control_topic.messages import (
    AckCommit,
    CoordinatorClaim,
    EndCommit,
    Message,
    Offsets,
    ParticipantJoin,
    ParticipantLeave,
    ParticipantReady,
    Range,
    Reject,
    SourcePartition,
    StartCommit,
    WriteStatus,
)
from coordinator import events as c
from coordinator.core import Coordinator
from participant import events as p
from participant.core import Participant

P0, P1, P2 = (SourcePartition("events", number) for number in range(3))
INTERVAL_MS = 1_000
WRITE_TIMEOUT_MS = 5_000


def message(
    body: Any, *, sender: str, epoch: int = 1, sequence: int = 0, run: str = "run", pipeline: str = "p"
) -> Message:
    return Message(
        pipeline=pipeline,
        run=run,
        epoch=epoch,
        sender=sender,
        incarnation=sender,
        sequence=sequence,
        sent_at_ms=0,
        body=body,
    )


def status(transaction: str, *ranges: tuple[SourcePartition, int, int], **more: Any) -> WriteStatus:
    """A WRITE_STATUS of `(source partition, start, next)`, a record at every offset."""
    return WriteStatus(
        transaction=transaction,
        ranges=tuple(Range(partition=q, start=s, next=n, records=n - s) for q, s, n in ranges),
        **more,
    )


def sent(actions: list[Any], kind: type[Any]) -> list[Any]:
    """The bodies of this type that were sent."""
    return [a.body for a in actions if isinstance(a, (c.Send, p.Send)) and isinstance(a.body, kind)]


def of(actions: list[Any], kind: type[Any]) -> list[Any]:
    """The actions of this type."""
    return [a for a in actions if isinstance(a, kind)]


class CoordinatorTalk:
    """A coordinator's core with incarnation `me`; every sender's name is its incarnation."""

    def __init__(self, **settings: Any) -> None:
        made = c.Settings(
            pipeline="p",
            run="run",
            incarnation="me",
            **{"interval_ms": INTERVAL_MS, "write_timeout_ms": WRITE_TIMEOUT_MS, **settings},
        )
        self.core = Coordinator(made)
        self.now_ms = 0
        self.sequence = 0
        self.begun = 0

    def feed(self, event: c.Event) -> list[Any]:
        return self.core.handle(event)

    def nonce(self) -> str:
        """The next transaction's id: t1, t2, …"""
        return f"t{self.begun + 1}"

    def hear(self, body: Any, sender: str = "a", **envelope: Any) -> list[Any]:
        self.sequence += 1
        heard = message(body, sender=sender, **{"sequence": self.sequence, **envelope})
        return self._note(self.feed(c.Received(now_ms=self.now_ms, nonce=self.nonce(), message=heard)))

    def answer(self, result: c.Result, **more: Any) -> list[Any]:
        """Complete the call under way."""
        assert self.core.pending is not None, self.core.state
        call = self.core.pending.call
        completed = c.Completed(now_ms=self.now_ms, nonce=self.nonce(), call=call, result=result, **more)
        return self._note(self.feed(completed))

    def tick(self, for_ms: int) -> list[Any]:
        self.now_ms += for_ms
        return self._note(self.feed(c.Tick(now_ms=self.now_ms, nonce=self.nonce())))

    def direct(self, mode: c.RunMode, reason: str = "") -> list[Any]:
        directed = c.Directed(now_ms=self.now_ms, nonce=self.nonce(), mode=mode, reason=reason)
        return self._note(self.feed(directed))

    def died(self, incarnation: str) -> list[Any]:
        event = c.WorkerDied(now_ms=self.now_ms, nonce=self.nonce(), incarnation=incarnation)
        return self.feed(event)

    def _note(self, actions: list[Any]) -> list[Any]:
        self.begun += len({a.transaction for a in of(actions, c.Begin)} - {f"t{self.begun}"})
        return actions

    # --- one state further each -------------------------------------------------------------------

    def new(self) -> CoordinatorTalk:
        return self

    def surveying(self) -> CoordinatorTalk:
        self.feed(c.Launch(now_ms=self.now_ms))
        return self

    def claiming(self) -> CoordinatorTalk:
        self.surveying().answer(c.Result.OK, epoch=0)
        return self

    def registering(self) -> CoordinatorTalk:
        self.claiming().hear(CoordinatorClaim(), sender="me")
        return self

    def recovering(self) -> CoordinatorTalk:
        self.registering().answer(c.Result.OK)
        return self

    def idle(self, *partitions: SourcePartition, committed: Offsets | None = None) -> Any:
        self.recovering()
        offsets = committed if committed is not None else dict.fromkeys(partitions or (P0,), 0)
        self.answer(c.Result.OK, committed=offsets, partitions=frozenset(partitions or (P0,)))
        return self

    def beginning(self, owners: Mapping[str, tuple[SourcePartition, ...]] | None = None) -> CoordinatorTalk:
        """Everybody in `owners` (incarnation -> source partitions) has joined; the first of them is ready."""
        owners = owners or {"a": (P0,)}
        if self.core.state.value == "new":
            self.idle(*(q for owned in owners.values() for q in owned))
        for who, owned in owners.items():
            self.hear(ParticipantJoin(partitions=owned), who)
        self.hear(ParticipantReady(), next(iter(owners)))
        return self

    def started(
        self,
        owners: Mapping[str, tuple[SourcePartition, ...]] | None = None,
        committed: Offsets | None = None,
    ) -> CoordinatorTalk:
        self.beginning(owners)
        offsets = committed if committed is not None else dict(self.core.committed)
        self.answer(c.Result.OK, instant=f"i{self.begun}", committed=offsets)
        return self

    def ended(
        self,
        owners: Mapping[str, tuple[SourcePartition, ...]] | None = None,
        committed: Offsets | None = None,
    ) -> CoordinatorTalk:
        self.started(owners, committed).tick(INTERVAL_MS)
        return self

    def committing(self) -> CoordinatorTalk:
        self.ended().hear(status("t1", (P0, 0, 5)))
        return self

    def resolving(self) -> CoordinatorTalk:
        self.committing().answer(c.Result.UNKNOWN)
        return self

    def aborting(self) -> CoordinatorTalk:
        self.started().hear(ParticipantLeave(partitions=(P0,), transaction="t1"))
        return self

    def drained(self) -> CoordinatorTalk:
        self.idle().direct(c.RunMode.DRAIN)
        self.tick(INTERVAL_MS)
        return self

    def fenced(self) -> CoordinatorTalk:
        self.idle().hear(ParticipantReady(), epoch=9)
        return self

    def halted(self) -> CoordinatorTalk:
        self.idle().direct(c.RunMode.HALT, "x")
        return self


class ParticipantTalk:
    """A participant's core with incarnation `a`; the coordinator's is `c`."""

    def __init__(self, **settings: Any) -> None:
        made = p.Settings(
            pipeline="p",
            run="run",
            incarnation="a",
            **{"interval_ms": INTERVAL_MS, "memory_bytes_max": 1_000, **settings},
        )
        self.core = Participant(made)
        self.now_ms = 0
        self.sequence = 0
        self.asked = 0
        """The last call, if it is not answered."""

    def feed(self, event: p.Event) -> list[Any]:
        actions = self.core.handle(event)
        for call in of(actions, p.FetchOffsets) + of(actions, p.Flush):
            self.asked = call.call
        return actions

    def hear(self, body: Any, sender: str = "c", **envelope: Any) -> list[Any]:
        self.sequence += 1
        heard = message(body, sender=sender, **{"sequence": self.sequence, **envelope})
        return self.feed(p.Received(now_ms=self.now_ms, message=heard))

    def tick(self, for_ms: int) -> list[Any]:
        self.now_ms += for_ms
        return self.feed(p.Tick(now_ms=self.now_ms))

    def assigned(self, *partitions: SourcePartition, at: int | None = 0) -> list[Any]:
        return self.feed(p.Assigned(now_ms=self.now_ms, offsets=dict.fromkeys(partitions, at)))

    def revoked(self, *partitions: SourcePartition) -> list[Any]:
        return self.feed(p.Revoked(now_ms=self.now_ms, partitions=partitions))

    def buffered(
        self,
        partition: SourcePartition,
        next_offset: int,
        *,
        records: int | None = None,
        size_bytes: int = 10,
        rejects: int = 0,
        reject_bytes: int = 0,
    ) -> list[Any]:
        """The consumer goes on to `next_offset`, with a record at every offset unless told otherwise."""
        owned = self.core.owned[partition]
        first = Reject(partition=partition, offset=owned.next, reason="not JSON") if rejects else None
        return self.feed(
            p.Buffered(
                now_ms=self.now_ms,
                partition=partition,
                generation=owned.generation,
                start=owned.next,
                next=next_offset,
                records=next_offset - owned.next if records is None else records,
                size_bytes=size_bytes,
                rejects=rejects,
                reject_bytes=reject_bytes,
                first_reject=first,
            )
        )

    def start(
        self,
        transaction: str,
        *partitions: SourcePartition,
        committed: Offsets | None = None,
        others: Mapping[SourcePartition, str] | None = None,
        **envelope: Any,
    ) -> list[Any]:
        """START that lists us for these source partitions, and others for theirs."""
        writers = {**dict.fromkeys(partitions, "a"), **(others or {})}
        body = StartCommit(
            transaction=transaction,
            instant="i" + transaction[1:],
            committed=committed if committed is not None else dict.fromkeys(writers, 0),
            writers=writers,
        )
        return self.hear(body, **envelope)

    def end(self, transaction: str) -> list[Any]:
        return self.hear(EndCommit(transaction=transaction))

    def fetched(self, committed: Offsets | None) -> list[Any]:
        """The table service's offsets; None where it cannot say."""
        outcome = p.Outcome.UNKNOWN if committed is None else p.Outcome.SUCCEEDED
        return self.feed(
            p.OffsetsFetched(now_ms=self.now_ms, call=self.asked, outcome=outcome, committed=committed or {})
        )

    def flushed(self, **more: Any) -> list[Any]:
        """The files are closed, unless `outcome` says otherwise."""
        return self.feed(p.Flushed(now_ms=self.now_ms, call=self.asked, **more))

    def ack(self, transaction: str, committed: Offsets) -> list[Any]:
        body = AckCommit(transaction=transaction, instant="i" + transaction[1:], committed=committed)
        return self.hear(body)

    # --- one state further each -------------------------------------------------------------------

    def joining(self) -> ParticipantTalk:
        """Owns P0 and holds [0, 5) of it."""
        self.assigned(P0)
        self.buffered(P0, 5)
        return self

    def writing(self) -> ParticipantTalk:
        self.joining().start("t1", P0)
        return self

    def flushing(self) -> ParticipantTalk:
        self.writing().end("t1")
        return self

    def prepared(self) -> ParticipantTalk:
        self.flushing().flushed()
        return self

    def waiting(self) -> ParticipantTalk:
        self.prepared().ack("t1", {P0: 5})
        return self

    def stopped(self) -> ParticipantTalk:
        self.prepared().feed(p.Leave(now_ms=self.now_ms, reason="x"))
        return self
