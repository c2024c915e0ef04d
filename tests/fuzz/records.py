"""Records: every one is exactly one row with its own coordinates and values, or exactly one reject."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from control_topic.messages import SourcePartition
from participant.records.json.decoder import JsonDecoder
from participant.records.port import Decoded, Decoder
from participant.records.raw import RawBatch, Values
from participant.records.rejects import Rejects
from table.hudi.files.encoding import writer_options
from table.hudi.files.keys import COMPLEX, COORDINATES, PLAIN, check_key_field
from table.hudi.files.shaping import InsertRows, InsertShaper
from table.hudi.layout import HudiLayout
from table.port import AS_KEY, AS_PARTITION
from table.schema import SchemaError, kafka_fields, parse_ddl
from tests.fuzz import documents, reference
from tests.fuzz.target import Target, require
from tests.json_decoders import DECODERS, decoders

PLACE = SourcePartition("events", 3)
FIRST_OFFSET = 10**6
ODDS = (0.0, 0.003, 0.03, 0.5)
ALONE_MAX = 3
"""So many records of a batch are decoded once more without the others."""


@lru_cache(maxsize=64)
def _decoder(ddl: str) -> JsonDecoder | None:
    try:
        return JsonDecoder(parse_ddl(ddl))
    except SchemaError:
        return None  # only maps


@lru_cache(maxsize=128)
def _other(name: str, ddl: str) -> Decoder:
    return DECODERS[name](parse_ddl(ddl))


def _batch(values: Sequence[bytes | None]) -> RawBatch:
    """Offsets with gaps, so that an index is never taken for an offset."""
    offsets = FIRST_OFFSET + np.cumsum(
        np.array([1 + (n % 7 == 0) * 4 for n in range(len(values))], dtype=np.int64)
    )
    return RawBatch(partition=PLACE, offsets=offsets, timestamps_ms=offsets * 2, values=Values.of(values))


def make_batch(random: Random, size: int) -> tuple[str, list[bytes | None]]:
    """A schema and a batch of records."""
    odd = random.choice(ODDS)
    ddl = documents.ddl(random)
    count = size if odd < 0.5 else max(1, size // 5)
    schema = parse_ddl(ddl)
    return ddl, [documents.record(random, schema, number, odd) for number in range(count)]


def _rows(batch: RawBatch, decoded: Decoded) -> dict[int, dict[str, Any]]:
    kept = range(len(batch.values)) if decoded.kept is None else [int(index) for index in decoded.kept]
    require(list(kept) == sorted(kept), "rows are out of order", batch.values)
    return dict(zip(kept, decoded.table.to_pylist(), strict=True))


def check_batch(case: tuple[str, list[bytes | None]]) -> int:
    """One batch of records, compared record by record."""
    ddl, values = case
    decoder, schema, batch = _decoder(ddl), parse_ddl(ddl), _batch(values)
    if decoder is None:
        return 1
    decoded = decoder.decode(batch)
    decoded.table.validate(full=True)
    require(decoded.table.schema == schema, "the columns are not the schema's", ddl)
    rows, rejects = _rows(batch, decoded), {reject.index: reject for reject in decoded.rejects}
    require(len(rejects) == len(decoded.rejects), "a record is rejected twice", values)
    require(len(rows) + len(rejects) == len(values), "a record is dropped", values)
    for index, value in enumerate(values):
        require((index in rows) != (index in rejects), "neither a row nor a reject, or both", value)
        _check_record(value, schema, rows.get(index), rejects.get(index))
    for index, reject in rejects.items():
        require(
            reject.offset == batch.offsets[index], "a reject names another record's offset", values[index]
        )
    _check_native(ddl, batch, decoded)
    for index in [*rejects, *rows][:ALONE_MAX]:
        alone = decoder.decode(_batch([values[index]]))
        same = alone.table.num_rows == 1 if index in rows else len(alone.rejects) == 1
        require(same, "what becomes of a record depends on its neighbours", values[index])
    return len(values)


def _check_native(ddl: str, batch: RawBatch, decoded: Decoded) -> None:
    """Where it is compiled: the native decoder says the same of every record."""
    for name in decoders()[1:]:
        native = _other(name, ddl).decode(batch)
        native.table.validate(full=True)
        require(native.table.schema == decoded.table.schema, f"{name}: other columns", ddl)
        places = [reject.index for reject in native.rejects]
        strange = sorted({*places} ^ {reject.index for reject in decoded.rejects})
        require(not strange, f"{name}: another fate than by the plain decoder", (ddl, _shown(batch, strange)))
        rows, wanted = _rows(batch, native), _rows(batch, decoded)
        for index, row in rows.items():
            require(reference.same(row, wanted[index]), f"{name}: another row: {row}", batch.values[index])
        for reject in native.rejects:
            require(reject.offset == batch.offsets[reject.index], f"{name}: another offset", reject)
            require(bool(reject.reason), f"{name}: a reject without a reason", batch.values[reject.index])


def _shown(batch: RawBatch, places: Sequence[int]) -> list[bytes | None]:
    return [batch.values[place] for place in places[:ALONE_MAX]]


def _check_record(value: bytes | None, schema: pa.Schema, row: Any, reject: Any) -> None:
    try:
        wanted = reference.read(value, schema)
    except reference.Refused:
        require(row is None, f"the row {row} where a reject is due ({schema.to_string()})", value)
    else:
        if row is None:
            require(wanted.open, f"a reject ({reject.reason}) where a row is due", value)
        elif wanted.row:
            require(reference.same(row, wanted.row), f"the row {row} instead of {wanted.row}", value)
    if reject is not None:
        require(bool(reject.reason), "a reject without a reason", value)
        require(documents.MARK not in reject.reason, f"a reason that repeats content: {reject.reason}", value)


# --- derived columns ------------------------------------------------------------------------------------


def make_layout(random: Random, size: int) -> dict[str, Any]:
    """A table by chance, and a batch for it."""
    ddl, values = make_batch(random, size)
    usable = [one.name for one in parse_ddl(ddl) if _can_be(AS_KEY, one)]
    folders = [one.name for one in parse_ddl(ddl) if _can_be(AS_PARTITION, one)]
    key_format = random.choice((PLAIN, COMPLEX, COORDINATES)) if usable else COORDINATES
    count = {PLAIN: 1, COMPLEX: random.randint(1, len(usable) or 1), COORDINATES: 0}[key_format]
    return {
        "ddl": ddl,
        "values": values,
        "key_fields": tuple(random.sample(usable, count)),
        "key_format": key_format,
        "partition_fields": tuple(random.sample(folders, random.randint(0, min(3, len(folders))))),
        "hive_style": random.random() < 0.5,
        "url_encode": random.random() < 0.5,
        "kafka_columns": random.random() < 0.8,
    }


def _can_be(role: str, one: pa.Field) -> bool:
    try:
        check_key_field(one, role)
    except SchemaError:
        return False
    return True


def check_layout(case: dict[str, Any]) -> int:
    """Each row carries its own offset, timestamp, key and table partition, whatever was rejected."""
    ddl, values = case["ddl"], case["values"]
    decoder, schema, batch = _decoder(ddl), parse_ddl(ddl), _batch(values)
    if decoder is None:
        return 1
    names = ("key_fields", "key_format", "partition_fields", "hive_style", "url_encode", "kafka_columns")
    layout = HudiLayout(path="/t", target_file_bytes=1 << 20, ddl=ddl, **{name: case[name] for name in names})
    if layout.kafka_columns:
        schema = pa.schema([*schema, *kafka_fields()])
    decoded = decoder.decode(batch)
    derived = InsertShaper(layout, schema).shape(decoded.rows(batch))
    refused = Rejects.of(derived.refused, batch.offsets)
    rejected = {reject.index: reject for reject in (*decoded.rejects, *refused)}
    require(len(rejected) == len(decoded.rejects) + len(refused), "a record is rejected twice", values)
    for index, reject in rejected.items():
        # this is how the data plane finds what it sends to the dead-letter topic
        require(int(batch.offsets[index]) == reject.offset, "a reject names another offset", values[index])
    rows = list(
        zip(
            derived.table.to_pylist(),
            derived.record_key.to_pylist(),
            derived.table_partition.to_pylist(),
            strict=True,
        )
    )
    kept = [index for index in range(len(values)) if index not in rejected]
    require(len(kept) == len(rows), "a record is dropped", values)
    decoded_rows = _rows(batch, decoded)
    for index, (row, key, folder) in zip(kept, rows, strict=True):
        offset = int(batch.offsets[index])
        if layout.kafka_columns:
            place = (row.pop("_kafka_topic"), row.pop("_kafka_partition"), row.pop("_kafka_offset"))
            require(place == (*PLACE, offset), f"the coordinates {place}", values[index])
            moment: datetime = row.pop("_kafka_timestamp")
            require(
                round(moment.timestamp() * 1_000) == offset * 2, "another record's timestamp", values[index]
            )
        require(reference.same(row, decoded_rows[index]), "another record's values", values[index])
        require(key == _key(layout, row, offset), f"the key {key!r} of another row", values[index])
        require(folder == _folder(layout, row), f"the table partition {folder!r}", values[index])
    _check_parquet(derived.table, ddl)
    _check_head(InsertShaper(layout, schema), decoder, batch, derived, min(rejected, default=0))
    for reject in refused:
        row = decoded_rows[reject.index]
        due = _key(layout, row, reject.offset) is None or _folder(layout, row) is None
        require(due, f"a reject ({reject.reason}) where a row is due", values[reject.index])
    return len(values)


def _check_head(
    shaper: InsertShaper, decoder: JsonDecoder, batch: RawBatch, derived: InsertRows, first: int
) -> None:
    """What comes before the first reject is the same rows by itself: a pipeline that stops there needs it."""
    head = batch.head(first)
    again = shaper.shape(decoder.decode(head).rows(head))
    require(not again.refused, "what is before the first reject is rejected", head.values)
    whole = derived.table.slice(0, first).to_pylist()
    require(reference.same(again.table.to_pylist(), whole), "it is other rows", head.values)


def _check_parquet(table: pa.Table, ddl: str) -> None:
    """What was derived can be written, and reads back as it is."""
    file = pa.BufferOutputStream()
    with pq.ParquetWriter(file, table.schema, **writer_options(table)) as writer:
        writer.write_table(table)
    back = pq.read_table(pa.BufferReader(file.getvalue())).to_pylist()
    require(reference.same(back, table.to_pylist()), "the rows read otherwise from the file", ddl)


def _spelled(value: Any) -> str | None:
    """A value as Hudi's key generators spell it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        since = value - datetime(1970, 1, 1, tzinfo=value.tzinfo)
        return str((since.days * 86_400 + since.seconds) * 10**6 + since.microseconds)
    if isinstance(value, date):
        return value.isoformat()
    return str(value) if isinstance(value, int | Decimal) else None


