"""Columns that grow while nothing is open: what was decoded before is written with what came after."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from control_topic.messages import SourcePartition
from participant import events as ev
from participant.records.changes import EVOLVE
from participant.records.port import RecordSpec
from participant.records.raw import RawBatch, Values
from participant.records.registry.settings import RegistrySettings
from participant.source.fetched import Fetched
from participant.worker.memory import MemoryBudget
from participant.worker.plane import Plane
from participant.worker.stages import stages
from table.hudi.avro import to_avro
from table.hudi.definition import with_meta_columns
from table.port import UPSERT
from table.schema import table_schema
from tests.avro_types import record, written
from tests.registry_server import Registry
from tests.unit.participant.worker.test_plane import LAYOUT, NOBODY, flush

DDL = "id STRING NOT NULL, n INT"
P0, P1 = SourcePartition("events", 0), SourcePartition("events", 1)
NARROW = record({"id": "string", "n": "int"})
WIDE = record({"id": "string", "n": "long", "at": ["null", "double"]})


@pytest.mark.parametrize("mode", ["insert", UPSERT])
@pytest.mark.parametrize("others", [P0, P1])
def test_records_that_were_decoded_before_the_columns_grew_are_written_with_those_after(
    tmp_path: Path, registry: Registry, mode: str, others: SourcePartition
) -> None:
    """As they are while files of the transaction before are ended and committed."""
    (tmp_path / ".hoodie").mkdir()
    old, new = (registry.known.register("events-value", {"schema": text}) for text in (NARROW, WIDE))
    avro = with_meta_columns(to_avro(table_schema(DDL, False), "t"))
    body = {"avro": avro, **({"bucket_count": 1} if mode == UPSERT else {})}
    settings = RegistrySettings(url=registry.url, cache_folder=str(tmp_path / "schemas"))
    memory = MemoryBudget(64_000_000)
    posted: list[Any] = []
    plane = Plane(
        stages=stages(
            layout=replace(LAYOUT, path=str(tmp_path), ddl=DDL, mode=mode, body=body),
            slot=0,
            incarnation="i",
            memory=memory,
            record=RecordSpec(format="avro", registry=settings, on_schema_change=EVOLVE),
        ),
        queued_bytes_max=memory.queued_bytes,
        dead_letters=None,
        post=posted.append,
        now_ms=lambda: 0,
        callbacks=NOBODY,
    )
    read = dict.fromkeys((P0, P1), 0)

    def come(partition: SourcePartition, number: int, text: str, **row: Any) -> None:
        start = read[partition]
        read[partition] += 1
        raw = RawBatch(
            partition=partition,
            offsets=np.array([start]),
            timestamps_ms=np.array([0]),
            values=Values.of([b"\0" + number.to_bytes(4, "big") + written(text, row)]),
        )
        plane._obey(Fetched(partition=partition, generation=1, start=start, next=start + 1, raw=raw))

    for partition in (P0, P1):
        plane._obey(ev.Rewind(partition=partition, offset=0, generation=1))
    come(P0, old, NARROW, id="a", n=1)
    come(others, new, WIDE, id="b", n=2**40, at=0.5)
    plane._obey(ev.Open(transaction="t1", instant="20261126000000000"))
    for partition in (P0, P1):
        plane._obey(ev.Write(transaction="t1", partition=partition, generation=1, upto=read[partition]))
    flush(plane, ev.Flush(call=1, transaction="t1"))
    flushed = posted[-1]
    assert isinstance(flushed, ev.Flushed) and flushed.outcome is ev.Outcome.SUCCEEDED, flushed
    assert sum(file.rows for file in flushed.files) == 2
    assert "`at` DOUBLE" in flushed.columns and flushed.columns_from
    if mode == "insert":
        (file,) = flushed.files
        rows = pq.read_table(tmp_path / file.path).select(["id", "n", "at"]).to_pylist()
        assert rows == [{"id": "a", "n": 1, "at": None}, {"id": "b", "n": 2**40, "at": 0.5}]
