"""Planes whose transactions name takers: rows go from one to the other, and both say how many."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from control_topic.messages import DataFile, SourcePartition
from participant import events as ev
from participant.exchange.exchange import Exchange
from participant.records.raw import RawBatch, Values
from participant.source.fetched import Fetched
from participant.worker.memory import MemoryBudget
from participant.worker.plane import Arrived, Plane
from participant.worker.stages import stages
from table.port import UPSERT
from tests.harness import await_that
from tests.unit.participant.worker.test_plane import LAYOUT, NOBODY

DEADLINE_S = 30.0
RECORDS = 300
INSTANT = "20261126000000000"


@dataclass
class End:
    """One worker's plane, in its own thread."""

    name: str
    partition: SourcePartition
    plane: Plane
    exchange: Exchange
    said: queue.Queue[Any] = field(default_factory=queue.Queue)

    def open(self, transaction: str, takers: dict[str, str]) -> None:
        self.plane.order(ev.Open(transaction=transaction, instant=INSTANT, takers=takers))

    def read(self, generation: int = 1) -> None:
        self.plane.order(ev.Rewind(partition=self.partition, offset=0, generation=generation))
        values: list[bytes | None] = [
            b'{"id":"%s-%d","day":"d%d"}' % (self.name.encode(), number, number % 10)
            for number in range(RECORDS)
        ]
        raw = RawBatch(
            partition=self.partition,
            offsets=np.arange(RECORDS, dtype=np.int64),
            timestamps_ms=np.zeros(RECORDS, dtype=np.int64),
            values=Values.of(values),
        )
        fetched = Fetched(partition=self.partition, generation=generation, start=0, next=RECORDS, raw=raw)
        assert self.plane.deliver(fetched)
        self.answer(ev.Buffered)

    def write(self, transaction: str, generation: int = 1) -> None:
        self.plane.order(
            ev.Write(transaction=transaction, partition=self.partition, generation=generation, upto=RECORDS)
        )

    def answer(self, kind: type[Any]) -> Any:
        """The next event of this kind."""
        while True:
            event = self.said.get(timeout=DEADLINE_S)
            if isinstance(event, kind):
                return event


@pytest.fixture
def ends(tmp_path: Path) -> Iterator[list[End]]:
    (tmp_path / ".hoodie").mkdir()
    memory = MemoryBudget(64_000_000, exchanges=True)
    layout = replace(LAYOUT, path=str(tmp_path), ddl="id STRING, day STRING", partition_fields=("day",))
    with ExitStack() as stack:
        found: list[End] = []
        for slot, name in enumerate("ab"):
            found.append(made(stack, slot, name, memory, layout))
        yield found


def made(stack: ExitStack, slot: int, name: str, memory: MemoryBudget, layout: Any) -> End:
    said: queue.Queue[Any] = queue.Queue()
    planes: list[Plane] = []
    exchange = Exchange(
        incarnation=name,
        token="secret",
        host="127.0.0.1",
        writers_max=2,
        homes=1,
        bytes_max=memory.exchanged_bytes,
        arrived=lambda: planes[0].order(Arrived()),
    )
    stack.callback(exchange.close)
    plane = Plane(
        stages=stages(layout=layout, slot=slot, incarnation=name, memory=memory),
        queued_bytes_max=memory.queued_bytes,
        dead_letters=None,
        post=said.put,
        now_ms=partial(next, count(0, 200)),
        callbacks=NOBODY,
        exchange=exchange,
    )
    planes.append(plane)
    plane.start()
    stack.callback(plane.stop, DEADLINE_S)
    return End(name, SourcePartition("events", slot), plane, exchange, said)


def takers(ends: list[End]) -> dict[str, str]:
    return {end.name: end.exchange.address for end in ends}


def test_each_row_is_in_one_file_and_each_table_partition_has_one(ends: list[End]) -> None:
    for end in ends:
        end.read()
    for end in ends:
        end.open("t1", takers(ends))
        end.write("t1")
        end.plane.order(ev.Flush(call=1, transaction="t1"))
    done = {end.name: end.answer(ev.Flushed) for end in ends}
    assert all(one.outcome is ev.Outcome.SUCCEEDED for one in done.values()), done
    files: list[DataFile] = [file for one in done.values() for file in one.files]
    assert sum(file.rows for file in files) == 2 * RECORDS
    assert len({file.table_partition for file in files}) == len(files) == 10
    assert done["a"].handed.get("b", 0) == done["b"].taken.get("a", 0)
    assert done["b"].handed.get("a", 0) == done["a"].taken.get("b", 0)
    assert sum(done["a"].handed.values()) + sum(done["b"].handed.values()) > 0


