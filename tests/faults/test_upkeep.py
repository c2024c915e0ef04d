"""What is read off a timeline's file names decides whether a blow hit a service in the middle of its work."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults import upkeep
from tests.faults.commits import leftovers, unnamed_base_files
from tests.faults.upkeep import Action, Moment
from tests.place import METADATA_TIMELINE, Folder

FIRST, SECOND, THIRD = (f"2026010100000{n}000" for n in range(3))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A compaction that is complete, one that is begun, one that is planned; and a transaction."""
    timeline = tmp_path / ".hoodie" / "timeline"
    timeline.mkdir(parents=True)
    for name in (
        *(f"{one}.compaction.requested" for one in (FIRST, SECOND, THIRD)),
        *(f"{one}.compaction.inflight" for one in (FIRST, SECOND)),
        f"{FIRST}_20260101000009000.commit",
        f"{THIRD}.deltacommit.inflight",
    ):
        (timeline / name).touch()
    (tmp_path / "a").mkdir()
    return tmp_path


def test_an_instant_is_pending_until_it_is_complete_and_begun_once_it_is_inflight(table: Path) -> None:
    place = Folder(table)
    assert upkeep.pending(place, Action.COMPACTION) == {SECOND, THIRD}
    assert upkeep.begun(place, Action.COMPACTION) == {SECOND}
    assert upkeep.completed(place, Action.COMPACTION) == {FIRST}
    assert upkeep.begun(place, Action.DELTACOMMIT) == {THIRD}
    assert not upkeep.pending(place, Action.CLEAN)
    assert not upkeep.pending(Folder(table / "none"), Action.CLEAN)


def test_a_service_is_met_when_it_is_begun_or_writes_or_is_in_the_metadata_table(table: Path) -> None:
    place = Folder(table)
    assert upkeep.await_begun(place, Action.COMPACTION) == SECOND
    (table / "a" / f"00000000-0_1-2-3_{SECOND}.parquet").touch()
    assert upkeep.await_begun(place, Action.COMPACTION, Moment.WRITING) == SECOND
    assert upkeep.base_files(place, SECOND) == [f"a/00000000-0_1-2-3_{SECOND}.parquet"]
    (table / METADATA_TIMELINE).mkdir(parents=True)
    for name in (f"{FIRST}_{THIRD}.deltacommit", f"{SECOND}.deltacommit.inflight"):
        (table / METADATA_TIMELINE / name).touch()
    assert upkeep.is_listed(place, FIRST) and not upkeep.is_listed(place, SECOND)
    (table / METADATA_TIMELINE / f"{SECOND}_{THIRD}.deltacommit").touch()
    assert upkeep.await_begun(place, Action.COMPACTION, Moment.LISTED) == SECOND


def test_files_that_no_commit_names_are_found(table: Path) -> None:
    for path in (table / ".hoodie" / "timeline").iterdir():
        path.unlink()
    (table / ".hoodie" / "hoodie.properties").write_text(
        "hoodie.table.version=9\nhoodie.timeline.layout.version=2\n"
    )
    bucket = f"00000001-0000-0000-0000-000000000000-0_1-2-3_{FIRST}.parquet"
    others = f"5f0b3ac1-1111-4111-8111-5f0b3ac15f0b-0_1-2-3_{FIRST}.parquet"
    log = f".00000001-0000-0000-0000-000000000000-0_{FIRST}.log.1_0-281565161-77"
    for name in (bucket, others, log):
        (table / "a" / name).touch()
    found = leftovers(Folder(table), "events").files
    assert {f"a/{bucket}", f"a/{log}"} <= set(found) and f"a/{others}" not in found
    assert set(unnamed_base_files(Folder(table))) == {f"a/{bucket}", f"a/{others}"}
