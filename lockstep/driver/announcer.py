"""A run announces itself on the control topic: for people, who see there where it is and since when."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping

from control_topic.clocks import wall_ms
from control_topic.kafka import ControlWriter
from control_topic.messages import Control, RunAnnounce
from lockstep.errors import Failed

WAIT_S = 0.2
ANNOUNCE_S = 30


class Announcer:
    """A thread in the driver. `announcement`: what this run says of itself, whenever it says so."""

    def __init__(
        self,
        kafka: Mapping[str, str],
        topic: str,
        *,
        pipeline: str,
        run: str,
        key: bytes,
        announcement: RunAnnounce,
    ) -> None:
        self._topic = topic
        self._announcement = announcement
        self._again = threading.Event()
        self._lock = threading.Lock()
        """Who writes is one at a time: messages are numbered."""
        self._stopping = threading.Event()
        self._writer = ControlWriter(
            kafka,
            topic,
            pipeline=pipeline,
            run=run,
            sender="driver",
            incarnation=secrets.token_hex(16),
            clock_ms=wall_ms,
            key=key,
        )
        self._thread = threading.Thread(target=self._keep, name="announcer", daemon=True)

    def start(self) -> None:
        """Announce this run. Raises `Failed` where the broker does not take the announcement."""
        self._announce()
        if not self._writer.flush(ANNOUNCE_S) or self._writer.failures:
            raise Failed(
                f"the run could not announce itself on the control topic {self._topic} within "
                f"{ANNOUNCE_S} s: see that the broker is well and lets this user write to it."
            )
        self._thread.start()

    def announce_again(self) -> None:
        """Say once more, soon, that this run is here. From any thread."""
        self._again.set()

    def say(self, control: Control) -> None:
        """Tell what an operator has ordered. From any thread: what is lost is in the run's log."""
        with self._lock:
            self._writer.send(control, epoch=0)

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(5)

    def _announce(self) -> None:
        with self._lock:
            self._writer.send(self._announcement, epoch=0)

    def _keep(self) -> None:
        try:
            while not self._stopping.is_set():
                if self._again.wait(WAIT_S):
                    self._again.clear()
                    self._announce()
        finally:
            self._writer.close()
