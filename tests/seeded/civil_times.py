"""Local times that a clock shows twice, as where summer time ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.seeded.base import Bug, of
from tests.seeded.holes import Hole

RETENTION = "tests/unit/table/test_retention.py"


def first_meaning(_right: Any) -> Any:
    def latest_ms(ages: Any, last: Any) -> int:
        end = last + timedelta(microseconds=1)
        since = end.replace(tzinfo=ages.zone) - datetime(1970, 1, 1, tzinfo=UTC)
        return since // timedelta(milliseconds=1)

    return latest_ms


BUGS = (
    Bug(
        "a_table_partition_is_over_at_its_first_passing",
        "If the clock shows a value twice, retention deletes its table partition after the first time.",
        Hole.CIVIL_TIME,
        {"table.retention:Ages._latest_ms": first_meaning},
        of(
            RETENTION,
            "test_a_value_is_over_when_the_clock_of_its_zone_has_shown_it_for_the_last_time",
            "test_no_value_is_over_before_a_moment_that_has_it_in_any_zone_and_unit",
        ),
    ),
)
