"""The page of a run, served by its driver: a courtesy on threads of its own, which never holds the run up."""

from __future__ import annotations

import logging
import threading
import time

from control_topic.clocks import wall_ms
from lockstep.config import Config
from lockstep.driver.rundir import leave_page
from lockstep.errors import LockstepError
from lockstep.watch.observer import Observer

log = logging.getLogger("lockstep.run")

STOP_S = 10.0
LAST_WORDS_S = 4.0
"""The most that the end waits for a look at how it came about; nothing where nobody reads the page."""
DELIVERY_S = 1.5
"""A document is sent within a second."""
POLL_S = 0.1


class RunPage:
    """Of the run's observer, which somebody else ends. A page that cannot be is said once."""

    def __init__(self, config: Config, observer: Observer, *, run: str) -> None:
        self._config = config
        self._run = run
        self._observer = observer
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="run-page", daemon=True)

    def start(self) -> None:
        """Returns at once: what the page is made of is imported while the run's workers start."""
        self._thread.start()

    def stop(self) -> None:
        """The page is gone when this returns, or left to itself after `STOP_S`."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(STOP_S)

    def _serve(self) -> None:
        try:
            self._serve_until_stopped()
        except (LockstepError, ImportError, OSError) as error:
            log.warning("this run has no page: %s", error)
        except Exception:  # a page must never end a run, nor be missed without a word
            log.exception("the page has ended unexpectedly; the run goes on without it")

    def _serve_until_stopped(self) -> None:
        from lockstep.orders.by_page import PageOrders
        from lockstep.ui.server import PageServer

        ui = self._config.ui
        server = PageServer(
            {self._config.pipeline.id: self._observer},
            bind=ui.bind,
            port=ui.port,
            token=ui.resolved_token(),
            speaker="The driver",
            orders={self._config.pipeline.id: PageOrders(self._config, run=self._run)}
            if ui.control
            else None,
        )
        server.start()
        try:
            log.info("the page: %s", server.url)
            self._leave(server.url)
            self._stopping.wait()
            if server.readers:
                self._last_words()
        finally:
            server.stop()

    def _leave(self, url: str) -> None:
        """Only `lockstep support` asks for it."""
        try:
            leave_page(self._config.pipeline.id, self._run, url)
        except OSError as error:
            log.warning(
                "`lockstep support` will not find the page: its address could not be left (%s)", error
            )

    def _last_words(self) -> None:
        """A halt is worth a moment: who looks on shall read why, though the driver ends."""
        asked_ms, until_s = wall_ms(), time.monotonic() + LAST_WORDS_S
        while time.monotonic() < until_s:
            document = self._observer.page().document
            if (document["sources"]["driver_ms"] or 0) > asked_ms:
                if document["halted"]:
                    time.sleep(DELIVERY_S)
                return
            time.sleep(POLL_S)
