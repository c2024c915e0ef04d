"""Which drafts are removed, and when."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path

import pytest

from table.hudi.upkeep.drafts import LOOK_EVERY_S, OLD_S, Drafts
from table.store.local import LocalStore
from table.store.paths import DRAFT

FOLDERS = ("", "day=1/hour=2", ".hoodie", ".hoodie/.lockstep/decided", ".hoodie/timeline")


class Lives:
    """A table in a folder, and a clock that only this moves."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.gone_s = 0.0
        self.began_s = time.time()
        self.drafts = Drafts(
            LocalStore(folder), clock_s=lambda: self.began_s + self.gone_s, steady_s=lambda: self.gone_s
        )

    def left(self, name: str) -> list[Path]:
        made = [self.folder / folder / name for folder in FOLDERS]
        for one in made:
            one.parent.mkdir(parents=True, exist_ok=True)
            one.touch()
        return made

    def after(self, gone_s: float) -> None:
        self.gone_s = gone_s
        self.drafts.sweep()


@pytest.fixture
def lives(tmp_path: Path) -> Lives:
    return Lives(tmp_path)


def test_drafts_that_are_a_day_old_go_wherever_they_are_and_nothing_else_does(lives: Lives) -> None:
    drafts, others = lives.left(f"{DRAFT}1"), lives.left(".hoodie_partition_metadata")
    lives.after(OLD_S - 60)
    assert all(one.exists() for one in drafts)
    lives.after(OLD_S - 60 + LOOK_EVERY_S)
    assert not any(one.exists() for one in drafts)
    assert all(one.exists() for one in others)


def test_they_are_looked_for_once_an_hour(lives: Lives) -> None:
    lives.after(OLD_S)
    drafts = lives.left(f"{DRAFT}1")
    for one in drafts:
        os.utime(one, (0, 0))
    lives.began_s += OLD_S
    lives.after(OLD_S + LOOK_EVERY_S - 1)
    assert all(one.exists() for one in drafts)
    lives.after(OLD_S + LOOK_EVERY_S)
    assert not any(one.exists() for one in drafts)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read all")
def test_a_folder_that_may_not_be_listed_keeps_no_draft_elsewhere(
    lives: Lives, caplog: pytest.LogCaptureFixture
) -> None:
    drafts = lives.left(f"{DRAFT}1")
    lives.folder.joinpath("day=1").chmod(0)
    try:
        with caplog.at_level(logging.WARNING):
            lives.after(2 * OLD_S)
    finally:
        lives.folder.joinpath("day=1").chmod(0o700)
    assert [one.exists() for one in drafts] == [False, True, False, False, False]
    assert "could not all be removed" in caplog.text


def test_those_of_hudis_timelines_go_as_well_and_no_instant_does(lives: Lives) -> None:
    word = "0b1c2d3e-1111-2222-3333-0123456789ab"
    begun, done = "20261122010000000.commit.inflight", "20261122010000000_20261122010001000.commit"
    drafts = [*lives.left(f"{begun}.{word}"), *lives.left(f"{done}.{word}")]
    others = [*lives.left(begun), *lives.left(done), *lives.left(f"{word}-0_1-2-3_20261122010000000.parquet")]
    lives.after(OLD_S + 60)
    assert not any(one.exists() for one in drafts)
    assert all(one.exists() for one in others)
