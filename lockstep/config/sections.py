"""The sections of the configuration: every setting once, with its type, default, meaning and limits. Those of
the table: `lockstep.config.table_sections`.

The names in the file, the environment and on the command line are the contract; a Python attribute that has a
unit carries it last (`transaction.interval_ms` is `interval` everywhere else). Values are frozen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from control_topic.logs import FORMATS as LOG_FORMATS
from lockstep.config import schedule_values, values
from lockstep.config.schema_values import Columns, MessageName
from participant.records.changes import CHANGES, EVOLVE, IGNORE
from participant.records.kinds import ENVELOPES, FORMATS, FRAMINGS

DEAD_LETTER_SUFFIX = ".dlq"
CONTROL_TOPIC_PREFIX = "lockstep-control-"


def meanings(of: Mapping[str, str]) -> str:
    """What a setting offers, each with what it means."""
    return "; ".join(f"`{name}`, {meaning}" for name, meaning in of.items())


class Section(BaseModel):
    """A section of the file. Unknown keys are errors, and so is a value of another type."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class PipelineSection(Section):
    """Who this pipeline is. Its id ties the table's offsets, control topic and consumer group together."""

    id: values.PipelineId = Field(
        description=(
            "Names the pipeline: in the table's commits, on the control topic, and as the Kafka consumer "
            "group (`group.id` is exactly this). Two pipelines on one Kafka cluster need two ids."
        ),
        examples=["events"],
    )
    workers: int = Field(
        default=2,
        ge=1,
        le=1_024,
        description=(
            "Long-running Spark tasks that consume and write. Each takes one Spark slot for the life of the "
            "job; Hudi's own Spark jobs need at least one slot more."
        ),
    )


class SourceSection(Section):
    """Where records come from."""

    bootstrap_servers: values.BootstrapServers = Field(
        description="The Kafka brokers to ask first, `host:port`, several separated by commas.",
        examples=["127.0.0.1:9092"],
    )
    topics: values.Topics = Field(
        description="The topics to read. The coordinator lives with partition 0 of the first one.",
        examples=[["events"]],
    )
    starting_offsets: Literal["earliest", "latest"] = Field(
        default="earliest",
        description=(
            "Where to start, `earliest` or `latest`, only where the table has no offset yet. Resolved "
            "once, in the table's first commit, for a topic that is added later in a commit of its own; "
            "a partition that is added to a topic starts where its log begins."
        ),
    )
    on_data_loss: Literal["fail", "earliest"] = Field(
        default="fail",
        description=(
            "What to do when Kafka no longer has the committed offset: `fail` halts; `earliest` goes on at "
            "the oldest record and the commit records the interval that was lost."
        ),
    )
    reader: Literal["auto", "plain", "native"] = Field(
        default="auto",
        description=(
            "How records are read: `native` makes no Python object per record and needs the compiled module "
            "on every executor, `plain` needs only confluent-kafka, `auto` takes what there is. "
            "`lockstep validate` says which runs, and why."
        ),
    )
    kafka: values.Properties = Field(
        default_factory=dict,
        repr=False,
        description=(
            "Any property of librdkafka, for the consumers, producers and admin clients alike. A secret is "
            'written `"${env:NAME}"` or `"${file:/path}"` and read where it is used.'
        ),
    )


