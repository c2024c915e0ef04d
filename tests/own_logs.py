"""What is set of logs while something runs ends with it."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def logs_of_its_own() -> Iterator[None]:
    """Levels, the root's handlers, and what becomes of errors that nobody catches, are afterwards what they
    were.
    """
    root = logging.getLogger()
    handlers = root.handlers[:]
    before = {logger: logger.level for logger in _loggers()}
    hooks = sys.excepthook, threading.excepthook, sys.unraisablehook
    try:
        yield
    finally:
        sys.excepthook, threading.excepthook, sys.unraisablehook = hooks
        logging.captureWarnings(False)
        root.handlers[:] = handlers
        for logger in _loggers():
            logger.setLevel(before.get(logger, logging.NOTSET))


def _loggers() -> list[logging.Logger]:
    """All whose level was set, and the root."""
    made = logging.Logger.manager.loggerDict.values()
    return [logging.getLogger(), *(one for one in made if isinstance(one, logging.Logger) and one.level)]
