"""The transactions of one run, as the control topic tells of them. Pure.

Whose word is taken is `lockstep.watch.topic_fold`'s business: what comes here is believed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice

from control_topic.causes import (
    ABORT_CAUSES,
    COMMIT_PARTS,
    COORDINATOR_LOST,
    END_REASONS,
    known,
)
from control_topic.messages import (
    AbortCommit,
    AckCommit,
    EndCommit,
    EndRequest,
    Message,
    Offsets,
    SourcePartition,
    StartCommit,
    WriteProgress,
    WriteStatus,
)
from lockstep.watch.told import (
    END_REQUESTS_MAX,
    REASON_LENGTH_MAX,
    SOURCE_PARTITIONS_MAX,
    WORKERS_MAX,
    Aborted,
    Asked,
    Committed,
    News,
    Phase,
    Transaction,
    Wrote,
    named,
)


@dataclass(slots=True, kw_only=True)
class Book:
    """`names`: incarnation -> sender, as far as known. `transactions_max`: how many are kept, 0 for all."""

    names: Mapping[str, str]
    run: str = ""
    places_max: int = SOURCE_PARTITIONS_MAX
    """So many source partitions are remembered, of the run and of each transaction."""

    transactions_max: int = 0
    transactions: list[Transaction] = field(default_factory=list)
    """Oldest first: those whose START was heard."""

    committed: dict[SourcePartition, int] = field(default_factory=dict)
    """Next offset, as far as it is known to be durable."""

    last_commit_ms: int = 0

    @property
    def open_transaction(self) -> Transaction | None:
        """The newest while its end is not known."""
        last = self.transactions[-1] if self.transactions else None
        return last if last is not None and last.is_open else None

    def find(self, wanted: str) -> Transaction | None:
        """The newest first: what is looked for is nearly always the last."""
        return next((one for one in reversed(self.transactions) if one.id == wanted), None)

    def started(self, message: Message, body: StartCommit, time_ms: int) -> list[News]:
        if self.find(body.transaction) is not None:
            return []  # a repeat for a worker that had not heard it
        news = self.settle(body.committed, time_ms)
        self._advance(body.committed)
        writers = frozenset(islice(dict.fromkeys(body.writers.values()), WORKERS_MAX))
        self.transactions.append(
            Transaction(
                id=body.transaction,
                instant=body.instant,
                epoch=message.epoch,
                run=message.run,
                writers=writers,
                workers=len(writers),
                started_ms=time_ms,
                details=len(writers),
            )
        )
        if self.transactions_max and len(self.transactions) > self.transactions_max:
            del self.transactions[0]
        return news

    def settle(self, committed: Offsets, time_ms: int) -> list[News]:
        """What became of a transaction whose end was never announced: the table stands at `committed` now."""
        earlier = self.open_transaction
        if earlier is None:
            return []
        landed = all(committed.get(place, 0) >= following for place, following in earlier.next.items())
        if earlier.next and landed:
            earlier.reason = "its coordinator was lost after the commit; the next one found it in the table"
            return self._commit(earlier, earlier.next, time_ms)
        reason = "its coordinator was lost; the next one rolled it back"
        return self._abort(earlier, reason, COORDINATOR_LOST, time_ms)

    def asked(self, message: Message, body: EndRequest, time_ms: int) -> None:
        transaction = self._find_open(body.transaction)
        if transaction is None or len(transaction.asked) >= END_REQUESTS_MAX:
            return
        if not any(one.name == message.sender for one in transaction.asked):  # else it is said again
            transaction.asked.append(Asked(message.sender, known(body.reason, END_REASONS), time_ms))

    def ending(self, body: EndCommit, time_ms: int) -> None:
        transaction = self._find_open(body.transaction)
        if transaction is not None:
            transaction.phase = Phase.ENDING
            transaction.end_ms = transaction.end_ms or time_ms
            transaction.end_reason = transaction.end_reason or known(body.reason, END_REASONS)

    def progressed(self, message: Message, body: WriteProgress, time_ms: int) -> None:
        transaction = self._find_open(body.transaction)
        if transaction is not None and message.incarnation in transaction.writers:
            transaction.details += message.incarnation not in transaction.progress
            transaction.progress[message.incarnation] = body
            transaction.progress_ms = time_ms

    def reported(self, message: Message, body: WriteStatus, time_ms: int) -> None:
        transaction = self._find_open(body.transaction)
        if transaction is None or message.incarnation in transaction.answered:
            return
        if message.incarnation not in transaction.writers:
            return  # a coordinator refuses it, too
        remembered = sum(len(one.ranges) for one in transaction.wrote.values())
        ranges = body.ranges[: max(0, self.places_max - remembered)]
        wrote = Wrote(
            name=message.sender,
            incarnation=message.incarnation,
            answered_ms=time_ms,
            records=sum(one.records for one in body.ranges),
            files=len(body.files),
            size_bytes=sum(file.size_bytes for file in body.files),
            ranges=ranges,
        )
        transaction.wrote[message.incarnation] = wrote
        transaction.answered[message.incarnation] = time_ms
        transaction.details += 2 + 2 * len(ranges)
        transaction.records += wrote.records
        transaction.files += wrote.files
        transaction.size_bytes += wrote.size_bytes
        transaction.late_records += sum(times.late for times in body.event_times)
        transaction.absurd_times += sum(times.absurd for times in body.event_times)
        transaction.next.update({one.partition: one.next for one in ranges})
        transaction.rejects.add(body.rejects, body.reject_count, time_ms)
        if transaction.answered.keys() >= transaction.writers:
            transaction.written_ms = time_ms

    def acknowledged(self, body: AckCommit, time_ms: int) -> list[News]:
        transaction = self.find(body.transaction)
        if transaction is not None and transaction.is_open:
            transaction.took_ms = {part: body.took_ms[part] for part in COMMIT_PARTS if part in body.took_ms}
        return self._commit(transaction, body.committed, time_ms, announced=True)

    def aborted(self, body: AbortCommit, time_ms: int) -> list[News]:
        transaction, cause = self.find(body.transaction), known(body.cause, ABORT_CAUSES)
        return self._abort(transaction, body.reason, cause, time_ms, announced=True)

    def _commit(
        self,
        transaction: Transaction | None,
        committed: Offsets,
        time_ms: int,
        *,
        announced: bool = False,
    ) -> list[News]:
        self._advance(committed)
        if transaction is None or not transaction.is_open:
            return []
        self.last_commit_ms = time_ms
        self._end(transaction, Phase.COMMITTED, time_ms, announced=announced)
        return [Committed(transaction)]

    def _abort(
        self,
        transaction: Transaction | None,
        reason: str,
        cause: str,
        time_ms: int,
        *,
        announced: bool = False,
    ) -> list[News]:
        if transaction is None or not transaction.is_open:
            return []
        transaction.reason, transaction.cause = named(reason, self.names)[:REASON_LENGTH_MAX], cause
        self._end(transaction, Phase.ABORTED, time_ms, announced=announced)
        return [Aborted(transaction)]

    def _end(self, transaction: Transaction, phase: Phase, time_ms: int, *, announced: bool) -> None:
        transaction.phase, transaction.ended_ms, transaction.announced = phase, time_ms, announced
        transaction.note_late(self.names)

    def _advance(self, committed: Offsets) -> None:
        for partition, following in committed.items():
            if partition in self.committed or len(self.committed) < self.places_max:
                self.committed[partition] = max(following, self.committed.get(partition, 0))

    def _find_open(self, wanted: str) -> Transaction | None:
        found = self.find(wanted)
        return found if found is not None and found.is_open else None