def test_a_transaction_without_takers_is_written_as_it_is_read(ends: list[End]) -> None:
    for end in ends:
        end.read()
        end.open("t1", {})
        end.write("t1")
        end.plane.order(ev.Flush(call=1, transaction="t1"))
        flushed = end.answer(ev.Flushed)
        assert sum(file.rows for file in flushed.files) == RECORDS
        assert (flushed.handed, flushed.taken) == ({}, {})


def test_rows_of_others_are_written_while_nothing_else_is_to_do(ends: list[End]) -> None:
    """Not at END, when all of them would wait."""
    a, b = ends
    a.read()
    for end in ends:
        end.open("t1", takers(ends))
    a.write("t1")
    a.plane.order(ev.Flush(call=1, transaction="t1"))
    await_that("rows that b took", lambda: getattr(b.plane._writing._writer, "taken", None))
    b.plane.order(ev.Flush(call=1, transaction="t1"))
    flushed = a.answer(ev.Flushed)
    assert b.answer(ev.Flushed).taken.get("a", 0) == sum(flushed.handed.values())


def test_who_waits_for_others_says_that_it_gets_on(ends: list[End]) -> None:
    a, b = ends
    for end in ends:
        end.open("t1", takers(ends))
    a.plane.order(ev.Flush(call=1, transaction="t1"))
    assert a.answer(ev.Wrote).steps > 0
    b.plane.order(ev.Flush(call=1, transaction="t1"))
    assert a.answer(ev.Flushed).outcome is ev.Outcome.SUCCEEDED


def test_where_one_gives_the_transaction_up_the_other_does_and_both_go_on(ends: list[End]) -> None:
    a, b = ends
    for end in ends:
        end.read()
        end.open("t1", takers(ends))
        end.write("t1")
    b.plane.order(ev.Discard(transaction="t1"))
    a.plane.order(ev.Flush(call=1, transaction="t1"))
    flushed = a.answer(ev.Flushed)
    assert (flushed.outcome, flushed.final) == (ev.Outcome.FAILED, False) and flushed.reason
    for end in ends:
        end.read(2)
    for end in ends:
        end.open("t2", takers(ends))
        end.write("t2", 2)
        end.plane.order(ev.Flush(call=2, transaction="t2"))
    done = [end.answer(ev.Flushed) for end in ends]
    assert sum(file.rows for one in done for file in one.files) == 2 * RECORDS


def test_what_breaks_off_in_the_middle_is_told_at_once(ends: list[End]) -> None:
    """Else more and more would be read, and written nowhere, until END, which may be long."""
    a, b = ends
    for end in ends:
        end.open("t1", takers(ends))
    await_that("a stream from b", lambda: a.exchange._inbox._streaming)
    b.plane.order(ev.Discard(transaction="t1"))
    gone = a.answer(ev.TakenAway)
    assert (gone.transaction, "b" in gone.reason) == ("t1", True)


def test_a_taker_that_is_gone_is_told_at_once_though_nothing_comes_from_it(ends: list[End]) -> None:
    a, b = ends
    b.exchange.close()
    a.open("t1", takers(ends))
    assert "handed over to b" in a.answer(ev.TakenAway).reason


def test_a_transaction_that_is_given_up_is_not_waited_for(ends: list[End]) -> None:
    a, b = ends
    for end in ends:
        end.open("t1", takers(ends))
    a.plane.order(ev.Flush(call=1, transaction="t1"))
    a.answer(ev.Wrote)
    a.plane.order(ev.Discard(transaction="t1"))
    assert a.answer(ev.Flushed).outcome is ev.Outcome.FAILED
    b.plane.order(ev.Discard(transaction="t1"))


def test_of_two_transactions_that_are_given_up_at_once_the_first_is_not_waited_for_either(
    ends: list[End],
) -> None:
    """A process that wakes up hears of many in a moment."""
    a, b = ends
    a.open("t1", takers(ends))
    a.plane.order(ev.Flush(call=1, transaction="t1"))
    a.answer(ev.Wrote)
    a.plane.order(ev.Discard(transaction="t1"))
    a.open("t2", takers(ends))
    a.plane.order(ev.Discard(transaction="t2"))
    b.open("t2", takers(ends))
    assert "t1 was given up" in a.answer(ev.Flushed).reason
    a.open("t3", {})
    a.plane.order(ev.Flush(call=2, transaction="t3"))
    assert a.answer(ev.Flushed).outcome is ev.Outcome.SUCCEEDED


def test_files_of_upserts_are_nobody_elses() -> None:
    upserts = replace(
        LAYOUT,
        mode=UPSERT,
        body={**LAYOUT.body, "bucket_count": 4},
    )
    made = stages(layout=upserts, slot=0, incarnation="i", memory=MemoryBudget(64_000_000))
    assert made.files.handing is None