class RecordSection(Section):
    """What a Kafka value is, and what becomes of one that is not."""

    format: values.Format = Field(
        default="json",
        description=f"How a value is encoded: {meanings({n: k.values for n, k in FORMATS.items()})}.",
    )
    key_format: values.Format = Field(
        default="json",
        description=(
            f"How a key is encoded: {meanings({n: k.keys for n, k in FORMATS.items()})}. Keys are read of "
            "records without a value, and where a column in `record.columns` comes from one."
        ),
    )
    framing: values.Framing = Field(
        default="confluent",
        description=(
            f"Of formats whose values name a schema, what says which one it is: {meanings(FRAMINGS)}."
        ),
    )
    schema_file: values.HostFile = Field(
        default="",
        description=(
            "Without a registry: a file on the driver's host, by its absolute path, with the schema of "
            "values: "
            f"{meanings({n: k.file for n, k in FORMATS.items() if k.file})}. Read once, at the start."
        ),
        examples=["/etc/lockstep/event.avsc"],
    )
    key_schema_file: values.HostFile = Field(
        default="", description="Likewise, of keys.", examples=["/etc/lockstep/key.avsc"]
    )
    message: MessageName = Field(
        default="",
        description=(
            "Of Protobuf without a registry: which message of `record.schema_file` values are, by its full "
            "name, package included."
        ),
        examples=["shop.v1.Order"],
    )
    key_message: MessageName = Field(
        default="", description="Likewise, of keys.", examples=["shop.v1.OrderKey"]
    )
    decoder: Literal["auto", "plain", "native"] = Field(
        default="auto",
        description=(
            "How values in JSON, Avro and Protobuf are read: `native` in one pass, which needs the module "
            "that is compiled with cargo on every executor, `plain` with Arrow and polars, of Avro and "
            "Protobuf a record at a time, `auto` takes what there is. The rows are the same. "
            "`lockstep validate` and the workers' log say which reads, and why."
        ),
    )
    ddl: values.Ddl = Field(
        default="",
        alias="schema",
        description=(
            "The columns, in Spark DDL. `NOT NULL` makes a field required. A field of a record is a column "
            "where it has the same name; others are not read. Of Avro and Protobuf with a registry it may be "
            "left out: the columns then [follow the schemas](formats.md#columns-that-follow-the-schemas)."
        ),
        examples=["event_id STRING, user_id BIGINT, amount DOUBLE, day STRING"],
    )
    columns: Columns = Field(
        default_factory=dict,
        description=(
            "Columns that are not the value's field of the same name, and where they come from: "
            '`{ city = "value.address.city", source = "header.source", k = "key" }`. '
            "[formats.md](formats.md#columns-from-anywhere) has all that there is."
        ),
    )
    rest: str = Field(
        default="",
        description=(
            "Of JSON, behind a registry's id as well: the STRING column of `record.schema` that takes the "
            "fields that no column names, as one JSON object, null where there are none. Empty: they are "
            "not read."
        ),
        examples=["extra"],
    )
    on_schema_change: Literal["auto", "evolve", "ignore", "halt"] = Field(
        default="auto",
        description=(
            "Of Avro and Protobuf with a registry, what becomes of fields that the table has no column for, "
            f"or a narrower one: {meanings(CHANGES)}; `auto`, `evolve` without `record.schema` and `ignore` "
            "with it."
        ),
    )
    envelope: values.Envelope = Field(
        default="none",
        description=(
            f"What a value is wrapped in: {meanings({n: k.meaning for n, k in ENVELOPES.items()})}."
        ),
    )
    on_error: Literal["fail", "dead_letter"] = Field(
        default="fail",
        description=(
            "What becomes of a record that does not fit: `fail` halts, naming topic, partition, offset and "
            "reason; `dead_letter` sends the raw value to a topic of its own before the offset is committed."
        ),
    )
    dead_letter_topic: values.TopicOrEmpty = Field(
        default="",
        description=f"Where such records go. Empty: `<topic>{DEAD_LETTER_SUFFIX}` for every source topic.",
    )
    dead_letter_partitions: int = Field(
        default=1,
        ge=0,
        le=10_000,
        description=(
            "A dead-letter topic that is missing is made at the start, with so many partitions. `0`: it is "
            "not made, and a run without it is refused at the start."
        ),
    )
    max_rejects: values.RejectsMax = Field(
        default="",
        description=(
            "With `dead_letter`: the run halts, and commits none of them, where a transaction has more "
            'rejects than this: a number, or a share of the records as `"5%"`, of which no worker\'s part '
            "may have more (judged from 100 rejects on). A worker with too many sets none of its own aside. "
            "Empty: no limit; what share of bad records is normal only you can know."
        ),
        examples=["5%", 1000],
    )

    @property
    def changes(self) -> str:
        """What `on_schema_change` amounts to: of `participant.records.changes.CHANGES`."""
        if self.on_schema_change != "auto":
            return self.on_schema_change
        return IGNORE if self.ddl or not self.names_schemas else EVOLVE

    @property
    def names_schemas(self) -> bool:
        """Whether values are rows that name schemas of a registry, whose fields may be columns."""
        if self.columns or self.rest:
            return False  # they say what becomes of fields
        return FORMATS[self.format].says_columns and self.framing == "confluent" and self.envelope == "none"


