"""The sections of the configuration: every setting once, with its type, default, meaning and limits. Those of
the table: `lockstep.config.table_sections`; of records: `lockstep.config.record_section`.

The names in the file, the environment and on the command line are the contract; a Python attribute that has a
unit carries it last (`transaction.interval_ms` is `interval` everywhere else). Values are frozen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from control_topic.logs import FORMATS as LOG_FORMATS
from lockstep.config import schedule_values, values

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
    writers_per_partition: int = Field(
        default=0,
        ge=0,
        le=1_000,
        description=(
            "How many workers write the rows of one table partition: others hand theirs over to them. Fewer "
            "and larger files where many workers read records of many table partitions, for rows that travel "
            "once more ([few writers](exchange.md)). Inserts only, at most 100 workers. 0: each worker "
            "writes what it reads."
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
            "it), the rest on what is in work. A batch of records may be as large as half of it "
            "(`receive.message.max.bytes`). The "
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
