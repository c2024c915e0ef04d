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
