"""What a transactional table must do for the coordinator. Every table kind implements `TransactionalTable`.

All calls run on the driver's one table thread. An implementation raises the errors of `table.errors`:
`Refused` and `Unavailable` prove that the call had no effect; anything whose effect is not known is
`OutcomeUnknown`, and the caller then reads the table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from control_topic.messages import DataFile, Offsets
from table.instants import Instant, PendingInstant, Savepoint
from table.orphans import SweepReport
from table.partitioners.bounds import ANY_TIME, Bounds
from table.state import TableState
from table.store.port import Store
from table.store.settings import StoreSettings

if TYPE_CHECKING:  # heavy, and most who import this write no rows
    import pyarrow as pa

    from table.catalog import Catalog, CatalogSpec
    from table.census import TableCensus
    from table.rows import Rows

INSERT, UPSERT = "insert", "upsert"
"""What records do to a table: its mode, which the configuration says as `table.kind`."""

ASYNC, INLINE, SCHEDULE, OFF = "async", "inline", "schedule", "off"
"""How a service of the table is done: beside the transactions; by the thread that commits; planned, and left
to others; left to others altogether."""
AS_KEY, AS_PARTITION, AS_ORDERING = "a record key", "a table partition", "an ordering field"
AS_SORTED = "what rows are sorted by"
AS_LOOKED_UP = "what rows are looked up by"
"""What a column may be beside its values, as people say it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    """What the configuration asks of a table. Services have the modes above."""

    path: str
    name: str
    mode: str
    """INSERT or UPSERT."""
    ddl: str
    """The record's columns, in Spark DDL."""
    key_fields: tuple[str, ...] = ()
    partition_fields: tuple[str, ...] = ()
    """Columns whose values are folders, the outer one's first; none where the table is not partitioned."""
    partition_terms: tuple[str, ...] = ()
    """How those of them are made that records have not: see `table.partitioners.expressions`."""
    partition_bounds: Bounds = ANY_TIME
    kafka_columns: bool = True
    """Whether rows say where they came from."""
    target_file_bytes: int = 120_000_000
    sort_fields: tuple[str, ...] = ()
    """Of inserts: by which rows are sorted when their files are put together."""
    lookup_fields: tuple[str, ...] = ()
    """Of inserts: those that files have filters of, for readers who look for one value."""
    ordering_field: str = ""
    """Of upserts: what decides between versions of a row; empty where the later one counts."""
    bucket_count: int = 0
    """Of upserts: in each table partition."""
    source_position: bool = False
    """Of upserts: whether the table has the column of that name."""
    follows: bool = False
    """Whether columns that the table has beside these are its own, as those are that workers add to them."""
    compaction: str = OFF
    compaction_every: int = 10
    clustering: str = OFF
    clustering_every: int = 100
    clustering_files: int = 20
    """Of inserts: so many new small files of a table partition are put together at once."""
    clustering_after_ms: int = 120_000
    """Of inserts: some few of them after so long."""
    clustering_share: float = 0.25
    """Of inserts: it is at work for so much of the time at most; more than 0, up to 1."""
    cleaning: str = OFF
    cleaning_every: int = 50
    sweep_share: float = 0.01
    """Share of the table's files that a sweep may remove: 0 to 1."""
    retention_ms: int = 0
    """Of inserts: a table partition whose value is a time that is over for longer goes out; 0: none does."""
    retention_pattern: str = ""
    """How texts spell that time (`table.retention`); empty: as a DATE is spelled."""
    retention_field: str = ""
    """The column whose newest value in a table partition is that time; empty: its own value is."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """The kind's own, such as `hoodie.*`."""
    storage: StoreSettings | None = field(default=None, repr=False)
    """How the table's store is reached, where that has to be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLayout:
    """How the table that exists wants its files; what its own properties say wins over the configuration.

    What has the name of a field of `TableSpec` means the same.
    """

    path: str
    key_fields: tuple[str, ...]
    partition_fields: tuple[str, ...]
    kafka_columns: bool
    target_file_bytes: int
    ddl: str
    kind: str
    """A name in `table.kinds`."""
    mode: str = INSERT
    partition_terms: tuple[str, ...] = ()
    partition_bounds: Bounds = ANY_TIME
    ordering_field: str = ""
    source_position: bool = False
    lookup_fields: tuple[str, ...] = ()
    created: bool = False
    """Whether it was missing."""
    body: Mapping[str, str | int | bool] = field(default_factory=dict)
    """What else the kind's half in the driver tells that in a worker, in its own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """An instant of this pipeline that is neither completed nor rolled back."""

    instant: str
    run: str
    transaction: str
    rollback_requested: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One commit."""

    instant: str
    expected: Offsets
    """The table's offsets as START gave them, compared under the table lock."""
    state: TableState
    files: Sequence[DataFile]
    columns: Mapping[str, str] = field(default_factory=dict)
    """Of records, in Spark DDL, as those have written them who met more than the run began with -> of which
    schemas, for people. The commit makes the table's columns wide enough for all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceProgress:
    """How one of the table's services stands in this run. `last_*`: what it did last."""

    name: str
    mode: str
    every: int
    """It is due after so many commits."""
    commits: int
    """There were so many since it was done."""
    running_ms: int | None
    """None while it does nothing."""
    doing: str
    """A phrase."""
    done: int
    """So often."""
    last_instant: str
    last_what: str
    last_took_ms: int
    last_age_ms: int | None
    """None where it has done nothing yet."""
    failures: int
    """In a row."""
    problem: str
    """Why it failed; empty after a success."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """How far a writer is."""

    files: int = 0
    """Finished."""
    size_bytes: int = 0
    """Encoded."""
    steps: int = 0
    """Whatever it did, counted."""


Tell = Callable[[Written], None]
"""Called with every step of a writer's. What it raises ends the writing."""


