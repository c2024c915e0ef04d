"""The section of the configuration that says what records are: every setting once, as in `sections`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from lockstep.config import values
from lockstep.config.schema_values import Columns, MessageName, UnavailableValue
from lockstep.config.sections import DEAD_LETTER_SUFFIX, Section, meanings
from participant.records.changes import CHANGES, EVOLVE, IGNORE
from participant.records.decimal_handling import HANDLINGS
from participant.records.kinds import ENVELOPES, FORMATS, FRAMINGS
from participant.records.placeholder import UNAVAILABLE

COLUMN_CHARS_MAX = 200


def _column(value: str) -> str:
    if len(value) > COLUMN_CHARS_MAX:
        raise ValueError(f"a column's name of {len(value)} characters, {COLUMN_CHARS_MAX} are allowed")
    return value.strip()


ColumnName = Annotated[str, AfterValidator(_column)]


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
            "where it has the same name; others are not read. Of Avro, Protobuf and JSON Schema with a "
            "registry it may be left out: the columns then "
            "[follow the schemas](formats.md#columns-that-follow-the-schemas)."
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
            "Of Avro, Protobuf and JSON Schema with a registry, the rows in Debezium's events of Avro among "
            "them, what becomes of fields that the table has no column for, "
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
    decimal_handling: Literal["", "precise", "string", "double", "schema"] = Field(
        default="",
        description=(
            "Of Debezium's events in JSON, how DECIMAL columns are encoded, as the connector's "
            f"`decimal.handling.mode` says: {meanings(HANDLINGS)}. The schema in an event, where there is "
            "one, decides. Required with a DECIMAL column, since base64 can look like digits."
        ),
    )
    unavailable_value: UnavailableValue = Field(
        default=UNAVAILABLE,
        description=(
            "Placeholder that the connector writes for a value which did not change and is not in the event: "
            "Debezium's setting `unavailable.value.placeholder`, its prefix `hex:` included. A row that "
            "holds it is a reject, in a column of any type. "
            "[upserts.md](upserts.md#values-that-an-event-lacks) has its forms. "
            "Empty: no value is a placeholder."
        ),
    )
    on_no_field: Literal["reject", "null_row"] = Field(
        default="reject",
        description=(
            "What becomes of a value in which the field of no column is found, such as one in an envelope, "
            "with names in another letter case, or `{}`: `reject`, or `null_row`, a row of nothing but null. "
            "A schema of Avro or Protobuf decides for its values; without columns from elsewhere they are "
            "always rejects. Means nothing with `record.rest`, or a column of the whole value, which keep "
            "what is there."
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

    event_time: ColumnName = Field(
        default="",
        description=(
            "The column of `record.schema` that says when what a row tells of happened: a TIMESTAMP, a "
            "TIMESTAMP_NTZ (taken for UTC), a DATE or a BIGINT; or `_kafka_timestamp`, the record's own. By "
            "it each commit carries [a watermark](watermark.md). Empty: none does."
        ),
        examples=["created_at"],
    )
    event_time_unit: Literal["s", "ms", "us", "ns"] = Field(
        default="ms",
        description=(
            "Of a BIGINT, what it counts since 1970: `s`, seconds; `ms`, milliseconds; `us`, microseconds; "
            "`ns`, nanoseconds."
        ),
    )
    lateness_ms: values.SpanMs = Field(
        default="0s",
        validate_default=True,
        alias="lateness",
        description=(
            "So much may an event time be behind the greatest of its source partition before it; what comes "
            "later is counted as late. To 8760h."
        ),
    )
    idle_after_ms: values.TimeoutMs = Field(
        default="10m",
        validate_default=True,
        alias="idle_after",
        description=(
            "A source partition that is read to its end and has had no record for so long does not hold the "
            "watermark. From 1s to 24h."
        ),
    )
    ahead_max_ms: values.SpanMs = Field(
        default="1h",
        validate_default=True,
        alias="ahead_max",
        description=(
            "An event time that is further ahead of its record's Kafka timestamp, or of the worker's clock, "
            "is absurd: the row is written, and does not move the watermark. To 8760h."
        ),
    )

    @property
    def event_time_declared(self) -> str:
        """What declares event times, by which one watermark is told from another."""
        name, unit = self.event_time, self.event_time_unit
        return name if unit == "ms" else f"{name}:{unit}"

    @property
    def changes(self) -> str:
        """What `on_schema_change` amounts to: of `participant.records.changes.CHANGES`."""
        if self.on_schema_change != "auto":
            return self.on_schema_change
        return IGNORE if self.ddl or not self.names_schemas else EVOLVE

    @property
    def names_schemas(self) -> bool:
        """Whether values are, or hold, rows and name schemas of a registry, whose fields may be columns."""
        followed = self.format in ENVELOPES[self.envelope].followed
        return FORMATS[self.format].says_columns and self.framing == "confluent" and followed
