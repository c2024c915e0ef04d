"""Broker and consumer group are looked at while a run goes on: a pipeline's group is its own.

Who joins it with the workers' own assignor is refused by nobody and given source partitions, which then
nobody reads; a group that has no coordinator, or never comes to an end with a rebalance, gives nobody any.
Workers cannot see that; the broker can be asked.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from control_topic.messages import SourcePartition
from lockstep.brokers.group import GroupView
from lockstep.brokers.source_topics import SourceTopics
from lockstep.driver.looking import Looking
from lockstep.driver.stands import LivingWorker, Look, Stands
from table.service.calls import RunMode
from table.service.progress import Progress
from table.service.roster import lives
from table.service.servicer import TableService
from table.service.source_facts import MissingTopic, SourceTopicsError, SourceUnavailable

log = logging.getLogger("lockstep.run")

LOOK_EVERY_S = 10.0
JOIN_S = 5.0


class GroupWatch(Looking):
    """A thread in the driver. `source`: of its own, so that a look does not take long; `clock`: seconds that
    never go back; `session_s`: as `Stands` has it."""

    def __init__(
        self,
        source: SourceTopics,
        group: str,
        *,
        service: TableService,
        clock: Callable[[], float],
        session_s: float = 0.0,
    ) -> None:
        super().__init__("group-watch", self._goes_on, every_s=LOOK_EVERY_S, join_s=JOIN_S)
        self._source, self._group, self._service, self._clock = source, group, service, clock
        self._session_s = session_s
        self._stands = Stands(group, session_s)

    def _goes_on(self) -> bool:
        try:
            seen = self.look()
        except Exception:  # whatever it is, without this thread a run may stand still for ever
            log.exception("the consumer group could not be looked at; it is tried again")
            return True
        if seen is None:
            return True
        verdict = self._stands.look(seen)
        self._service.alarm("group", verdict.alarm, stands=True)
        if verdict.halt:
            self._service.halt(verdict.halt)
        elif verdict.is_news:
            log.warning("%s", verdict.alarm)
        return not verdict.halt

    def look(self) -> Look | None:
        """What is to be judged; None where others judge: a run that ends, a topic that is gone."""
        partitions: tuple[SourcePartition, ...] = ()
        group, outage = None, ""
        try:
            partitions = self._source.facts().partitions
            group = self._ask_group()
        except MissingTopic as error:
            log.debug("the consumer group was not looked at: %s", error)  # the source's watch says so
            return None
        except SourceUnavailable as error:
            outage = str(error)
        except SourceTopicsError as error:
            log.debug("the source topics were not looked at: %s", error)  # whoever needs them says so
            return None
        progress = self._service.progress()
        if progress.standing.mode is not RunMode.RUN:
            self._service.alarm("group", "", stands=True)  # its workers leave, or it is paused
            self._stands = Stands(self._group, self._session_s)  # what lasted before is not known to last
            return None
        return Look(
            now_s=self._clock(),
            partitions=partitions,
            group=group,
            outage=outage,
            workers=tuple(living(progress)),
            commits=progress.commits,
        )

    def _ask_group(self) -> GroupView | None:
        try:
            return self._source.group(self._group)
        except SourceUnavailable:
            raise
        except SourceTopicsError as error:
            log.debug("the consumer group was not looked at: %s", error)  # workers need more rights than this
            return None


def living(progress: Progress) -> Iterable[LivingWorker]:
    """The workers that have reported lately."""
    for entry in progress.workers:
        if lives(entry, progress.now_ms):
            report = entry.report
            yield LivingWorker(
                name=f"worker-{report.slot}", owned=frozenset(report.partitions), alarms=report.alarms
            )
