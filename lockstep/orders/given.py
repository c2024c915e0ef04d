"""An order is given to the run's driver, by the address and token that it left here, and waited for."""

from __future__ import annotations

import getpass
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from control_topic.controls import SET, SETTINGS, WHO_CHARS_MAX, WHY_CHARS_MAX, Setting
from lockstep.config import Config, overlaid
from lockstep.driver.rundir import RunFile, read_run_file
from lockstep.errors import ConfigError, Failed
from table.service.calls import Order, Ordered, Result, Unreached
from table.service.client import Deadlines, TableClient

ASK_S = 5.0
LOOK_EVERY_S = 0.1
UNREACHED_MAX_S = 15.0
"""A driver that was there and has not answered for so long is gone."""
REPORTS_S = 10.0
"""Within it a coordinator's report has reached the driver."""
OUTLIVES_MS = int((2 * ASK_S + UNREACHED_MAX_S + REPORTS_S) * 1_000)
"""So much longer than its timeout a command may wait: for the answer that its order is taken, and for the
last status."""

STANDING_BACK = (
    "transaction.interval=100ms",
    "transaction.write_timeout=24h",
    "transaction.write_limit=24h",
)
"""What is not given agrees with everything: which settings the run has, its driver knows."""

Live = Mapping[str, Any]
"""What the driver's status says: `table.service.progress.Progress.to_json`."""


def who() -> str:
    """This user on this machine, as it is kept with the order."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # this machine knows no such user, as in a container
        user = f"uid {os.getuid()}"
    return f"{user}@{socket.gethostname()}"[:WHO_CHARS_MAX]


def chosen(config: Config, assignments: Sequence[str]) -> dict[str, Setting]:
    """What they set, as `--set` spells it, by field in base units.

    Raises `ConfigError` for what cannot be set while a run goes on, or cannot be at all.
    """
    by_name = {name: field for field, name in SETTINGS.items()}
    names = [assignment.partition("=")[0].strip() for assignment in assignments]
    if strange := sorted(set(names) - by_name.keys()):
        raise ConfigError(
            f"{strange[0]} cannot be set while a run goes on; what can is {', '.join(sorted(by_name))}"
        )
    wanted = overlaid(config, (*STANDING_BACK, *assignments))
    return {by_name[name]: getattr(wanted.transaction, by_name[name]) for name in names}


def order(
    action: str,
    *,
    why: str = "",
    settings: Mapping[str, Setting] | None = None,
    lives_ms: int = 0,
    by: str = "",
) -> Order:
    """`by`: who gives it; whoever runs this command where it is not given.

    Raises `ConfigError` for a reason that is too long, or settings that are none.
    """
    if len(why) > WHY_CHARS_MAX:
        raise ConfigError(f"the reason why has {len(why):,} characters; {WHY_CHARS_MAX:,} are the most")
    if action == SET and not settings:
        raise ConfigError("name at least one setting, as in transaction.interval=2s")
    return Order(action=action, settings=settings or {}, who=by or who(), why=why, lives_ms=lives_ms)


class Orders:
    """A run that goes on here. A context manager. Raises `Failed` where none is, or it does not answer."""

    def __init__(
        self,
        pipeline: str,
        *,
        clock_s: Callable[[], float] = time.monotonic,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        file = read_run_file(pipeline)
        if file is None:
            raise Failed(
                f"no run of pipeline {pipeline} has left its address on this machine for this user: give the "
                "order where the driver runs, as the user that it runs as"
            )
        self._file: RunFile = file
        self._clock_s, self._wait = clock_s, wait
        deadlines = Deadlines(status_s=ASK_S, control_s=ASK_S)
        self._client = TableClient(file.address, file.token, deadlines=deadlines)

    def __enter__(self) -> Orders:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._client.close()

    @property
    def run(self) -> str:
        return self._file.run

    def give(self, order: Order) -> Ordered:
        """It is taken, which is what the answer says. Raises `Failed` where it is not."""
        answer = self._client.control(order)
        if isinstance(answer, Unreached):
            if "unimplemented" in answer.reason:
                raise Failed("the run is of an older version, which takes no orders while it goes on")
            raise Failed(f"no answer from run {self.run}, which may have taken the order: {answer.reason}")
        if answer.result is Result.UNKNOWN:
            raise Failed(f"run {self.run} may have taken the order: {answer.reason}")
        if answer.result is not Result.OK:
            raise Failed(f"run {self.run} does not take the order: {answer.reason}")
        for field, value in order.settings.items():
            if getattr(answer.tuning, field, None) != value:
                raise Failed(
                    f"the run is of an older version, which cannot change {SETTINGS[field]} while it goes "
                    "on; what else was ordered is in force"
                )
        return answer

    def settled(self, number: int, *, timeout_s: float, what: str) -> Live:
        """Wait until the order is done; the run's status then. Raises `Failed` where that takes too long, or
        the run ends meanwhile.
        """
        deadline_s = self._clock_s() + timeout_s
        while True:
            live = self._ask()
            control = (live or {}).get("control") or {}
            if number in (control.get("expired") or ()):
                raise Failed(
                    f"{what} was given up before it was done: the run was paused, or nobody was expected to "
                    "wait for it any longer. What was consumed is not known to be in the table; give the "
                    "order again"
                )
            if live is not None and int(control.get("settled", 0)) >= number:
                return live
            if live is None or live.get("halted") or live.get("stopping"):
                why = (live or {}).get("halted") or (live or {}).get("stopping") or "its driver is gone"
                raise Failed(f"run {self.run} ends, and {what} is not known to be done: {why}")
            if self._clock_s() >= deadline_s:
                raise Failed(f"{what} is not done after {timeout_s:g} s: {_how_far(live)}")
            self._wait(LOOK_EVERY_S)

    def ended(self, *, timeout_s: float) -> Live:
        """Wait until the driver is gone; the last that it said. Raises `Failed` where that takes too long."""
        deadline_s = self._clock_s() + timeout_s
        last: Live = {}
        while True:
            live = self._ask(patient=False)
            last = live or last
            if live is None and not self._file.driver_is_there():
                return last
            if self._clock_s() >= deadline_s:
                raise Failed(
                    f"run {self.run} has not ended after {timeout_s:g} s, and goes on to: {_how_far(last)}"
                )
            self._wait(LOOK_EVERY_S)

    def _ask(self, *, patient: bool = True) -> Live | None:
        """The driver's status; None where it is gone. One that is busy is asked again for a while."""
        until_s = self._clock_s() + (UNREACHED_MAX_S if patient else 0.0)
        while True:
            answer = self._client.status()
            if isinstance(answer, dict):
                return answer if answer.get("run") == self.run else None
            if self._clock_s() >= until_s:
                return None
            self._wait(LOOK_EVERY_S)


def _how_far(live: Live) -> str:
    coordinator = live.get("coordinator") or {}
    state = coordinator.get("state")
    if not state:
        return "there is no coordinator at present; `lockstep status` says more"
    missing = coordinator.get("missing") or ()
    waits = f", waiting for {len(missing)} worker{'' if len(missing) == 1 else 's'}" if missing else ""
    return f"the coordinator is {state}{waits}; `lockstep status` says more"
