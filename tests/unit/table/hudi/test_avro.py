"""The Avro that Hudi itself would write of the same columns."""

from __future__ import annotations

import json

import pytest

from table.hudi.avro import sanitize, to_avro
from table.schema import parse_ddl, table_schema

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


def test_the_avro_schema_is_the_one_that_hudi_makes_of_the_same_columns() -> None:
    assert json.loads(to_avro(parse_ddl(NESTED_DDL), "ev")) == json.loads(NESTED_AVRO)


@pytest.mark.parametrize(
    ("name", "sane"), [("ev", "ev"), ("my-table.x", "my__table__x"), ("9x é", "__x____"), ("_a9", "_a9")]
)
def test_a_tables_name_becomes_an_avro_name_as_hudi_makes_it(name: str, sane: str) -> None:
    assert sanitize(name) == sane
    avro = json.loads(to_avro(parse_ddl("a INT"), name))
    assert (avro["name"], avro["namespace"]) == (f"{sane}_record", f"hoodie.{sane}")


def test_kafka_columns_are_what_hudi_makes_of_them() -> None:
    schema = table_schema("a INT", kafka_columns=True)
    fields = {f["name"]: f["type"] for f in json.loads(to_avro(schema, "t"))["fields"]}
    assert fields["_kafka_offset"] == "long"
    assert fields["_kafka_timestamp"] == {"type": "long", "logicalType": "timestamp-micros"}
