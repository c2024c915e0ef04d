"""The timeline reader on timelines spelled out file by file; the real ones are in the integration tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from time import tzset

import pytest

from control_topic.messages import EPOCH_LEAD_MAX, EPOCH_MAX, SourcePartition
from table.errors import Refused
from table.hudi.reader.stored import parse_properties, table_properties
from table.hudi.reader.timeline import Timeline
from table.instants import MissingTable
from table.state import StateError, TableState, decode, encode, owner
from tests.hudi_avro import COMMIT, PLAN, avro
from tests.timeline_files import Table, committed, time

P0 = SourcePartition("events", 0)


def state(offset: int, *, pipeline: str = "p") -> dict[str, str]:
    return encode(
        TableState(
            pipeline=pipeline, run="r", epoch=1, transaction=f"t{offset}", offsets={P0: offset}, kind="data"
        )
    )


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path / "t")


def test_instants_come_by_completion_not_by_request(table: Table) -> None:
    table.add(f"{time(1)}_{time(9)}.commit", committed())
    table.add(f"{time(2)}_{time(3)}.commit", committed())
    table.add(f"{time(4)}_{time(5)}.clean", b"whatever")
    assert [(i.requested, i.action) for i in Timeline(table.base).completed()] == [
        (time(1), "commit"),
        (time(4), "clean"),
        (time(2), "commit"),
    ]


def test_a_commits_files_and_what_it_did_to_others_rows_are_read(table: Table) -> None:
    stats = [
        {"path": "a/1.parquet", "numWrites": 10, "numUpdateWrites": 2, "fileSizeInBytes": 99},
        {"path": "a/2.parquet", "numWrites": 5, "numDeletes": 1, "fileSizeInBytes": 50},
    ]
    table.add(f"{time(1)}_{time(2)}.commit", committed(operation="UPSERT", stats=stats))
    (instant,) = Timeline(table.base).completed()
    assert [(f.path, f.rows, f.size_bytes) for f in instant.files] == [
        ("a/1.parquet", 10, 99),
        ("a/2.parquet", 5, 50),
    ]
    assert (instant.operation, instant.updated, instant.deleted) == ("UPSERT", 2, 1)
    assert instant.state is None


def test_clustering_replaces_no_rows_and_an_overwrite_does(table: Table) -> None:
    table.add(f"{time(1)}_{time(2)}.replacecommit", committed(operation="CLUSTER"))
    table.add(f"{time(3)}_{time(4)}.replacecommit", committed(operation="INSERT_OVERWRITE"))
    assert [i.replaces for i in Timeline(table.base).completed()] == [True, False]


def test_the_newest_state_is_found_behind_foreign_commits_and_other_pipelines(table: Table) -> None:
    table.add(f"{time(1)}_{time(2)}.commit", committed(state(10)))
    table.add(f"{time(3)}_{time(4)}.commit", committed(state(20)))
    table.add(f"{time(5)}_{time(6)}.commit", committed(state(99, pipeline="q")))
    table.add(f"{time(7)}_{time(8)}.commit", committed())
    newest = Timeline(table.base).newest("p")
    assert newest is not None
    assert (newest.offsets, newest.instant) == ({P0: 20}, time(3))
    assert Timeline(table.base).newest("nobody") is None


def test_of_two_commits_the_one_that_follows_is_the_newest_though_it_completed_earlier_by_the_clock(
    table: Table,
) -> None:
    table.add(f"{time(1)}_{time(8)}.commit", committed(state(10)))
    table.add(f"{time(2)}_{time(3)}.commit", committed(state(20)))
    newest = Timeline(table.base).newest("p")
    assert newest is not None and (newest.instant, newest.offsets) == (time(2), {P0: 20})


def test_the_newest_state_is_found_in_the_archive(table: Table) -> None:
    table.add(f"{time(9)}_{time(10)}.commit", committed())
    table.archive(
        3,
        {
            f"{time(1)}_{time(2)}_1.parquet": [
                (time(1), time(2), "commit", committed(state(10))),
                (time(2), time(3), "clean", b"not a commit"),
            ],
            f"{time(3)}_{time(5)}_0.parquet": [
                (time(5), time(6), "commit", committed()),
                (time(3), time(4), "commit", committed(state(20))),
            ],
        },
    )
    timeline = Timeline(table.base)
    newest = timeline.newest("p")
    assert newest is not None and newest.offsets == {P0: 20}
    assert [i.requested for i in timeline.completed()] == [time(9), time(5), time(3), time(2), time(1)]


FIRST_250, SECOND_210 = "20261025025000000", "20261025021000000"
"""Local times of the night in which summer time ends: ten to three, and twenty minutes later."""


def folded(table: Table, *, first_is_active: bool) -> Timeline:
    """The newest commit was requested when the hour came for the second time, by an older Lockstep."""
    first = (FIRST_250, "20261025025100000", "commit", committed(state(20)))
    second = (SECOND_210, "20261025021100000", "commit", committed(state(30)))
    archived = {f"20261025012000000_{SECOND_210}_0.parquet": [second]}
    if first_is_active:
        table.add(f"{first[0]}_{first[1]}.commit", first[3])
    else:
        archived[f"20261025021500000_{FIRST_250}_0.parquet"] = [first]
    table.archive(1, archived)
    return Timeline(table.base)


@pytest.mark.parametrize("first_is_active", [True, False])
def test_of_a_table_in_local_time_the_newest_is_found_though_it_was_requested_in_the_hour_that_came_twice(
    table: Table, first_is_active: bool
) -> None:
    newest = folded(table, first_is_active=first_is_active).newest("p")
    assert newest is not None and (newest.instant, newest.offsets) == (SECOND_210, {P0: 30})


def test_of_a_table_in_local_time_older_stretches_of_the_archive_are_not_read(table: Table) -> None:
    day = {"20261024000000000_20261024235900000_0.parquet": [("20261024235900000", "2", "commit", b"none")]}
    table.archive(1, day)
    table.add(f"{FIRST_250}_{FIRST_250}.commit", committed(state(20)))
    newest = Timeline(table.base).newest("p")
    assert newest is not None and newest.offsets == {P0: 20}


def test_an_instant_that_is_still_active_and_archived_already_is_given_once(table: Table) -> None:
    raw = committed(state(10))
    table.add(f"{time(1)}_{time(2)}.commit", raw)
    table.archive(1, {f"{time(1)}_{time(1)}_0.parquet": [(time(1), time(2), "commit", raw)]})
    assert len(list(Timeline(table.base).completed())) == 1


def test_an_instant_that_is_archived_while_it_is_read_is_given_once(table: Table) -> None:
    for number in (1, 3, 5):
        table.add(f"{time(number)}_{time(number + 1)}.commit", committed(state(number)))
    instants = Timeline(table.base).completed()
    first = next(instants)
    table.archive(1, {f"{time(1)}_{time(1)}_0.parquet": [(time(1), time(2), "commit", committed(state(1)))]})
    (table.folder / f"{time(1)}_{time(2)}.commit").unlink()
    assert [first.requested, *(i.requested for i in instants)] == [time(5), time(3), time(1)]


def test_an_archive_that_is_merged_while_it_is_read_is_read_again(table: Table) -> None:
    old = {
        f"{time(n)}_{time(n)}_0.parquet": [(time(n), time(n + 1), "commit", committed(state(n)))]
        for n in (1, 3)
    }
    table.archive(1, old)
    instants = Timeline(table.base).completed()
    first = next(instants)
    merged = [row for rows in old.values() for row in rows]
    table.archive(2, {f"{time(1)}_{time(3)}_1.parquet": merged})
    for name in old:
        os.unlink(table.history / name)
    assert [first.requested, *(i.requested for i in instants)] == [time(3), time(1)]


def test_pending_instants_say_whose_they_are_and_whether_a_rollback_names_them(table: Table) -> None:
    inflight = avro(COMMIT, {"extraMetadata": owner("p", "r1", "t1")})
    table.add(f"{time(1)}.commit.requested")
    table.add(f"{time(1)}.inflight", inflight)
    table.add(f"{time(1)}_{time(2)}.commit", committed())
    table.add(f"{time(3)}.commit.requested")
    table.add(f"{time(3)}.inflight", inflight)
    table.add(f"{time(4)}.commit.requested")
    table.add(f"{time(5)}.clustering.requested", b"a plan")
    table.add(f"{time(5)}.clustering.inflight")
    plan = avro(PLAN, {"instantToRollback": {"commitTime": time(3), "action": "commit"}})
    table.add(f"{time(6)}.rollback.requested", plan)
    pending = Timeline(table.base).pending()
    assert [(p.requested, p.action, p.phase, p.rollback_requested, p.rolls_back) for p in pending] == [
        (time(3), "commit", "inflight", True, ""),
        (time(4), "commit", "requested", False, ""),
        (time(5), "clustering", "inflight", False, ""),
        (time(6), "rollback", "requested", False, time(3)),
    ]
    assert pending[0].owner == {"pipeline": "p", "run": "r1", "transaction": "t1"}
    assert pending[1].owner == {}


def test_a_table_without_instants_has_nothing(tmp_path: Path) -> None:
    table = Table(tmp_path / "t")
    table.history.rmdir()
    table.folder.rmdir()
    timeline = Timeline(f"file://{table.base}")
    assert list(timeline.completed()) == []
    assert timeline.pending() == []
    assert timeline.newest("p") is None


def test_files_that_are_no_instants_are_passed_over(table: Table) -> None:
    for name in (f".{time(1)}_{time(2)}.commit.crc", "history.txt", f"{time(1)}.commit", "1_2.commit"):
        table.add(name, b"?")
    assert list(Timeline(table.base).completed()) == []


def test_a_missing_table_is_told_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(MissingTable, match=r"no Hudi table at .*nothing-here.*lockstep run"):
        Timeline(tmp_path / "nothing-here")


def test_another_version_of_table_is_refused_with_its_version(tmp_path: Path) -> None:
    table = Table(tmp_path / "t", **{"hoodie.table.version": "6", "hoodie.timeline.layout.version": "1"})
    with pytest.raises(Refused, match="version 6"):
        Timeline(table.base)


def test_a_damaged_commit_is_named(table: Table) -> None:
    table.add(f"{time(1)}_{time(2)}.commit", b"not avro")
    with pytest.raises(Refused, match=time(1)):
        list(Timeline(table.base).completed())


def test_a_state_of_another_version_is_not_passed_over(table: Table) -> None:
    table.add(f"{time(1)}_{time(2)}.commit", committed({**state(1), "lockstep.version": "99"}))
    with pytest.raises(StateError, match=r"99"):
        Timeline(table.base).newest("p")


def test_an_epoch_that_no_run_can_have_come_to_is_refused_and_one_that_was_driven_high_is_read() -> None:
    for epoch in (2**63 - 3, 2**63 - 1, EPOCH_MAX - EPOCH_LEAD_MAX):
        found = decode({**state(1), "lockstep.epoch": str(epoch)})
        assert found is not None and found.epoch == epoch
    for epoch in (EPOCH_MAX - EPOCH_LEAD_MAX + 1, EPOCH_MAX, 2**80):
        with pytest.raises(StateError, match="at the end of all epochs"):
            decode({**state(1), "lockstep.epoch": str(epoch)}, instant="007")


def test_properties_are_unescaped_as_java_escapes_them() -> None:
    text = '#c\n!c\nschema={"type"\\:"record"}\npath=a\\=b\\\\c\nempty=\nname=caf\\u00e9\n'
    assert parse_properties(text) == {
        "schema": '{"type":"record"}',
        "path": "a=b\\c",
        "empty": "",
        "name": "café",
    }


def test_properties_are_read_while_they_are_being_rewritten(table: Table) -> None:
    folder = table.base / ".hoodie"
    (folder / "hoodie.properties").rename(folder / "hoodie.properties.backup")
    assert table_properties(str(table.base))["hoodie.table.version"] == "9"


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This machine is in Berlin."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Europe/Berlin")
        tzset()
        yield
    tzset()


def test_of_a_local_time_that_comes_twice_an_instant_has_the_later_one(tmp_path: Path, berlin: None) -> None:
    """A pending instant that seems an hour older than it is would be taken for abandoned."""
    timeline = Timeline(Table(tmp_path / "t", **{"hoodie.table.timeline.timezone": "LOCAL"}).base)
    assert timeline.time_ms("20261025023000000") == 1_792_891_800_000
    assert timeline.time_ms("20261025013000000") == 1_792_884_600_000
    assert timeline.time_ms("20261025030000000") == 1_792_893_600_000


def test_an_instants_time_is_of_the_tables_zone(tmp_path: Path) -> None:
    table = Table(tmp_path / "t", **{"hoodie.table.timeline.timezone": "UTC"})
    assert Timeline(table.base).time_ms("20260101000001234") == 1_767_225_601_234
    assert Timeline(table.base).time_ms("20260101000001") == 1_767_225_601_000


@pytest.mark.parametrize("version", [None, b"", b" \n"])
def test_an_archive_without_its_version_file_is_read_by_the_newest_manifest_as_hudi_does(
    table: Table, version: bytes | None
) -> None:
    entry = (time(1), time(2), "commit", committed(state(10)))
    name = f"{time(1)}_{time(1)}_0.parquet"
    table.archive(9, {})
    table.archive(10, {name: [entry]})
    path = table.history / "_version_"
    path.unlink() if version is None else path.write_bytes(version)
    newest = Timeline(table.base).newest("p")
    assert newest is not None and newest.offsets == {P0: 10}
