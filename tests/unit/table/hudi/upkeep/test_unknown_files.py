"""Files whose instants the timeline does not know, on a timeline that is spelled out."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from table.hudi.files.base_file import file_name, new_file_id
from table.hudi.reader.timeline import Timeline
from table.hudi.upkeep.timeline_records import TimelineRecords
from table.hudi.upkeep.unknown_files import unknown_files
from table.store.local import LocalStore
from tests.timeline_files import Table, committed, rolled_back, time


def hold(table: Table, number: int, *, ours: bool = True) -> str:
    file_id = new_file_id(number) if ours else f"{UUID(int=number)}-0"
    path = f"a/{file_name(file_id, '0-0-0', time(number))}"
    (table.base / "a").mkdir(exist_ok=True)
    (table.base / path).write_bytes(b"rows")
    return path


def test_files_of_instants_without_a_commit_or_a_rollback_are_unknown(tmp_path: Path) -> None:
    table = Table(tmp_path / "t")
    early, late = hold(table, 1), hold(table, 8)
    for number in (2, 3, 4, 5):
        hold(table, number)
    hold(table, 6, ours=False)
    table.archive(1, {f"{time(2)}_{time(2)}_0.parquet": [(time(2), time(3), "commit", committed())]})
    table.add(f"{time(3)}_{time(4)}.commit", committed())
    table.add(f"{time(4)}.commit.requested")
    table.add(f"{time(7)}_{time(8)}.rollback", rolled_back((time(5), "commit")))
    store, records = LocalStore(table.base), TimelineRecords(lambda: Timeline(table.base))
    assert unknown_files(store, records) == {time(1): [early], time(8): [late]}
    assert unknown_files(store, records, after=time(3)) == {time(8): [late]}
