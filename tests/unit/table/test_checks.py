"""Rows that one worker has read and another has written are counted where they are."""

from __future__ import annotations

from typing import Any

import pytest

from control_topic.messages import DataFile, Range, SourcePartition, WriteStatus
from table.checks import assemble
from table.errors import Refused

P0, P1 = SourcePartition("events", 0), SourcePartition("events", 1)


def report(partition: SourcePartition, rows: int, **more: Any) -> WriteStatus:
    """Of ten records."""
    file = DataFile(path=f"{partition}", body="", table_partition="", rows=rows, size_bytes=1)
    ranges = (Range(partition=partition, start=0, next=10, records=10),)
    return WriteStatus(transaction="t", ranges=ranges, files=(file,) if rows else (), **more)


def test_rows_that_were_handed_over_are_in_the_files_of_who_took_them() -> None:
    plan = assemble(
        "t",
        {},
        [report(P0, 6, handed={"b": 7}, taken={"b": 3}), report(P1, 14, handed={"a": 3}, taken={"a": 7})],
        rows_are_records=True,
    )
    assert plan.rows == 20


def test_a_worker_may_have_handed_over_all_that_it_has_read() -> None:
    statuses = [report(P0, 0, handed={"b": 10}), report(P1, 20, taken={"a": 10})]
    assert assemble("t", {}, statuses, rows_are_records=True).rows == 20


@pytest.mark.parametrize("rows", [5, 7])
def test_a_worker_whose_files_hold_other_rows_than_it_kept_and_took_is_refused(rows: int) -> None:
    statuses = [report(P0, rows, handed={"b": 7}, taken={"b": 3}), report(P1, 14, handed={"a": 3})]
    with pytest.raises(Refused, match="7 handed over to others, of whom 3 were taken"):
        assemble("t", {}, statuses, rows_are_records=True)


def test_rows_that_nobody_took_are_refused() -> None:
    statuses = [report(P0, 3, handed={"b": 7}), report(P1, 10)]
    with pytest.raises(Refused, match="7 rows were handed over, and 0 of them were taken"):
        assemble("t", {}, statuses, rows_are_records=True)


def test_rows_that_nobody_handed_over_are_refused() -> None:
    statuses = [report(P0, 10), report(P1, 17, taken={"a": 7})]
    with pytest.raises(Refused, match="0 rows were handed over, and 7"):
        assemble("t", {}, statuses, rows_are_records=True)
