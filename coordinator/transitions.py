"""Which event is legal in which state, as data. The theory of the machine in one page.

A coordinator first earns its epoch (SURVEYING, CLAIMING, REGISTERING), then makes the table its own
(RECOVERING), then runs transactions: IDLE -> BEGINNING -> STARTED -> ENDED -> COMMITTING -> IDLE.
From BEGINNING, STARTED and ENDED a transaction may be given up (ABORTING). Once the commit call is out
nothing aborts: a call whose outcome is unknown is looked up (RESOLVING), and only a proof of absence leads
to ABORTING. DRAINED has finished its last transaction on request. FENCED and HALTED are final.

The table maps state -> event -> what to do: the name of the core's method, or IGNORED (legal, without
effect). A pair that is not in the table is illegal: the shell broke its contract, and `IllegalEvent` says so.
A message is looked up by its body's type.
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
from coordinator.events import Completed, Directed, Launch, Tick, WorkerDied

IGNORED: Final = ""


class State(Enum):
    NEW = "new"
    SURVEYING = "surveying"
    CLAIMING = "claiming"
    REGISTERING = "registering"
    RECOVERING = "recovering"
    IDLE = "idle"
    BEGINNING = "beginning"
    STARTED = "started"
    ENDED = "ended"
    COMMITTING = "committing"
    RESOLVING = "resolving"
    ABORTING = "aborting"
    DRAINED = "drained"
    FENCED = "fenced"
    HALTED = "halted"

    __hash__ = object.__hash__
    """By identity, as they are compared: Enum's own is a Python function, called at every event."""


class IllegalEvent(Exception):
    """The shell gave the core an event that its state does not allow: a bug, never an operator's doing."""


Row = Mapping[type[Any], str]

_MESSAGES: Row = {
    RunAnnounce: IGNORED,
    CoordinatorClaim: IGNORED,
    ParticipantJoin: "on_join",
    ParticipantLeave: "on_leave",
    ParticipantReady: "on_ready",
    StartCommit: IGNORED,
    EndRequest: IGNORED,
    EndCommit: IGNORED,
    WriteProgress: IGNORED,
    WriteStatus: IGNORED,
    AckCommit: IGNORED,
    AbortCommit: IGNORED,
    Halt: IGNORED,
}
_SILENT: Row = {body: IGNORED for body in _MESSAGES}
_ALIVE: Row = {**_MESSAGES, WorkerDied: "on_worker_died", Directed: "on_directed", Tick: "on_retry"}
_FINAL: Row = {**_SILENT, Tick: IGNORED, WorkerDied: IGNORED, Directed: IGNORED, Completed: IGNORED}

TABLE: Final[Mapping[State, Row]] = {
    State.NEW: {
        Launch: "on_launch",
        **_SILENT,
        Tick: IGNORED,
        WorkerDied: "on_worker_died",
        Directed: "on_directed",
    },
    State.SURVEYING: {**_ALIVE, Completed: "on_surveyed"},
    State.CLAIMING: {**_ALIVE, CoordinatorClaim: "on_claim", Tick: "on_claim_tick", Completed: IGNORED},
    State.REGISTERING: {**_ALIVE, Completed: "on_registered"},
    State.RECOVERING: {**_ALIVE, Completed: "on_recovered"},
    State.IDLE: {**_ALIVE, Tick: "on_idle_tick", Completed: IGNORED},
    State.BEGINNING: {**_ALIVE, Completed: "on_begun"},
    State.STARTED: {
        **_ALIVE,
        ParticipantJoin: "on_join_open",
        ParticipantLeave: "on_leave_open",
        ParticipantReady: "on_ready_open",
        EndRequest: "on_end_request",
        WorkerDied: "on_worker_died_open",
        Tick: "on_started_tick",
        Completed: IGNORED,
    },
    State.ENDED: {
        **_ALIVE,
        ParticipantJoin: "on_join_open",
        ParticipantLeave: "on_leave_open",
        ParticipantReady: "on_ready_open",
        WriteProgress: "on_write_progress",
        WriteStatus: "on_write_status",
        WorkerDied: "on_worker_died_open",
        Tick: "on_ended_tick",
        Completed: IGNORED,
    },
    State.COMMITTING: {**_ALIVE, Completed: "on_commit_completed"},
    State.RESOLVING: {**_ALIVE, Completed: "on_found"},
    State.ABORTING: {**_ALIVE, Completed: "on_aborted"},
    State.DRAINED: {**_ALIVE, Tick: IGNORED, Completed: IGNORED},
    State.FENCED: _FINAL,
    State.HALTED: _FINAL,
}
