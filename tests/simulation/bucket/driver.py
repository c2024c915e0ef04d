"""A driver: recovers the table, has workers write, commits, sweeps; tries again, gives up, is superseded."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, TypeVar

from control_topic.messages import Range, SourcePartition
from table.errors import ClockAhead, OutcomeUnknown, Refused, TableError, Unavailable
from table.hudi.files.base_file import file_name, new_file_id
from table.state import PREFIX, TableState
from tests.simulation.bucket.table import PIPELINE, Superseded, Table
from tests.simulation.bucket.tape import Sleep, Steps
from tests.simulation.bucket.worker import Task

if TYPE_CHECKING:
    from tests.simulation.bucket.world import World

T = TypeVar("T")
PARTITIONS = (SourcePartition("t", 0), SourcePartition("t", 1))
NOTHING = dict.fromkeys(PARTITIONS, 0)
ROUNDS_MAX = 6
WRITE_TIMEOUT_MS = 15_000
POLLED_EVERY_MS = 200
BACKOFF_MS = 5_000
PATIENCE_MS = 600_000
COMMIT_TRIES = 3


@dataclass(slots=True)
class Open:
    """A transaction that is open."""

    instant: str
    state: TableState
    tasks: list[Task]
    before: dict[SourcePartition, int]


class Driver(Table):
    """`last`: works until everything is in the table, and sweeps."""

    ENDS = "has done its work"

    def __init__(self, world: World, number: int, *, last: bool) -> None:
        super().__init__(world, number)
        self.last = last
        self.epoch = len(world.drivers) + 1
        self.done = ""
        self._chance = Random(f"{world.shape.seed} {self.name}")
        self._rounds = 0

    def life(self) -> Steps[None]:
        try:
            yield from self._until_done()
            self.done = self.ENDS
        except ClockAhead:
            self.done = "its clock is refused"
        except Superseded as error:
            self.done = str(error)
        except (TableError, OSError) as error:
            self.done = f"gives up: {error}"
        self.note(self.done)

    def _until_done(self) -> Steps[None]:
        yield from self._patiently(self.open)
        while True:
            newest: TableState | None = yield from self._patiently(self.recover)
            while newest is not None:
                offsets = newest.offsets
                if all(offsets[one] >= self.world.shape.records for one in PARTITIONS):
                    break
                if self._rounds == ROUNDS_MAX and not self.last:
                    return
                self._rounds += 1
                newest = yield from self._transaction(newest)
            if newest is not None:
                break
        for _ in range(2 if self.last else 1):
            yield Sleep(1_000)
            yield from self._patiently(self.sweep)

    def _patiently(self, do: Callable[[], Steps[T]]) -> Steps[T]:
        """The coordinator asks again while the environment is at fault."""
        until_ms = self.world.now_ms + PATIENCE_MS
        while True:
            try:
                return (yield from do())
            except (Refused, ClockAhead, Superseded):
                raise
            except (Unavailable, OutcomeUnknown, OSError) as error:
                if self.world.now_ms > until_ms:
                    raise
                self.note(f"waits: {error}")
                yield Sleep(BACKOFF_MS)

    def recover(self) -> Steps[TableState]:
        """Roll back what is open, then read where to go on from: `Transactions.recover`."""
        seen = yield from self.look()
        for instant in sorted(one for one, is_inflight in seen.open.items() if is_inflight):
            if (yield from self.owner_of(instant))[PREFIX + "pipeline"] == PIPELINE:
                yield from self.roll_back(instant)
        newest = yield from self.newest()
        found = newest or TableState(pipeline=PIPELINE, run="", epoch=0, transaction="", offsets=NOTHING)
        if found.epoch > self.epoch:
            raise Superseded(f"epoch {found.epoch} has committed")
        self.note(f"goes on from {json.dumps([*found.offsets.values()])}")
        return found

    # --- a transaction ----------------------------------------------------------------------------

    def _transaction(self, newest: TableState) -> Steps[TableState | None]:
        """What the table holds after it; None where the table is to be asked."""
        transaction = f"{self.name}.{self._rounds}"
        instant = yield from self._patiently(lambda: self.begin(self.name, transaction))
        self.note(f"begins {instant} for {transaction}")
        open_ = self._plan(newest, transaction, instant)
        for task in open_.tasks:
            self.world.start(task.name, task.steps())
        if self._chance.random() < 0.3:
            yield from self._patiently(self.sweep)
        waited_ms = 0
        while not all(task.said for task in open_.tasks) and waited_ms < WRITE_TIMEOUT_MS:
            yield Sleep(POLLED_EVERY_MS)
            waited_ms += POLLED_EVERY_MS
        if all(task.said == "written" for task in open_.tasks):
            return (yield from self._commit(open_, newest))
        return (yield from self._abort(open_, newest))

    def _plan(self, newest: TableState, transaction: str, instant: str) -> Open:
        offsets, ranges, tasks = dict(newest.offsets), [], []
        for one in PARTITIONS:
            start = offsets[one]
            upto = min(start + self._chance.randint(1, 3), self.world.shape.records)
            if upto == start:
                continue
            offsets[one] = upto
            ranges.append(Range(partition=one, start=start, next=upto, records=upto - start))
            name = self.world.worker_name(last=self.last)
            path = file_name(new_file_id(int(name[1:])), "0-0-0", instant)
            rows = json.dumps([[one.number, offset] for offset in range(start, upto)]).encode()
            tasks.append(Task(self.world, name, instant, path, rows))
        state = TableState(
            pipeline=PIPELINE,
            run=self.name,
            epoch=self.epoch,
            transaction=transaction,
            offsets=offsets,
            ranges=tuple(ranges),
            instant=instant,
        )
        return Open(instant, state, tasks, dict(newest.offsets) if newest.transaction else {})

    def _commit(self, open_: Open, newest: TableState) -> Steps[TableState | None]:
        files = [task.path for task in open_.tasks]
        for _ in range(COMMIT_TRIES):
            try:
                yield from self.commit(open_.state, open_.instant, open_.before, files)
            except ClockAhead:
                raise
            except Unavailable as error:
                self.note(f"commits again: {error}")
                yield Sleep(BACKOFF_MS)
                continue
            except Refused as error:
                self.note(f"is refused: {error}")
                yield from self._abort(open_, newest)
                return None
            except (OutcomeUnknown, OSError) as error:
                self.note(f"does not know what became of {open_.instant}: {error}")
                break
            self._acknowledge(open_)
            return open_.state
        return (yield from self._abort(open_, newest))

    def _acknowledge(self, open_: Open) -> None:
        """Workers hear of it, where no coordinator of a higher epoch has spoken."""
        self.note(f"acknowledges {open_.instant}")
        if len(self.world.drivers) == self.number + 1:
            self.world.acked.append((open_.instant, self.world.now_ms))

    def _abort(self, open_: Open, newest: TableState) -> Steps[TableState | None]:
        """`Transactions.abort`: it is rolled back where the table lists it as open."""
        done: TableState | None = yield from self._patiently(lambda: self._rolled_back(open_))
        if done is None:
            return newest
        self._acknowledge(open_)
        return done

    def _rolled_back(self, open_: Open) -> Steps[TableState | None]:
        if (yield from self.look()).open.get(open_.instant, False):
            yield from self.roll_back(open_.instant)
        return (yield from self.find(open_.state.transaction))
