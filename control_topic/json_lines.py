"""Log lines as JSON: one object a line, whatever is in them.

By python-json-logger: a formatter of Python's own `logging`, which all of the product's modules use, those of
its libraries as well. structlog would be another way to log, at each place where something is logged, with
the libraries' lines to be led through it besides.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

from pythonjsonlogger.json import JsonFormatter

from control_topic.log_fields import fields_of
from control_topic.spelling import json_escaped

TEXT_MAX = 16_000
"""Characters of a message, or a trace. Many collectors cut lines, and what is cut is no JSON."""
FIELD_MAX = 500
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
        """A terminal finds nothing to obey in it, either."""
        try:
            record.getMessage()
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            # Python's way is a trace of several lines past all formats.
            record.msg, record.args = f"{record.msg!s} (its values do not fit: {error})", ()
        return json_escaped(super().format(record))

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
            log_data[name] = _cut(value, FIELD_MAX) if isinstance(value, str) else value
        trace = message_dict.get("exc_info")
        if trace:
            log_data["exception"] = _cut(str(trace), TEXT_MAX, end=True)


def _time(created_s: float) -> str:
    return datetime.fromtimestamp(created_s, tz=UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _cut(text: str, most: int, *, end: bool = False) -> str:
    """`end`: its end is what counts, as of a trace."""
    if len(text) <= most:
        return text
    return CUT.strip() + " " + text[-most:] if end else text[:most] + CUT
