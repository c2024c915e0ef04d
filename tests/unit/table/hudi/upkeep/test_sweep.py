"""What a sweep removes of what it finds, without Hudi: the timelines are data here."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Container, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

import pytest

from table.hudi.files.base_file import file_name, new_file_id
from table.hudi.upkeep.candidates import MARKERS
from table.hudi.upkeep.plans import BEGUN, NOTES
from table.hudi.upkeep.sweep import ARCHIVE_LOOKUPS_MAX, Sweeper
from table.memory.store import MemoryStore
from table.store.port import Capabilities, Upload

NOW_S = datetime(2026, 11, 22, 12, tzinfo=UTC).timestamp()
ARCHIVED, DONE, GONE, OPEN = (f"202611220{hour}0000000" for hour in (1, 2, 3, 4))


class Objects(MemoryStore):
    """As an object store."""

    def __init__(self) -> None:
        super().__init__(
            clock_s=time.time,
            capabilities=Capabilities(dates=True, folders=False, hides=True, remote=True, syncs=False),
        )
        self.begun: list[Upload] = []
        self.kept: set[str] = set()

    def uploads(self, folder: str = "") -> Iterator[Upload]:
        return iter([*self.begun])

    def abort(self, upload: Upload) -> None:
        self.begun.remove(upload)

    def delete(self, path: str) -> bool:
        if path in self.kept:
            raise PermissionError(13, "it may not be", path)
        return super().delete(path)


@dataclass(slots=True)
class Told:
    """Timelines that are told."""

    open: set[str] = field(default_factory=lambda: {OPEN})
    active: dict[str, set[str]] = field(default_factory=dict)
    archive: dict[str, set[str]] = field(default_factory=dict)
    rollbacks: set[str] = field(default_factory=lambda: {GONE})
    lookups: int = 0
    asked_as_ours: set[str] = field(default_factory=set)

    def pending(self) -> Container[str]:
        return self.open

    def named(self, instant: str, *, carried_out: bool) -> Container[str] | None:
        self.asked_as_ours |= {instant} if carried_out else set()
        return self.active.get(instant)

    def named_in_archive(
        self, instants: Collection[str], carried_out: Container[str]
    ) -> Mapping[str, Container[str]]:
        self.asked_as_ours |= {one for one in instants if one in carried_out and one in self.archive}
        self.lookups += len(instants)
        return {one: self.archive[one] for one in instants if one in self.archive}

    def rolled_back(self, instants: Collection[str]) -> Collection[str]:
        return self.rollbacks & set(instants)


def hold(store: MemoryStore, instant: str, number: int = 1) -> str:
    path = file_name(new_file_id(number), "0-0-0", instant)
    store.put(path, b"rows")
    return path


def sweeper(store: Objects, told: Told) -> Sweeper:
    return Sweeper(store, told, lambda: False, clock_s=lambda: NOW_S)


def test_files_that_no_commit_lists_are_removed_and_files_of_open_instants_stay() -> None:
    store, told = Objects(), Told()
    named, archived, opened = hold(store, DONE), hold(store, ARCHIVED), hold(store, OPEN)
    orphans = [hold(store, DONE, 2), hold(store, ARCHIVED, 2), hold(store, GONE)]
    told.active[DONE], told.archive[ARCHIVED] = {named}, {archived}
    assert sweeper(store, told).sweep(0).removed == len(orphans)
    assert sorted(store.names()) == sorted([named, archived, opened])


def test_files_of_an_instant_that_the_timeline_does_not_know_stay_until_it_does() -> None:
    """Its archive may be lost: a copy without it, a lifecycle rule, a restore."""
    store, told = Objects(), Told(rollbacks=set())
    kept = hold(store, GONE)
    sweeps = sweeper(store, told)
    for _ in range(2):
        report = sweeps.sweep(0)
        assert report.removed == 0 and [one.path for one in report.unknown] == [kept]
        assert "1 files of 1 instants are kept: the timeline has neither" in report.alarm
        assert kept in report.alarm
    told.archive[GONE] = {kept}
    report = sweeps.sweep(0)
    assert (report.removed, report.alarm, store.names()) == (0, "", [kept])


def test_files_for_a_plan_of_ours_that_the_timeline_does_not_know_stay() -> None:
    """Hudi carries a plan out again under the same instant: its rollback proves nothing of its files."""
    store, told = Objects(), Told()
    store.make_folder(BEGUN)
    store.put(f"{BEGUN}/{GONE}", b"compaction")
    kept = copy_of(store, GONE, 1)
    report = sweeper(store, told).sweep(0)
    assert report.removed == 0 and [one.path for one in report.unknown] == [kept]


def test_files_for_a_plan_that_a_driver_has_removed_go() -> None:
    store, told = Objects(), Told(rollbacks=set())
    store.make_folder(NOTES)
    store.put(f"{NOTES}/{GONE}", b"")
    late = copy_of(store, GONE, 1)
    assert sweeper(store, told).sweep(0).removed == 1 and store.stat(late) is None


@pytest.mark.parametrize(
    ("orphans", "others", "removed"),
    [(10, 0, 10), (11, 0, 0), (11, 1_088, 0), (11, 1_089, 11)],
)
def test_a_sweep_removes_ten_files_or_its_share_of_all_or_none(
    orphans: int, others: int, removed: int
) -> None:
    store, told = Objects(), Told(active={DONE: set()})
    for number in range(orphans):
        hold(store, DONE, number)
    for number in range(others):
        store.put(f"{number}.parquet", b"rows")
    sweeps = Sweeper(store, told, lambda: False, share=0.01, clock_s=lambda: NOW_S)
    assert sweeps.look(0).limited == (not removed)
    for _ in range(2):
        report = sweeps.sweep(0)
        assert report.removed == removed
        assert ("The sweep removed nothing" in report.alarm) == (not removed)
        if removed:
            break
    left = sweeps.sweep(0, limit=False)
    assert left.removed == orphans - removed and len(store.names()) == others


def test_instants_that_the_timeline_does_not_know_keep_no_other_from_being_looked_up() -> None:
    store, told = Objects(), Told(rollbacks=set())
    for minute in range(ARCHIVE_LOOKUPS_MAX):
        hold(store, f"20261122{minute // 60:02}{minute % 60:02}30000", minute)
    orphan = hold(store, "20261121000000000", 2_000)
    told.rollbacks.add("20261121000000000")
    sweeps = sweeper(store, told)
    assert sweeps.sweep(0).removed == 0
    assert sweeps.sweep(0).removed == 1 and store.stat(orphan) is None


def copy_of(store: MemoryStore, instant: str, number: int) -> str:
    """As a clustering names it."""
    path = file_name(f"{UUID(int=number)}-0", "0-1-2", instant)
    store.put(path, b"rows")
    return path


def test_copies_that_come_late_for_a_clustering_of_ours_go_and_those_for_other_writers_stay() -> None:
    """An executor that was taken for lost writes after another's copies have completed the clustering."""
    store, told = Objects(), Told()
    store.make_folder(BEGUN)
    for instant in (ARCHIVED, DONE, OPEN):
        store.put(f"{BEGUN}/{instant}", b"clustering")
    store.put(f"{BEGUN}/{GONE}.clustering.requested", b"")  # a plan that was put aside says nothing of it
    named, archived = copy_of(store, DONE, 1), copy_of(store, ARCHIVED, 2)
    others, opened = copy_of(store, GONE, 3), copy_of(store, OPEN, 4)
    late = [copy_of(store, DONE, 5), copy_of(store, ARCHIVED, 6)]
    told.active[DONE], told.archive[ARCHIVED] = {named}, {archived}
    sweeps = sweeper(store, told)
    assert sweeps.sweep(0).removed == len(late)
    assert set(store.names()) == {".hoodie", named, archived, others, opened}
    assert told.asked_as_ours == {ARCHIVED, DONE}
    again = copy_of(store, DONE, 5)
    assert sweeps.sweep(0).removed == 1 and store.stat(again) is None


