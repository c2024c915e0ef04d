"""Buckets are those of Spark's `hash`: some well known values; tests/integration asks it for more."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from table.partitioners.hashes import buckets, spark_hash


@pytest.mark.parametrize(
    ("value", "kind", "known"),
    [
        (1, pa.int32(), -559580957),
        (0, pa.int32(), 933211791),
        (1, pa.int64(), -1712319331),
        ("Spark", pa.string(), 228093765),
        (None, pa.string(), 42),
        (None, pa.int64(), 42),
    ],
)
def test_a_hash_is_sparks(value: Any, kind: pa.DataType, known: int) -> None:
    assert spark_hash(pa.array([value], kind)).view("int32").tolist() == [known]
    assert buckets(pa.array([value], kind), 16).tolist() == [known % 16]


def test_a_text_has_the_same_hash_whatever_is_beside_it() -> None:
    texts = ["", "a", "ab", "abc", "abcd", "abcde", "ü€😀", "x" * 1_001, None]
    together = spark_hash(pa.array(["beside", *texts, *texts]).slice(1)).tolist()
    alone = [spark_hash(pa.array([text], pa.string())).tolist()[0] for text in texts]
    assert together == alone * 2 and len(set(alone)) == len(texts)
    assert spark_hash(pa.array([], pa.string())).tolist() == []
