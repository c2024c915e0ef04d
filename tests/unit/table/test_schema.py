"""Spark DDL to Arrow and to the Avro that Hudi itself would write."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from table.schema import SchemaError, kafka_fields, parse_ddl, record_schema, sanitize, table_schema, to_avro

UTC = pa.timestamp("us", tz="UTC")

NESTED_DDL = (
    "a DECIMAL(10,2), b DATE, c TIMESTAMP, d ARRAY<STRING>, e STRUCT<x: INT, y: DECIMAL(5,1)>, "
    "f MAP<STRING,DOUBLE>, m ARRAY<STRUCT<z: DECIMAL(38,10)>>, n MAP<STRING,STRUCT<q: INT>>, "
    "o STRING NOT NULL, q STRUCT<r: STRUCT<s: INT NOT NULL> NOT NULL> NOT NULL, dd ARRAY<DECIMAL(4,0)>, "
    "aa ARRAY<ARRAY<STRUCT<u: STRING>>> NOT NULL, v BINARY, w TIMESTAMP_NTZ NOT NULL, x ARRAY<BINARY>, "
    "y MAP<STRING,TIMESTAMP_NTZ>"
)
# What HoodieSchemaConversionUtils.convertStructTypeToHoodieSchema of hudi-spark3.5-bundle_2.12 1.2.0 makes of
# the same DDL, with record name ev_record and namespace hoodie.ev.
NESTED_AVRO = """
{"type":"record","name":"ev_record","namespace":"hoodie.ev","fields":[
{"name":"a","type":["null",{"type":"fixed","name":"fixed","namespace":"hoodie.ev.ev_record.a","size":5,
 "logicalType":"decimal","precision":10,"scale":2}],"default":null},
{"name":"b","type":["null",{"type":"int","logicalType":"date"}],"default":null},
{"name":"c","type":["null",{"type":"long","logicalType":"timestamp-micros"}],"default":null},
{"name":"d","type":["null",{"type":"array","items":["null","string"]}],"default":null},
{"name":"e","type":["null",{"type":"record","name":"e","namespace":"hoodie.ev.ev_record","fields":[
 {"name":"x","type":["null","int"],"default":null},
 {"name":"y","type":["null",{"type":"fixed","name":"fixed","namespace":"hoodie.ev.ev_record.e.y","size":3,
  "logicalType":"decimal","precision":5,"scale":1}],"default":null}]}],"default":null},
{"name":"f","type":["null",{"type":"map","values":["null","double"]}],"default":null},
{"name":"m","type":["null",{"type":"array","items":["null",{"type":"record","name":"m",
 "namespace":"hoodie.ev.ev_record","fields":[{"name":"z","type":["null",{"type":"fixed","name":"fixed",
 "namespace":"hoodie.ev.ev_record.m.z","size":16,"logicalType":"decimal","precision":38,"scale":10}],
 "default":null}]}]}],"default":null},
{"name":"n","type":["null",{"type":"map","values":["null",{"type":"record","name":"n",
 "namespace":"hoodie.ev.ev_record","fields":[{"name":"q","type":["null","int"],"default":null}]}]}],
 "default":null},
{"name":"o","type":"string"},
{"name":"q","type":{"type":"record","name":"q","namespace":"hoodie.ev.ev_record","fields":[
 {"name":"r","type":{"type":"record","name":"r","namespace":"hoodie.ev.ev_record.q","fields":[
  {"name":"s","type":"int"}]}}]}},
{"name":"dd","type":["null",{"type":"array","items":["null",{"type":"fixed","name":"fixed",
 "namespace":"hoodie.ev.ev_record.dd","size":2,"logicalType":"decimal","precision":4,"scale":0}]}],
 "default":null},
{"name":"aa","type":{"type":"array","items":["null",{"type":"array","items":["null",{"type":"record",
 "name":"aa","namespace":"hoodie.ev.ev_record","fields":[{"name":"u","type":["null","string"],
 "default":null}]}]}]}},
{"name":"v","type":["null","bytes"],"default":null},
{"name":"w","type":{"type":"long","logicalType":"local-timestamp-micros"}},
{"name":"x","type":["null",{"type":"array","items":["null","bytes"]}],"default":null},
{"name":"y","type":["null",{"type":"map","values":["null",{"type":"long",
 "logicalType":"local-timestamp-micros"}]}],"default":null}]}
"""


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


def test_the_avro_schema_is_the_one_that_hudi_makes_of_the_same_columns() -> None:
    assert json.loads(to_avro(parse_ddl(NESTED_DDL), "ev")) == json.loads(NESTED_AVRO)


@pytest.mark.parametrize(
    ("name", "sane"), [("ev", "ev"), ("my-table.x", "my__table__x"), ("9x é", "__x____"), ("_a9", "_a9")]
)
def test_a_tables_name_becomes_an_avro_name_as_hudi_makes_it(name: str, sane: str) -> None:
    assert sanitize(name) == sane
    avro = json.loads(to_avro(parse_ddl("a INT"), name))
    assert (avro["name"], avro["namespace"]) == (f"{sane}_record", f"hoodie.{sane}")


def test_kafka_columns_come_last_and_are_never_null() -> None:
    schema = table_schema("a INT", kafka_columns=True)
    assert schema.names == ["a", "_kafka_topic", "_kafka_partition", "_kafka_offset", "_kafka_timestamp"]
    assert not any(field.nullable for field in kafka_fields())
    assert record_schema(schema) == table_schema("a INT", kafka_columns=False)
    fields = {f["name"]: f["type"] for f in json.loads(to_avro(schema, "t"))["fields"]}
    assert fields["_kafka_offset"] == "long"
    assert fields["_kafka_timestamp"] == {"type": "long", "logicalType": "timestamp-micros"}
