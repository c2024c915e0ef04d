"""Which event is legal in which state, as data. The participant's theory in one page.

JOINING: it says what it owns until a START lists it. WAITING: between transactions; it keeps consuming
into memory. WRITING: its incarnation is in START; chunks go to files. FLUSHING: END came; files are being
closed. PREPARED: its WRITE_STATUS is out; only ACK, ABORT or the next START decide what became of it.
STOPPED is final.

State -> event -> the core's method, or IGNORED. A pair that is missing is illegal. Messages are looked up
by their body's type; messages of a lower epoch or another run never get here.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from control_topic.messages import (
    AbortCommit,
    AckCommit,
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
    Revoked,
    Tick,
    Undeliverable,
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
    """By identity, as they are compared: Enum's own is a Python function, called at every event."""


class IllegalEvent(Exception):
    """The shell gave the core an event that its state does not allow: a bug, never an operator's doing."""


Row = Mapping[type[Any], str]

_OTHERS: Row = {
    RunAnnounce: IGNORED,
    ParticipantJoin: IGNORED,
    ParticipantLeave: IGNORED,
    ParticipantReady: IGNORED,
    EndRequest: IGNORED,
    WriteProgress: IGNORED,
    WriteStatus: IGNORED,
}
_ALWAYS: Row = {
    **_OTHERS,
    CoordinatorClaim: "on_claim",
    StartCommit: "on_start",
    EndCommit: "on_end_unknown",
    AckCommit: IGNORED,
    AbortCommit: IGNORED,
    Halt: "on_halt",
    Assigned: "on_assigned",
    Revoked: "on_revoked",
    OffsetsFetched: "on_offsets_fetched",
    Buffered: "on_buffered",
    Blocked: "on_blocked",
    EffectFailed: "on_effect_failed",
    Leave: "on_leave",
    Wrote: IGNORED,
    Flushed: IGNORED,
    Undeliverable: IGNORED,
    Tick: "on_tick",
}

TABLE: Final[Mapping[State, Row]] = {
    State.JOINING: _ALWAYS,
    State.WAITING: _ALWAYS,
    State.WRITING: {**_ALWAYS, EndCommit: "on_end", AbortCommit: "on_abort", Tick: "on_tick_writing"},
    State.FLUSHING: {
        **_ALWAYS,
        EndCommit: "on_end_flushing",
        AbortCommit: "on_abort",
        Wrote: "on_wrote",
        Flushed: "on_flushed",
        Undeliverable: "on_undeliverable",
    },
    State.PREPARED: {
        **_ALWAYS,
        EndCommit: "on_end_again",
        AckCommit: "on_ack",
        AbortCommit: "on_abort",
        Tick: "on_tick_prepared",
    },
    State.STOPPED: {kind: IGNORED for kind in _ALWAYS},
}
