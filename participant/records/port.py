"""What formats and envelopes of records are, and what a decoder makes of a batch of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from control_topic.messages import SourcePartition
from participant.records.changes import IGNORE
from participant.records.errors import BatchTooLarge
from participant.records.placeholder import UNAVAILABLE
from participant.records.raw import RawBatch
from participant.records.registry.settings import RegistrySettings
from participant.records.rejects import NONE, Rejects
from participant.records.sources import CONNECT, HEADER, HEADERS, KEY, VALUE, parse
from table.rows import Rows, Tombstones

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decoded:
    """What records of one batch say. Rows, rejects and tombstones together are the batch."""

    table: pa.Table
    """The record's columns, in the schema's order and types."""
    kept: npt.NDArray[np.int64] | None = None
    """Per row, its index in the batch, ascending; None where all were kept."""
    rejects: Rejects = NONE
    deleted: npt.NDArray[np.bool_] | None = None
    """Per row, whether it deletes its key; None where none does."""
    tombstones: Tombstones | None = None
    stop: tuple[int, str] | None = None
    """The index of a record that may not pass whatever the record's own content, and why; what stands behind
    it is not to be used."""

    def rows(self, batch: RawBatch) -> Rows:
        """For the table: the rows of `batch`, of which this was decoded."""
        kept = self.kept
        return Rows(
            source=batch.partition,
            length=len(batch),
            columns=self.table,
            offsets=batch.offsets if kept is None else batch.offsets[kept],
            timestamps_ms=batch.timestamps_ms if kept is None else batch.timestamps_ms[kept],
            kept=kept,
            deleted=self.deleted,
            tombstones=self.tombstones,
        )


class Decoder(Protocol):
    """Not for several threads."""

    def decode(self, batch: RawBatch) -> Decoded:
        """All records of the batch, as rows, tombstones or rejects.

        Raises `SchemasUnavailable` where that cannot be told now, `BatchTooLarge` where fewer records at once
        may be decoded: see `decoded_parts`.
        """


def decoded_parts(decode: Callable[[RawBatch], T], batch: RawBatch) -> Iterator[T]:
    """Decode the batch in parts that are small enough, in order. Raises as `decode`, but `BatchTooLarge`."""
    waiting = [batch]
    while waiting:
        part = waiting.pop()
        try:
            yield decode(part)
        except BatchTooLarge:
            waiting.extend(reversed(part.halves))


class KeyReader(Protocol):
    """Reads the Kafka keys of records without a value."""

    def read(self, batch: RawBatch, places: npt.NDArray[np.int64]) -> tuple[Tombstones, Rejects]:
        """What the keys at these places, which ascend, say of the fields that key a row."""


REJECT, NULL_ROW = "reject", "null_row"
BY_SCHEMA = frozenset({"avro", "json_schema", "protobuf"})
"""Formats whose records may name a schema of a registry."""
LookBack: TypeAlias = Callable[[SourcePartition, int], Iterable[RawBatch]]
"""What stood on a source partition right before an offset, in offset order."""


def nothing(_partition: SourcePartition, _offset: int) -> Iterable[RawBatch]:
    """For whoever knows of nothing that stood before."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSpec:
    """What the configuration says of records: names of `participant.records.kinds`."""

    format: str = "json"
    key_format: str = "json"
    envelope: str = "none"
    delete_field: str = ""
    """A BOOLEAN column that is true where a record deletes its row; empty for none."""
    decoder: str = "auto"
    """Who reads values: `native`, `plain`, or `auto` for the native one where it can be had."""
    framing: str = "confluent"
    """Of Avro and Protobuf: what stands before a value, one of `participant.records.kinds.FRAMINGS`."""
    schema_text: str = ""
    """Without a registry, the schema of values: of Avro one, or an array of them; of Protobuf the base64 of a
    FileDescriptorSet."""
    key_schema_text: str = ""
    """Likewise, of keys."""
    message: str = ""
    """Of Protobuf without a registry: the full name of the message that values are."""
    key_message: str = ""
    """Likewise, of keys."""
    on_schema_change: str = "ignore"
    """What becomes of fields that the table has no column for: of `participant.records.changes`."""
    registry: RegistrySettings | None = field(default=None, repr=False)
    """None where no format asks one."""
    columns: tuple[tuple[str, str], ...] = ()
    """Columns that are not the value's field of the same name, and where they come from, as
    `participant.records.sources` spells it."""
    rest: str = ""
    """The column for what no other column names; empty for none."""
    event_time: str = ""
    """The column that says when what a row tells of happened, or `table.watermark.KAFKA_TIMESTAMP`; empty for
    none."""
    event_time_unit: str = "ms"
    """Of a column of whole numbers: `s`, `ms`, `us` or `ns` since 1970."""
    ahead_max_ms: int = 3_600_000
    """So far an event time may be ahead of its record's timestamp, and of the clock, to count."""
    unavailable_value: str = UNAVAILABLE
    """Placeholder of values that an event lacks: see `participant.records.unavailable`. Empty for none."""
    decimal_handling: str = ""
    """Encoding of decimals in change events of JSON: one of `HANDLINGS`. Empty: digits in a string, or a
    number."""
    on_no_field: str = REJECT
    """Treatment of a value without a field of any column: `REJECT` or `NULL_ROW`."""
    as_keys: bool = False
    """Whether what is read as values are keys, by the header and the schema that keys have."""

    @property
    def is_mapped(self) -> bool:
        """Whether a column is anything else than the value's field of its name."""
        return bool(self.columns or self.rest) or self.envelope == CONNECT

    @property
    def needs_field(self) -> bool:
        """Whether a schema of values that has none of the columns' fields is an error.

        Not where something else of a value is kept, nor of keys in which a column of each is looked for.
        """
        if self.envelope != "none" or not self.is_mapped:
            return self.envelope == "none"
        sources = [parse(spelled) for _, spelled in self.columns]
        is_whole = any(source.kind == VALUE and not source.path for source in sources)
        return self.on_no_field == REJECT and not (self.rest or is_whole or self.as_keys)

    @property
    def follows(self) -> bool:
        """Whether what schemas of a registry say of columns is looked at."""
        named = self.format in BY_SCHEMA and self.framing == "confluent"
        return named and self.on_schema_change != IGNORE

    @property
    def wants_headers(self) -> bool:
        """Whether a record's headers may say how it is read."""
        return not BY_SCHEMA.isdisjoint((self.format, self.key_format)) and self.framing == "confluent"

    @property
    def wants_whole(self) -> bool:
        """Whether keys and headers are needed of records that have a value."""
        kinds = {parse(spelled).kind for _, spelled in self.columns}
        return self.wants_headers or self.envelope == CONNECT or bool(kinds & {KEY, HEADER, HEADERS})

    @property
    def of_keys(self) -> RecordSpec:
        """How keys are read as if they were values."""
        return replace(
            self,
            format=self.key_format,
            schema_text=self.key_schema_text,
            message=self.key_message,
            rest="",
            as_keys=True,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Asked:
    """What a decoder is to make rows of."""

    schema: pa.Schema
    """The table's; columns that the table adds are left to it."""
    upserts: bool
    """Whether rows may be deleted, and records have no value."""
    key_columns: Sequence[pa.Field]
    """Those that say which row a record without a value deletes. None where `upserts` is false."""
    delete_field: str = ""
    decimal_handling: str = ""
    """See `RecordSpec`."""
    look_back: LookBack = nothing
    key_fields: Mapping[str, str] | None = None
    """Key column -> the column of `schema` that has the same value. None: each has the same name there."""


class Follows(Protocol):
    """What the schemas that values name say of columns. Not for several threads."""

    @property
    def header(self) -> str:
        """Of a record, which may name its schema."""

    @property
    def alike_bytes(self) -> int:
        """So many bytes of a value may be all that names its schema: see `is_alike`."""

    def is_alike(self, head: bytes) -> bool:
        """Whether all values that begin with these bytes name one schema."""

    def key(self, value: bytes, headers: bytes | None) -> Hashable:
        """By what a value names its schema. Raises `Misread`."""

    def columns(self, key: Any, has: pa.Schema) -> pa.Schema:
        """Those of the values of a schema. `has`: the table's, of the record.

        Raises `UnknownSchema`, `ChangedSchema`, `SchemasUnavailable`; `NoColumn` where a field goes into
        none; `SchemaError` where it is no schema of rows.
        """

    def spelled(self, key: Any) -> str:
        """For people, with subject and version where they are to be had."""


@runtime_checkable
class FollowsEvents(Follows, Protocol):
    """The same of values that are events: some hold a row, others none."""

    def place(self, key: Any) -> str:
        """The field that holds the rows of events of a schema, for people. As `columns` took it."""

    def brings_row(self, key: Any, value: bytes, headers: bytes | None) -> bool:
        """Whether this event, which is of that schema, holds a row that the table is to have."""


class Format(Protocol):
    """How values, or keys, are encoded."""

    @property
    def typed(self) -> bool:
        """Whether a schema says of what type each field of a value is; else only its spelling does."""

    def values(self, schema: pa.Schema) -> Decoder:
        """Of values that are the row. `schema`: the table's; columns that the table adds are left to it.

        Raises `SchemaError` for a schema that cannot be read from them.
        """

    def keys(self, fields: Sequence[pa.Field]) -> KeyReader:
        """Of the columns that key a row."""

    def reads_by(self, schema: pa.Schema) -> str:
        """With what such values are read on this machine, for people."""


class FollowedFormat(Format, Protocol):
    """One of those of `BY_SCHEMA`."""

    def follows(self) -> Follows:
        """What columns schemas of a registry have. Raises `SchemaError` where there is none."""


class Envelope(Protocol):
    """What a value is wrapped in, and what that says of rows."""

    def decoder(self, asked: Asked, values: Format, keys: Format) -> Decoder:
        """Raises `SchemaError` for a schema that cannot be read from it."""
