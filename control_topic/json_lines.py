"""Log lines as JSON: one object a line, whatever is in them.

By python-json-logger: a formatter of Python's own `logging`, which all of the product's modules use, those of
its libraries as well. structlog would be another way to log, at each place where something is logged, with
the libraries' lines to be led through it besides.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

from pythonjsonlogger.json import JsonFormatter

from control_topic.log_fields import fields_of
from control_topic.spelling import json_escaped

TEXT_MAX = 16_000
"""Characters of a message, or a trace, with their escapes. Many collectors cut lines; a part is no JSON."""
FIELD_MAX = 500
SPELLED_MAX = 12
"""Of one character: two halves, each as an escape."""
BITS_MAX = 1_000
CUT = " … (cut)"


class JsonLines(JsonFormatter):
    """`time` (ISO 8601, UTC, milliseconds), `level`, `logger`, `message`, `pipeline`, `run`, `worker`; then
    what the line is about (`control_topic.log_fields.FIELDS`) and `exception`, where there is one.

    Nothing else of a record is written: what a library put into its own is not known to be fit for a log.
    """

    def __init__(self, *, pipeline: str, run: str, worker: str) -> None:
        super().__init__()
        self._origin = {"pipeline": pipeline, "run": run, "worker": worker}

    def format(self, record: logging.LogRecord) -> str:
        """A terminal finds nothing to obey in it, either. Whatever a line is about, it never raises: Python's
        way is a trace of several lines past all formats.
        """
        try:
            self._say(record)
            return json_escaped(super().format(record))
        except Exception as error:  # noqa: BLE001 - values' own code, and the log must go on
            return self._instead(record, error)

    def _say(self, record: logging.LogRecord) -> None:
        try:
            record.getMessage()
        except Exception as error:  # noqa: BLE001 - as above
            record.msg, record.args = f"{record.msg!s} (its values do not fit: {_words(error)})", ()

    def _instead(self, record: logging.LogRecord, error: Exception) -> str:
        """Of what is known to be text."""
        known = {
            "time": _time(record.created),
            "level": str(record.levelname),
            "logger": _cut(str(record.name), FIELD_MAX),
            "message": f"a line that cannot be written: {type(error).__name__}",
            **self._origin,
        }
        return json_escaped(json.dumps(known))

    def add_fields(
        self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: dict[str, Any]
    ) -> None:
        log_data["time"] = _time(record.created)
        log_data["level"] = record.levelname
        log_data["logger"] = record.name
        said = str(record.msg) if isinstance(record.msg, dict) else record.message
        log_data["message"] = _cut(said, TEXT_MAX)
        log_data.update(self._origin)
        for name, value in fields_of(record).items():
            log_data[name] = _cut(value, FIELD_MAX) if isinstance(value, str) else _number(value)
        trace = message_dict.get("exc_info")
        if trace:
            log_data["exception"] = _cut(str(trace), TEXT_MAX, end=True)


def _time(created_s: float) -> str:
    return datetime.fromtimestamp(created_s, tz=UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _words(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - whose own words fail as well
        return type(error).__name__


def _number(value: object) -> object:
    """More digits than Python writes are no number of ours."""
    if isinstance(value, int) and abs(value) >> BITS_MAX:
        return "a number of too many digits"
    return value


def _cut(text: str, most: int, *, end: bool = False) -> str:
    """`most`: characters as JSON spells them. `end`: its end is what counts, as of a trace."""
    if len(text) <= most and len(json.dumps(text)) - 2 <= most:
        return text
    kept = text[-most:] if end else text[:most]
    while (excess := len(json.dumps(kept)) - 2 - most) > 0:
        gone = max(1, excess // SPELLED_MAX)
        kept = kept[gone:] if end else kept[:-gone]
    return f"{CUT.strip()} {kept}" if end else f"{kept}{CUT}"
