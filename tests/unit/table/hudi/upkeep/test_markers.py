"""Markers of a commit's files: whether Hudi has to look at them, and who removes them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from control_topic.messages import DataFile
from table.hudi.files.base_file import MARKER_ATTEMPTS, create_marker
from table.hudi.upkeep.markers import Markers
from table.memory.store import MemoryStore
from table.store.local import LocalStore
from table.store.port import Store

INSTANT = "20261126120000000"


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    (tmp_path / ".hoodie" / ".temp").mkdir(parents=True)
    return LocalStore(tmp_path)


def file(table_partition: str, name: str) -> DataFile:
    path = f"{table_partition}/{name}" if table_partition else name
    return DataFile(path=path, body="", table_partition=table_partition, rows=1, size_bytes=1)


def marked(store: Store, *files: DataFile) -> tuple[DataFile, ...]:
    for one in files:
        create_marker(store, INSTANT, one.table_partition, one.path.rsplit("/", 1)[-1])
    return files


def test_where_every_marker_is_of_a_file_that_the_commit_names_nothing_is_left_to_hudi(
    store: LocalStore,
) -> None:
    files = marked(store, file("", "a.parquet"), file("day=1", "b.parquet"), file("a/b/c", "d.parquet"))
    markers = Markers(store)
    assert markers.are_of(INSTANT, files)
    assert markers.are_of(INSTANT, (*files, file("day=2", "without a marker.parquet")))
    assert markers.are_of("20261126120000001", ()), "an instant without files has none"


@pytest.mark.parametrize("stray", ["day=1/other.parquet.marker.CREATE", "b.parquet.marker.CREATE", "day=1/x"])
def test_a_marker_of_another_file_is_hudis_to_look_at(store: LocalStore, stray: str) -> None:
    """As of a worker whose part in the transaction is not in the commit: its file is to go."""
    files = marked(store, file("day=1", "b.parquet"))
    store.create(f".hoodie/.temp/{INSTANT}/{stray}")
    assert not Markers(store).are_of(INSTANT, files)


def test_where_each_look_is_a_request_hudi_does_all_of_it() -> None:
    store = MemoryStore()
    store.capabilities = replace(store.capabilities, remote=True)
    assert not Markers(store).are_of(INSTANT, marked(store, file("day=1", "b.parquet")))


def test_markers_of_an_instant_that_is_complete_are_removed_and_those_of_others_stay(
    store: LocalStore, tmp_path: Path
) -> None:
    marked(store, file("day=1", "b.parquet"), file("day=2", "c.parquet"))
    open_one = tmp_path / ".hoodie" / ".temp" / "20261126120000001"
    open_one.mkdir()
    markers = Markers(store)
    markers.completed(INSTANT)
    markers.close(timeout_s=60)
    assert list(open_one.parent.iterdir()) == [open_one]


def test_one_that_cannot_be_removed_keeps_no_other(store: LocalStore, tmp_path: Path) -> None:
    class Refusing(LocalStore):
        def delete_folder(self, path: str) -> None:
            if path.endswith("0"):
                raise PermissionError(13, "it may not be deleted", path)
            super().delete_folder(path)

    folders = [tmp_path / ".hoodie" / ".temp" / f"2026112612000000{n}" for n in range(2)]
    markers = Markers(Refusing(tmp_path))
    for folder in folders:
        folder.mkdir()
        markers.completed(folder.name)
    markers.close(timeout_s=60)
    assert [folder.exists() for folder in folders] == [True, False]


@pytest.mark.parametrize("times", [1, MARKER_ATTEMPTS - 1, MARKER_ATTEMPTS])
@pytest.mark.parametrize("step", ["before the folder", "before the marker"])
def test_a_worker_that_comes_too_late_has_its_marker_though_the_folder_is_taken_away_meanwhile(
    store: LocalStore, tmp_path: Path, step: str, times: int
) -> None:
    class Removing(LocalStore):
        left = times

        def create(self, path: str, data: bytes = b"") -> bool:
            if step == "before the marker" and self.left:
                self.left -= 1
                super().delete_folder(f".hoodie/.temp/{INSTANT}")
            return super().create(path, data)

        def make_folder(self, path: str) -> None:
            if step == "before the folder" and self.left:
                self.left -= 1
                raise FileNotFoundError(2, "as of makedirs, whose first folder has gone again", path)
            super().make_folder(path)

    late = Removing(tmp_path)
    if times == MARKER_ATTEMPTS:
        with pytest.raises(FileNotFoundError):
            create_marker(late, INSTANT, "day=1", "b.parquet")
    else:
        marker = create_marker(late, INSTANT, "day=1", "b.parquet")
        assert store.stat(marker) is not None
