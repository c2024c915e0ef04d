"""Runs of one pipeline announce themselves on the control topic; a newer one supersedes an older one."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping

from control_topic.clocks import wall_ms
from control_topic.kafka import ControlReader, ControlWriter
from control_topic.messages import Message, RunAnnounce
from lockstep.errors import Failed
from table.rivals import Rivals

POLL_S = 0.2
ANNOUNCE_S = 30


class RunWatch:
    """Announces this run, and listens for others from our own announcement on.

    `announcement`: what this run says of itself, whenever it says so.
    """

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
        self._pipeline = pipeline
        self._announcement = announcement
        self._rivals = Rivals(run, announcement)
        self._superseded = threading.Event()
        self._again = threading.Event()
        self._stopping = threading.Event()
        self._reader = ControlReader(kafka, topic, start="tail", pipeline=pipeline)
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
        self._thread = threading.Thread(target=self._watch, name="run-watch", daemon=True)

    def start(self) -> None:
        """Announce this run, then listen. Raises `Failed` where the broker does not take the announcement."""
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

    def await_newer_run(self, timeout_s: float) -> str:
        """Ask on the topic, and wait for an answer; the newest run that started after this one, or empty."""
        if not self._superseded.is_set():
            self.announce_again()
        self._superseded.wait(timeout_s)
        return self._rivals.newer

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(5)

    def _announce(self) -> None:
        self._writer.send(self._announcement, epoch=0)

    def _watch(self) -> None:
        try:
            while not self._stopping.is_set():
                for received in self._reader.poll(POLL_S):
                    if isinstance(received.content, Message):
                        self._hear(received.content)
                if self._again.is_set():
                    self._again.clear()
                    self._announce()
        finally:
            self._reader.close()
            self._writer.close()

    def _hear(self, message: Message) -> None:
        if message.pipeline != self._pipeline:
            return
        if self._rivals.hear(message):
            self._announce()
        if self._rivals.newer:
            self._superseded.set()
