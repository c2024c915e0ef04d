"""Which event is legal in which state, as data. The theory of the machine in one page.

A coordinator first earns its epoch (SURVEYING, CLAIMING, REGISTERING), then makes the table its own
(RECOVERING), then runs transactions: IDLE -> BEGINNING -> STARTED -> ENDED -> COMMITTING -> IDLE.
From BEGINNING, STARTED and ENDED a transaction may be given up (ABORTING). Once the commit call is out
nothing aborts: a call whose outcome is unknown is looked up (RESOLVING), and only a proof of absence leads
to ABORTING. DRAINED has finished its last transaction on request. FENCED and HALTED are final.

The table maps state -> event -> `Step`: which part's method handles it, or IGNORED (legal, without effect),
and into which other states that may lead; to stay is always allowed. A pair that is not in the table is
illegal: the shell broke its contract, and `IllegalEvent` says so. A step into a state that is not named is
the core's own bug, and `IllegalStep` says so, in production as in simulations. A message is looked up by its
body's type; whatever shows that a higher epoch rules, as `Outranked`.
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
from coordinator.events import Completed, Directed, Launch, Outranked, Tick, WorkerDied

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
_BEGIN: Final = (State.BEGINNING, State.RECOVERING, State.DRAINED)
"""Whoever asks in IDLE whether a transaction may begin: it does, or the table is asked for offsets first, or
the drain is over."""
_DECIDED: Final = (State.IDLE, *_BEGIN)
"""A transaction was committed or aborted, and the next one may begin at once."""

_MESSAGES: Row = {
    RunAnnounce: IGNORE,
    CoordinatorClaim: IGNORE,
    ParticipantJoin: step("on_join"),
    ParticipantLeave: step("on_leave"),
    ParticipantReady: step("on_ready"),
    StartCommit: IGNORE,
    EndRequest: IGNORE,
    EndCommit: IGNORE,
    WriteProgress: IGNORE,
    WriteStatus: IGNORE,
    AckCommit: IGNORE,
    AbortCommit: IGNORE,
    Halt: IGNORE,
    Control: IGNORE,
}
_SILENT: Row = dict.fromkeys(_MESSAGES, IGNORE)
_ALIVE: Row = {
    **_MESSAGES,
    Outranked: step("on_outranked", State.FENCED),
    WorkerDied: step("on_worker_died"),
    Directed: step("on_directed", State.FENCED, State.HALTED),
    Tick: step("machine.on_retry"),
}
_OPEN: Row = {
    **_ALIVE,
    ParticipantJoin: step("on_join_open", State.ABORTING),
    ParticipantLeave: step("on_leave_open", State.ABORTING),
    ParticipantReady: step("on_ready_open"),
    WorkerDied: step("on_worker_died_open", State.ABORTING),
}

TABLE: Final[Mapping[State, Row]] = {
    State.NEW: {
        Launch: step("election.on_launch", State.SURVEYING),
        **_SILENT,
        Tick: IGNORE,
        WorkerDied: step("on_worker_died"),
        Directed: step("on_directed", State.FENCED, State.HALTED),
    },
    State.SURVEYING: {**_ALIVE, Completed: step("election.on_surveyed", State.CLAIMING, State.HALTED)},
    State.CLAIMING: {
        **_ALIVE,
        CoordinatorClaim: step("election.on_claim", State.REGISTERING, State.FENCED),
        Tick: step("election.on_claim_tick", State.FENCED),
    },
    State.REGISTERING: {
        **_ALIVE,
        Completed: step("election.on_registered", State.RECOVERING, State.HALTED),
    },
    State.RECOVERING: {
        **_ALIVE,
        Completed: step("election.on_recovered", State.IDLE, State.BEGINNING, State.DRAINED, State.HALTED),
    },
    State.IDLE: {
        **_ALIVE,
        ParticipantJoin: step("on_join", *_BEGIN),
        ParticipantReady: step("on_ready", State.BEGINNING, State.RECOVERING),
        Directed: step("on_directed", *_BEGIN, State.FENCED, State.HALTED),
        Tick: step("rounds.on_idle_tick", *_BEGIN),
    },
    State.BEGINNING: {
        **_ALIVE,
        Completed: step(
            "rounds.on_begun", State.STARTED, State.ENDED, State.ABORTING, State.RECOVERING, State.HALTED
        ),
    },
    State.STARTED: {
        **_OPEN,
        EndRequest: step("rounds.on_end_request", State.ENDED),
        Directed: step("on_directed", State.ENDED, State.FENCED, State.HALTED),
        Tick: step("rounds.on_started_tick", State.ENDED),
    },
    State.ENDED: {
        **_OPEN,
        WriteProgress: step("rounds.on_write_progress"),
        WriteStatus: step("rounds.on_write_status", State.COMMITTING, State.ABORTING),
        ParticipantLeave: step("on_leave_open", State.COMMITTING, State.ABORTING),
        WorkerDied: step("on_worker_died_open", State.ABORTING),
        Tick: step("rounds.on_ended_tick", State.ABORTING),
    },
    State.COMMITTING: {
        **_ALIVE,
        Completed: step("rounds.on_commit_completed", *_DECIDED, State.RESOLVING, State.ABORTING),
    },
    State.RESOLVING: {**_ALIVE, Completed: step("rounds.on_found", *_DECIDED, State.ABORTING)},
    State.ABORTING: {**_ALIVE, Completed: step("rounds.on_aborted", *_DECIDED, State.HALTED)},
    State.DRAINED: {**_ALIVE, Tick: IGNORE},
    State.FENCED: {},
    State.HALTED: {},
}
