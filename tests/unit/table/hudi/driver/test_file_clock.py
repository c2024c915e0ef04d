"""This machine's clock and the file system's: by which the table lock may be taken, and by which not."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from table.errors import ClockAhead, Unavailable
from table.hudi.driver.file_clock import AHEAD_MAX_S, NAME, FileClock
from table.hudi.driver.watchdog import LOCK_MARGIN_S, held_s
from table.store.local import LocalStore

HOUR_S = 3_600.0
EXPIRE_S = 60


def off_by(seconds: float) -> Callable[[], float]:
    return lambda: time.time() + seconds


def compared(folder: Path, seconds: float, *, expire_s: int = EXPIRE_S) -> FileClock:
    """By a clock that is so much ahead of the file system's."""
    table = folder / "table"
    (table / ".hoodie").mkdir(parents=True, exist_ok=True)
    return FileClock(str(table), LocalStore(table / ".hoodie"), expire_s=expire_s, clock_s=off_by(seconds))


@pytest.mark.parametrize("seconds", [0.0, AHEAD_MAX_S - 2, -HOUR_S])
def test_a_clock_that_is_right_a_little_ahead_or_behind_takes_the_lock(
    tmp_path: Path, seconds: float
) -> None:
    compared(tmp_path, seconds).check()


def test_one_that_is_too_far_ahead_does_not_and_the_reader_learns_by_how_much_of_what_and_what_to_do(
    tmp_path: Path,
) -> None:
    with pytest.raises(ClockAhead) as ahead:
        compared(tmp_path, HOUR_S).check()
    said = str(ahead.value)
    assert said.startswith("the clock is 1 h") and "ahead of the file system's" in said
    assert str(tmp_path / "table") in said and "NTP" in said
    assert "expired as soon as somebody takes it" in said


def test_one_that_is_ahead_by_less_than_a_lock_lives_is_told_after_what_time_it_would_count_as_expired(
    tmp_path: Path,
) -> None:
    with pytest.raises(ClockAhead, match=r"expired (29|30) s after somebody takes it"):
        compared(tmp_path, 30.0).check()


def test_the_guardian_has_half_of_its_margin_to_end_a_holder_whose_lock_looks_expired_early() -> None:
    for minutes in (1, 2, 60):
        looks_expired_s = 60 * minutes - AHEAD_MAX_S
        assert looks_expired_s - held_s(60 * minutes) >= LOCK_MARGIN_S / 2


def test_a_date_that_another_driver_has_made_meanwhile_makes_no_clock_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This one stands still between what it dates and its look at it."""
    stood_still_s = [0.0]
    clock = compared(tmp_path, 0.0)
    monkeypatch.setattr(clock, "_clock_s", lambda: time.time() + 13.0 + stood_still_s[0])
    look = clock._store.stat

    def stat_later(path: str) -> object:
        if not stood_still_s[0]:
            stood_still_s[0] = 30.0
            later_s = time.time() + 5.0
            os.utime(tmp_path / "table" / ".hoodie" / path, (later_s, later_s))
        return look(path)

    monkeypatch.setattr(clock._store, "stat", stat_later)
    with pytest.raises(ClockAhead):
        clock.check()


def test_where_the_lock_never_expires_nothing_is_compared(tmp_path: Path) -> None:
    one = compared(tmp_path, HOUR_S, expire_s=0)
    one.check()
    assert one.sentence() == "the table lock does not depend on clocks"
    assert not (tmp_path / "table" / ".hoodie" / NAME).exists()


def test_a_round_trip_counts_and_a_slow_one_is_taken_again(tmp_path: Path) -> None:
    slow = iter([0.0, AHEAD_MAX_S + 5])
    clock = FileClock(
        *(str(tmp_path), LocalStore(tmp_path)),
        expire_s=EXPIRE_S,
        clock_s=lambda: time.time() + next(slow, 0.0),
    )
    clock.check()


def test_storage_that_is_always_too_slow_to_compare_with_is_not_available(tmp_path: Path) -> None:
    calls = count()
    clock = FileClock(
        *(str(tmp_path), LocalStore(tmp_path)),
        expire_s=EXPIRE_S,
        clock_s=lambda: time.time() + (AHEAD_MAX_S + 5) * (next(calls) % 2),
    )
    with pytest.raises(Unavailable, match="took 15 s to date a file") as slow:
        clock.check()
    assert not isinstance(slow.value, ClockAhead)


def test_the_file_system_says_its_own_time_whatever_the_clock_here_is(tmp_path: Path) -> None:
    one = compared(tmp_path, HOUR_S)
    for _ in range(2):  # made, and there already
        apart = one.apart()
        assert -1 < apart.theirs_s - time.time() < 1
        assert HOUR_S - 1 < apart.least_s <= apart.most_s < HOUR_S + 1


def test_a_table_that_is_gone_is_not_begun_anew_and_a_folder_for_locks_is_made(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    with pytest.raises(Unavailable, match="No such file"):
        FileClock(str(gone), LocalStore(gone / ".hoodie"), expire_s=EXPIRE_S).check()
    assert not gone.exists()
    FileClock(str(gone), LocalStore(tmp_path / "locks" / "mine"), expire_s=EXPIRE_S).check()
    assert (tmp_path / "locks" / "mine" / NAME).exists() and not gone.exists()


def test_a_file_of_another_user_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = compared(tmp_path, 0.0)
    one.check()
    theirs = os.stat(tmp_path / "table" / ".hoodie" / NAME)
    os.link(tmp_path / "table" / ".hoodie" / NAME, tmp_path / "kept")  # so that its inode is not used again
    dated = os.utime

    def of_theirs(path: str) -> None:
        if os.stat(path).st_ino == theirs.st_ino:
            raise PermissionError(1, "Operation not permitted")
        dated(path)

    monkeypatch.setattr(os, "utime", of_theirs)
    one.check()
    assert os.stat(tmp_path / "table" / ".hoodie" / NAME).st_ino != theirs.st_ino


def test_a_file_system_that_cannot_be_asked_is_not_available_and_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(_path: str) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "utime", read_only)
    with pytest.raises(Unavailable, match=f"{NAME}: Read-only file system"):
        compared(tmp_path, 0.0).check()


def test_the_file_is_for_all_who_may_write_there(tmp_path: Path) -> None:
    before = os.umask(0o002)
    try:
        compared(tmp_path, 0.0).check()
    finally:
        os.umask(before)
    mode = (tmp_path / "table" / ".hoodie" / NAME).stat().st_mode
    assert stat.S_IMODE(mode) == 0o664


def test_a_person_is_told_when_the_clocks_agree_and_what_it_costs_where_this_one_is_behind(
    tmp_path: Path,
) -> None:
    assert compared(tmp_path, 0.0).sentence().endswith("agree to 10 s")
    assert "behind" in compared(tmp_path, -HOUR_S).sentence()
    with pytest.raises(ClockAhead):
        compared(tmp_path, HOUR_S).sentence()
