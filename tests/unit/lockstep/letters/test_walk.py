"""Which records their source topics would remove as soon as they are back."""

from __future__ import annotations

import pytest

from lockstep.letters.walk import MARGIN_MS, NEVER_MS, too_old_ms

NOW_MS, HOUR_MS, DAY_MS = 1_700_000_000_000, 3_600_000, 86_400_000
KEPT = {"cleanup.policy": "delete", "retention.ms": str(7 * DAY_MS), "message.timestamp.type": "CreateTime"}


def test_what_is_older_than_retention_or_soon_will_be_is_too_old() -> None:
    assert too_old_ms(KEPT, NOW_MS) == NOW_MS - 7 * DAY_MS + MARGIN_MS
    assert too_old_ms(KEPT | {"retention.ms": str(HOUR_MS)}, NOW_MS) == NOW_MS - HOUR_MS + HOUR_MS // 10
    assert too_old_ms(KEPT | {"cleanup.policy": "compact,delete"}, NOW_MS) > NEVER_MS


@pytest.mark.parametrize(
    "changed",
    [{"retention.ms": "-1"}, {"cleanup.policy": "compact"}, {"message.timestamp.type": "LogAppendTime"}],
)
def test_a_topic_that_keeps_all_or_goes_by_its_own_time_has_no_record_that_is_too_old(
    changed: dict[str, str],
) -> None:
    assert too_old_ms(KEPT | changed, NOW_MS) == NEVER_MS
