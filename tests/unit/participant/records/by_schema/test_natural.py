"""Which column each type of a schema has of itself, and which it keeps where the table has one."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from participant.records.avro.columns import row_reader
from participant.records.avro.natural import columns_of
from participant.records.avro.schema import parse
from participant.records.by_schema.following import NoColumn
from participant.records.protobuf.columns import RowReader
from participant.records.protobuf.files import message_of, told
from participant.records.protobuf.follows import columns_of as columns_of_message
from table.schema import parse_ddl
from table.widening import ddl_of, united
from tests.avro_types import TAKEN, record
from tests.proto_files import compiled, encoded


@pytest.mark.parametrize(("avro", "ddl"), [(one[0], one[1]) for one in TAKEN], ids=lambda one: str(one)[:40])
def test_every_type_of_avro_that_goes_into_a_column_has_one_and_keeps_the_one_that_the_table_has(
    avro: Any, ddl: str
) -> None:
    node = parse([record({"x": avro})])
    has = parse_ddl(f"x {ddl}")
    assert united(has, columns_of(node, has)).names == ["x"]
    assert "STRUCT" in ddl or columns_of(node, has) == has
    of_itself = columns_of(node, pa.schema([]))
    row_reader(node, list(of_itself))
    parse_ddl(ddl_of(of_itself))


VARIABLE = {
    "type": "record",
    "name": "VariableScaleDecimal",
    "namespace": "io.debezium.data",
    "fields": [{"name": "scale", "type": "int"}, {"name": "value", "type": "bytes"}],
}


@pytest.mark.parametrize(
    ("avro", "ddl"),
    [
        (VARIABLE, "DECIMAL(20,2)"),
        (VARIABLE, "STRUCT<scale: INT, value: BINARY>"),
        (["null", VARIABLE], "DECIMAL(20,2)"),
        ({"type": "array", "items": VARIABLE}, "ARRAY<DECIMAL(20,2)>"),
        ({"type": "map", "values": ["null", VARIABLE]}, "MAP<STRING,DECIMAL(20,2)>"),
        (record({"y": VARIABLE}, "inner"), "STRUCT<y: DECIMAL(20,2)>"),
        ({"type": "int", "connect.name": "io.debezium.time.Date"}, "DATE"),
        ({"type": "long", "connect.name": "io.debezium.time.Timestamp"}, "TIMESTAMP_NTZ"),
        ({"type": "string", "connect.name": "io.debezium.time.ZonedTimestamp"}, "TIMESTAMP"),
    ],
    ids=lambda one: str(one)[-30:],
)
def test_what_connect_means_keeps_the_column_that_the_table_has(avro: Any, ddl: str) -> None:
    has = parse_ddl(f"x {ddl}")
    avro = json.loads(avro) if isinstance(avro, str) else avro
    assert columns_of(parse([record({"x": avro})]), has) == has


@pytest.mark.parametrize(
    ("kind", "name", "ddl"),
    [
        ("int", "Date", "DATE"),
        ("long", "Timestamp", "TIMESTAMP_NTZ"),
        ("long", "MicroTimestamp", "TIMESTAMP_NTZ"),
        ("long", "NanoTimestamp", "BIGINT"),
        ("string", "ZonedTimestamp", "TIMESTAMP"),
        ("string", "IsoTimestamp", "TIMESTAMP_NTZ"),
        ("string", "IsoDate", "DATE"),
        ("int", "Time", "INT"),
    ],
)
def test_what_debezium_means_is_the_column_of_itself(kind: str, name: str, ddl: str) -> None:
    node = parse([record({"x": ["null", {"type": kind, "connect.name": f"io.debezium.time.{name}"}]})])
    of_itself = columns_of(node, pa.schema([]))
    assert of_itself == parse_ddl(f"x {ddl}")
    row_reader(node, list(of_itself))
    number = {"int": "INT", "long": "BIGINT", "string": "STRING"}[kind]
    assert columns_of(node, parse_ddl(f"x {number}")) == parse_ddl(f"x {number}")


@pytest.mark.parametrize(
    "avro",
    [
        "null",
        ["string", "long"],
        {"type": "bytes", "logicalType": "decimal", "precision": 39, "scale": 0},
        {"type": "array", "items": ["int", "string", "null"]},
    ],
)
def test_what_goes_into_no_column_is_named(avro: Any) -> None:
    with pytest.raises(NoColumn, match="field x"):
        columns_of(parse([record({"id": "string", "x": avro})]), pa.schema([]))


PROTO = """
syntax = "proto3"; package shop; import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto"; import "google/protobuf/duration.proto";
enum Colour { RED = 0; }
message Inner { int32 x = 1; }
message All {
  string s = 1; bool b = 2; int32 i = 3; uint32 u = 4; int64 l = 5; uint64 ul = 6; float f = 7; double d = 8;
  bytes y = 9; Colour c = 10; Inner m = 11; repeated Inner r = 12; map<string, Inner> k = 13;
  google.protobuf.Timestamp t = 14; google.protobuf.Int64Value w = 15; google.protobuf.Duration g = 16;
  oneof one { string o1 = 17; Inner o2 = 18; }
}
message Self { Self self = 1; }
message Empty {}
message Has { Empty e = 1; }
message Keyed { map<int32, string> k = 1; }
"""
OF_ITSELF = (
    "s STRING, b BOOLEAN, i INT, u BIGINT, l BIGINT, ul DECIMAL(20,0), f FLOAT, d DOUBLE, y BINARY, "
    "c STRING, m STRUCT<x: INT>, r ARRAY<STRUCT<x: INT>>, k MAP<STRING, STRUCT<x: INT>>, t TIMESTAMP, "
    "w BIGINT, g STRUCT<seconds: BIGINT, nanos: INT>, o1 STRING, o2 STRUCT<x: INT>"
)
OTHERWISE = (
    "i DOUBLE, u DOUBLE, ul DECIMAL(22,1), c INT, m STRUCT<x: BIGINT>, t STRUCT<seconds: BIGINT, nanos: INT>"
)


def message(name: str) -> Any:
    files = compiled({"shop.proto": PROTO})
    texts = [told(encoded(one), "" if one.name == "shop.proto" else one.name) for one in files.file]
    return message_of(texts, f"shop.{name}")


def test_every_field_of_protobuf_has_a_column_and_keeps_the_one_that_the_table_has() -> None:
    of_itself = columns_of_message(message("All"), pa.schema([]))
    assert ddl_of(of_itself).replace("`", "") == OF_ITSELF
    RowReader(message("All"), list(of_itself))
    has = parse_ddl(OTHERWISE)
    found = columns_of_message(message("All"), has)
    assert [found.field(one.name) for one in has] == list(has)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Self", "field self.self: message shop.Self holds itself"),
        ("Has", "field e: message shop.Empty has no field"),
        ("Keyed", "field k: a map whose keys are no strings"),
    ],
)
def test_a_field_of_protobuf_that_goes_into_no_column_is_named(name: str, why: str) -> None:
    with pytest.raises(NoColumn, match=why):
        columns_of_message(message(name), pa.schema([]))


def connect_decimal(precision: int, scale: int) -> dict[str, Any]:
    name = "org.apache.kafka.connect.data.Decimal"
    return {
        **{"type": "bytes", "connect.name": name, "logicalType": "decimal"},
        **{"precision": precision, "scale": scale},
    }


@pytest.mark.parametrize(
    ("precision", "scale", "ddl"),
    [(10, 2, "DECIMAL(10,2)"), (5, -2, "DECIMAL(7,0)"), (3, 5, "DECIMAL(5,5)"), (38, 0, "DECIMAL(38,0)")],
)
def test_a_decimal_of_connect_has_a_column_with_room_for_all_of_its_numbers(
    precision: int, scale: int, ddl: str
) -> None:
    node = parse([record({"x": connect_decimal(precision, scale)})])
    assert columns_of(node, pa.schema([])) == parse_ddl(f"x {ddl}")


@pytest.mark.parametrize(("precision", "scale"), [(64, 127), (64, -2), (64, 2), (39, 0), (37, -2), (3, 39)])
def test_a_decimal_of_connect_that_has_no_column_is_refused_by_the_name_of_its_field(
    precision: int, scale: int
) -> None:
    node = parse([record({"x": ["null", connect_decimal(precision, scale)]})])
    with pytest.raises(NoColumn, match=rf"field x: a decimal\({precision},{scale}\) goes into no column"):
        columns_of(node, parse_ddl("x BINARY"))
    if precision == 64:
        has = parse_ddl("x DECIMAL(38,10)")
        assert columns_of(node, has) == has
