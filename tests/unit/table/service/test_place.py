"""Of several runs of one pipeline the one that started last goes on, and every older one gets to know."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from table.service.place import NOTE, NOTE_BYTES_MAX, Place, has_commits
from table.store.local import LocalStore


def started(folder: Path, run: str, *, pipeline: str = "p") -> Place:
    place = Place(LocalStore(folder), pipeline=pipeline, run=run)
    place.occupy()
    return place


def note(folder: Path) -> Path:
    (path,) = folder.glob(f"{NOTE}*")
    return path


def test_a_run_that_is_alone_has_its_place(tmp_path: Path) -> None:
    assert started(tmp_path, "a").taken_by() == ""


def test_of_several_runs_only_the_one_that_started_last_has_the_place(tmp_path: Path) -> None:
    runs = [started(tmp_path, name) for name in "abc"]
    assert [run.taken_by() for run in runs] == ["c", "c", ""]


def test_runs_of_another_pipeline_have_places_of_their_own(tmp_path: Path) -> None:
    ours, theirs = started(tmp_path, "a"), started(tmp_path, "b", pipeline="p/../p")
    assert ours.taken_by() == theirs.taken_by() == ""


@pytest.mark.parametrize(
    "damage",
    [
        *(None, b"", b"{", b"[]", b"null", b'{"run": "x"}', b'{"pipeline": "q", "run": "x"}'),
        *(b'{"pipeline": "p", "run": 7}', b'{"pipeline": "p", "run": ""}', b"[" * NOTE_BYTES_MAX),
        b'{"pipeline": "p", "run": "' + b"x" * 101 + b'"}',
        b"\xff" * 10,
    ],
)
def test_of_two_runs_exactly_one_has_the_place_although_the_note_was_lost(
    tmp_path: Path, damage: bytes | None
) -> None:
    older, newer = started(tmp_path, "a"), started(tmp_path, "b")
    path = note(tmp_path)
    path.unlink() if damage is None else path.write_bytes(damage)
    assert older.taken_by() == ""  # nobody knows any more, and it is noted anew
    assert newer.taken_by() == "a"
    assert older.taken_by() == ""


def test_a_folder_that_cannot_be_written_is_said_at_the_start_and_nothing_is_left(tmp_path: Path) -> None:
    place = Place(LocalStore(tmp_path / "gone"), pipeline="p", run="a")
    with pytest.raises(FileNotFoundError):
        place.occupy()
    assert place.taken_by() == ""
    assert os.listdir(tmp_path) == []


def test_the_note_appears_whole_and_can_be_read_by_other_users_drivers(tmp_path: Path) -> None:
    started(tmp_path, "a")
    assert [path.name.startswith(NOTE) for path in tmp_path.iterdir()] == [True]
    assert note(tmp_path).stat().st_mode & 0o777 == 0o644


def test_commits_that_a_run_has_noted_are_known_to_all_later_runs(tmp_path: Path) -> None:
    first, store = started(tmp_path, "a"), LocalStore(tmp_path)
    assert not has_commits(store, "p")
    first.note_commits()
    assert has_commits(store, "p") and not has_commits(store, "q")
    started(tmp_path, "b")
    later = started(tmp_path, "c")
    assert has_commits(store, "p") and later.taken_by() == ""


def test_a_run_that_was_superseded_does_not_take_the_place_back_to_note_its_commits(tmp_path: Path) -> None:
    older, newer = started(tmp_path, "a"), started(tmp_path, "b")
    older.note_commits()
    assert newer.taken_by() == ""
