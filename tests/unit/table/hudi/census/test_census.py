"""The count of a table that is spelled out file by file: what is read, how often, and what damage is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from table.census import Census
from table.errors import Refused, Unavailable
from table.hudi.avro import to_avro
from table.hudi.census.census import HudiCensus
from table.hudi.files.base_file import file_name
from table.hudi.files.log_file import bucket_file_id, log_file_name
from table.hudi.properties import SMALL_FILES
from table.hudi.reader.timeline import Timeline
from table.instants import MissingTable
from table.port import TableSpec
from table.schema import parse_ddl
from table.store.local import LocalStore
from tests.hudi_avro import COMMIT, REPLACE, avro
from tests.timeline_files import Table, time

DDL = "id STRING NOT NULL, amount INT"
TOKEN = "0-1-2"


def committed(
    ddl: str = DDL, *, operation: str = "BULK_INSERT", replaced: Mapping[str, Sequence[str]] | None = None
) -> bytes:
    record: dict[str, Any] = {
        "partitionToWriteStats": {},
        "extraMetadata": {"schema": to_avro(parse_ddl(ddl), "t")} if ddl else {},
        "operationType": operation,
    }
    if replaced is None:
        return avro(COMMIT, record)
    return avro(REPLACE, {**record, "partitionToReplaceFileIds": dict(replaced)})


def group(number: int) -> str:
    return f"10c857e9-0000-0000-0000-{number:012}-0"


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path / "t", **{"hoodie.table.timeline.timezone": "UTC"})


def write(table: Table, group_number: int, instant: int, size_bytes: int = 10, folder: str = "a") -> None:
    file = table.base / folder / file_name(group(group_number), TOKEN, time(instant))
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"x" * size_bytes)


def census_of(table: Table, **more: Any) -> HudiCensus:
    return HudiCensus(
        TableSpec(path=str(table.base), name="t", mode="insert", ddl=DDL, key_fields=("id",), **more)
    )


def take(census: HudiCensus, unless: str | None = None) -> Census:
    found = census.take(unless=unless, files_max=1_000, enough=lambda: False)
    assert found is not None
    return found


def test_a_missing_table_and_one_without_a_commit_are_told_apart(table: Table, tmp_path: Path) -> None:
    found = take(census_of(table))
    assert (found.as_of, found.files.files, found.schema.columns) == ("", 0, ())
    with pytest.raises(MissingTable):
        take(HudiCensus(TableSpec(path=str(tmp_path / "none"), name="t", mode="insert", ddl=DDL)))


def test_what_a_clustering_replaced_does_not_count_before_it_is_cleaned(table: Table) -> None:
    for number in (1, 2):
        write(table, number, number)
        table.add(f"{time(number)}_{time(number)}.commit", committed())
    write(table, 3, 3, 25)
    census = census_of(table)
    assert take(census).files.files == 2, "its instant is not complete"
    done = committed(operation="CLUSTER", replaced={"a": [group(1), group(2)]})
    table.add(f"{time(3)}_{time(4)}.replacecommit", done)
    found = take(census)
    assert (found.files.files, found.files.size_bytes) == (1, 25)
    assert len(list((table.base / "a").iterdir())) == 3


def test_an_open_instant_and_one_that_was_rolled_back_do_not_count(table: Table) -> None:
    for number in (1, 2, 3):
        write(table, number, number)
    table.add(f"{time(1)}_{time(1)}.commit", committed())
    table.add(f"{time(2)}.commit.requested")
    table.add(f"{time(2)}.inflight")
    assert take(census_of(table)).files.files == 1


def test_log_files_are_told_apart(table: Table) -> None:
    (table.base / "a").mkdir()
    for number in (1, 2):
        name = log_file_name(bucket_file_id(0), time(number), TOKEN)
        (table.base / "a" / name).write_bytes(b"log")
        table.add(f"{time(number)}_{time(number)}.deltacommit", committed(operation="UPSERT"))
    found = take(census_of(table)).files
    assert (found.files, found.log_files, found.log_bytes) == (0, 2, 6)


def test_what_clustering_takes_for_small_is_small(table: Table) -> None:
    write(table, 1, 1, 10)
    table.add(f"{time(1)}_{time(1)}.commit", committed())
    found = take(census_of(table, target_file_bytes=19)).files
    assert (found.small_files, found.small_below_bytes) == (0, 9)
    found = take(census_of(table, target_file_bytes=19, properties={SMALL_FILES: "11"})).files
    assert (found.small_files, found.small_below_bytes) == (1, 11)


def test_columns_and_their_changes_are_those_of_the_commits_that_wrote_rows(table: Table) -> None:
    table.add(f"{time(1)}_{time(2)}.commit", committed())
    table.add(f"{time(3)}_{time(4)}.commit", committed("id STRING NOT NULL, amount BIGINT, note STRING"))
    table.add(f"{time(5)}_{time(6)}.replacecommit", committed(operation="CLUSTER", replaced={}))
    table.add(f"{time(7)}_{time(8)}.clean", b"whatever")
    told = take(census_of(table)).schema
    assert [(one.name, one.kind) for one in told.columns] == [
        ("id", "STRING"),
        ("amount", "BIGINT"),
        ("note", "STRING"),
    ]
    (change,) = told.changes
    assert (change.instant, told.since) == (time(3), time(1))
    assert change.completed_ms - told.since_ms == 2
    assert [(one.name, one.was, one.now) for one in change.changes] == [
        ("note", "", "STRING"),
        ("amount", "INT", "BIGINT"),
    ]


def test_a_change_is_remembered_though_its_instant_is_archived(table: Table) -> None:
    table.add(f"{time(1)}_{time(1)}.commit", committed())
    census = census_of(table)
    take(census)
    (table.folder / f"{time(1)}_{time(1)}.commit").unlink()
    table.add(f"{time(2)}_{time(2)}.commit", committed(f"{DDL}, note STRING"))
    take(census)
    (table.folder / f"{time(2)}_{time(2)}.commit").unlink()
    table.add(f"{time(3)}_{time(3)}.commit", committed(f"{DDL}, note STRING"))
    told = take(census).schema
    assert [one.instant for one in told.changes] == [time(2)] and told.since == time(1)


def test_where_nothing_was_completed_nothing_is_listed_and_nothing_read_twice(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed, read = [], []
    sizes, metadata = LocalStore.sizes, Timeline.metadata
    monkeypatch.setattr(LocalStore, "sizes", lambda *a, **k: (listed.append(1), sizes(*a, **k))[1])
    monkeypatch.setattr(Timeline, "metadata", lambda self, one: (read.append(one[0]), metadata(self, one))[1])
    table.add(f"{time(1)}_{time(1)}.commit", committed())
    table.add(f"{time(2)}_{time(2)}.replacecommit", committed(operation="CLUSTER", replaced={"a": ["x"]}))
    census = census_of(table)
    first = take(census)
    table.add(f"{time(3)}.commit.requested")
    assert census.take(unless=first.as_of, files_max=9, enough=lambda: False) is None
    assert (len(listed), read) == (1, [time(1), time(2)])
    table.add(f"{time(3)}_{time(4)}.commit", committed())
    assert take(census, first.as_of).as_of != first.as_of
    assert (len(listed), read) == (2, [time(1), time(2), time(3)])


def test_damage_is_said_and_what_storage_refuses_too(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.add(f"{time(1)}_{time(1)}.commit", b"no Avro")
    with pytest.raises(Refused, match=time(1)):
        take(census_of(table))
    odd = avro(COMMIT, {"partitionToWriteStats": {}, "extraMetadata": {"schema": "{"}, "operationType": "X"})
    table.add(f"{time(1)}_{time(1)}.commit", odd)
    with pytest.raises(Refused, match=time(1)):
        take(census_of(table))
    table.add(f"{time(1)}_{time(1)}.commit", committed())

    def refuses(*_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied", "/t/a")

    monkeypatch.setattr(LocalStore, "sizes", refuses)
    with pytest.raises(Unavailable, match="Permission denied"):
        take(census_of(table))
