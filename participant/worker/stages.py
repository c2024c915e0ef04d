"""What becomes of consumed records: decoded as they were sent, then shaped and written as the table wants."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from participant.records.changes import ChangeDecoder
from participant.records.debezium.decoder import DebeziumDecoder
from participant.records.json.decoder import JsonDecoder
from participant.records.json.keys import JsonKeys
from participant.records.port import Decoded, Decoder
from participant.records.raw import RawBatch
from participant.records.rejects import Rejects
from participant.source.fetcher import BATCH_RECORDS
from participant.source.look_back import LookBack, nothing
from participant.worker.memory import MemoryBudget
from table.hudi.files.side import HudiFiles
from table.hudi.kinds import UPSERT
from table.port import TableFiles, TableLayout
from table.schema import record_schema

PLACE_BYTES = 8
"""Of a column in memory, in each row: it is there though the record says nothing of it."""
RECORDS_LEAST = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """What the data plane drives."""

    records_max: int
    """So many may be decoded at once: rows of a wide table are large, however small its records."""
    decoder: Decoder
    files: TableFiles


def stages(
    *,
    layout: TableLayout,
    base_path: Path,
    slot: int,
    incarnation: str,
    memory: MemoryBudget,
    delete_field: str = "",
    look_back: LookBack = nothing,
) -> Stages:
    """The stages of one worker for one table. Raises `SchemaError` for a schema that cannot be written."""
    files = HudiFiles(
        layout=layout,
        base_path=base_path,
        slot=slot,
        incarnation=incarnation,
        pending_bytes_max=memory.encoding_bytes,
    )
    return Stages(
        records_max=_records_max(files.schema, memory.batch_bytes),
        decoder=decoder(layout, files.schema, delete_field=delete_field, look_back=look_back),
        files=files,
    )


def decoder(
    layout: TableLayout, schema: pa.Schema, *, delete_field: str = "", look_back: LookBack = nothing
) -> Decoder:
    """What makes rows of such a table of records. Raises `SchemaError` where the schema cannot be read."""
    if layout.kind != UPSERT:
        return JsonDecoder(schema)
    names = list(layout.key_fields)
    if layout.partition_field and layout.partition_field not in names:
        names.append(layout.partition_field)
    columns = record_schema(schema)
    keys = JsonKeys([columns.field(name) for name in names])
    if layout.source_position:
        return _ChangeEvents(DebeziumDecoder(schema), keys, look_back)
    return ChangeDecoder(JsonDecoder(schema), keys, delete_field)


def _records_max(schema: pa.Schema, batch_bytes: int) -> int:
    """Whose rows fit into so much while they hold nothing."""
    row_bytes = PLACE_BYTES * sum(map(_places, schema.types))
    return max(RECORDS_LEAST, min(BATCH_RECORDS, batch_bytes // row_bytes))


def _places(kind: pa.DataType) -> int:
    """Of a list or a map it is one in each row, whatever it holds."""
    return sum(_places(field.type) for field in kind.fields) if pa.types.is_struct(kind) else 1


class _ChangeEvents:
    """Change events, whose order in their log needs what was committed before, once per source partition."""

    def __init__(self, changes: DebeziumDecoder, keys: JsonKeys, look_back: LookBack) -> None:
        self._changes, self._keys, self._look_back = changes, keys, look_back

    def decode(self, batch: RawBatch) -> Decoded:
        if len(batch) and not self._changes.knows(batch.partition):
            for before in self._look_back(batch.partition, int(batch.offsets[0])):
                self._changes.decode(before, committed=True)
        changes = self._changes.decode(batch)
        tombstones, nameless = self._keys.read(batch, changes.tombstones)
        return Decoded(
            table=changes.rows,
            kept=changes.kept,
            rejects=Rejects.joined([changes.rejects, nameless]),
            deleted=changes.deleted,
            tombstones=tombstones,
            stop=changes.stop,
        )
