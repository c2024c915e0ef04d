"""How a run ends, as data: a walk through its modes. Pure: standard library only.

A run that is paused begins no transaction, and goes on, or ends, from there.

A stop that was asked for drains first: the open transaction is ended and committed, with one more for
whoever still holds records. A poison record drains too, so that what lies before it is committed, and then
halts. Every other halt does not wait for a drain. The coordinator announces a halt on the control topic
before the workers stop. No step waits for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from table.service.calls import RunMode


class Signal(Enum):
    """What can move the mode on. `Ledger._holds` says of each whether it is given."""

    HALT_NOW = "a halt that does not wait for a drain"
    DRAIN_WANTED = "a stop was asked for, the targets are reached, or a record is poison"
    DRAINED = "the coordinator has nothing open, and a stop was asked for"
    DRAINED_POISON = "the coordinator has nothing open, and a halt is pending"
    DRAIN_OVERDUE = "the drain took too long or nobody answers, and a stop was asked for"
    DRAIN_OVERDUE_POISON = "the drain took too long or nobody answers, and a halt is pending"
    ANNOUNCED = "the coordinator has announced the halt"
    HALT_OVERDUE = "nobody announced the halt in time"
    PAUSE_WANTED = "an operator has paused the run"
    RESUME_WANTED = "an operator has resumed it"

    __hash__ = object.__hash__
    """By identity, as they are compared: Enum's own is a Python function, called at every report."""


TRANSITIONS: Mapping[RunMode, tuple[tuple[Signal, RunMode], ...]] = {
    RunMode.RUN: (
        (Signal.HALT_NOW, RunMode.HALT),
        (Signal.DRAIN_WANTED, RunMode.DRAIN),
        (Signal.PAUSE_WANTED, RunMode.PAUSE),
    ),
    RunMode.PAUSE: (
        (Signal.HALT_NOW, RunMode.HALT),
        (Signal.DRAIN_WANTED, RunMode.DRAIN),
        (Signal.RESUME_WANTED, RunMode.RUN),
    ),
    RunMode.DRAIN: (
        (Signal.HALT_NOW, RunMode.HALT),
        (Signal.DRAINED_POISON, RunMode.HALT),
        (Signal.DRAIN_OVERDUE_POISON, RunMode.HALT),
        (Signal.DRAINED, RunMode.STOP),
        (Signal.DRAIN_OVERDUE, RunMode.STOP),
    ),
    RunMode.HALT: ((Signal.ANNOUNCED, RunMode.STOP), (Signal.HALT_OVERDUE, RunMode.STOP)),
    RunMode.STOP: (),
}
"""In each mode the first signal that holds is taken, one a call. STOP is the end."""

GOING_ON = frozenset({RunMode.RUN, RunMode.PAUSE})
"""Its end has not begun."""

DRAINED_STATES = frozenset({"drained", "halted"})
SILENT_STATES = frozenset({"", "fenced", "stopped"})
"""A coordinator that is fenced or stopped drains nothing: it counts as no answer."""
