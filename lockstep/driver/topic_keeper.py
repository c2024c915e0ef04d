"""The control topic is looked at while a run goes on, and made again where somebody deletes it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from control_topic.errors import ControlTopicError, ControlTopicUnavailable
from control_topic.kafka import ControlTopic
from lockstep.driver.looking import Looking

log = logging.getLogger("lockstep.run")

LOOK_EVERY_S = 1.0
ASK_S = 5.0
RESTORE_S = 30.0
JOIN_S = 10.0


class TopicKeeper(Looking):
    """A thread in the driver. `restored` is called on it whenever the topic was made again."""

    def __init__(self, kafka: Mapping[str, str], topic: str, *, restored: Callable[[], None]) -> None:
        super().__init__("topic-keeper", self._keep, every_s=LOOK_EVERY_S, join_s=JOIN_S)
        self._name = topic
        self._topic = ControlTopic(kafka, topic)
        self._restored = restored
        self._trouble = ""

    def _keep(self) -> bool:
        try:
            self._look_at_topic()
            self._trouble = ""
        except ControlTopicError as error:
            if str(error) != self._trouble:  # the next look is a second away: once is enough
                log.warning("%s", error)
            self._trouble = str(error)
        return True

    def _look_at_topic(self) -> None:
        try:
            exists = self._topic.describe(timeout_s=ASK_S).exists
        except ControlTopicUnavailable as error:
            log.debug("the control topic was not looked at: %s", error)  # the Kafka clients say that, too
            return
        if exists:
            return
        log.warning(
            "the control topic %s is gone and is made again; what was said on it is said again, and no"
            " record is lost",
            self._name,
        )
        self._topic.ensure(timeout_s=RESTORE_S)
        self._restored()
