"""The source topics are looked at while a run goes on: one that is deleted or made anew ends the run at once.

Consumers alone would wait for a deleted topic for ever, and notice one that was made anew only when they
have something to commit.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from lockstep.brokers.source_topics import SourceTopics
from lockstep.driver.looking import Looking
from table.checks import identity_problem
from table.service.source_facts import MissingTopic, SourceTopicsError
from table.state import TableState

log = logging.getLogger("lockstep.run")

LOOK_EVERY_S = 5.0
MISSING_MAX = 2
"""Looks in a row that must miss a topic: a broker that has just started may not know it for a moment."""
JOIN_S = 5.0


class SourceWatch(Looking):
    """A thread in the driver. `known`: the newest state of the table, as last seen; `halt`: ends the run."""

    def __init__(
        self, source: SourceTopics, *, known: Callable[[], TableState | None], halt: Callable[[str], None]
    ) -> None:
        super().__init__("source-watch", self._goes_on, every_s=LOOK_EVERY_S, join_s=JOIN_S)
        self._source = source
        self._known = known
        self._halt = halt
        self._missing = 0

    def _goes_on(self) -> bool:
        reason = self.look()
        if reason:
            self._halt(reason)
        return not reason

    def look(self) -> str:
        """Why the run cannot go on, or empty."""
        try:
            facts = self._source.facts()
        except MissingTopic as error:
            self._missing += 1
            deleted = f"{error} It was there when this run began, so somebody has deleted it."
            return deleted if self._missing >= MISSING_MAX else ""
        except SourceTopicsError as error:
            log.debug("the source topics were not looked at: %s", error)  # whoever needs them says so
            return ""
        self._missing = 0
        newest = self._known()
        return identity_problem(newest, facts.cluster, facts.topics) if newest is not None else ""
