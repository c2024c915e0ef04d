"""Times of events, as people write and read them: in UTC, or with a zone that is named."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from lockstep.errors import ConfigError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


def spelled_time(time_ms: int) -> str:
    """`2026-11-20T00:00:00.000Z`, without what is zero at its end: seconds, and their parts."""
    try:
        at = EPOCH + time_ms * MILLISECOND
    except OverflowError:
        return f"{time_ms} ms after 1970, which is in no calendar"
    text = at.isoformat(timespec="milliseconds" if at.microsecond else "seconds" if at.second else "minutes")
    return text.removesuffix("+00:00") + "Z"


def parse_time_ms(setting: str, text: str) -> int:
    """Of ISO 8601 with its zone, such as `2026-11-20T00:00Z`: milliseconds since 1970, rounded up: who waits
    for all that is before a time waits for what is before it within its millisecond, too.

    Raises `ConfigError`, which names `setting`.
    """
    example = "write it as 2026-11-20T00:00Z, or with another zone, 2026-11-20T00:00+01:00"
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise ConfigError(f"{setting} {text!r} is no time: {example}") from error
    if at.tzinfo is None:
        raise ConfigError(f"{setting} {text!r} names no zone: {example}")
    return -((EPOCH - at) // MILLISECOND)
