"""What is set of logs while something runs ends with it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def logs_of_its_own() -> Iterator[None]:
    """Levels, and the root's handlers, are afterwards what they were."""
    root = logging.getLogger()
    handlers = root.handlers[:]
    before = {logger: logger.level for logger in _loggers()}
    try:
        yield
    finally:
        root.handlers[:] = handlers
        for logger in _loggers():
            logger.setLevel(before.get(logger, logging.NOTSET))


def _loggers() -> list[logging.Logger]:
    """All whose level was set, and the root."""
    made = logging.Logger.manager.loggerDict.values()
    return [logging.getLogger(), *(one for one in made if isinstance(one, logging.Logger) and one.level)]
