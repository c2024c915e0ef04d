"""Times of events are read with their zone, and written in one."""

from __future__ import annotations

import pytest

from lockstep.errors import ConfigError
from lockstep.when import parse_time_ms, spelled_time


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("2026-11-20T00:00Z", 1_795_132_800_000),
        ("2026-11-20T01:00+01:00", 1_795_132_800_000),
        ("1969-12-31T23:59:59.999Z", -1),
        ("0001-01-01T00:00Z", -62_135_596_800_000),
    ],
)
def test_a_time_with_a_zone_is_read_to_the_millisecond_and_written_so(text: str, time_ms: int) -> None:
    assert parse_time_ms("--complete-through", text) == time_ms
    assert parse_time_ms("--complete-through", spelled_time(time_ms)) == time_ms


def test_a_part_of_a_millisecond_is_rounded_up_so_that_what_is_before_it_counts() -> None:
    for text in ("2026-11-20T00:00:00.0001Z", "2026-11-20T00:00:00.000999Z"):
        assert parse_time_ms("--complete-through", text) == 1_795_132_800_001


@pytest.mark.parametrize("text", ["2026-11-20T00:00", "2026-11-20", "yesterday", ""])
def test_what_names_no_zone_or_is_no_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match=r"--complete-through .* write it as 2026-11-20T00:00Z"):
        parse_time_ms("--complete-through", text)


def test_a_time_that_is_in_no_calendar_is_said_so() -> None:
    assert spelled_time(2**62) == f"{2**62} ms after 1970, which is in no calendar"
