"""Rows of inserts come to another worker as they were, and none more or less."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from table.hudi.files.handing import InsertHanding
from table.hudi.files.shaping import InsertRows
from tests.unit.table.hudi.files.test_base_writer import SCHEMA, rows

HANDING = InsertHanding(SCHEMA.names)
FRAME_BYTES = 1 << 20


def told(part: InsertRows) -> list[tuple[object, ...]]:
    columns = [part.table.to_pylist(), part.record_key.to_pylist(), part.table_partition.to_pylist()]
    return list(zip(*columns, strict=True))


def by_day(folder: str) -> int:
    return int(folder.removeprefix("d")) % 3


def test_rows_are_divided_by_the_homes_of_their_table_partitions_in_their_order() -> None:
    shaped = rows(1_000, days=7)
    parts = HANDING.divided(shaped, by_day, 4)
    assert parts[3] is None
    for home, part in enumerate(parts[:3]):
        assert part is not None
        assert told(part) == [row for row in told(shaped) if by_day(str(row[2])) == home]


def test_a_part_names_no_table_partitions_but_its_own() -> None:
    part = HANDING.divided(rows(1_000, days=7), by_day, 3)[0]
    assert part is not None
    assert sorted(part.table_partition.dictionary.to_pylist()) == ["d0", "d3", "d6"]


def test_rows_of_one_home_are_not_copied() -> None:
    shaped = rows(100)
    assert HANDING.divided(shaped, lambda _: 1, 2) == [None, shaped]


def test_of_no_rows_there_are_no_parts() -> None:
    none = rows(10)
    none = replace(
        none,
        table=none.table.slice(0, 0),
        record_key=none.record_key.slice(0, 0),
        table_partition=none.table_partition.slice(0, 0),
    )
    assert HANDING.divided(none, by_day, 3) == [None, None, None]


def test_rows_are_unpacked_as_they_were_packed() -> None:
    sent = [rows(100, days=3), rows(50, days=5, first=100, topic="others")]
    (frame,) = HANDING.packed(sent, FRAME_BYTES)
    taken = HANDING.unpacked(frame)
    assert told(taken) == [row for part in sent for row in told(part)]
    assert taken.table.schema == sent[0].table.schema


def test_a_key_that_is_a_column_travels_once() -> None:
    shared = rows(1_000)
    apart = replace(shared, record_key=pa.chunked_array([pa.array(shared.record_key.to_pylist())]))
    (frame,), (larger,) = HANDING.packed([shared], FRAME_BYTES), HANDING.packed([apart], FRAME_BYTES)
    assert len(frame) < len(larger)
    assert told(HANDING.unpacked(frame)) == told(HANDING.unpacked(larger)) == told(shared)


def test_a_key_that_is_a_column_in_one_part_only_travels_by_itself() -> None:
    shared = rows(10)
    apart = replace(shared, record_key=pa.chunked_array([pa.array(shared.record_key.to_pylist())]))
    (frame,) = HANDING.packed([shared, apart], FRAME_BYTES)
    assert told(HANDING.unpacked(frame)) == 2 * told(shared)


def test_rows_that_are_too_many_for_a_frame_go_in_several() -> None:
    shaped = rows(1_000, days=3)
    frames = list(HANDING.packed([shaped], 10_000))
    assert len(frames) > 5 and max(map(len, frames)) < 30_000
    assert [row for frame in frames for row in told(HANDING.unpacked(frame))] == told(shaped)


def test_a_frame_is_no_larger_where_rows_are_of_very_different_sizes() -> None:
    shaped = rows(1_000)
    texts = ["x" * 10_000 if 500 <= number < 510 else "" for number in range(1_000)]
    place = shaped.table.schema.get_field_index(SCHEMA.names[0])
    table = shaped.table.set_column(place, SCHEMA.field(place), pa.chunked_array([pa.array(texts)]))
    frames = list(HANDING.packed([replace(shaped, table=table)], 30_000))
    assert max(map(len, frames)) < 70_000
    assert sum(HANDING.unpacked(frame).count for frame in frames) == 1_000


def test_a_row_that_is_larger_than_a_frame_goes_in_one() -> None:
    assert len(list(HANDING.packed([rows(3)], 1))) == 3


@pytest.mark.parametrize("cut", [0, 1, 8, 100, -100])
def test_half_a_frame_is_refused(cut: int) -> None:
    (frame,) = HANDING.packed([rows(10)], FRAME_BYTES)
    with pytest.raises(ValueError):
        HANDING.unpacked(frame[:cut])


def test_rows_of_another_table_are_refused() -> None:
    (frame,) = HANDING.packed([rows(10)], FRAME_BYTES)
    with pytest.raises(ValueError, match="instead of"):
        InsertHanding([*SCHEMA.names, "more"]).unpacked(frame)


@pytest.mark.parametrize("place", [b"99", b"-1", b"one", b"9" * 5_000, "²".encode()])
def test_a_key_that_is_no_column_is_refused(place: bytes) -> None:
    (frame,) = HANDING.packed([rows(10)], FRAME_BYTES)
    whole = pa.ipc.open_stream(frame).read_all().replace_schema_metadata({b"key": place})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, whole.schema) as stream:
        stream.write_table(whole)
    with pytest.raises(ValueError, match="is no column"):
        HANDING.unpacked(sink.getvalue().to_pybytes())


def test_bytes_by_chance_are_refused() -> None:
    random = np.random.default_rng(1)
    (frame,) = HANDING.packed([rows(10)], FRAME_BYTES)
    for _ in range(200):
        broken = bytearray(frame)
        for place in random.integers(0, len(broken), 3):
            broken[place] ^= int(random.integers(1, 256))
        try:
            HANDING.unpacked(bytes(broken))
        except ValueError:
            continue


def odd(count: int = 10) -> InsertRows:
    """Rows of a column that Arrow knows, and cannot take rows of."""
    shaped = rows(count, days=3)
    column = pc.run_end_encode(pa.array(["a"] * count))
    return replace(shaped, table=shaped.table.append_column("odd", column))


def test_rows_that_arrow_cannot_divide_are_refused() -> None:
    with pytest.raises(ValueError, match="could not be divided"):
        HANDING.divided(odd(), by_day, 3)


def test_rows_that_arrow_cannot_put_together_are_refused() -> None:
    with pytest.raises(ValueError, match="could not be packed"):
        list(HANDING.packed([rows(10), odd()], FRAME_BYTES))
