"""Runs of one pipeline announce themselves on the control topic; a newer one supersedes an older one."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from control_topic.kafka import ControlReader
from control_topic.messages import Message, RunAnnounce

POLL_S = 0.2


class RunWatch:
    """Reads the control topic from our own announcement on, and remembers who announced itself after us."""

    def __init__(self, kafka: Mapping[str, str], topic: str, *, pipeline: str, run: str) -> None:
        self._pipeline = pipeline
        self._run = run
        self._announced = False
        self._newer = ""
        self._superseded = threading.Event()
        self._stopping = threading.Event()
        self._reader = ControlReader(kafka, topic, start="tail", pipeline=pipeline)
        self._thread = threading.Thread(target=self._watch, name="run-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def await_newer_run(self, timeout_s: float) -> str:
        """The newest run that announced itself after this one; empty where none did in time."""
        self._superseded.wait(timeout_s)
        return self._newer

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(5)

    def _watch(self) -> None:
        try:
            while not self._stopping.is_set():
                for received in self._reader.poll(POLL_S):
                    if isinstance(received.content, Message):
                        self._hear(received.content)
        finally:
            self._reader.close()

    def _hear(self, message: Message) -> None:
        if message.pipeline != self._pipeline or not isinstance(message.body, RunAnnounce):
            return
        if message.run == self._run:
            self._announced = True
        elif self._announced:
            self._newer = message.run
            self._superseded.set()
