"""Which event is legal in which state, as data. The participant's theory in one page.

JOINING: it says what it owns until a START lists it. WAITING: between transactions; it keeps consuming
into memory. WRITING: its incarnation is in START; chunks go to files. FLUSHING: END came; files are being
closed. PREPARED: its WRITE_STATUS is out; only ACK, ABORT or the next START decide what became of it.
STOPPED is final.

State -> event -> `Step`: which part's method handles it, or IGNORED, and into which other states that may
lead; to stay is always allowed. A pair that is missing is illegal: the shell broke its contract. A step into
a state that is not named is the core's own bug. Messages are looked up by their body's type; decisions of a
lower epoch and whatever another run says never get here, but for its epoch, which is `Outranked`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from control_topic.messages import (
    AbortCommit,
    AckCommit,
    Control,
    CoordinatorClaim,
    EndCommit,
    EndRequest,
    Halt,
    ParticipantJoin,
    ParticipantLeave,
    ParticipantReady,
    RunAnnounce,
    StartCommit,
    WriteProgress,
    WriteStatus,
)
from participant.events import (
    Assigned,
    Blocked,
    Buffered,
    EffectFailed,
    Flushed,
    Leave,
    OffsetsFetched,
    Outranked,
    Revoked,
    TakenAway,
    Tick,
    Tuned,
    Wrote,
)

IGNORED: Final = ""


class State(Enum):
    JOINING = "joining"
    WAITING = "waiting"
    WRITING = "writing"
    FLUSHING = "flushing"
    PREPARED = "prepared"
    STOPPED = "stopped"

    __hash__ = object.__hash__
    """Hash of the member's identity, because Enum.__hash__ is a Python function and every event calls it."""


class IllegalEvent(Exception):
    """The shell gave the core an event that its state does not allow: a bug, never an operator's doing."""


class IllegalStep(Exception):
    """The core went where its table does not lead: a bug of the core's own."""


@dataclass(frozen=True, slots=True)
class Step:
    """What an event does in a state."""

    method: str
    """`part.method`, or the core's own; IGNORED where nothing happens."""
    to: frozenset[State] = frozenset()
    """The states that it may lead to, beside the one that it happens in."""


Row = Mapping[type[Any], Step]


def step(method: str, *to: State) -> Step:
    return Step(method, frozenset(to))


IGNORE: Final = Step(IGNORED)

_OTHERS: Row = {
    RunAnnounce: IGNORE,
    ParticipantJoin: IGNORE,
    ParticipantLeave: IGNORE,
    ParticipantReady: IGNORE,
    EndRequest: IGNORE,
    WriteProgress: IGNORE,
    WriteStatus: IGNORE,
    Control: IGNORE,
}
_ALWAYS: Row = {
    **_OTHERS,
    Outranked: step("on_outranked"),
    CoordinatorClaim: step("on_claim"),
    StartCommit: step("rounds.on_start", State.WRITING),
    EndCommit: step("rounds.on_end_unknown"),
    AckCommit: IGNORE,
    AbortCommit: IGNORE,
    Halt: step("on_halt", State.STOPPED),
    Assigned: step("on_assigned"),
    Revoked: step("on_revoked"),
    OffsetsFetched: step("on_offsets_fetched"),
    Buffered: step("on_buffered"),
    Blocked: step("on_blocked"),
    EffectFailed: step("on_effect_failed", State.STOPPED),
    Leave: step("on_leave", State.STOPPED),
    Tuned: step("on_tuned"),
    Tick: step("on_tick"),
}
_LATE: Row = {Wrote: IGNORE, TakenAway: IGNORE, Flushed: IGNORE}
"""The data plane's last words about a transaction that was given up. It obeys in order: before the files of a
later one are flushed, all has been said about the earlier ones."""
_OUTLIVED: Row = {
    Outranked: step("on_outranked", State.JOINING),
    Revoked: step("on_revoked", State.JOINING),
    AbortCommit: step("rounds.on_abort", State.JOINING),
}
"""What is open is given up."""

TABLE: Final[Mapping[State, Row]] = {
    State.JOINING: {**_ALWAYS, **_LATE},
    State.WAITING: {
        **_ALWAYS,
        CoordinatorClaim: step("on_claim", State.JOINING),
        StartCommit: step("rounds.on_start", State.WRITING, State.JOINING),
        Assigned: step("on_assigned", State.JOINING),
        Revoked: step("on_revoked", State.JOINING),
    },
    State.WRITING: {
        **_ALWAYS,
        **_LATE,
        **_OUTLIVED,
        StartCommit: step("rounds.on_start", State.JOINING),
        EndCommit: step("rounds.on_end", State.FLUSHING, State.JOINING),
        Buffered: step("on_buffered", State.JOINING),
        TakenAway: step("rounds.on_taken_away", State.JOINING),
        Tick: step("rounds.on_tick_writing"),
    },
    State.FLUSHING: {
        **_ALWAYS,
        **_OUTLIVED,
        StartCommit: step("rounds.on_start", State.WRITING, State.JOINING),
        EndCommit: step("rounds.on_end_flushing"),
        Wrote: step("rounds.on_wrote"),
        TakenAway: IGNORE,
        Flushed: step("rounds.on_flushed", State.PREPARED, State.JOINING, State.STOPPED),
    },
    State.PREPARED: {
        **_ALWAYS,
        Outranked: step("on_outranked", State.JOINING),
        StartCommit: step("rounds.on_start", State.WRITING, State.WAITING, State.JOINING),
        EndCommit: step("rounds.on_end_again"),
        AckCommit: step("rounds.on_ack", State.WAITING, State.JOINING),
        AbortCommit: step("rounds.on_abort", State.WAITING, State.JOINING),
        Tick: step("rounds.on_tick_prepared"),
    },
    State.STOPPED: {},
}
