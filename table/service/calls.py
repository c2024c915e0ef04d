"""What the table service is asked and what it answers, as frozen values. Pure: standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from control_topic.messages import SourcePartition
from coordinator.answers import Answer
from coordinator.events import Fault, Mode, Result

__all__ = [
    "Answer",
    "CoordinatorReport",
    "Directive",
    "Fault",
    "Mode",
    "Result",
    "Unreached",
    "WorkerReport",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreached:
    """The driver did not answer, and why."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Directive:
    """What a worker is told. `dead`: incarnations whose Spark task has ended; `died_of`: of them, why.

    `join`: every worker of the run is there, so that the consumer group can form at once.
    """

    mode: Mode
    reason: str = ""
    dead: tuple[str, ...] = ()
    died_of: Mapping[str, str] = field(default_factory=dict)
    join: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorReport:
    """How a coordinator stands. `answered`, `missing`: incarnations. `ignored`: stale messages so far."""

    epoch: int
    state: str
    transaction: str = ""
    instant: str = ""
    started_at_ms: int = 0
    answered: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    ignored: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReport:
    """How a worker stands. `metrics`: by name, what it measures of itself. `seconds`: by stage.

    `poison`: a sentence, where the pipeline cannot go past a record. `fenced`: Kafka gave its membership
    to somebody else. `coordinator`: where this worker holds it. `alarms`: what does not go on here at the
    moment, sentences for people.
    """

    slot: int
    incarnation: str
    pid: int = 0
    host: str = ""
    state: str = ""
    partitions: tuple[SourcePartition, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    coordinator: CoordinatorReport | None = None
    poison: str = ""
    fenced: bool = False
    seconds: Mapping[str, float] = field(default_factory=dict)
    alarms: tuple[str, ...] = ()
