"""Record keys and table partitions, held against what Hudi 1.2 on Spark 3.5 wrote for the same values."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from table.hudi.files.keys import (
    DEFAULT_PARTITION,
    UnsafePartition,
    ambiguous,
    check_key_field,
    check_ordering_field,
    complex_keys,
    coordinate_keys,
    partition_path,
    plain_keys,
)
from table.port import AS_KEY, AS_PARTITION
from table.schema import UTC_MICROS, SchemaError

WIDE = pa.decimal128(38, 10)


def column(values: list[Any], kind: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([values], kind)


@pytest.mark.parametrize(
    ("value", "kind", "key"),
    [
        ("x y", pa.string(), "x y"),
        (-7, pa.int32(), "-7"),
        (9007199254740993, pa.int64(), "9007199254740993"),
        (True, pa.bool_(), "true"),
        (date(1, 1, 1), pa.date32(), "0001-01-01"),
        (date(1969, 12, 31), pa.date32(), "1969-12-31"),
        (datetime(2020, 1, 2, 3, 4, 5, 123456, UTC), UTC_MICROS, "1577934245123456"),
        (datetime(1969, 12, 31, 23, 59, 59, 500000, UTC), UTC_MICROS, "-500000"),
        (Decimal("12.3"), pa.decimal128(10, 2), "12.30"),
        (Decimal("0"), pa.decimal128(10, 2), "0.00"),
        (Decimal("12345678901"), WIDE, "12345678901.0000000000"),
        (Decimal("0.0000000001"), WIDE, "1E-10"),
        (Decimal("0"), WIDE, "0E-10"),
        (Decimal("-0.5"), WIDE, "-0.5000000000"),
    ],
)
def test_a_plain_key_is_spelled_as_hudi_spells_it(value: Any, kind: pa.DataType, key: str) -> None:
    found = plain_keys(column([value], kind))
    assert found.keys.to_pylist() == [key]
    assert found.bad is None


def test_a_null_or_empty_plain_key_is_bad() -> None:
    bad = plain_keys(column(["a", None, "", "b"], pa.string())).bad
    assert bad is not None and bad.tolist() == [False, True, True, False]


def test_a_complex_key_names_its_fields_and_stands_in_for_null_and_empty() -> None:
    first = column(["1", "2", None, "", None], pa.string())
    second = column(["x", "", "y", None, None], pa.string())
    found = complex_keys(["sid", "st"], [first, second])
    assert found.keys.to_pylist()[:3] == ["sid:1,st:x", "sid:2,st:__empty__", "sid:__null__,st:y"]
    assert found.bad is not None and found.bad.tolist() == [False, False, False, True, True]


TEXTS = st.lists(
    st.sampled_from(["a", ",", ":", "b", ",b:", ",c:", "__null__", "__empty__", "", "é"]), max_size=5
)


@given(rows=st.lists(st.tuples(*[st.none() | TEXTS.map("".join)] * 3), max_size=20, unique=True))
def test_rows_with_keys_that_are_not_ambiguous_have_different_keys(
    rows: list[tuple[str | None, ...]],
) -> None:
    names = ["a", "b", "c"]
    columns = [
        pa.chunked_array([pa.array(part, pa.string())])
        for part in (zip(*rows, strict=True) if rows else [[]] * 3)
    ]
    found = complex_keys(names, columns)
    refused = ambiguous(names, columns)
    bad = np.zeros(len(rows), dtype=np.bool_) if found.bad is None else found.bad
    keys = [key for row, key in enumerate(found.keys.to_pylist()) if row not in refused and not bad[row]]
    assert len(set(keys)) == len(keys)


def test_what_hudi_spells_like_another_row_is_named() -> None:
    columns = [
        column(["1,b:2", "1", None, "__null__", ""], pa.string()),
        column(["3", "2,b:3", "z", "z", "w"], pa.string()),
    ]
    found = ambiguous(["a", "b"], columns)
    assert list(found) == [0, 3]
    assert found[0].startswith("field a of the record key holds ',b:', '__null__' or '__empty__'")
    assert not ambiguous(["a"], [column(["__null__"], pa.string())]), "a key of one field has no other"
    assert not ambiguous(["a", "b"], [column([1], pa.int64()), column([2], pa.int64())])


def test_a_complex_key_of_one_field_still_names_it() -> None:
    assert complex_keys(["id"], [column([7], pa.int64())]).keys.to_pylist() == ["id:7"]


def test_a_key_of_coordinates_is_topic_partition_and_offset() -> None:
    found = coordinate_keys("my-events", 3, np.array([0, 2**62], dtype=np.int64))
    assert found.keys.to_pylist() == ["my-events-3-0", f"my-events-3-{2**62}"]


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.float32(), pa.float64(), pa.binary(), pa.timestamp("us")),
        *(pa.list_(pa.int32()), pa.struct([("x", pa.int32())])),
    ],
)
def test_a_type_without_one_spelling_cannot_be_a_key(kind: pa.DataType) -> None:
    with pytest.raises(SchemaError, match=r"column a: .* cannot be a record key"):
        check_key_field(pa.field("a", kind), "a record key")


def test_a_point_in_time_is_a_key_and_no_table_partition_which_spark_sql_spells_in_another_way() -> None:
    at = pa.field("at", UTC_MICROS)
    check_key_field(at, AS_KEY)
    with pytest.raises(SchemaError, match=r"column at: a TIMESTAMP cannot be a table partition: .*day\(at\)"):
        check_key_field(at, AS_PARTITION)


@pytest.mark.parametrize("kind", [pa.string(), pa.bool_(), pa.date32(), pa.decimal128(10, 2)])
def test_rows_are_not_ordered_by_what_engines_order_differently(kind: pa.DataType) -> None:
    with pytest.raises(SchemaError, match=r"a is .*; rows are ordered by one of INT, BIGINT, TIMESTAMP"):
        check_ordering_field(pa.field("a", kind))


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64(), pa.timestamp("us", tz="UTC")])
def test_rows_are_ordered_by_whole_numbers_and_points_in_time(kind: pa.DataType) -> None:
    check_ordering_field(pa.field("a", kind))


@pytest.mark.parametrize(
    ("value", "hive", "encode", "folder"),
    [
        ("2020-01-02", False, False, "2020-01-02"),
        ("2020-01-02", True, False, "st=2020-01-02"),
        (None, False, False, DEFAULT_PARTITION),
        ("", True, False, f"st={DEFAULT_PARTITION}"),
        ("", True, True, f"st={DEFAULT_PARTITION}"),
        ("a=b%", True, False, "st=a=b%"),
        ("a=b%", True, True, "st=a%3Db%25"),
        ("%41", False, True, "%2541"),
        ("100%", False, False, "100%"),
        ("a/b c", True, True, "st=a%2Fb c"),
        ("a\tb", False, True, "a%09b"),
        ("ü ..", False, True, "ü .."),
        ("..", True, False, "st=.."),
        ("03:04", False, True, "03%3A04"),
        ("\"#'*?\\[]^{}", False, True, "%22%23%27%2A%3F%5C%5B%5D%5E%7B}"),
    ],
)
def test_a_table_partition_is_spelled_as_hudi_spells_it(
    value: Any, hive: bool, encode: bool, folder: str
) -> None:
    assert partition_path(value, "st", hive_style=hive, url_encode=encode) == folder


@pytest.mark.parametrize(
    ("value", "hive", "encode"),
    [
        *(
            (value, False, False)
            for value in ("a/b", "/", ".", "..", ".hoodie", "a\tb", "\0", "12:30", "x" * 201, "%41", "a%2fb")
        ),
        *((value, False, False) for value in ("x=y", "=", "st=a")),  # Spark reads x=y as y
        *((value, True, False) for value in ("a/b", "../..", "a\nb", "12:30", "ü" * 100)),
        *((value, False, True) for value in ("..", ".hoodie", "/" * 67)),
        *((DEFAULT_PARTITION, hive, encode) for hive in (False, True) for encode in (False, True)),
    ],
)
def test_a_value_that_would_escape_nest_or_hide_is_refused(value: str, hive: bool, encode: bool) -> None:
    with pytest.raises(UnsafePartition) as refused:
        partition_path(value, "st", hive_style=hive, url_encode=encode)
    assert "field st" in str(refused.value)


@given(st.text(), st.booleans(), st.booleans())
def test_whatever_is_accepted_is_one_folder_right_below_the_table(
    value: str, hive: bool, encode: bool
) -> None:
    try:
        folder = partition_path(value, "f", hive_style=hive, url_encode=encode)
    except (UnsafePartition, UnicodeEncodeError):
        return
    assert folder and "/" not in folder and "\0" not in folder and not folder.startswith(".")
    assert len(folder.encode()) <= 200
