"""What a sweep has to judge where folders are a part of names: by instants in names, and by nothing else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from table.hudi.files.base_file import file_name, new_file_id
from table.hudi.files.log_file import bucket_file_id, log_file_name, write_token
from table.hudi.upkeep import candidates as candidates_module
from table.hudi.upkeep.candidates import MARKERS, ByDates, ByNames, candidates
from table.memory.store import MemoryStore
from table.store.local import LocalStore
from table.store.paths import DRAFT
from table.store.port import Capabilities, Stat, Upload

OBJECTS = Capabilities(dates=True, folders=False, hides=True, remote=True, syncs=False)
NOW_S = datetime(2026, 11, 22, 12, tzinfo=UTC).timestamp()
INSTANT = "20261122110000000"
YOUNG = "20261122115959000"
OLD = "20261101000000000"


class Objects(MemoryStore):
    """As an object store; whoever asks for a file's date is told that none may be asked for."""

    begun: tuple[Upload, ...] = ()

    def __init__(self) -> None:
        super().__init__(capabilities=OBJECTS)

    def stat(self, path: str) -> Stat | None:
        raise AssertionError(f"a request for {path}")

    def uploads(self, folder: str = "") -> Iterator[Upload]:
        return iter(self.begun)

    def hold(self, path: str) -> str:
        self.make_folder(path.rpartition("/")[0])
        self.put(path, b"")
        return path


@pytest.fixture
def store() -> Objects:
    return Objects()


@pytest.fixture
def found(store: Objects, monkeypatch: pytest.MonkeyPatch) -> ByNames:
    monkeypatch.setattr(candidates_module.time, "time", lambda: NOW_S)
    made = candidates(store, in_local_time=False)
    assert isinstance(made, ByNames)
    return made


def base(instant: str, number: int = 1) -> str:
    return file_name(new_file_id(number), "0-0-0", instant)


def log(instant: str) -> str:
    return log_file_name(bucket_file_id(3), instant, write_token(0, "i"))


def look(found: ByNames, *, grace_ms: int = 600_000) -> list[str]:
    found.begin(grace_ms)
    unseen: list[OSError] = []
    paths = sorted(path for path, _ in found.files((), unseen))
    assert not unseen
    return paths


def test_files_of_the_last_week_that_bear_our_mark_are_judged_by_their_names(
    store: Objects, found: ByNames
) -> None:
    ours = sorted(store.hold(f"d1/{name}") for name in (base(INSTANT), log(INSTANT)))
    for name in (base(OLD), base(YOUNG), log(YOUNG), "part-0.parquet", f"x_0-0-0_{INSTANT}.parquet"):
        store.hold(f"d1/{name}")
    store.hold(f".hoodie/{base(INSTANT)}")
    assert look(found) == ours
    assert len(look(found, grace_ms=0)) == len(ours) + 2, "what is young as well"


def test_what_was_judged_is_not_given_again_and_what_was_left_is(store: Objects, found: ByNames) -> None:
    judged, left = store.hold(f"d1/{base(INSTANT)}"), store.hold(f"d1/{base(INSTANT, 2)}")
    assert look(found) == sorted([judged, left])
    found.settle({judged}, {left}, complete=True)
    assert look(found) == [left]


def test_a_file_that_was_removed_and_comes_again_is_judged_again(store: Objects, found: ByNames) -> None:
    path = store.hold(f"d1/{base(INSTANT)}")
    found.begin(0)
    found.settle({path}, set(), complete=True)
    store.delete(path)
    assert look(found) == []
    store.hold(path)
    assert look(found) == [path]


def test_uploads_with_our_mark_are_found_however_old_their_instant_is(store: Objects, found: ByNames) -> None:
    names = (base(INSTANT), log(OLD), base(YOUNG), "part-0.parquet")
    store.begun = tuple(Upload(path=f"d1/{name}", number=name, begun=datetime.now(UTC)) for name in names)
    found.begin(600_000)
    assert [(one.path, instant) for one, instant in found.uploads(())] == [
        (f"d1/{names[0]}", INSTANT),
        (f"d1/{names[1]}", OLD),
    ]


def test_markers_of_instants_that_are_over_go_where_all_of_them_are_ours(
    store: Objects, found: ByNames
) -> None:
    mixed, pending = "20261122100000000", "20261122100000001"
    for instant in (INSTANT, OLD, mixed, pending, YOUNG):
        for day in ("d1", "d2"):
            store.hold(f"{MARKERS}/{instant}/{day}/{base(instant)}.marker.CREATE")
    store.hold(f"{MARKERS}/{mixed}/d2/x_0-0-0_{mixed}.parquet.marker.MERGE")
    found.begin(600_000)
    ours = [f"{MARKERS}/{OLD}", f"{MARKERS}/{INSTANT}"]
    assert sorted(found.marker_folders({pending}, (), lambda _instant: False)) == ours
    whole = found.marker_folders({pending}, (), lambda instant: instant == mixed)
    assert sorted(whole) == sorted([*ours, f"{MARKERS}/{mixed}"]), "one that is complete, whoever wrote it"


def test_markers_go_though_a_process_died_before_it_had_made_one_of_its_draft(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    folder = f"{MARKERS}/{OLD}"
    store.make_folder(folder)
    store.create(f"{folder}/{base(OLD)}.marker.CREATE")
    store.create(f"{folder}/{DRAFT}1")
    found = ByDates(store, clock_s=time.time)
    found.begin(-60_000)
    assert list(found.marker_folders((), (), lambda _instant: False)) == [folder]
