"""Writers whose rows get more columns in the middle of a transaction, of inserts and of upserts."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from control_topic.messages import SourcePartition
from table.hudi.avro import to_avro
from table.hudi.definition import with_meta_columns
from table.hudi.files.log_file import PARQUET_BLOCK, log_file_version, read_blocks
from table.hudi.files.side import HudiFiles
from table.hudi.layout import HudiLayout
from table.rows import Rows
from table.schema import parse_ddl, table_schema

INSTANT = "20261126200000000"
NARROW = "id STRING, day STRING, n INT, s STRUCT<x: INT>"
WIDE = "id STRING, day STRING, n BIGINT, s STRUCT<x: INT, y: STRING>, note STRING"
DAYS = 40


def files_at(base: Path, mode: str) -> HudiFiles:
    (base / ".hoodie").mkdir()
    layout = HudiLayout(
        path=f"file://{base}",
        key_fields=("id",),
        partition_fields=("day",),
        kafka_columns=True,
        target_file_bytes=100_000_000,
        ddl=NARROW,
        mode=mode,
        bucket_count=2 if mode == "upsert" else 0,
        avro=with_meta_columns(to_avro(table_schema(NARROW, True), "t")),
    )
    return HudiFiles(
        layout=layout,
        slot=3,
        incarnation="0123abcd",
        pending_bytes_max=64_000_000,
        held_bytes_max=8_000_000,
    )


def rows(ddl: str, first: int, count: int, **more: Any) -> Rows:
    """So many, each of a table partition of its own as far as there are any."""
    offsets = np.arange(first, first + count, dtype=np.int64)
    values = [
        {"id": f"k{number}", "day": f"d{number % DAYS}", "n": number, "s": {"x": number}, **more}
        for number in offsets.tolist()
    ]
    columns = pa.Table.from_pylist(values, parse_ddl(ddl))
    source = SourcePartition("events", 0)
    return Rows(source=source, length=count, columns=columns, offsets=offsets, timestamps_ms=offsets)


def read_of(base: Path, path: str) -> list[dict[str, Any]]:
    """A file's rows, with the columns that it has."""
    raw = (base / path).read_bytes()
    if path.endswith(".parquet"):
        return list(pq.read_table(base / path, partitioning=None).to_pylist())
    blocks = [block for block in read_blocks(raw) if block.kind == PARQUET_BLOCK]
    return [row for block in blocks for row in pq.read_table(io.BytesIO(block.content)).to_pylist()]


@pytest.mark.parametrize("mode", ["insert", "upsert"])
def test_files_with_fewer_columns_are_ended_and_older_rows_that_follow_are_given_nulls(
    tmp_path: Path, mode: str
) -> None:
    files = files_at(tmp_path, mode)
    wider = files.widened(parse_ddl(WIDE))
    writer = files.writer(INSTANT, lambda _: None)
    writer.write(files.shape(rows(NARROW, 0, 100)))
    writer.widen(wider)
    writer.write(wider.shape(rows(WIDE, 100, 100, note="x", s={"x": 1, "y": "z"})))
    writer.write(files.shape(rows(NARROW, 200, 100)))
    writer.write(wider.shape(rows(WIDE, 300, 3, note=None)))
    closed = writer.close()

    found = {row["id"]: row for file in closed for row in read_of(tmp_path, file.path)}
    assert sum(file.rows for file in closed) == len(found) == 303
    assert all(("note" in row) == (row["n"] >= 100) for row in found.values())
    assert found["k150"]["note"] == "x" and found["k150"]["s"] == {"x": 1, "y": "z"}
    assert found["k250"]["note"] is None and found["k250"]["s"] == {"x": 250, "y": None}
    assert len({row["_hoodie_commit_seqno"] for row in found.values()}) == 303
    assert len({file.path for file in closed}) == len(closed)


@pytest.mark.parametrize("mode", ["insert", "upsert"])
def test_of_a_transaction_that_begins_wider_rows_that_were_shaped_before_are_given_nulls(
    tmp_path: Path, mode: str
) -> None:
    files = files_at(tmp_path, mode)
    wider = files.widened(parse_ddl(WIDE))
    writer = wider.writer(INSTANT, lambda _: None)
    writer.write(files.shape(rows(NARROW, 0, 100)))
    writer.write(wider.shape(rows(WIDE, 100, 100, note="x", s={"x": 1, "y": "z"})))
    closed = writer.close()

    found = {row["id"]: row for file in closed for row in read_of(tmp_path, file.path)}
    assert sum(file.rows for file in closed) == len(found) == 200
    assert (found["k50"]["n"], found["k50"]["s"], found["k50"]["note"]) == (50, {"x": 50, "y": None}, None)
    assert found["k150"]["note"] == "x"


def test_of_a_bucket_readers_take_the_wider_log_file_after_the_narrower(tmp_path: Path) -> None:
    files = files_at(tmp_path, "upsert")
    wider = files.widened(parse_ddl(WIDE))
    writer = files.writer(INSTANT, lambda _: None)
    writer.write(files.shape(rows(NARROW, 7, 1)))
    writer.widen(wider)
    writer.write(wider.shape(rows(WIDE, 7, 1, note="newer")))
    narrow, wide = writer.close()
    assert narrow.body == wide.body
    versions = [log_file_version(Path(file.path).name) for file in (narrow, wide)]
    assert versions == sorted(set(versions))
    assert [row.get("note") for file in (narrow, wide) for row in read_of(tmp_path, file.path)] == [
        None,
        "newer",
    ]


def test_a_wider_layout_says_the_columns_of_its_log_blocks_with_hudi_s_own_first(tmp_path: Path) -> None:
    files = files_at(tmp_path, "upsert")
    wider = files.widened(parse_ddl(WIDE))
    names = [field["name"] for field in json.loads(wider.layout.avro)["fields"]]
    assert names[:5] == [field["name"] for field in json.loads(files.layout.avro)["fields"]][:5]
    assert names[5:9] == ["id", "day", "n", "s"] and names[-1] == "note"
    assert wider.schema.field("n").type == pa.int64() and files.schema.field("n").type == pa.int32()
    assert replace(files.layout, ddl="", avro="") == replace(wider.layout, ddl="", avro="")
