"""Hitting one step of one transaction, and knowing what was hit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.faults.stage import Stage
from tests.faults.steps import Sighting, Step
from tests.faults.watch import Watch

PATIENCE_S = 180.0
MID_WRITE_MS = 100
"""So long after START a transaction is still being written: it lasts a quarter of the interval at least."""
AFTERMATH_S = 0.3
"""So long what was said before the blow may still take to be seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """`step`: what the transaction had reached at `at_ms` (Unix epoch, milliseconds).

    `instant`: the transaction's; `reported`: incarnations whose WRITE_STATUS of it had been sent.
    """

    aimed: Step
    step: Step | None
    at_ms: int
    last_words: str
    instant: str = ""
    reported: frozenset[str] = frozenset()

    @property
    def is_on_target(self) -> bool:
        return self.step is self.aimed


class _Trigger:
    """Strikes once, at the step, in a transaction that begins after the trigger was made."""

    def __init__(self, step: Step, *, writer: str, after_start_ms: int, strike: Callable[[], int]) -> None:
        self._step = step
        self._writer = writer
        self._after_start_ms = after_start_ms
        self._strike = strike
        self._made_ms = time.time_ns() // 1_000_000
        self._once = threading.Lock()
        self.seen: Sighting | None = None
        self.struck = threading.Event()
        self.at_ms = 0

    def look(self, seen: Sighting) -> None:
        """On a watching thread."""
        if self.struck.is_set() or seen.start_ms <= self._made_ms or seen.abort_ms:
            return
        if self._writer and self._writer not in seen.writers:
            return
        if self._step is Step.MID_WRITE:
            if not seen.end_ms and self.seen is not seen:
                self.seen = seen
                threading.Timer(self._after_start_ms / 1_000, self._still_writing, [seen]).start()
        elif _is_reached(self._step, seen):
            self._fire(seen)

    def _still_writing(self, seen: Sighting) -> None:
        if not seen.end_ms and not seen.abort_ms:
            self._fire(seen)

    def _fire(self, seen: Sighting) -> None:
        with self._once:
            if not self.struck.is_set():
                self.at_ms = self._strike()
                self.seen = seen
                self.struck.set()


def _is_reached(step: Step, seen: Sighting) -> bool:
    """Whether the step begins with what is seen now. Later ones are a miss, and counted as such."""
    match step:
        case Step.START_SENT:
            return True
        case Step.END_SENT:
            return seen.end_ms > 0
        case Step.SOME_STATUS:
            return bool(seen.statuses)
        case Step.COMMIT_BEGUN:
            return seen.lock_ms > 0
        case Step.COMMIT_LANDED:
            return seen.landed_ms > 0
        case Step.ACK_SENT:
            return seen.ack_ms > 0
        case Step.GROUP_COMMITTED:
            return seen.group_ms > 0
        case _:
            return False


def hit(
    stage: Stage,
    step: Step,
    strike: Callable[[], int],
    *,
    writer: str = "",
    after_start_ms: int = MID_WRITE_MS,
) -> Hit:
    """Call `strike`, which answers when it struck, at this step of a transaction.

    `writer`: an incarnation that the transaction's START has to list. `after_start_ms`: for the middle of
    writing. Fails where no transaction comes to the step within `PATIENCE_S`.
    """
    trigger = _Trigger(step, writer=writer, after_start_ms=after_start_ms, strike=strike)
    watch = Watch(
        bootstrap_servers=stage.broker.bootstrap_servers,
        pipeline=stage.pipeline.id,
        place=stage.pipeline.place,
        changed=trigger.look,
    )
    with watch:
        until = time.monotonic() + PATIENCE_S
        while not trigger.struck.wait(0.1):
            if watch.failure is not None:
                raise watch.failure
            assert time.monotonic() < until, (
                f"no transaction came to {step.value!r} within {PATIENCE_S:.0f} s"
            )
        time.sleep(AFTERMATH_S)
        assert trigger.seen is not None
        statuses = trigger.seen.statuses
        return Hit(
            aimed=step,
            step=trigger.seen.step_at(trigger.at_ms),
            at_ms=trigger.at_ms,
            last_words=watch.last_words(trigger.at_ms),
            instant=trigger.seen.instant,
            reported=frozenset(who for who, sent_ms in statuses.items() if sent_ms <= trigger.at_ms),
        )