class Shaped(Protocol):
    """Rows as a table's own writer takes them."""

    @property
    def count(self) -> int:
        """Rows, or changes."""

    @property
    def nbytes(self) -> int:
        """Memory held."""

    @property
    def refused(self) -> Mapping[int, str]:
        """Why rows that were given are not here, by their place in the batch. Never holds their content."""

    @property
    def echoes(self) -> Sequence[int]:
        """Places of records that only say once more what the one before them says: no change is made of
        them."""


class FileWriter(Protocol):
    """One worker's files of one transaction. Not for several threads. Raises `StorageError`."""

    @property
    def upload_s(self) -> float:
        """Spent so far on storage; whatever else takes time here is encoding."""

    def write(self, shaped: Any) -> None:
        """Take what `TableFiles.shape` made."""

    def widen(self, files: Any) -> None:
        """What is written from here on, narrower rows as well, has the columns of these `TableFiles`, made by
        `widened`. Files with those of before are ended."""

    def finish(self, wake: Callable[[], None]) -> None:
        """Take the rest to the files and begin to end them, after which nothing is written.

        `wake`: called in any thread when `finished` may know more.
        """

    def finished(self, *, wait: bool = False) -> tuple[DataFile, ...] | None:
        """The files, once they are durable: from here on they belong to the transaction. None before.

        `wait`: until they are.
        """

    def close(self) -> tuple[DataFile, ...]:
        """Both, one after the other."""
        self.finish(lambda: None)
        files = self.finished(wait=True)
        assert files is not None
        return files

    def discard(self) -> None:
        """Remove this writer's files unless `finished` named them."""


class Handing(Protocol):
    """How rows that one worker has shaped come to another that writes them. Not for several threads.

    Raises `ValueError` where that cannot be: for rows that cannot be divided or packed, or are too much for
    memory, and for what is no rows of this table. The rows that were given are as they were.
    """

    def divided(self, shaped: Any, home_of: Callable[[str], int], count: int) -> Sequence[Any | None]:
        """The rows by their homes, which are below `count`: a copy of each part, None where it is empty.

        `home_of`: by table partition.
        """

    def packed(self, parts: Sequence[Any], bytes_max: int) -> Iterator[bytes]:
        """Parts that there are, in their order, in pieces of so much memory or of one row."""

    def unpacked(self, raw: bytes) -> Any:
        """The inverse."""


class TableFiles(Protocol):
    """A table kind's half in a worker: from rows to files. Not for several threads."""

    @property
    def handing(self) -> Handing | None:
        """None where whoever shapes rows has to write them, too."""

    @property
    def schema(self) -> pa.Schema:
        """Of the table's rows, the columns included that the table adds."""

    def shape(self, rows: Rows) -> Shaped: ...

    def writer(self, instant: str, tell: Tell) -> FileWriter:
        """Of one transaction, whose instant this is. Takes what these have shaped, or those of fewer columns
        before them."""

    def widened(self, columns: pa.Schema) -> TableFiles:
        """The same for records with these columns, which are wide enough for those of before.

        Raises `SchemaError`.
        """


