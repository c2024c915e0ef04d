"""When a transaction is ended by the clock next, as `lockstep status` says it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lockstep.config.sections import TransactionSection
from lockstep.watch.next_end import next_end

NOW_MS = round(datetime(2026, 11, 20, 10, 40, tzinfo=UTC).timestamp() * 1_000)
MINUTE_MS = 60_000


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, None),
        ({"schedule": "every 1h at :45"}, ("schedule", 5)),
        ({"align": "1h"}, ("align", 20)),
        ({"schedule": "every 1h", "align": "1h"}, ("align", 20)),
        ({"schedule": "*/15 * * * *", "align": "1h"}, ("schedule", 5)),
        ({"align": "24h", "zone": "Europe/Berlin"}, ("align", (12 * 60) + 20)),
    ],
)
def test_what_comes_first_is_said(given: dict[str, str], expected: tuple[str, int] | None) -> None:
    found = next_end(TransactionSection.model_validate(given), NOW_MS)
    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert (found.reason, found.in_ms, found.time_ms) == (
            expected[0],
            expected[1] * MINUTE_MS,
            NOW_MS + expected[1] * MINUTE_MS,
        )


def test_it_is_shown_by_the_clock_of_the_configurations_zone() -> None:
    found = next_end(TransactionSection.model_validate({"align": "24h", "zone": "Asia/Kolkata"}), NOW_MS)
    assert found is not None and found.shown == "2026-11-21 00:00:00 Asia/Kolkata"


def test_what_operators_have_set_counts_and_else_the_configuration() -> None:
    hourly = TransactionSection.model_validate({"schedule": "every 1h"})

    def found(**in_force: object) -> tuple[str, int] | None:
        live = {"control": {"in_force": {f"transaction.{name}": value for name, value in in_force.items()}}}
        end = next_end(hourly, NOW_MS, live)
        return (end.reason, end.in_ms // MINUTE_MS) if end is not None else None

    assert found() == ("schedule", 20)
    assert next_end(hourly, NOW_MS, {"control": None}) == next_end(hourly, NOW_MS)
    assert found(schedule="every 1h at :45", align=0) == ("schedule", 5)
    assert found(schedule="", align=0) is None
    assert found(schedule="", align=3_600_000) == ("align", 20)
    assert found(schedule="of a later Lockstep") is None
