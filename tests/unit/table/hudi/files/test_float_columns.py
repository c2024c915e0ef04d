"""FLOAT and DOUBLE columns with NaN have no statistics, and with zeros no dictionary."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from control_topic.messages import SourcePartition
from participant.records.json.decoder import JsonDecoder
from participant.records.raw import RawBatch, Values
from table.hudi.files.base_writer import TransactionWriter
from table.hudi.files.encoding import Encodings
from table.hudi.files.float_columns import Exceptions, find_exceptions
from table.hudi.files.shaping import InsertRows, InsertShaper
from table.schema import table_schema
from tests.unit.table.hudi.files.test_base_writer import LAYOUT, open_writer

ROWS = 40
NAN = math.nan


def piece(**columns: list[Any]) -> pa.Table:
    return pa.table({name: values * (ROWS // len(values)) for name, values in columns.items()})


def chunks(table: pa.Table) -> dict[str, Any]:
    """The column chunks, by path, of a file that begins with this piece."""
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, table.schema, **Encodings().options(table)) as writer:
        writer.write_table(table)
    group = pq.read_metadata(sink).row_group(0)
    return {group.column(at).path_in_schema: group.column(at) for at in range(group.num_columns)}


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
def test_a_column_with_nan_has_no_statistics(kind: pa.DataType) -> None:
    table = piece(some=[1.0, NAN], all=[NAN], nulls=[None, NAN], none=[1.0, None], whole=[1, 2])
    for at, name in enumerate(("some", "all", "nulls", "none")):
        table = table.set_column(at, name, table.column(name).cast(kind))
    found = chunks(table)
    assert {path for path, chunk in found.items() if chunk.statistics} == {"none", "whole"}


def test_a_column_with_a_zero_has_no_dictionary_and_keeps_its_statistics() -> None:
    place = [{"x": 0.0, "y": 1.0}, {"x": -0.0, "y": 2.0}]
    found = chunks(piece(zero=[0.0, 1.0], minus=[-0.0], other=[1.0, 2.0], whole=[0, 1], place=place))
    assert {path for path, chunk in found.items() if "RLE_DICTIONARY" in chunk.encodings} == {
        "other",
        "whole",
        "place.y",
    }
    assert {"zero", "minus", "other", "whole"} == {path for path, chunk in found.items() if chunk.statistics}


def test_values_in_structs_lists_and_dictionaries_are_found_and_nulls_are_not() -> None:
    table = pa.table(
        {
            "plain": pa.array([None, 0.0, NAN]),
            "null": pa.nulls(3, pa.float64()),
            "list": [[None, NAN], None, []],
            "struct": pa.array([None, {"x": None}, {"x": -0.0}]),
            "encoded": pa.array([NAN, 1.0, None]).dictionary_encode(),
            "whole": [0, 0, 0],
        }
    )
    assert find_exceptions(table) == Exceptions(
        nan=frozenset({"plain", "list.list.element", "encoded"}), zero=frozenset({"plain", "struct.x"})
    )
    assert find_exceptions(table.select(["plain", "list"]).slice(0, 0)) == Exceptions()


def test_pieces_after_one_with_nan_are_written_like_it() -> None:
    encodings = Encodings()
    before = encodings.options(piece(v=[1.0, 2.0]))
    assert before["write_statistics"] == ["v"] and before["use_dictionary"] == ["v"]
    assert encodings.options(piece(v=[1.0, NAN]))["write_statistics"] == []
    assert encodings.options(piece(v=[0.0, 2.0]))["use_dictionary"] == []
    assert encodings.options(piece(v=[1.0, 2.0])) == {**before, "write_statistics": [], "use_dictionary": []}


DOUBLES = "id STRING, day STRING, amount DOUBLE"


def rows(amounts: list[float | None]) -> InsertRows:
    schema = table_schema(DOUBLES, True)
    values: list[bytes | None] = [
        json.dumps({"id": f"k{n}", "day": "d", "amount": amount}).encode() for n, amount in enumerate(amounts)
    ]
    offsets = np.arange(len(values), dtype=np.int64)
    batch = RawBatch(
        partition=SourcePartition("t", 0), offsets=offsets, timestamps_ms=offsets, values=Values.of(values)
    )
    return InsertShaper(LAYOUT, schema).shape(JsonDecoder(schema).decode(batch).rows(batch))


@pytest.mark.parametrize("special", [NAN, 0.0, -0.0])
def test_a_row_group_with_nan_or_a_zero_begins_another_file(tmp_path: Path, special: float) -> None:
    (tmp_path / ".hoodie").mkdir()
    writer: TransactionWriter = open_writer(tmp_path, schema=table_schema(DOUBLES, True), pending_bytes_max=1)
    for amounts in ([1.0, 2.0], [2.0, 2.0], [special, 2.0], [1.0, 2.0]):
        writer.write(rows(amounts * (ROWS // 2)))
    files = [pq.ParquetFile(tmp_path / file.path).metadata for file in writer.close()]
    assert [file.num_row_groups for file in files] == [2, 2]
    for file, is_special in zip(files, (False, True), strict=True):
        for number in range(file.num_row_groups):
            chunk = file.row_group(number).column(file.schema.names.index("amount"))
            assert (chunk.statistics is None) == (is_special and math.isnan(special))
            assert ("RLE_DICTIONARY" in chunk.encodings) == (not is_special or math.isnan(special))
