"""What goes into the coordinator's core and what comes out. Frozen values, standard library only.

Every event brings the time and a fresh random id with it, so that the core needs neither a clock nor a
source of randomness. Every call that an action asks for is answered by exactly one `Completed` with the
call's number: succeeded, provably failed, or unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from control_topic.controls import Controls
from control_topic.messages import Body, Message, Offsets, Range, SourcePartition, Witness, WriteStatus
from coordinator.times import NOTHING, ByTheClock


class Result(Enum):
    """How a call to the table service ended. The service's own vocabulary (proto/table.proto)."""

    OK = "ok"
    STALE = "stale"
    REFUSED = "refused"
    UNAVAILABLE = "unavailable"
    UNKNOWN = "unknown"
    HALTED = "halted"
    COMMITTED = "committed"
    ABSENT = "absent"


class Fault(Enum):
    """Whose fault an abort is. Only the pipeline's own faults are counted towards a halt."""

    NONE = "none"
    PIPELINE = "pipeline"
    ENVIRONMENT = "environment"


class RunMode(Enum):
    """What the driver wants of the run."""

    RUN = "run"
    DRAIN = "drain"
    HALT = "halt"
    STOP = "stop"
    PAUSE = "pause"

    __hash__ = object.__hash__
    """Hash of the member's identity, because Enum.__hash__ is a Python function and every report calls it."""


# --- events -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    now_ms: int
    """Monotonic enough to compare with other events' `now_ms`."""
    nonce: str = ""
    """128 random bits, hex."""
    wall_ms: int = 0
    """Milliseconds since 1970, by a clock that may be put forward or back. Asked for schedule and alignment
    only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch(Event):
    """This worker owns source partition 0."""

    topic_epoch: int = 0
    """The highest epoch the control topic showed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick(Event):
    """Time passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received(Event):
    """A message was read from the control topic, in topic order."""

    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed(Event):
    """The call with this number ended. `epoch` answers Survey, `partitions` answers Recover."""

    call: int
    result: Result
    reason: str = ""
    wait_ms: int = 0
    instant: str = ""
    epoch: int = 0
    committed: Offsets = field(default_factory=dict)
    partitions: frozenset[SourcePartition] = frozenset()
    took_ms: Mapping[str, int] = field(default_factory=dict)
    witnesses: tuple[Witness, ...] = ()
    """Answers Begin."""
    watermark_ms: int | None = None
    """Likewise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerDied(Event):
    """The driver saw this incarnation's Spark task end."""

    incarnation: str
    reason: str = ""
    """Of what, by the worker's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Directed(Event):
    """The driver's directive changed."""

    mode: RunMode
    reason: str = ""
    controls: Controls | None = None
    """What operators have ordered; None where the driver takes no orders."""
    by_the_clock: ByTheClock | None = None
    """Schedule and alignment of it, made by the shell; None: as the configuration has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outranked(Event):
    """A message or an answer shows that a higher epoch rules. The core says so to itself."""

    reason: str


# --- actions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Produce to the control topic. May be lost: whatever matters is repeated, so nothing answers it."""

    body: Body
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    call: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Register:
    call: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recover:
    call: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    call: int
    epoch: int
    transaction: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    call: int
    epoch: int
    transaction: str
    instant: str
    expected: Offsets
    statuses: tuple[WriteStatus, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Find:
    call: int
    transaction: str
    ranges: tuple[Range, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Abort:
    call: int
    epoch: int
    transaction: str
    instant: str
    reason: str
    fault: Fault
    cause: str
    """The reason's class, of `control_topic.causes.ABORT_CAUSES`. The table is not told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """This core is done."""

    reason: str
    fenced: bool
    """Somebody else coordinates; claim again only if p0 is proved ours."""


Call: TypeAlias = Survey | Register | Recover | Begin | Commit | Find | Abort
Action: TypeAlias = Send | Call | Stop
Prove: TypeAlias = Callable[[bool, str], None]
"""Takes the group's verdict on an ownership, and why not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Times in milliseconds."""

    pipeline: str
    run: str
    incarnation: str
    interval_ms: int
    write_timeout_ms: int
    """How long a writer may be silent once a transaction was ended."""
    write_limit_ms: int = 600_000
    """How long a writer that says how far it is, is waited for. Never shorter than `write_timeout_ms`."""
    repeat_ms: int = 1_000
    """END and the claim are repeated this often until answered."""
    settle_ms: int = 1_000
    """How long the first READY may wait for owners of every source partition, and how long one that was given
    up is expected to be taken again."""
    retry_ms: int = 500
    """Wait before a call that failed is tried again where the service named no wait itself."""
    admit_ms: int = 10_000
    """How often the table is asked again for the offset of a source partition that somebody owns and the
    broker did not name."""
    claims_max: int = 5
    records_min: int = 1_000
    """A transaction is never made smaller than that."""
    by_the_clock: ByTheClock = NOTHING
    """As the configuration has it."""
    align_margin_ms: int = 1_000
    """So near to one of these nothing is begun or started: clocks that differ by less agree on the side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The core's state for people: shown by `lockstep status`."""

    state: str
    epoch: int
    transaction: str
    instant: str
    started_at_ms: int
    answered: tuple[str, ...]
    missing: tuple[str, ...]
    ignored: Mapping[str, int]
    settled: int = 0
    """Every order up to this number is done."""
