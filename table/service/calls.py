"""What the table service is asked and what it answers, as frozen values. Pure: standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from control_topic.controls import Controls, Setting, Tuning
from control_topic.messages import SourcePartition
from coordinator.answers import Answer
from coordinator.events import Fault, Result, RunMode

__all__ = [
    "Answer",
    "CoordinatorReport",
    "Directive",
    "Fault",
    "Order",
    "Ordered",
    "Result",
    "RunMode",
    "Unreached",
    "WorkerReport",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreached:
    """The driver did not answer, and why."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Directive:
    """What a worker is told."""

    mode: RunMode
    reason: str = ""
    dead: tuple[str, ...] = ()
    """Incarnations whose Spark task has ended."""
    died_of: Mapping[str, str] = field(default_factory=dict)
    """Of them, why."""
    join: bool = False
    """Every worker of the run is there, so that the consumer group can form at once."""
    controls: Controls | None = None
    """What operators have ordered; None where the driver takes no orders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What an operator orders of a run that goes on."""

    action: str
    """Of `control_topic.controls.ACTIONS`."""
    settings: Mapping[str, Setting] = field(default_factory=dict)
    """To set, of `control_topic.controls.SETTINGS`, in base units."""
    who: str = ""
    why: str = ""
    lives_ms: int = 0
    """Of a commit: after so long nobody waits for it any more; 0: the usual time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered:
    """The answer to an order: OK where it was taken."""

    result: Result
    reason: str = ""
    number: int = 0
    tuning: Tuning | None = None
    """In force from the next transaction on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorReport:
    """How a coordinator stands."""

    epoch: int
    state: str
    transaction: str = ""
    instant: str = ""
    started_at_ms: int = 0
    answered: tuple[str, ...] = ()
    """Incarnations whose WRITE_STATUS is in."""
    missing: tuple[str, ...] = ()
    """Those that owe one."""
    ignored: int = 0
    """Stale messages so far."""
    settled: int = 0
    """Every order up to this number is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReport:
    """How a worker stands."""

    slot: int
    incarnation: str
    pid: int = 0
    host: str = ""
    state: str = ""
    partitions: tuple[SourcePartition, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    """By name, what it measures of itself."""
    coordinator: CoordinatorReport | None = None
    """Where this worker holds it."""
    poison: str = ""
    """A sentence, where the pipeline cannot go past a record."""
    fenced: bool = False
    """Kafka gave its membership to somebody else."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """By stage."""
    alarms: tuple[str, ...] = ()
    """What does not go on here at the moment, sentences for people."""
