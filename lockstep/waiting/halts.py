"""Whether the pipeline's run has halted: its driver's word, or the control topic's where none answers."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from control_topic.kafka import ControlReader
from control_topic.messages import Halt
from lockstep.config import Config
from lockstep.watch.looks import placed_run
from lockstep.watch.run_seen import ask_driver
from lockstep.watch.tail import MESSAGES_MAX, as_heard
from lockstep.watch.told import Heard
from lockstep.watch.topic_fold import fold

DRIVER, TOPIC = "driver", "control topic"
GRACE_S = 30.0
"""A halt that the topic told of before we came may be of a run whose successor is about to start."""
SETTLES_S = 5.0
"""Whoever forged a halt is given away by the run's own coordinator, which speaks on."""
POLL_S = 0.2
DRAIN_S = 2.0
"""The most that one look reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HaltSeen:
    """Who says that the run has halted, and why."""

    reason: str
    word: str
    """`DRIVER` or `TOPIC`."""


class Halts:
    """One reader of the control topic, made where it is first needed."""

    def __init__(
        self,
        config: Config,
        kafka: Mapping[str, str],
        *,
        driver: Callable[[str], Mapping[str, Any] | None] = ask_driver,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config, self._kafka = config, kafka
        self._driver, self._clock_s = driver, clock_s
        self._began_s = clock_s()
        self._reader: ControlReader | None = None
        self._heard: deque[Heard] = deque(maxlen=MESSAGES_MAX)
        self._before_us: set[str] | None = None
        """Runs that had halted when the topic was first read to its end; None before that."""
        self._first_told: tuple[tuple[str, str], float] | None = None
        """The newest halt: the run and why, and when we first heard of it."""

    def look(self, *, table_epoch: int, patient: bool = True) -> HaltSeen | None:
        """`patient`: a halt from before we came counts only after a while."""
        live = self._driver(self._config.pipeline.id)
        if live is not None:
            reason = live.get("halted")
            return HaltSeen(reason=str(reason), word=DRIVER) if reason else None
        self._read()
        if self._reader is None or not self._reader.caught_up:
            return None
        told = self._told(table_epoch)
        if self._before_us is None:
            self._before_us = {told[0]} if told is not None else set()
        if told is None:
            self._first_told = None
            return None
        run, reason = told
        now_s = self._clock_s()
        if self._first_told is None or self._first_told[0] != told:
            self._first_told = (told, now_s)
        since_s, rests_s = (
            (self._began_s, GRACE_S) if run in self._before_us else (self._first_told[1], SETTLES_S)
        )
        if patient and now_s - since_s < rests_s:
            return None
        return HaltSeen(reason=reason, word=TOPIC)

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()

    def _read(self) -> None:
        config = self._config
        if self._reader is None:
            self._reader = ControlReader(
                self._kafka,
                config.control.topic,
                start="tail",
                tail_messages=MESSAGES_MAX,
                pipeline=config.pipeline.id,
            )
        until_s = self._clock_s() + DRAIN_S
        while self._clock_s() < until_s:
            arrived = self._reader.poll(POLL_S)
            self._heard += filter(None, (as_heard(one, config.pipeline.id) for one in arrived))
            if not arrived and self._reader.caught_up:
                return

    def _told(self, table_epoch: int) -> tuple[str, str] | None:
        """The newest run and why it halted, where it did."""
        if not any(isinstance(one.message.body, Halt) for one in self._heard):
            return None
        known = fold(self._heard, placed=placed_run(self._config), table_epoch=table_epoch)
        if known.halted is None or goes_on(self._heard, run=known.run, epoch=known.epoch):
            return None
        return known.run, known.halted[0]


def goes_on(heard: Sequence[Heard], *, run: str, epoch: int) -> bool:
    """Whether the run's newest coordinator speaks after the last HALT. One that halts a run says no more, and
    one that takes over meanwhile says HALT as well: the other HALT is somebody else's. Pure.
    """
    for one in reversed(heard):
        message = one.message
        if not one.marked or message.run != run:
            continue
        if isinstance(message.body, Halt):
            return False
        if message.sender.startswith("coordinator") and message.epoch == epoch:
            return True
    return False
