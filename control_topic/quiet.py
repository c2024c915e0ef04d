"""Keeps a log readable while a broker is away: librdkafka says every refused connection, many a second."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable

WINDOW_S = 10.0
KEPT_MAX = 500
_NUMBERS = re.compile(r"\d+")


class OncePerWindow(logging.Filter):
    """Lets a message of a Kafka client pass once in `window_s`, numbers apart; says how many it kept back."""

    def __init__(self, *, window_s: float = WINDOW_S, clock_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._window_s = window_s
        self._clock_s = clock_s
        self._since: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Warnings and worse of `*.client` and `lockstep.source` only; everybody else always passes."""
        if not record.name.endswith((".client", "lockstep.source")) or record.levelno < logging.WARNING:
            return True
        text = record.getMessage()
        key = (record.name, _NUMBERS.sub("#", text))
        now_s = self._clock_s()
        began_s, kept_back = self._since.get(key, (-self._window_s, 0))
        if now_s - began_s < self._window_s:
            self._since[key] = (began_s, kept_back + 1)
            return False
        if len(self._since) >= KEPT_MAX:
            self._since.clear()
        self._since[key] = (now_s, 0)
        if kept_back:
            record.msg, record.args = f"{text} (and {kept_back} more like it)", ()
        return True


def quiet_kafka_clients() -> None:
    """Put the filter on the root logger's handlers, once they are configured."""
    for handler in logging.getLogger().handlers:
        handler.addFilter(OncePerWindow())
