"""What a worker is told when it starts, sent in the task's closure, and what its task says when it ends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from control_topic.controls import Tuning
from control_topic.logs import TEXT
from control_topic.messages import Offsets
from control_topic.trust import Trust
from coordinator.schedule import by_the_clock, zone_of
from coordinator.times import ByTheClock
from participant.records.port import RecordSpec
from participant.rejects_max import NO_LIMIT, RejectsMax
from participant.worker.memory import MemoryBudget
from table.faults import WorkerFault
from table.port import TableLayout
from table.store.settings import StoreSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSpec:
    """Times in milliseconds, sizes in bytes; a limit of 0 is none.

    What is secret travels in the task's closure only, never in Spark's configuration.
    """

    pipeline: str
    run: str
    workers: int
    kafka: Mapping[str, str] = field(repr=False)
    """librdkafka's properties, with secrets resolved."""
    topics: tuple[str, ...]
    control_topic: str
    table_address: str
    token: str = field(repr=False)
    key: bytes = field(repr=False)
    """Marks the run's messages on the control topic."""
    layout: TableLayout
    storage: StoreSettings | None = field(default=None, repr=False)
    """How the table's store is reached, with secrets resolved; None where that need not be told."""
    interval_ms: int
    write_timeout_ms: int
    write_limit_ms: int = 600_000
    schedule: str = ""
    """When transactions end as well (`coordinator.schedule`), by the clock of `zone`; empty: never."""
    zone: str = "UTC"
    align_ms: int = 0
    """No transaction spans a multiple of it, by that clock; 0: any may."""
    homes: int = 0
    """So many workers write the rows of one table partition; 0: each writes what it reads."""
    memory_bytes: int
    records_max: int = 0
    bytes_max: int = 0
    on_data_loss: str = "fail"
    reader: str = "auto"
    on_error: str = "fail"
    dead_letter_topic: str = ""
    dead_letter_bytes_max: int = 0
    """The largest message that the dead-letter topics take, where that is known."""
    rejects_max: RejectsMax = NO_LIMIT
    record: RecordSpec = field(default_factory=RecordSpec)
    until: Offsets | None = None
    """Consume exactly to these offsets."""
    log_format: str = TEXT
    """One of `control_topic.logs.FORMATS`."""
    session_timeout_ms: int = 10_000
    """How long the group waits for a silent worker."""
    table_epoch: int = 0
    """The newest that the table had when the run started."""

    @property
    def memory(self) -> MemoryBudget:
        """How the worker's memory is divided."""
        exchanges = bool(self.homes)
        return MemoryBudget(self.memory_bytes, uploads=self.storage is not None, exchanges=exchanges)

    @property
    def tuning(self) -> Tuning:
        """What operators may change while the run goes on, as it is when the worker starts."""
        return Tuning(
            interval_ms=self.interval_ms,
            write_timeout_ms=self.write_timeout_ms,
            max_records=self.records_max,
            max_bytes=self.bytes_max,
            schedule=self.schedule,
            align_ms=self.align_ms,
        )

    def by_the_clock(self, tuning: Tuning) -> ByTheClock:
        """What ends transactions by the clock where this is in force: the zone stays the configuration's."""
        schedule = self.schedule if tuning.schedule is None else tuning.schedule
        align_ms = self.align_ms if tuning.align_ms is None else tuning.align_ms
        return by_the_clock(schedule, align_ms, zone_of(self.zone))

    @property
    def trust(self) -> Trust:
        """Whose word on the control topic counts."""
        return Trust(pipeline=self.pipeline, run=self.run, key=self.key, table_epoch=self.table_epoch)

    @property
    def group(self) -> str:
        """The consumer group is the pipeline."""
        return self.pipeline

    def instance(self, slot: int) -> str:
        """`group.instance.id`: a restarted worker gets its source partitions back at once."""
        return f"{self.pipeline}-{slot}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a worker ended, as its task says it."""

    slot: int
    incarnation: str
    """Empty where the task died without saying so."""
    reason: str
    failed: bool
    """Another may be started in its slot."""
    fenced: bool = False
    """Kafka gave its group membership to another process."""
    fault: WorkerFault = WorkerFault.PIPELINE
    elsewhere: bool = False
    """It has not the table that the driver has, nor would another in its place."""

    @classmethod
    def from_json(cls, text: str) -> Ended:
        """What the task says of itself at its end, as `to_json` has it."""
        found = json.loads(text)
        return cls(**{**found, "fault": WorkerFault(found["fault"])})

    def to_json(self) -> str:
        return json.dumps(asdict(self))