INSTANT = "instant"
"""The column of rows that are read which says who wrote a row: its instant, by the time it was requested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRows:
    """The rows that one file holds now."""

    name: str
    """For people."""
    batches: Iterator[pa.RecordBatch]
    """Read as they are asked for; the columns are `INSTANT` and, where the table has them, Kafka's. Raises
    `Unavailable` where the file cannot be read to its end.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRows:
    """All rows of a table, file by file, as they were when it was opened."""

    kafka_columns: bool
    files: Iterator[FileRows]


class TableReader(Protocol):
    """A table's history and its rows, as they are now; nothing is kept. Needs no Spark.

    Raises `MissingTable`, `Refused` for a table that cannot be read this way, `Unavailable` where storage
    does not serve, `table.state.StateError` for a commit of ours that cannot be read.
    """

    @property
    def place(self) -> str:
        """Where the table is, for people."""

    @property
    def mode(self) -> str:
        """`insert`, or `upsert` where a record may change a row that is there."""

    def columns(self) -> pa.Schema:
        """As the newest commit that says any has them; none where none does. Raises `SchemaError` too."""

    def completed(self) -> Iterator[Instant]:
        """Completed instants, newest completion first, lazily."""

    def newest(self, pipeline: str) -> TableState | None:
        """The pipeline's newest committed state, as the commits' chain says; None before genesis."""

    def newest_instant(self, pipeline: str) -> Instant | None:
        """The instant that holds it."""

    def pending(self) -> Sequence[PendingInstant]:
        """What is not completed, oldest first."""

    def oldest_savepoint(self) -> Savepoint | None:
        """Return the savepoint of the oldest commit, None where there is none."""

    def time_ms(self, instant_time: str) -> int:
        """A time of an instant, in milliseconds since 1970."""

    def said(self, names: Collection[str]) -> tuple[str, Mapping[str, str]]:
        """Of the newest completed instant whose commit says something by one of these names, whoever wrote
        it: its requested time, and what it says by them. An empty time where none does.
        """

    def damage(self) -> str:
        """A sentence on what other readers would be misled by; empty where nothing is wrong."""

    def rows(self) -> TableRows:
        """Of all writers. By code that shares nothing with what writes them, where there is such code."""


class TransactionalTable(Protocol):
    def open(self) -> TableLayout:
        """Create the table when missing; refuse one that contradicts the specification (`Refused`)."""

    def newest(self) -> TableState | None:
        """This pipeline's newest committed state, archived timeline included; None before genesis."""

    def lost_commits(self, newest: TableState | None) -> str:
        """Return a sign that the timeline has lost commits after `newest`, empty if there is none.

        `newest`: as the method of that name returned it last. Looks only if it is not on the active timeline:
        a look lists the whole table.
        """

    def unfinished(self) -> Sequence[Unfinished]:
        """This pipeline's open instants, oldest first. Nobody else's."""

    def begin(self, *, run: str, transaction: str) -> str:
        """Open an inflight instant that carries its owner; the instant's time."""

    def commit(self, commit: Commit, *, fence: Callable[[TableState | None], str]) -> Mapping[str, int]:
        """Complete the instant, whole or not at all. How long its parts took
        (`control_topic.causes.COMMIT_PARTS`), in milliseconds; nothing of one that was complete already, or
        was only found to be.

        Under the table lock and after a reload: `fence(newest)` answers an empty string or why not; the
        instant must still be inflight with no rollback requested; the newest offsets must equal
        `commit.expected`. Otherwise `Refused`. An error after the instant completed is not an error.
        """

    def find(self, transaction: str) -> TableState | None:
        """The committed state of this transaction where it is on the timeline, else None."""

    def roll_back(self, instant: str) -> bool:
        """Remove an instant's files and the instant. False where it proved to be complete under the lock."""

    def sweep(self, *, grace_ms: int) -> SweepReport:
        """Remove files that name an instant of ours and that provably no commit lists.

        Files that have changed within `grace_ms` stay. What makes commits slower when it is put off is done
        here too.
        """

    def tend(self) -> None:
        """Do what upkeep is due and makes commits slower when it is put off. Called where nobody waits."""

    def services(self) -> Sequence[ServiceProgress]:
        """How the services of this run stand. Unlike all others any thread may ask."""

    def reach(self) -> None:
        """Raises what `open` would where this process cannot use the place as a table's driver does, or what
        is configured fits no table. Needs no table there, and makes none.
        """

    def compare_clocks(self) -> str:
        """How this clock and storage's compare, for a person. Raises `ClockAhead`, `Unavailable`."""

    def close(self) -> None: ...


