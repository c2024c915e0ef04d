"""All hooks of a run: started before its first commit, looked at while it goes on, ended after its last."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Protocol

from control_topic.clocks import monotonic_ms, wall_ms
from control_topic.spelling import one_line
from lockstep.driver.looking import Looking
from lockstep.hooks.commits import Mark
from lockstep.hooks.courier import Courier, waiting_text
from lockstep.hooks.delivery import Trouble
from lockstep.hooks.history import History
from lockstep.hooks.notes import HookNote
from lockstep.hooks.port import Ending, HowEnded, Sink
from table.port import TableReader
from table.state import TableState
from table.store.port import Store

log = logging.getLogger("lockstep.hooks")

LOOK_EVERY_S = 1.0
JOIN_S = 5.0
END_S = 10.0
"""What the end of a run waits at most for what is open."""
LEAVE_S = 1.0
"""The same, where another run has it."""


class Alarms(Protocol):
    def __call__(self, of: str, text: str, *, stands: bool) -> None: ...


class Hooks:
    """`newest`: at the start, before anything is committed. `seen`: the newest committed state, asked often
    and by any thread. `alarm`: as `table.service.servicer.TableService` has it.
    """

    def __init__(
        self,
        sinks: Sequence[Sink],
        *,
        pipeline: str,
        store: Store,
        open_reader: Callable[[], TableReader],
        newest: TableState | None,
        seen: Callable[[], TableState | None],
        alarm: Alarms,
    ) -> None:
        """Raises `Failed` where nothing can be noted beside the table."""
        history = History(open_reader, pipeline)
        notes = [HookNote(store, pipeline=pipeline, hook=sink.name) for sink in sinks]
        at_start = Mark.of(newest)
        self._alarm = alarm
        self._couriers = [
            Courier(
                sink,
                note,
                history,
                at_start=at_start,
                newest=lambda: max(at_start, Mark.of(seen())),
                clock_ms=monotonic_ms,
            )
            for sink, note in zip(sinks, notes, strict=True)
        ]
        self._looking = Looking("hooks", self._look, every_s=LOOK_EVERY_S, join_s=JOIN_S)
        self._finished = False

    def start(self) -> None:
        for courier in self._couriers:
            courier.start()
        if self._couriers:
            self._looking.start()

    def finish(self, ending: Ending) -> None:
        """The run has ended like this: what is open is delivered, for some seconds at most. Once."""
        if self._finished or not self._couriers:
            return
        self._finished = True
        self._looking.stop()
        within_s = LEAVE_S if ending.how is HowEnded.SUPERSEDED else END_S
        deadline = time.monotonic() + within_s
        for courier in self._couriers:
            courier.finish(ending, monotonic_ms() + int(1_000 * within_s))
        for courier in self._couriers:
            courier.join(max(0.0, deadline - time.monotonic()))
        if ending.how is HowEnded.SUPERSEDED:
            return  # which run delivers the rest is clear
        for courier in self._couriers:
            trouble, waiting = courier.standing()
            if waiting:
                why = f": {one_line(trouble.why)}" if trouble is not None else ""
                log.warning(
                    "hook %s (%s) has not taken %s%s; the next run delivers it",
                    *(courier.name, courier.place, waiting_text(waiting), why),
                )

    def _look(self) -> bool:
        for courier in self._couriers:
            trouble, waiting = courier.standing()
            text = _alarm(courier, trouble, waiting) if trouble is not None else ""
            self._alarm(f"hook {courier.name}", text, stands=False)
        return True


def _alarm(courier: Courier, trouble: Trouble, waiting: int) -> str:
    since = datetime.fromtimestamp((wall_ms() - monotonic_ms() + trouble.since_ms) / 1_000, UTC)
    what = f"has not taken {waiting_text(waiting)}" if waiting else "does not answer"
    return (
        f"hook {courier.name} ({courier.place}) {what} since {since:%Y-%m-%d %H:%M:%S}Z: "
        f"{one_line(trouble.why)}. It is tried again; no commit waits for it"
    )
