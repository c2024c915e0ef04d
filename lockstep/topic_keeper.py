"""The control topic is looked at while a run goes on, and made again where somebody deletes it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from control_topic.errors import ControlTopicError, ControlTopicUnavailable
from control_topic.kafka import ControlTopic

log = logging.getLogger("lockstep.run")

LOOK_EVERY_S = 1.0
ASK_S = 5.0
RESTORE_S = 30.0
JOIN_S = 10.0


class TopicKeeper:
    """A thread in the driver. `restored` is called on it whenever the topic was made again."""

    def __init__(self, kafka: Mapping[str, str], topic: str, *, restored: Callable[[], None]) -> None:
        self._name = topic
        self._topic = ControlTopic(kafka, topic)
        self._restored = restored
        self._stopping = threading.Event()
        self._trouble = ""
        self._thread = threading.Thread(target=self._keep, name="topic-keeper", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(JOIN_S)

    def _keep(self) -> None:
        while not self._stopping.wait(LOOK_EVERY_S):
            try:
                self._look()
                self._trouble = ""
            except ControlTopicError as error:
                if str(error) != self._trouble:  # the next look is a second away: once is enough
                    log.warning("%s", error)
                self._trouble = str(error)

    def _look(self) -> None:
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
