"""The transaction that is open in a plane: its files, its dead letters, and what is said of them.

For the plane's thread alone, but for `to_discard`.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import TypeVar

import pyarrow as pa

from control_topic.messages import REJECTS_LISTED_MAX, SourcePartition, Witness
from participant import events as ev
from participant.errors import (
    DeadLetterRefused,
    DeadLetterUnavailable,
    HandingBroken,
    ParticipantError,
)
from participant.exchange.exchange import Exchange
from participant.exchange.writer import ExchangingWriter
from participant.records.errors import RecordsError
from participant.records.rejects import HeldRejects
from participant.source.dead_letters import DeadLetters
from participant.worker.buffers import Meters, PartitionBuffer
from participant.worker.event_times import SeenTimes
from participant.worker.stages import Stages
from table.errors import FilesGone, StorageError
from table.faults import WorkerFault
from table.port import FileWriter, TableFiles, Written
from table.schema import record_schema
from table.widening import ddl_of

log = logging.getLogger("lockstep.plane")

W = TypeVar("W", bound=FileWriter)

TELL_MS = 100
"""Between two words on how far the files are."""

FAILURES = (ParticipantError, RecordsError, StorageError, OSError, pa.ArrowException)
"""What the world may do to it. The worker ends; a fresh one may do better."""


class _GivenUp(Exception):
    """The transaction that is being written is to be discarded."""


class Writing:
    """`post` takes the participant's events. `wake`: called in any thread when `go_on` may know more."""

    def __init__(
        self,
        *,
        stages: Stages,
        dead_letters: DeadLetters | None,
        exchange: Exchange | None,
        post: Callable[[ev.Event], None],
        now_ms: Callable[[], int],
        meters: Meters,
        wake: Callable[[], None],
    ) -> None:
        self._stages = stages
        self._dead_letters = dead_letters
        self._exchange = exchange
        self._post = post
        self._now_ms = now_ms
        self._meters = meters
        self._wake = wake
        self._writes: TableFiles = stages.files
        self._writer: FileWriter | None = None
        self._transaction = ""
        self._flushing: ev.Flush | None = None
        """What is not answered yet: its files are being ended."""
        self._told_ms = 0
        self._written = Written()
        self._other_steps = 0
        self._given_up: set[str] = set()
        """Transactions that are to be discarded and are not yet."""
        self._gone = ""
        self._held: list[HeldRejects] = []
        self._last: dict[SourcePartition, Witness] = {}
        self._seen = SeenTimes()
        self.fault = WorkerFault.PIPELINE
        """Whose it was, where the thread has ended."""

    @property
    def is_ending(self) -> bool:
        """Whether files are being ended for an order that is not answered yet."""
        return self._flushing is not None

    def to_discard(self, transaction: str) -> None:
        """It is given up, and its order is on its way: it is not written to its end first. In any thread."""
        self._given_up.add(transaction)

    def blamed(self, error: Exception) -> str:
        """The reason as a sentence; whose fault it was is kept."""
        if isinstance(error, DeadLetterUnavailable):
            self.fault = WorkerFault.DEAD_LETTERS
        elif isinstance(error, StorageError | OSError):
            self.fault = WorkerFault.STORAGE
        return str(error) or type(error).__name__

    def stop(self) -> None:
        """Nothing is written any more; what is open is discarded."""
        if self._writer is not None:
            self._writer.discard()

    # --- rows in ----------------------------------------------------------------------------------

    def open(self, order: ev.Open, files: TableFiles) -> None:
        """`files`: of the columns that have been met so far."""
        self._transaction, self._gone = order.transaction, ""
        self._held, self._last = [], {}
        self._seen = SeenTimes(order.watermark_ms)
        self._written, self._other_steps = Written(), 0
        self.fault = WorkerFault.PIPELINE  # what failed before was given up, and the worker has outlived it
        self._writes = files
        self._writer = files.writer(order.instant, self._wrote)
        handing = files.handing
        if order.takers and self._exchange is not None and handing is not None:
            self._writer = self._exchange.writer(
                self._writer, handing, order.transaction, order.takers, self._stepped
            )

    def write(self, order: ev.Write, buffer: PartitionBuffer | None, files: TableFiles) -> None:
        """What is buffered of the source partition, in this order's range."""
        if buffer is None or buffer.generation != order.generation or order.transaction != self._transaction:
            return
        assert self._writer is not None
        with self._giving_up(), self._metered(self._writer) as writer:
            while buffer.chunks and buffer.chunks[0].next <= order.upto:
                chunk = buffer.popleft()
                if chunk.shaped is not None and chunk.shaped.count:
                    if self._writes is not files:
                        self._writes = files
                        writer.widen(files)
                    writer.write(chunk.shaped)
                if chunk.held is not None:
                    self._held.append(chunk.held)
                if chunk.witness is not None:
                    self._last[order.partition] = chunk.witness
                if chunk.times is not None:
                    self._seen.add(order.partition, chunk.times)

    def take_from_others(self) -> None:
        """While files are being ended all is here, and nobody's stream matters any more."""
        if self._flushing is None and isinstance(self._writer, ExchangingWriter):
            with self._giving_up(), self._metered(self._writer) as writer:
                writer.take()

    @contextlib.contextmanager
    def _giving_up(self) -> Iterator[None]:
        """What ends the transaction and not the worker."""
        try:
            yield
        except _GivenUp:
            pass
        except (FilesGone, HandingBroken) as gone:
            transaction = self._transaction
            self._taken_away(gone)
            self._post(ev.TakenAway(now_ms=self._now_ms(), transaction=transaction, reason=self._gone))

    def _wrote(self, written: Written) -> None:
        """A step of the writer's; of many in a short time the first is told."""
        self._written = written
        if self._transaction in self._given_up:
            raise _GivenUp(f"{self._transaction} was given up")  # the order to remove the files is next
        now_ms = self._now_ms()
        if now_ms - self._told_ms < TELL_MS:
            return
        self._told_ms = now_ms
        self._post(
            ev.Wrote(
                now_ms=now_ms,
                transaction=self._transaction,
                files=written.files,
                size_bytes=written.size_bytes,
                steps=written.steps + self._other_steps,
            )
        )

    def _stepped(self) -> None:
        """A step that is not the writer's of files: dead letters are taken, others are waited for."""
        self._other_steps += 1
        self._wrote(self._written)

    @contextlib.contextmanager
    def _metered(self, writer: W) -> Iterator[W]:
        began, uploaded_s = time.monotonic(), writer.upload_s
        yield writer
        uploaded_s = writer.upload_s - uploaded_s
        self._meters.seconds["upload"] += uploaded_s
        self._meters.seconds["encode"] += time.monotonic() - began - uploaded_s

    # --- files out --------------------------------------------------------------------------------

    def flush(self, order: ev.Flush) -> None:
        """Begin to end the files. The answer is posted when they are durable, or will not be."""
        self._flushing = order
        self._answer(self._begin_to_end)

    def go_on(self, *, wait: bool = False) -> None:
        """Answer, if files are durable by now. `wait`: until they are."""
        if self._flushing is not None:
            self._answer(partial(self._flushed, wait=wait))

    def _answer(self, look: Callable[[ev.Flush], ev.Flushed | None]) -> None:
        """Whatever becomes of it is said once."""
        order, answer = self._flushing, None
        assert order is not None
        try:
            answer = look(order)
        except DeadLetterRefused as why:
            answer = self._not_flushed(order, ev.Outcome.FAILED, str(why), final=True)
        except (FilesGone, HandingBroken) as gone:
            self._taken_away(gone)
            answer = self._not_flushed(order, ev.Outcome.FAILED, self._gone)
        except _GivenUp as why:
            answer = self._not_flushed(order, ev.Outcome.FAILED, self._gone or str(why))
        except FAILURES as error:
            answer = self._not_flushed(order, ev.Outcome.UNKNOWN, self.blamed(error))
        if answer is not None:
            self._flushing = None
            self._post(answer)

    def _not_flushed(
        self, order: ev.Flush, outcome: ev.Outcome, reason: str, *, final: bool = False
    ) -> ev.Flushed:
        now_ms = self._now_ms()
        return ev.Flushed(now_ms=now_ms, call=order.call, outcome=outcome, reason=reason, final=final)

    def _begin_to_end(self, order: ev.Flush) -> ev.Flushed | None:
        if order.transaction != self._transaction or self._writer is None:
            raise _GivenUp(f"{order.transaction} is not open")
        self._set_aside()
        with self._metered(self._writer) as writer:
            writer.finish(self._wake)
        return self._flushed(order)

    def _flushed(self, order: ev.Flush, *, wait: bool = False) -> ev.Flushed | None:
        """None while files are being ended. What is decoded meanwhile is of a later transaction."""
        assert self._writer is not None
        with self._metered(self._writer) as writer:
            files = writer.finished(wait=wait)
        if files is None:
            return None
        rejects = tuple(
            islice((r for held in self._held for r in held.named(REJECTS_LISTED_MAX)), REJECTS_LISTED_MAX)
        )
        reject_count = sum(map(len, self._held))
        exchanged = self._writer if isinstance(self._writer, ExchangingWriter) else None
        self._writer, self._transaction, self._held = None, "", []
        return ev.Flushed(
            now_ms=self._now_ms(),
            call=order.call,
            files=files,
            rejects=rejects,
            reject_count=reject_count,
            witnesses=tuple(self._last[partition] for partition in sorted(self._last)),
            event_times=self._seen.all(),
            columns=ddl_of(record_schema(self._writes.schema)) if self._is_wider else "",
            columns_from=self._stages.news() if self._is_wider else "",
            handed=exchanged.handed if exchanged is not None else {},
            taken=exchanged.taken if exchanged is not None else {},
        )

    @property
    def _is_wider(self) -> bool:
        """Whether the open transaction is written with more columns than the run began with."""
        return self._writes is not self._stages.files

    def _set_aside(self) -> None:
        """What was rejected is in the dead-letter topic before anybody is told that it was passed."""
        if self._held and self._dead_letters is not None:
            began = time.monotonic()
            self._dead_letters.send(self._held, self._letters_taken)
            self._meters.seconds["dead_letters"] += time.monotonic() - began

    def _letters_taken(self, count: int) -> None:
        if count:
            self._stepped()
        else:
            self._wrote(self._written)

    # --- the end of what was given up -------------------------------------------------------------

    def discard(self, transaction: str) -> None:
        """Its files are removed; where it is not open, nothing is."""
        if self._flushing is not None and self._flushing.transaction == transaction:
            reason = f"{transaction} was given up"
            self._post(self._not_flushed(self._flushing, ev.Outcome.FAILED, reason))
            self._flushing = None
        self._discard(transaction)
        self._given_up.discard(transaction)

    def _taken_away(self, gone: FilesGone | HandingBroken) -> None:
        """What is open is over. Whoever has rolled it back says so; where nobody has, the core does."""
        log.info("%s: %s", self._transaction, gone, extra={"transaction": self._transaction})
        self._discard(self._transaction)
        self._gone = str(gone)

    def _discard(self, transaction: str) -> None:
        if transaction == self._transaction and self._writer is not None:
            self._writer.discard()
            self._writer, self._transaction, self._held = None, "", []
