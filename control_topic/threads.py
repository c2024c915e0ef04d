"""A thread must not die alone: what ends it unexpectedly ends the worker it belongs to, and says so."""

from __future__ import annotations

import logging
from collections.abc import Callable

log = logging.getLogger("lockstep.worker")


def guarded(name: str, run: Callable[[], None], failed: Callable[[str], None]) -> Callable[[], None]:
    """`run`, whose unexpected end is logged with its trace and told to `failed` as a sentence."""

    def work() -> None:
        try:
            run()
        except Exception as error:
            log.debug("where the %s thread failed", name, exc_info=True)
            failed(f"the {name} thread failed: {type(error).__name__}: {error}")

    return work