class TableSweeper(Protocol):
    """Removes orphaned files, while a run is alive or not. Raises `TableError` and `OSError`."""

    def look(self, grace_ms: int) -> SweepReport:
        """Report the files that a sweep would remove; remove nothing."""

    def sweep(self, grace_ms: int, *, limit: bool = True) -> SweepReport:
        """Remove orphaned files that have not changed for `grace_ms`.

        `limit`: remove none if there are more than a share of all files.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkNeeds:
    """What a table wants of the Spark that writes it, and where its files are."""

    packages: tuple[str, ...] = ()
    """Of the jars on the class path, by Maven's coordinates, `group:artifact:version`."""
    reading: tuple[str, ...] = ()
    """Those of them with which Spark SQL reads the table."""
    classified: tuple[str, ...] = ()
    """More of them, `group:artifact:version:classifier`, which Spark does not resolve by itself."""
    excluded: tuple[str, ...] = ()
    """What they would bring along, as `group:artifact`, and is there already, or not wanted."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Spark's properties; whoever launches may choose others."""
    fixed: Mapping[str, str] = field(default_factory=dict)
    """Those that nobody may choose."""
    java_options: str = ""
    """Of the driver's JVM."""

    def __add__(self, other: SparkNeeds) -> SparkNeeds:
        """Both; where they differ, `other`."""
        return SparkNeeds(
            packages=self.packages + other.packages,
            reading=self.reading + other.reading,
            classified=self.classified + other.classified,
            excluded=self.excluded + other.excluded,
            conf={**self.conf, **other.conf},
            fixed={**self.fixed, **other.fixed},
            java_options=" ".join(filter(None, (self.java_options, other.java_options))),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherWriters:
    """What those must know who write to a table beside Lockstep."""

    settings: Mapping[str, str] = field(default_factory=dict)
    """By their names, as Lockstep has them."""
    advice: str = ""
    """What goes wrong without; empty where nothing does."""


class TableKind(Protocol):
    """A kind of table: all that the rest of Lockstep asks of it."""

    @property
    def modes(self) -> frozenset[str]:
        """Of `INSERT` and `UPSERT`, what it can do."""

    def committer(
        self,
        spark: Any,
        spec: TableSpec,
        pipeline: str,
        *,
        services: bool = False,
        free_slots: Callable[[], int] = lambda: 1,
    ) -> TransactionalTable:
        """The driver's half. `services`: whether this is the process that looks after the table.

        `free_slots`: how many of Spark's slots its services may take at once; asked by any thread.
        """

    def needs(self, path: str) -> SparkNeeds:
        """Of the table at this path or URI. Raises `Refused` where no table of this kind can be there."""

    def files(
        self,
        *,
        layout: TableLayout,
        slot: int,
        incarnation: str,
        pending_bytes_max: int,
        held_bytes_max: int,
        storage: StoreSettings | None = None,
    ) -> TableFiles:
        """The half of the worker in that slot. Rows that are not encoded yet take `pending_bytes_max` of
        memory, and encoded ones whose file is not whole yet `held_bytes_max`.

        `storage`, here and below: how the table's store is reached, where that has to be told.
        """

    def reader(self, path: str, storage: StoreSettings | None = None) -> TableReader:
        """Of the table at this path or URI. Raises as `TableReader` does."""

    def sweeper(self, spec: TableSpec) -> TableSweeper:
        """Of the table that this asks for, without Spark. Raises `TableError`."""

    def census(self, spec: TableSpec) -> TableCensus:
        """Who counts the files and columns of the table that this asks for."""

    def notes(self, path: str, storage: StoreSettings | None = None) -> Store:
        """Where notes about the table at this path are kept. It is there once the table is."""

    def catalog(self, spark: Any, spec: CatalogSpec) -> Catalog:
        """Kept up to date by whoever looks after the table. Raises `Refused` where there is no such thing."""

    def column_problem(self, column: pa.Field, role: str) -> str:
        """Why a column cannot be `role`, one of the `AS_…` above; empty where it can."""

    def other_writers(self, spec: TableSpec) -> OtherWriters:
        """Of the table that this asks for."""
