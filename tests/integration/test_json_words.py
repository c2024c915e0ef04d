"""Texts for NaN and Infinity in FLOAT and DOUBLE columns, compared with Spark's own reader of JSON."""

from __future__ import annotations

import json
from itertools import product

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, from_json

from tests.decoding import batch
from tests.json_decoders import NATIVE, PLAIN
from tests.unit.participant.records.json.test_found_fields import decoder

pytestmark = pytest.mark.integration

DDL = "d DOUBLE, f FLOAT"
SIGNS, WORDS = ("", "+", "-"), ("NaN", "INF", "Infinity", "Inf", "nan", "inf", "infinity", "1.5", "1e3", "")
TEXTS = [f"{sign}{word}" for sign, word in product(SIGNS, WORDS)]


@pytest.mark.parametrize("kind", [NATIVE, PLAIN])
@pytest.mark.parametrize("column", ["d", "f"])
def test_a_text_is_a_number_where_spark_takes_it_for_one(spark: SparkSession, kind: str, column: str) -> None:
    values = [json.dumps({column: text}) for text in TEXTS]
    frame = spark.createDataFrame([(value,) for value in values], "value STRING")
    parsed = frame.select(from_json(col("value"), DDL)[column].alias("found")).collect()
    theirs = {text: repr(row["found"]) for text, row in zip(TEXTS, parsed, strict=True)}
    read = decoder(kind, DDL).decode(batch([value.encode() for value in values]))
    kept = range(len(TEXTS)) if read.kept is None else read.kept.tolist()
    numbers = map(repr, read.table.column(column).to_pylist())
    ours = {**dict.fromkeys(TEXTS, "None"), **{TEXTS[at]: one for at, one in zip(kept, numbers, strict=True)}}
    assert ours == theirs
