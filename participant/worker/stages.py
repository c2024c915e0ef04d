"""What becomes of consumed records, by the table's kind: the stages that the data plane drives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import pyarrow as pa

from control_topic.messages import DataFile
from participant.records.debezium.decoder import DebeziumDecoder
from participant.records.json.decoder import Decoded, JsonDecoder
from participant.records.raw import RawBatch
from participant.source.fetcher import BATCH_RECORDS
from participant.source.look_back import LookBack, nothing
from participant.worker.derive import Derived, Deriver
from participant.worker.upserts import ChangeDecoder, UpsertDeriver, Upserts
from table.hudi.files.base_writer import TransactionWriter
from table.hudi.files.durable import Tell
from table.hudi.files.log_writer import LogWriter
from table.hudi.kinds import UPSERT
from table.port import TableLayout
from table.schema import table_schema

PLACE_BYTES = 8
"""Of a column in memory, in each row: it is there though the record says nothing of it."""
RECORDS_LEAST = 500


class Writer(Protocol):
    """Takes what `Stages.derive` makes. Raises `StorageError`."""

    @property
    def upload_s(self) -> float: ...

    def write(self, derived: Any) -> None: ...

    def close(self) -> tuple[DataFile, ...]: ...

    def discard(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """`new_writer` makes the writer of one instant, which tells what it does step by step.

    `records_max`: so many may be decoded at once: rows of a wide table are large, however small its records.
    """

    records_max: int
    decode: Callable[[RawBatch], Decoded]
    derive: Callable[[RawBatch, Decoded], Derived | Upserts]
    new_writer: Callable[[str, Tell], Writer]


def stages(
    *,
    layout: TableLayout,
    base_path: Path,
    slot: int,
    incarnation: str,
    memory_bytes: int,
    delete_field: str = "",
    look_back: LookBack = nothing,
) -> Stages:
    """The stages of one worker for one table. Raises `SchemaError` for a schema that cannot be written."""
    schema = table_schema(layout.ddl, layout.kafka_columns, source_position=layout.source_position)
    common: dict[str, Any] = {
        "base_path": str(base_path),
        "layout": layout,
        "schema": schema,
        "writer_number": slot,
        "incarnation": incarnation,
        "pending_bytes_max": memory_bytes // 4,
    }
    records_max = _records_max(schema, memory_bytes)
    if layout.kind == UPSERT:
        return Stages(
            records_max=records_max,
            decode=_change_events(schema, look_back)
            if layout.source_position
            else ChangeDecoder(schema, delete_field).decode,
            derive=UpsertDeriver(layout, schema).derive,
            new_writer=lambda instant, tell: LogWriter(**common, instant=instant, tell=tell),
        )
    return Stages(
        records_max=records_max,
        decode=JsonDecoder(schema).decode,
        derive=Deriver(layout, schema).derive,
        new_writer=lambda instant, tell: TransactionWriter(
            **common, instant=instant, new_uuid=uuid4, tell=tell
        ),
    )


def _records_max(schema: pa.Schema, memory_bytes: int) -> int:
    """Whose rows, while they hold nothing, fit into a sixteenth of the memory."""
    row_bytes = PLACE_BYTES * sum(map(_places, schema.types))
    return max(RECORDS_LEAST, min(BATCH_RECORDS, memory_bytes // 16 // row_bytes))


def _places(kind: pa.DataType) -> int:
    """Of a list or a map it is one in each row, whatever it holds."""
    return sum(_places(field.type) for field in kind.fields) if pa.types.is_struct(kind) else 1


def _change_events(schema: pa.Schema, look_back: LookBack) -> Callable[[RawBatch], Decoded]:
    decoder = DebeziumDecoder(schema)

    def decode(batch: RawBatch) -> Decoded:
        if len(batch) and not decoder.knows(batch.partition):
            for before in look_back(batch.partition, int(batch.offsets[0])):
                decoder.decode(before, committed=True)
        changes = decoder.decode(batch)
        return Decoded(
            table=changes.rows,
            kept=changes.kept,
            rejects=changes.rejects,
            deleted=changes.deleted,
            tombstones=changes.tombstones,
            stop=changes.stop,
        )

    return decode
