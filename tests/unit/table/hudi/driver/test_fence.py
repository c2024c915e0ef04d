"""Of a commit and a rollback of one instant one comes first, also where files cannot be claimed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from table.errors import Refused, Unavailable
from table.hudi.driver.fence import FOLDER, VERDICT, Fence
from table.hudi.driver.file_clock import AHEAD_MAX_S
from table.hudi.layout import META_FOLDER
from table.store.local import LocalStore
from table.store.paths import DRAFT

INSTANT = "20260101000000000"
LATER = "20260102000000000"
LEASE_S = 60


class Objects(LocalStore):
    """Nothing in it is anybody's alone."""

    capabilities = replace(LocalStore.capabilities, remote=True)


@pytest.fixture
def store(tmp_path: Path) -> Objects:
    (tmp_path / FOLDER).mkdir(parents=True)
    return Objects(tmp_path)


def driver(store: LocalStore, pid: int = 0, *, ahead_s: float = 0.0) -> Fence:
    return Fence(store, pid or os.getpid(), lease_s=LEASE_S, clock_s=lambda: time.time() + ahead_s)


def test_a_commit_that_comes_after_the_rollback_is_refused_and_may_not_be_tried_again(store: Objects) -> None:
    driver(store).roll_back(INSTANT)
    late = driver(store)
    for _ in range(2):
        with pytest.raises(Refused, match="its rollback was there first"):
            late.commit(INSTANT)
    driver(store).roll_back(INSTANT)
    late.commit(LATER)


def test_a_rollback_waits_for_a_driver_that_may_be_completing_the_instant(store: Objects) -> None:
    driver(store).commit(INSTANT)
    with pytest.raises(Unavailable, match="being completed by another driver"):
        driver(store).roll_back(INSTANT)
    with pytest.raises(Refused, match="another driver was there first"):
        driver(store).commit(INSTANT)
    assert driver(store).overruled() == []
    driver(store, ahead_s=LEASE_S + AHEAD_MAX_S + 1).roll_back(INSTANT)
    assert driver(store).overruled() == [INSTANT]


def test_a_driver_may_try_its_own_commit_again_and_then_give_it_up(store: Objects) -> None:
    own = driver(store)
    own.commit(INSTANT)
    own.commit(INSTANT)
    own.roll_back(INSTANT)
    assert own.overruled() == [INSTANT]
    assert not own.keep(INSTANT), "it is for good"


def test_of_a_completion_that_is_relied_on_and_an_overruling_one_comes_first(store: Objects) -> None:
    own, other, third = driver(store), driver(store), driver(store)
    for instant in (INSTANT, LATER):
        own.commit(instant)
    assert other.keep(INSTANT) and third.keep(INSTANT) and own.keep(INSTANT)
    with pytest.raises(Unavailable, match="has just been completed: it stays"):
        own.roll_back(INSTANT)
    own.roll_back(LATER)
    assert not other.keep(LATER) and not third.keep(LATER)
    assert driver(store).overruled() == [LATER] and driver(store).decided() == {INSTANT, LATER}


def test_who_knows_a_verdict_asks_no_more(store: Objects, tmp_path: Path) -> None:
    own = driver(store)
    assert own.keep(INSTANT)
    (tmp_path / FOLDER / f"{INSTANT}{VERDICT}").unlink()
    assert own.keep(INSTANT)


def test_the_commit_of_a_dead_driver_is_overruled_at_once(store: Objects) -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        driver(store, process.pid).commit(INSTANT)
        with pytest.raises(Unavailable):
            driver(store).roll_back(INSTANT)
    finally:
        process.kill()
        process.wait()
    driver(store).roll_back(INSTANT)


def test_what_is_older_than_the_timeline_is_forgotten(store: Objects) -> None:
    own = driver(store)
    for instant in (INSTANT, LATER):
        own.commit(instant)
        own.roll_back(instant)
    assert own.forget(LATER) == 2  # what decided, and the verdict
    assert own.overruled() == [LATER]
    assert own.forget("") == 0


def test_what_nobody_can_read_counts_as_another_drivers(store: Objects) -> None:
    for said in (b"", b"[]", json.dumps({"for": "commit", "process": "x"}).encode()):
        store.put(f"{FOLDER}/{INSTANT}", said)
        with pytest.raises(Refused):
            driver(store).commit(INSTANT)
        with pytest.raises(Unavailable):
            driver(store).roll_back(INSTANT)


def test_a_store_that_does_not_answer_decides_nothing(tmp_path: Path) -> None:
    away = Objects(tmp_path / "gone")
    for act in (driver(away).commit, driver(away).roll_back):
        with pytest.raises(Unavailable, match="could not be decided"):
            act(INSTANT)


def test_of_a_file_system_nothing_is_asked(tmp_path: Path) -> None:
    files = driver(LocalStore(tmp_path))
    files.commit(INSTANT)
    files.roll_back(INSTANT)
    assert not files.needed and files.overruled() == [] and files.forget(LATER) == 0
    assert files.keep(INSTANT) and files.decided() == set()
    assert not [*tmp_path.iterdir()]


class Folders(LocalStore):
    """As HDFS is: folders are to be made, and nothing is anybody's alone."""

    capabilities = replace(LocalStore.capabilities, remote=True)


def test_where_folders_are_to_be_made_the_first_decision_makes_its_own_and_no_table_that_is_gone(
    tmp_path: Path,
) -> None:
    with pytest.raises(Unavailable, match="could not be decided"):
        driver(Folders(tmp_path)).commit(INSTANT)
    assert not (tmp_path / FOLDER).exists()
    (tmp_path / META_FOLDER).mkdir()
    driver(Folders(tmp_path)).commit(INSTANT)
    assert driver(Folders(tmp_path)).decided() == {INSTANT}


def test_a_draft_of_another_driver_is_no_decision_and_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir(parents=True)
    draft = tmp_path / FOLDER / f"{DRAFT}one"
    draft.touch()
    fence = driver(Folders(tmp_path))
    fence.commit(INSTANT)
    assert fence.decided() == {INSTANT}
    assert fence.forget(LATER) == 1 and draft.exists()
