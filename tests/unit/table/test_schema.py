"""Spark DDL to Arrow."""

from __future__ import annotations

import pyarrow as pa
import pytest

from table.schema import SchemaError, kafka_fields, parse_ddl, record_schema, table_schema

UTC = pa.timestamp("us", tz="UTC")


def test_every_type_has_its_arrow_type() -> None:
    ddl = (
        "a STRING, b BIGINT, c INT, d SMALLINT, e TINYINT, f FLOAT, g DOUBLE, h BOOLEAN, i DATE, "
        "j TIMESTAMP, k DECIMAL, l DECIMAL(38,38), m LONG, n REAL, o INTEGER, p NUMERIC(5), "
        "q TIMESTAMP_NTZ, r BINARY"
    )
    types = [pa.string(), pa.int64(), pa.int32(), pa.int32(), pa.int32(), pa.float32(), pa.float64()]
    types += [pa.bool_(), pa.date32(), UTC, pa.decimal128(10, 0), pa.decimal128(38, 38), pa.int64()]
    types += [pa.float32(), pa.int32(), pa.decimal128(5, 0), pa.timestamp("us"), pa.binary()]
    assert parse_ddl(ddl) == pa.schema(
        [pa.field(n, t) for n, t in zip("abcdefghijklmnopqr", types, strict=True)]
    )


def test_not_null_is_kept_at_every_depth_and_comments_are_not() -> None:
    schema = parse_ddl("a STRING NOT NULL COMMENT 'the key', s STRUCT<x: INT NOT NULL, y: INT>, l ARRAY<INT>")
    assert [f.nullable for f in schema] == [False, True, True]
    assert [f.nullable for f in schema.field("s").type] == [False, True]


def test_words_of_sql_are_names_when_they_are_unmistakable() -> None:
    assert parse_ddl("key STRING, value STRING, offset BIGINT, date DATE, order INT, `unique` INT").names == [
        *("key", "value", "offset", "date", "order", "unique")
    ]


@pytest.mark.parametrize(
    ("ddl", "sentence"),
    [
        ("", "the schema has no column"),
        ("a", "'a' is not a column with a type"),
        ("a: INT", "'a' is not a column with a type"),
        ("a FOO", "the schema is not Spark DDL near 'FOO'"),
        ("a INT) USING x", "the schema is not Spark DDL"),
        ("(" * 300, "it is nested too deeply"),
        ("a INT); SELECT (1", "the schema is not a list of columns"),
        ("a INT, PRIMARY KEY (a)", "is not a column with a type"),
        ("a INT DEFAULT 1", "column a: DEFAULT 1 is not supported"),
        ("a INT, A STRING", "column A is there twice"),
        ("s STRUCT<x: INT, X: INT>", "column s.X is there twice"),
        ("_hoodie_record_key STRING", "column _hoodie_record_key: names that begin with _hoodie_ are"),
        ("_KAFKA_offset BIGINT", "column _KAFKA_offset: names that begin with _kafka_ are Lockstep's own"),
        ("`a b` INT", "column a b: a name is made of ASCII letters"),
        ("s STRUCT<`a-b`: INT>", "column s.a-b: a name is made of ASCII letters"),
        ("a BINARY(4)", "column a: type BINARY(4) is not supported"),
        ("a VARCHAR(10)", "column a: type VARCHAR(10) is not supported"),
        ("s ARRAY<STRUCT<x: INTERVAL>>", "column s[].x: type INTERVAL is not supported"),
        ("a DECIMAL(39,1)", "column a: DECIMAL(39,1): the precision is 1 to 38"),
        ("a DECIMAL(5,6)", "column a: DECIMAL(5,6): the precision is 1 to 38, the scale 0 to the precision"),
        ("a ARRAY", "column a: type ARRAY is not supported"),
        ("a MAP<INT,INT>", "column a: a MAP's key is a STRING"),
    ],
)  # fmt: skip
def test_what_a_table_cannot_hold_is_refused_with_the_columns_name(ddl: str, sentence: str) -> None:
    with pytest.raises(SchemaError) as refused:
        parse_ddl(ddl)
    assert sentence in str(refused.value)


def test_kafka_columns_come_last_and_are_never_null() -> None:
    schema = table_schema("a INT", kafka_columns=True)
    assert schema.names == ["a", "_kafka_topic", "_kafka_partition", "_kafka_offset", "_kafka_timestamp"]
    assert not any(field.nullable for field in kafka_fields())
    assert record_schema(schema) == table_schema("a INT", kafka_columns=False)
