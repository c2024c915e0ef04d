"""A worker's data plane on a store that takes nothing: what a failed flush ends, and what outlives it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from participant import events as ev
from participant.source.fetched import Fetched
from table.faults import WorkerFault
from tests.harness import await_that
from tests.integration.planes import PARTITION, consumed, plane_of

COUNT = 40


def test_a_plane_answers_in_the_order_it_was_asked_though_what_was_asked_first_is_given_up(
    tmp_path: Path,
) -> None:
    """Whatever was ordered behind it waits, so that nothing of a later transaction comes before."""
    posted: list[Any] = []
    plane = plane_of(table_in(tmp_path / "table"), posted)
    for number, transaction in enumerate(("t1", "t2", "t3"), start=1):
        if transaction != "t2":  # which has nothing to write
            plane.order(ev.Rewind(partition=PARTITION, offset=0, generation=number))
            assert plane.deliver(good(generation=number))
        plane.order(ev.Open(transaction=transaction, instant=f"2026010100000{number}000"))
        plane.order(ev.Write(transaction=transaction, partition=PARTITION, generation=number, upto=COUNT))
        plane.order(ev.Flush(call=number, transaction=transaction))
        plane.order(ev.Discard(transaction=transaction))
    plane.start()
    try:
        await_that("answers", lambda: sum(isinstance(event, ev.Flushed) for event in posted) == 3)
    finally:
        assert plane.stop(30)
    assert [event.call for event in posted if isinstance(event, ev.Flushed)] == [1, 2, 3]


def test_a_plane_whose_files_could_not_be_kept_goes_on_and_forgets_whose_fault_it_was(tmp_path: Path) -> None:
    """A core that has given the transaction up meanwhile hears of it too late: nobody ends the worker."""
    path = tmp_path / "table"
    path.write_text("a file where the table's folder was")
    posted: list[Any] = []
    plane = plane_of(path, posted)

    def answer(call: int) -> Any:
        return await_that(
            "an answer",
            lambda: next(
                (o for o in posted if isinstance(o, ev.EffectFailed) or getattr(o, "call", 0) == call), None
            ),
        )

    plane.start()
    try:
        plane.order(ev.Rewind(partition=PARTITION, offset=0, generation=1))
        assert plane.deliver(good(generation=1))
        await_that("decoding", lambda: len(posted) == 1)
        plane.order(ev.Open(transaction="t1", instant="20260101000000000"))
        plane.order(ev.Write(transaction="t1", partition=PARTITION, generation=1, upto=COUNT))
        plane.order(ev.Flush(call=1, transaction="t1"))
        failed = answer(1)
        assert (failed.outcome, plane.fault) == (ev.Outcome.UNKNOWN, WorkerFault.STORAGE), failed
        plane.order(ev.Discard(transaction="t1"))

        path.unlink()
        table_in(path)
        plane.order(ev.Rewind(partition=PARTITION, offset=0, generation=2))
        assert plane.deliver(good(generation=2))
        await_that("decoding", lambda: isinstance(posted[-1], ev.Buffered))
        plane.order(ev.Open(transaction="t2", instant="20260101000001000"))
        plane.order(ev.Write(transaction="t2", partition=PARTITION, generation=2, upto=COUNT))
        plane.order(ev.Flush(call=2, transaction="t2"))
        flushed = answer(2)
        assert flushed.outcome is ev.Outcome.SUCCEEDED, flushed
        assert sum(file.rows for file in flushed.files) == COUNT
        assert plane.fault is WorkerFault.PIPELINE
    finally:
        assert plane.stop(30)


def table_in(path: Path) -> Path:
    (path / ".hoodie").mkdir(parents=True)
    (path / ".hoodie" / "hoodie.properties").touch()
    return path


def good(*, generation: int) -> Fetched:
    return consumed(0, [b'{"id": "%d"}' % number for number in range(COUNT)], generation=generation)
