"""The table lock: by which clock it is taken, how long it is held, who may free it, and what is said then."""

from __future__ import annotations

import os
from typing import Any

from tests.seeded.base import Bug, always, of
from tests.seeded.clocks import REAL_CLOCKS, nothing
from tests.seeded.holes import Hole

FILE_CLOCK = "tests/unit/table/hudi/driver/test_file_clock.py"
WATCHDOG = "tests/unit/table/hudi/driver/test_watchdog.py"


def waits_for_its_reader(_right: Any) -> Any:
    def say(jvm_pid: int, sentence: str) -> None:
        stderr = os.open(f"/proc/{jvm_pid}/fd/2", os.O_WRONLY | os.O_APPEND | os.O_NOCTTY)
        os.write(stderr, f"lockstep: {sentence}\n".encode())
        os.close(stderr)

    return say


HUDIS_OWN = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"

BUGS = (
    Bug(
        "a_clock_that_is_ahead_takes_the_lock",
        "The lock is taken by any clock: to one that is ahead of the file server's each lock has expired.",
        Hole.LOCK,
        {"table.hudi.driver.file_clock:FileClock.check": nothing},
        of(
            FILE_CLOCK,
            "test_one_that_is_too_far_ahead_does_not_and_the_reader_learns_by_how_much_of_what_and_what_to_do",
            "test_one_that_is_ahead_by_less_than_a_lock_lives_is_told_after_what_time_it_would_count_as_expired",
        ),
    ),
    Bug(
        "a_clock_set_forth_takes_the_lock_of_the_same_driver",
        "The driver takes the lock as Hudi's own class has it, which goes by the file's date alone.",
        Hole.LOCK,
        {"table.hudi.driver.table_lock:one_holder_lock": always(HUDIS_OWN)},
        of(
            REAL_CLOCKS,
            "test_a_clock_that_is_set_forth_gives_nobody_the_lock_that_another_of_the_same_driver_holds",
        ),
    ),
    Bug(
        "a_lock_is_held_without_a_bound",
        "The guardian leaves a JVM alone that stands still with the lock for longer than that lives.",
        Hole.LOCK,
        {"table.hudi.driver.watchdog:held_s": lambda _right: lambda expire_minutes: 0},
        of(
            WATCHDOG,
            "test_the_bound_follows_how_long_the_lock_lives",
            "test_a_jvm_that_stops_behind_the_check_is_killed_before_the_lock_expires",
        ),
    ),
    Bug(
        "the_guardian_is_not_shown_what_is_held",
        "That the lock is held the guardian hears only from Python, which does not know of every lock.",
        Hole.LOCK,
        {"table.hudi.driver.held:Page.held": always([])},
        of(REAL_CLOCKS, "test_a_guardian_sees_each_lock_that_the_jvm_holds_and_since_when"),
    ),
    Bug(
        "who_hears_late_of_its_lock_goes_on",
        "How long ago the lock was taken is not asked when Hudi says that it is held.",
        Hole.LOCK,
        {"table.hudi.driver.holder:LockHolder.check": nothing},
        of(
            "tests/unit/table/hudi/driver/test_holder.py",
            "test_who_hears_late_that_it_holds_the_lock_does_nothing_under_it",
        ),
    ),
    Bug(
        "each_that_finds_a_dead_holder_removes_its_lock",
        "Whoever finds the holder dead removes its lock, also when another has done so and it was taken.",
        Hole.LOCK,
        {"table.store.local:LocalStore.create": always(True)},
        of(
            "tests/unit/table/hudi/driver/test_holder.py",
            "test_who_comes_late_leaves_the_lock_to_whoever_was_to_remove_it",
        ),
    ),
    Bug(
        "a_lock_that_is_about_to_expire_is_removed_too",
        "The lock of a dead holder is removed when others may take it at any moment, for it has expired.",
        Hole.LOCK,
        {"table.hudi.driver.holder:LockHolder._expires_soon": always(False)},
        of("tests/unit/table/hudi/driver/test_holder.py", "test_a_lock_that_expires_soon_is_left_to_that"),
    ),
    Bug(
        "the_guardian_waits_for_its_reader",
        "The guardian's last word waits until the JVM that it is about to kill reads it.",
        Hole.LOCK,
        {"table.hudi.driver.watchdog:_say": waits_for_its_reader},
        of(WATCHDOG, "test_the_guardians_last_word_waits_for_nobody_and_is_lost_where_nobody_reads"),
    ),
    Bug(
        "nobody_knows_whose_a_requested_instant_is",
        "An instant is requested without a note of who does so, and its owner is written down only then.",
        Hole.LEFT,
        {"table.hudi.driver.opening:Opening.note": nothing},
        of(
            "tests/integration/test_hudi_table.py",
            "test_an_instant_that_a_driver_requested_before_it_died_is_taken_back_by_the_next_and_nobody_elses",
        ),
    ),
)