def _key(layout: HudiLayout, row: dict[str, Any], offset: int) -> str | None:
    """The row's key, None where it has none."""
    spelled = [_spelled(row[name]) for name in layout.key_fields]
    if layout.key_format == COORDINATES:
        return f"{PLACE.topic}-{PLACE.number}-{offset}"
    if not any(spelled):
        return None
    if layout.key_format == PLAIN:
        return spelled[0]
    shown = ["__null__" if text is None else text or "__empty__" for text in spelled]
    return ",".join(f"{name}:{text}" for name, text in zip(layout.key_fields, shown, strict=True))


def _folder(layout: HudiLayout, row: dict[str, Any]) -> str | None:
    """The row's table partition, None where its value cannot name a folder."""
    folders = [_level(layout, name, row[name]) for name in layout.partition_fields]
    return (
        None
        if None in folders or len("/".join(map(str, folders)).encode()) > 600
        else "/".join(map(str, folders))
    )


def _level(layout: HudiLayout, name: str, value: Any) -> str | None:
    text = _spelled(value) or "__HIVE_DEFAULT_PARTITION__"
    if layout.url_encode:
        text = re.sub(r"[\x00-\x1f\x7f\"#%'*/:=?\\\[\]^{]", lambda match: f"%{ord(match[0]):02X}", text)
    text = f"{name}={text}" if layout.hive_style else text
    bad = re.search(r"[\x00-\x1f\x7f/:]", text) or text.startswith(".") or len(text.encode()) > 200
    return None if bad else text


TARGETS = (
    Target(
        name="decoder",
        promise="each record is one row with its own values, or one reject",
        make=make_batch,
        check=check_batch,
        size=1_000,
        seeds=25,
    ),
    Target(
        name="coordinates",
        promise="each row carries its own offset, timestamp, key and table partition",
        make=make_layout,
        check=check_layout,
        size=300,
        seeds=30,
    ),
)