class TransactionSection(Section):
    """When a transaction ends, and when it is given up."""

    interval_ms: values.IntervalMs = Field(
        default="10s",
        validate_default=True,
        alias="interval",
        description=(
            "How often records are committed: from the end of one transaction to the end of the next. "
            "From 100ms to 24h. With `transaction.schedule`, where no interval is given: twice the longest "
            "time between two times of it, 24h at most."
        ),
    )
    schedule: schedule_values.Schedule = Field(
        default="",
        description=(
            "Times of the clock at which a transaction is ended as well: `every 1h at :00`, `every 1d at "
            "03:30` (a period that divides a day, from 1s on; after `at` the time within it), or five fields "
            "as cron has them. What comes first ends it: this, interval, records, bytes. A time at which "
            "none could be ended (a commit went on, nobody coordinated) is made good at once, several that "
            "were missed by one end. Summer time, clocks that jump: [the "
            "protocol](protocol.md#when-a-transaction-ends). Empty: none."
        ),
        examples=["every 1h at :00", "*/15 * * * *"],
    )
    align_ms: schedule_values.AlignMs = Field(
        default="0s",
        validate_default=True,
        alias="align",
        description=(
            "No transaction spans a multiple of this since midnight: with `1h` each is ended at the full "
            "hour at the latest, and the next begins after it. A period that divides a day, from 10s to 24h. "
            "From two seconds before such a time to one after it none begins. 0: any may."
        ),
        examples=["1h"],
    )
    zone: schedule_values.Zone = Field(
        default="UTC",
        description="By whose clock both go: a zone of the IANA database, as `Europe/Berlin`.",
        examples=["Europe/Berlin"],
    )
    write_timeout_ms: values.TimeoutMs = Field(
        default="60s",
        validate_default=True,
        alias="write_timeout",
        description=(
            "How long a worker may be silent, after a transaction was ended, until its files are there; then "
            "the coordinator aborts and starts anew. A worker that is writing says how far it is, and is "
            "waited for. Not shorter than `transaction.interval`. From 1s to 24h."
        ),
    )
    write_limit_ms: values.TimeoutMs = Field(
        default="10m",
        validate_default=True,
        alias="write_limit",
        description=(
            "How long the coordinator waits for files at most, although their worker says that it gets on. "
            "A transaction that took longer than `transaction.write_timeout` makes the next ones smaller, "
            "until they are quick again. Not shorter than `transaction.write_timeout`. From 1s to 24h."
        ),
    )
    max_records: int = Field(
        default=0,
        ge=0,
        le=10**18,
        description="A transaction ends early at about this many records, all workers together. 0: no limit.",
    )
    max_bytes: values.LimitBytes = Field(
        default="2GB",
        validate_default=True,
        description="A transaction ends early at about this much, all workers together. 0: no limit.",
    )
    max_consecutive_failures: int = Field(
        default=5,
        ge=1,
        le=1_000,
        description=(
            "The run halts after this many transactions in a row that failed by the pipeline's own fault. An "
            "environment that is away (broker, lock, storage) is waited out instead."
        ),
    )

    @model_validator(mode="before")
    @classmethod
    def _implied(cls, given: object) -> object:
        return schedule_values.with_interval(given) if isinstance(given, Mapping) else given


class ControlSection(Section):
    """The topic over which coordinator and workers talk."""

    topic: values.Topic = Field(
        description=(
            "The control topic, one per pipeline; created with one partition when missing. "
            f"Empty: `{CONTROL_TOPIC_PREFIX}<pipeline.id>`."
        ),
        examples=["lockstep-control-events"],
    )


class MemorySection(Section):
    """Limits of memory."""

    per_worker_bytes: values.SizeBytes = Field(
        default="512MB",
        validate_default=True,
        alias="per_worker",
        description=(
            "What one worker may spend on records: a quarter on decoded ones that wait, rejects among them "
            "until they are in the dead-letter topic (at that it stops "
            "consuming for a while, and goes on at half of it), a quarter on rows that wait to be encoded "
            "and on files that are not whole yet (on an object store five sixteenths; what is for files "
            "is for decoded rows as long as none is open, during a commit), an eighth on what librdkafka "
            "fetches ahead (`queued.max.messages.kbytes` and, a 64th of that, "
            "`fetch.max.bytes` in `source.kafka`; the first may be set otherwise but not to more than all of "
            "it), the rest on what is in work. The "
            "process itself takes some 200 MB more. From 1MB to 1TB."
        ),
    )


class MetricsSection(Section):
    """Metrics where no scrape reaches the driver; which there are: [docs/metrics.md](metrics.md)."""

    file: values.MetricsFile = Field(
        default="",
        description=(
            "The driver writes its metrics into this file, whole and anew each time, for node_exporter's "
            "textfile collector on its host: an absolute path that ends with `.prom`, in a folder that is "
            "there, of this pipeline alone, with `lockstep` in its name, which the alert *LockstepFileOld* "
            "goes by. It is removed at an orderly end; a run that halts, or is ended by an error, leaves it "
            "as it was last. Empty: no file."
        ),
        examples=["/var/lib/node_exporter/lockstep.prom"],
    )
    file_period_ms: values.FilePeriodMs = Field(
        default="15s",
        validate_default=True,
        alias="file_period",
        description="How often it is written. From 1s to 1h.",
    )


class LogSection(Section):
    """How a run's driver and workers write their log, to stderr."""

    format: Literal["text", "json"] = Field(
        default="text",
        description=(
            f"What a line is: {meanings(LOG_FORMATS)}. The fields are in "
            "[operations.md](operations.md#logs-for-machines)."
        ),
    )
