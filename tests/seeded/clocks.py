"""Which commit is newest, whatever clocks say; what is waited for while one is behind; the archive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.seeded.base import Bug, Wrong, always, of
from tests.seeded.holes import Hole

TIMELINE = "tests/unit/table/hudi/reader/test_timeline.py"
SERVICER = "tests/unit/table/service/test_servicer.py"
REAL_CLOCKS = "tests/integration/test_clocks.py"

CAME_TWICE = (
    "test_of_a_table_in_local_time_the_newest_is_found_though_it_was_requested_in_the_hour_that_came_twice"
)
ARCHIVED_TWICE = (
    "test_of_a_table_in_local_time_the_newest_in_the_archive_may_have_been_requested_before_"
    "the_one_it_follows"
)


nothing = always(None)
"""In place of what looks, and raises where something is wrong."""


def completed_at(instant: Any) -> str:
    return str(instant.getCompletionTime())


def sorted_by_completion(right: Any) -> Any:
    return lambda seen, instants: sorted(right(seen, instants), key=completed_at)


def completed_last(right: Any) -> Any:
    def fresh(seen: Any, instants: Any) -> list[Any]:
        found = list(right(seen, instants))
        if not seen:
            return found
        last = max(map(completed_at, [*seen._noted, *found]), default="")
        return [one for one in found if completed_at(one) == last]

    return fresh


def read_once(_right: Any) -> Any:
    def archived(archive: Any, is_wanted: Any, read: Any) -> Iterator[Any]:
        try:
            for name in archive._files():
                yield from read(name)
        except FileNotFoundError:
            return

    return archived


def at_its_own_time(_right: Any) -> Any:
    return lambda instant, *, in_local_time: instant


def for_ever(right: Any) -> Any:
    def unavailable(ledger: Any, now_ms: int, reason: str, *, patience_ms: int = 0) -> Any:
        return right(ledger, now_ms, reason, patience_ms=24 * 3_600_000)

    return unavailable


LATEST: Wrong = lambda _right: lambda states: next(iter(states), None)  # noqa: E731
ANY_FOLLOWS: Wrong = lambda _right: lambda newest, state: True  # noqa: E731

BUGS = (
    Bug(
        "reader_goes_by_completion",
        "Who reads the timeline takes the commit that completed last by the clock for the newest.",
        Hole.CLOCK,
        {"table.hudi.reader.timeline:newest_of": LATEST},
        of(
            TIMELINE,
            "test_of_two_commits_the_one_that_follows_is_the_newest_though_it_completed_earlier_by_the_clock",
        ),
    ),
    Bug(
        "driver_goes_by_completion",
        "The driver takes the commit that completed last by the clock for the newest.",
        Hole.CLOCK,
        {
            "table.hudi.driver.history:Seen.fresh": sorted_by_completion,
            "table.hudi.driver.history:follows": ANY_FOLLOWS,
        },
        of(
            REAL_CLOCKS,
            "test_of_two_commits_the_one_that_follows_is_the_newest_though_it_completed_earlier_by_the_clock",
        ),
    ),
    Bug(
        "only_what_completed_last_is_looked_at",
        "Of what is new to it the driver looks only at the commit that completed last, by the clock.",
        Hole.CLOCK,
        {"table.hudi.driver.history:Seen.fresh": completed_last},
        of(
            REAL_CLOCKS,
            "test_a_commit_that_completed_before_what_was_seen_last_is_seen_all_the_same",
            "test_a_column_that_others_add_is_seen_though_they_did_so_earlier_by_the_clock",
        ),
    ),
    Bug(
        "reader_trusts_local_times",
        "Of a timeline in local time, too, nothing is looked for that was requested before the newest.",
        Hole.CLOCK,
        {"table.hudi.reader.timeline:earliest_after": at_its_own_time},
        of(TIMELINE, CAME_TWICE),
    ),
    Bug(
        "driver_trusts_local_times",
        "The driver does not look further back in the archive where the timeline is in local time.",
        Hole.CLOCK,
        {"table.hudi.driver.history:earliest_after": at_its_own_time},
        of(REAL_CLOCKS, ARCHIVED_TWICE),
    ),
    Bug(
        "a_stretch_that_was_merged_ends_the_archive",
        "Where a file of the archived timeline is merged into another while it is read, the reading ends.",
        Hole.CLOCK,
        {"table.hudi.reader.archive:ArchivedTimeline._each": read_once},
        of(TIMELINE, "test_an_archive_that_is_merged_while_it_is_read_is_read_again"),
    ),
    Bug(
        "the_newest_stretch_is_all",
        "The driver reads the newest stretch of the archived timeline, and no older one.",
        Hole.CLOCK,
        {"table.hudi.driver.history:_stretches": lambda right: lambda session: right(session)[:1]},
        of(
            REAL_CLOCKS,
            "test_the_newest_in_the_archive_is_the_one_that_follows_whatever_the_clock_said",
        ),
    ),
    Bug(
        "the_clock_is_awaited_inside_the_lock",
        "That the clock is behind what the table bears is noticed inside the table lock, and not before it.",
        Hole.CLOCK,
        {"table.hudi.table:await_clock": nothing},
        of(REAL_CLOCKS, "test_while_the_clock_is_behind_nobody_asks_for_the_lock_that_somebody_else_has"),
        raises={"table.errors.Unavailable": "the table lock could not be had"},
    ),
    Bug(
        "a_wrong_clock_is_waited_for_without_end",
        "Each time that a clock is met behind the table, the run may wait for another day.",
        Hole.CLOCK,
        {"table.service.ledger:Ledger.unavailable": for_ever},
        of(
            SERVICER,
            "test_a_clock_that_stays_wrong_is_said_and_halts_the_run_when_the_outage_s_budget_is_spent",
        ),
    ),
)
