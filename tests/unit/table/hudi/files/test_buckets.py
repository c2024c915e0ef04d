"""The bucket of a key: whole columns against a loop. What Hudi itself says is in tests/integration."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from table.hudi.files.buckets import buckets
from table.hudi.files.keys import EMPTY_FIELD, NULL_FIELD, complex_keys

ONE, TWO = ("id",), ("sid", "st")
PIECES = ["id:", "sid:", ",st:", ":", ",", NULL_FIELD, EMPTY_FIELD, '"', "ü", "😀", "\0", "\n", "x", "a b"]
KEYS = st.lists(st.sampled_from(PIECES) | st.text(max_size=6), max_size=8).map("".join)
MANY = 2**31 - 1
"""So many buckets tell any two hashes apart."""


def column(values: list[str]) -> pa.ChunkedArray:
    return pa.chunked_array([values], pa.string())


def java_hash(text: str) -> int:
    """`String.hashCode` as Java documents it, without the wrap, which comes last."""
    hashed = 0
    for unit in np.frombuffer(text.encode("utf-16-be"), dtype=">u2").tolist():
        hashed = hashed * 31 + unit
    return hashed


def slow_bucket(key: str, fields: tuple[str, ...], count: int) -> int:
    hashed = 1
    for value in slow_values(key, fields):
        hashed = hashed * 31 + java_hash(value)
    return hashed % 2**31 % count


def slow_values(key: str, fields: tuple[str, ...]) -> list[str]:
    """The searches one after another as Hudi makes them, with an end to its endless one."""
    if "," not in key or ":" not in key:
        return [key]
    values = []
    at = 0
    while at < len(key):
        colon = key.index(":", at)
        later = key.find(":", colon + 1)
        comma = key.rfind(",", 0, later) if later >= 0 else -1
        while later >= 0 and comma < colon:
            later = key.find(":", later + 1)
            comma = key.rfind(",", 0, later) if later >= 0 else -1
        end = comma if later >= 0 else len(key)
        if key[at:colon] in fields or not any(fields):
            value = key[colon + 1 : end]
            values.append("" if value in (NULL_FIELD, EMPTY_FIELD) else value)
        at = end + 1
    return values or [key]


@settings(deadline=None)
@given(st.lists(KEYS), st.sampled_from([ONE, TWO, ()]), st.sampled_from([1, 7, 256, MANY]))
@example(["Smith, J: 10:30", "a:b", "id:7", "a,b", NULL_FIELD, "", "😀,id:ü😀"], ONE, MANY)
@example(["sid:1,st:2", "sid:1,2,st:3,4", "sid:1:2,st:3", "sid:__null__,st:__empty__"], TWO, MANY)
@example(["st:1,sid:2", "sid:1", "sid:1,x:2,st:3", "x:1,st:2", "sid:1,st:2:3", "sid:1,x:2:3"], TWO, MANY)
def test_a_column_is_hashed_like_one_key_after_another(
    keys: list[str], fields: tuple[str, ...], count: int
) -> None:
    found = buckets(column(keys), fields, count)
    assert found.dtype == np.int32
    assert found.tolist() == [slow_bucket(key, fields, count) for key in keys]


@pytest.mark.parametrize(
    ("key", "fields", "values"),
    [
        ("k1", ONE, ["k1"]),
        ("a:b", ONE, ["a:b"]),
        ("a,b", ONE, ["a,b"]),
        ("id:7", ONE, ["id:7"]),
        ("id:7,8", ONE, ["7,8"]),
        ("x:1,id:7", ONE, ["7"]),
        ("Smith, J: 10", ONE, ["Smith, J: 10"]),
        ("Smith, J: 10:30", ONE, ["Smith, J: 10:30"]),
        ("id:1,Smith, J: 10:30", ONE, ["1,Smith"]),
        ("sid:1,st:2", TWO, ["1", "2"]),
        ("sid:a,b:c,st:2", TWO, ["a", "2"]),
        ("sid:1,st:10:30", TWO, ["1", "10:30"]),
        ("sid:__null__,st:__empty__", TWO, ["", ""]),
        ("st:2,sid:1", TWO, ["2", "1"]),
    ],
)
def test_the_strings_that_are_hashed_are_the_ones_hudi_finds_in_the_key(
    key: str, fields: tuple[str, ...], values: list[str]
) -> None:
    hashed = 1
    for value in values:
        hashed = hashed * 31 + java_hash(value)
    assert buckets(column([key]), fields, MANY).tolist() == [hashed % 2**31 % MANY]


def test_a_key_of_several_fields_is_hashed_by_its_values() -> None:
    first = column(["1", "a,b", "x:y"])
    second = pa.chunked_array([["ü", None, ""]], pa.string())
    found = buckets(complex_keys(TWO, [first, second]).keys, TWO, MANY)
    values = [("1", "ü"), ("a,b", ""), ("x:y", "")]
    assert found.tolist() == [((31 + java_hash(a)) * 31 + java_hash(b)) % 2**31 % MANY for a, b in values]


def test_chunks_and_slices_do_not_matter() -> None:
    keys = [f"{'ü' * (n % 3)}{n}{',id:' * (n % 2)}{n}" for n in range(70_000)]
    chunks = pa.chunked_array([keys[:1], [], keys[1:50_000], keys[50_000:]], pa.string())
    whole = buckets(column(keys), ONE, MANY)
    assert np.array_equal(buckets(chunks, ONE, MANY), whole)
    assert np.array_equal(buckets(chunks.slice(3, 66_000), ONE, MANY), whole[3:66_003])
    assert whole[::700].tolist() == [slow_bucket(key, ONE, MANY) for key in keys[::700]]


@pytest.mark.parametrize("key", ["e-{:010d}", "ü{:04d}😀", "{:0>80d}", "id:{:03d},b"])
def test_keys_that_are_all_of_one_width_are_hashed_alike(key: str) -> None:
    keys = [key.format(number * 37 % 1_000) for number in range(100)]
    assert buckets(column(keys), ONE, MANY).tolist() == [slow_bucket(one, ONE, MANY) for one in keys]
    keys.append("of another")
    assert buckets(column(keys), ONE, MANY).tolist() == [slow_bucket(one, ONE, MANY) for one in keys]


def test_no_keys_have_no_buckets() -> None:
    assert buckets(column([]), ONE, 8).tolist() == []
    assert buckets(pa.chunked_array([], pa.string()), ONE, 8).tolist() == []


def test_a_null_key_and_a_table_without_buckets_are_refused() -> None:
    with pytest.raises(ValueError, match="a null key has no bucket"):
        buckets(pa.chunked_array([["a", None]], pa.string()), ONE, 8)
    with pytest.raises(ValueError, match="0 buckets"):
        buckets(column(["a"]), ONE, 0)


def test_a_key_of_a_million_colons_is_hashed() -> None:
    key = "a,b" + ":" * 1_000_000
    hashed = 0
    for unit in key.encode():
        hashed = (hashed * 31 + unit) % 2**32
    assert buckets(column([key]), ONE, MANY).tolist() == [(31 + hashed) % 2**31 % MANY]
