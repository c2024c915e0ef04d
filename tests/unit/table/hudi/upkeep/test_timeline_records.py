"""What the sweep learns of instants from timelines that are spelled out file by file."""

from __future__ import annotations

from pathlib import Path

import pytest

from table.hudi.reader.timeline import Timeline
from table.hudi.upkeep.timeline_records import TimelineRecords
from tests.timeline_files import Table, committed, rolled_back, time

A_FILE = [{"path": "a/1.parquet"}]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path / "t")


def records(table: Table) -> TimelineRecords:
    return TimelineRecords(lambda: Timeline(table.base))


def test_a_commit_lists_its_files_on_either_timeline_and_an_absent_one_lists_nothing(table: Table) -> None:
    table.add(f"{time(5)}_{time(6)}.commit", committed(stats=A_FILE))
    table.add(f"{time(7)}.commit.requested")
    archived = committed(stats=[{"path": "a/2.parquet"}])
    table.archive(1, {f"{time(1)}_{time(3)}_0.parquet": [(time(1), time(2), "commit", archived)]})
    seen = records(table)
    pending = seen.pending()
    assert time(7) in pending and time(5) not in pending
    listed = seen.named(time(5), carried_out=False)
    assert listed is not None and "a/1.parquet" in listed and "a/2.parquet" not in listed
    assert seen.named(time(1), carried_out=False) is None and seen.named(time(7), carried_out=False) is None
    found = seen.named_in_archive([time(1), time(2), time(9)], ())
    assert (
        list(found) == [time(1)] and "a/2.parquet" in found[time(1)] and "a/1.parquet" not in found[time(1)]
    )


@pytest.mark.parametrize("archived", [False, True])
def test_a_rollback_proves_itself_of_a_commit_and_not_of_a_plan(table: Table, archived: bool) -> None:
    """Hudi carries a plan out again under the instant of a rollback."""
    targets = [
        (time(1), "commit"),
        (time(2), "deltacommit"),
        (time(3), "compaction"),
        (time(4), "clustering"),
    ]
    raw = rolled_back(*targets)
    if archived:
        table.archive(1, {f"{time(8)}_{time(8)}_0.parquet": [(time(8), time(9), "rollback", raw)]})
    else:
        table.add(f"{time(8)}_{time(9)}.rollback", raw)
    seen = records(table)
    for _ in range(2):
        seen.pending()
        asked = [time(number) for number in range(6)]
        assert set(seen.rolled_back(asked)) == {time(1), time(2)}


def test_a_rollback_that_is_requested_proves_nothing(table: Table) -> None:
    table.add(f"{time(8)}.rollback.requested", rolled_back((time(1), "commit")))
    seen = records(table)
    seen.pending()
    assert not seen.rolled_back([time(1)])


def test_a_rollback_in_an_archive_of_local_time_is_found_where_an_hour_came_twice(table: Table) -> None:
    raw = rolled_back(("20261025025000000", "commit"))
    entry = ("20261025021000000", "20261025021001000", "rollback", raw)
    table.archive(1, {"20261025021000000_20261025021000000_0.parquet": [entry]})
    seen = records(table)
    seen.pending()
    assert seen.rolled_back(["20261025025000000"])


@pytest.mark.parametrize("action", ["replacecommit", "clean", "savepoint"])
def test_files_of_instants_of_other_writers_are_not_judged(table: Table, action: str) -> None:
    table.add(f"{time(1)}_{time(2)}.{action}", committed(stats=A_FILE))
    table.archive(1, {f"{time(0)}_{time(0)}_0.parquet": [(time(0), time(1), action, committed())]})
    seen = records(table)
    seen.pending()
    listed = seen.named(time(1), carried_out=False)
    assert listed is not None and "whatever" in listed
    assert "whatever" in seen.named_in_archive([time(0)], ())[time(0)]


def test_a_clustering_of_ours_lists_its_files(table: Table) -> None:
    table.add(f"{time(1)}_{time(2)}.replacecommit", committed(operation="CLUSTER", stats=A_FILE))
    seen = records(table)
    seen.pending()
    listed = seen.named(time(1), carried_out=True)
    assert listed is not None and "a/1.parquet" in listed and "a/2.parquet" not in listed


def test_an_instant_that_is_archived_after_the_look_is_looked_up_there(table: Table) -> None:
    name = f"{time(1)}_{time(2)}.commit"
    table.add(name, committed(stats=A_FILE))
    seen = records(table)
    seen.pending()
    (table.folder / name).unlink()
    assert seen.named(time(1), carried_out=False) is None
