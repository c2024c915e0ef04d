"""Keeps a log readable.

While a broker is away librdkafka says every refused connection, many a second. And what others wrote (topics,
messages, reasons) is text in a line, and no line of its own nor a command to a terminal.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable

from control_topic.spelling import plain

WINDOW_S = 10.0
AWAY_WINDOW_S = 30.0
KAFKA_CLIENTS = (".librdkafka", "control_topic.kafka", "lockstep.source")
"""Loggers, by the ends of their names. What a module gives to a client of its own ends in the first."""


class PlainFormatter(logging.Formatter):
    """Lines in which a terminal finds nothing to obey, and none that somebody else's text could forge."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The message's own further lines are indented."""
        record.message = "\n    ".join(record.message.splitlines())
        return super().formatMessage(record)

    def format(self, record: logging.LogRecord) -> str:
        """Traces, too, name what others wrote."""
        return plain(super().format(record))


KEPT_MAX = 500
CAUSE_MAX = 160
_NUMBERS = re.compile(r"\d+")
_AWAY = re.compile(
    r"Connect to (?:ipv[46]#)?\S+ failed: [^(]+|\d+/\d+ brokers are down|ApiVersionRequest failed: [^:]+"
    r"|Disconnected: [^(]+|Timed out \d+ in-flight|session timed out|Send failed: [^(]+"
)
"""What a Kafka client says while its broker does not answer. Many clients of one process say it at once."""


class OncePerWindow(logging.Filter):
    """Lets a message of a Kafka client pass once in `window_s`, numbers apart; says how many it kept back.

    That a broker is away passes once in `away_window_s`, whichever client says it, and as a sentence.
    """

    def __init__(
        self,
        *,
        window_s: float = WINDOW_S,
        away_window_s: float = AWAY_WINDOW_S,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._window_s = window_s
        self._away_window_s = away_window_s
        self._clock_s = clock_s
        self._since: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Of Kafka clients only; everybody else always passes."""
        if not record.name.endswith(KAFKA_CLIENTS):
            return True
        text = record.getMessage()
        away = _AWAY.search(text)
        if away is not None:
            text = (
                f"Kafka does not answer ({away.group().strip()[:CAUSE_MAX]}): it is waited for,"
                " and nothing is lost"
            )
            record.levelno, record.levelname = logging.WARNING, "WARNING"
            return self._passes(record, ("", "away"), text, self._away_window_s)
        if record.levelno < logging.WARNING or record.name == "control_topic.kafka":
            return True
        return self._passes(record, (record.name, _NUMBERS.sub("#", text)), text, self._window_s)

    def _passes(self, record: logging.LogRecord, key: tuple[str, str], text: str, window_s: float) -> bool:
        now_s = self._clock_s()
        began_s, kept_back = self._since.get(key, (-window_s, 0))
        if now_s - began_s < window_s:
            self._since[key] = (began_s, kept_back + 1)
            return False
        if len(self._since) >= KEPT_MAX:
            self._since.clear()
        self._since[key] = (now_s, 0)
        record.msg, record.args = f"{text} (and {kept_back} more like it)" if kept_back else text, ()
        return True


def quiet_kafka_clients() -> None:
    """Put the filter on the root logger's handlers, once they are configured."""
    for handler in logging.getLogger().handlers:
        handler.addFilter(OncePerWindow())


def plain_logs() -> None:
    """From here on the root's handlers write as `PlainFormatter` does, in the form that they have."""
    for handler in logging.getLogger().handlers:
        form = handler.formatter
        if type(form) is logging.Formatter:
            handler.setFormatter(PlainFormatter(form._fmt, form.datefmt))