def test_markers_that_hudi_has_left_of_an_instant_that_is_complete_go_and_those_of_an_open_one_stay() -> None:
    store, told = Objects(), Told(active={DONE: set()})
    left = [f"{MARKERS}/{instant}/d/x_0-0-0_{instant}.parquet.marker.CREATE" for instant in (DONE, OPEN)]
    for marker in left:
        store.make_folder(marker.rpartition("/")[0])
        store.put(marker, b"")
    assert sweeper(store, told).sweep(grace_ms=0).removed == 0
    assert [store.stat(marker) is not None for marker in left] == [False, True]


def test_an_upload_whose_instant_is_over_is_aborted() -> None:
    store, told = Objects(), Told()
    for number, instant in enumerate((GONE, OPEN)):
        path = file_name(new_file_id(number), "0-0-0", instant)
        store.begun.append(Upload(path=path, number=instant, begun=datetime.now(UTC)))
    sweeper(store, told).sweep(0)
    assert [one.number for one in store.begun] == [OPEN]


def test_a_file_that_may_not_be_removed_keeps_no_other_and_is_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = Objects()
    sweeps = sweeper(store, Told())
    kept, other = hold(store, GONE), hold(store, GONE, 2)
    store.kept.add(kept)
    with caplog.at_level(logging.WARNING):
        assert sweeps.sweep(0).removed == 1 and store.stat(other) is None
    assert "could not be removed" in caplog.text and kept in caplog.text
    store.kept.clear()
    assert sweeps.sweep(0).removed == 1 and store.names() == []


def test_the_archive_is_asked_for_so_many_instants_in_a_sweep_and_the_rest_in_the_next() -> None:
    store, told = Objects(), Told()
    for minute in range(ARCHIVE_LOOKUPS_MAX + 5):
        instant = f"20261122{minute // 60:02}{minute % 60:02}00000"
        told.rollbacks.add(instant)
        hold(store, instant, minute)
    sweeps = sweeper(store, told)
    assert sweeps.sweep(0).removed == told.lookups == ARCHIVE_LOOKUPS_MAX
    assert sweeps.sweep(0).removed == 5
