"""How a process of a run writes its log: as text for people, or a JSON object a line for machines."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterable, Mapping
from logging.handlers import MemoryHandler
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from control_topic.quiet import plain_logs, quiet_kafka_clients

if TYPE_CHECKING:
    from sys import UnraisableHookArgs
    from threading import ExceptHookArgs

TEXT, JSON = "text", "json"
FORMATS: Mapping[str, str] = {
    TEXT: "a line for people",
    JSON: "a JSON object a line, for whatever collects logs",
}
DRIVER = "driver"
LAUNCHER = "launcher"
"""`lockstep run` itself, which starts the driver and knows no run."""

HELD_MAX = 1_000
log = logging.getLogger("lockstep.log")


def hold_lines(level: str) -> None:
    """Lines wait, some of them, until `write_lines` knows how they are to be written."""
    logging.basicConfig(
        level=level, handlers=[MemoryHandler(HELD_MAX, flushLevel=logging.CRITICAL + 1)], force=True
    )


def held_lines() -> list[logging.LogRecord]:
    """Those that wait."""
    handlers = [one for one in logging.getLogger().handlers if isinstance(one, MemoryHandler)]
    return [record for one in handlers for record in one.buffer]


def say(records: Iterable[logging.LogRecord]) -> None:
    """Write them as lines are written now."""
    for record in records:
        if record.levelno >= logging.getLogger().level:
            logging.getLogger().handle(record)


def release_lines(level: str) -> None:
    """As text, where lines still wait: nobody could say how they are to be written."""
    if any(isinstance(one, MemoryHandler) for one in logging.getLogger().handlers):
        write_lines(level)


def write_lines(
    level: str,
    *,
    form: str = TEXT,
    worker: str = DRIVER,
    pipeline: str = "",
    run: str = "",
    stream: TextIO | None = None,
) -> None:
    """To stderr, or `stream`, from here on, and what has waited first. `form`: one of `FORMATS`."""
    waiting = held_lines()
    text = f"%(asctime)s %(levelname)-7s {worker} %(name)s: %(message)s"
    logging.basicConfig(level=level, stream=stream or sys.stderr, format=text, force=True)
    if form == JSON:
        from control_topic.json_lines import JsonLines

        for handler in logging.getLogger().handlers:
            handler.setFormatter(JsonLines(pipeline=pipeline, run=run, worker=worker))
    plain_logs()
    quiet_kafka_clients()
    say(waiting)


def log_strays() -> None:
    """What Python would write to stderr by itself, in lines of its own, is logged: for JSON."""
    logging.captureWarnings(True)
    sys.excepthook = _stray
    threading.excepthook = _stray_of_thread
    sys.unraisablehook = _stray_of_nobody


def _stray(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    log.critical("the process ends: %s: %s", kind.__name__, _words(error), exc_info=(kind, error, trace))


def _stray_of_thread(of: ExceptHookArgs) -> None:
    error = of.exc_value
    if error is None or isinstance(error, SystemExit):
        return
    name = of.thread.name if of.thread is not None else ""
    caught = (type(error), error, of.exc_traceback)
    kind = type(error).__name__
    log.critical("thread %s ended: %s: %s", name, kind, _words(error), exc_info=caught)


def _stray_of_nobody(of: UnraisableHookArgs) -> None:
    """Of a `__del__`, or a callback of C: it has no caller that could be told."""
    error, kind = of.exc_value, of.exc_type
    caught = (kind, error, of.exc_traceback) if error is not None else None
    log.error("%s: %s: %s", of.err_msg or "ignored", kind.__name__, _words(error), exc_info=caught)


def _words(error: BaseException | None) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - its own code, and its kind is said beside it
        return "it has no words"
